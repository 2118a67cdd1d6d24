// One of two tasks by one library, as plainly as its manual has it: `node methods.mjs <ethers|viem> <read|write>`.
// docs/clients.md lists the methods each needs; the settings are those of rpc.mjs, with GW_CONTRACT and GW_TRANSACTION.
import { Contract, ContractFactory, FetchRequest, JsonRpcProvider, Wallet } from "ethers";
import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { settings, token } from "./rpc.mjs";
import { equal } from "./shared.mjs";

const [library, task] = process.argv.slice(2);
const contract = process.env.GW_CONTRACT;
const transaction = process.env.GW_TRANSACTION;
const { abi, bytecode } = token;
const authorization = `Bearer ${settings.token}`;

async function ethers() {
  const request = new FetchRequest(settings.url);
  request.setHeader("Authorization", authorization);
  const provider = new JsonRpcProvider(request, undefined, { pollingInterval: 100 });
  const wallet = new Wallet(settings.key, provider);
  const erc20 = new Contract(contract, abi, wallet);
  const tasks = {
    async read() {
      if ((await provider.getBalance(wallet.address)) === 0n) throw new Error("no balance");
      equal(await erc20.balanceOf(wallet.address), 100n, "tokens");
      equal((await provider.getTransactionReceipt(transaction)).status, 1, "status");
      equal((await erc20.queryFilter(erc20.filters.Transfer(null, wallet.address), 0)).length, 1, "events");
    },
    async write() {
      equal((await (await erc20.transfer(settings.recipient, 1n)).wait()).status, 1, "status");
      await (await new ContractFactory(abi, bytecode, wallet).deploy("Name", "NAM", 1n)).waitForDeployment();
    },
  };
  await tasks[task]();
  provider.destroy();
}

async function viem() {
  const transport = http(settings.url, { fetchOptions: { headers: { Authorization: authorization } } });
  const account = privateKeyToAccount(settings.key);
  const rpcUrls = { default: { http: [settings.url] } };
  const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
  const chain = defineChain({ id: 31337, name: "ledger", nativeCurrency, rpcUrls });
  const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
  const writer = createWalletClient({ account, chain, transport });
  const tasks = {
    async read() {
      if ((await reader.getBalance({ address: account.address })) === 0n) throw new Error("no balance");
      const args = [account.address];
      equal(await reader.readContract({ address: contract, abi, functionName: "balanceOf", args }), 100n, "tokens");
      equal((await reader.getTransactionReceipt({ hash: transaction })).status, "success", "status");
      const events = { address: contract, abi, eventName: "Transfer", args: { to: account.address }, fromBlock: 0n };
      equal((await reader.getContractEvents(events)).length, 1, "events");
    },
    async write() {
      const args = [settings.recipient, 1n];
      const hash = await writer.writeContract({ address: contract, abi, functionName: "transfer", args });
      equal((await reader.waitForTransactionReceipt({ hash })).status, "success", "status");
      const made = await writer.deployContract({ abi, bytecode, args: ["Name", "NAM", 1n] });
      equal((await reader.waitForTransactionReceipt({ hash: made })).status, "success", "status");
    },
  };
  await tasks[task]();
}

await { ethers, viem }[library]();
