// One of two tasks by Hardhat's own provider and signer, GW_TASK: read or write; see ../clients/methods.mjs.
import { BrowserProvider, Contract, ContractFactory } from "ethers";
import { network } from "hardhat";
import { settings, token } from "../clients/rpc.mjs";
import { equal } from "../clients/shared.mjs";

const { provider } = await network.create({ network: "gateway" });
const signer = await new BrowserProvider(provider).getSigner();
const me = await signer.getAddress();
const erc20 = new Contract(process.env.GW_CONTRACT, token.abi, signer);
const tasks = {
  async read() {
    if (BigInt(await provider.request({ method: "eth_getBalance", params: [me, "latest"] })) === 0n) throw new Error("no balance");
    equal(await erc20.balanceOf(me), 100n, "tokens");
    const receipt = await provider.request({ method: "eth_getTransactionReceipt", params: [process.env.GW_TRANSACTION] });
    equal(receipt.status, "0x1", "status");
    equal((await erc20.queryFilter(erc20.filters.Transfer(null, me), 0)).length, 1, "events");
  },
  async write() {
    equal((await (await erc20.transfer(settings.recipient, 1n)).wait()).status, 1, "status");
    await (await new ContractFactory(token.abi, token.bytecode, signer).deploy("Name", "NAM", 1n)).waitForDeployment();
  },
};
await tasks[process.env.GW_TASK]();
process.exit(0);
