// A browser wallet on a personal RPC URL: the requests MetaMask makes when it watches an account and sends from it, as
// it shapes them: no token, the extension's origin, large ids, `latest` replaced by the number of the newest block.
import { Transaction, Wallet, keccak256, toQuantity } from "ethers";
import { settings } from "./rpc.mjs";
import { check, equal, finish } from "./shared.mjs";

const url = process.env.GW_PERSONAL_URL;
const contract = process.env.GW_CONTRACT;
if (!url || !contract) throw new Error("GW_PERSONAL_URL or GW_CONTRACT is not set");
const wallet = new Wallet(settings.key);
const me = wallet.address.toLowerCase();
let id = 5_912_000_000_001;

async function ask(method, params = []) {
  id += 1;
  const headers = { "content-type": "application/json", origin: "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn" };
  const body = JSON.stringify({ id, jsonrpc: "2.0", method, params });
  const answer = await fetch(url, { method: "POST", headers, body });
  return { status: answer.status, ...(await answer.json()) };
}

async function result(method, params) {
  const said = await ask(method, params);
  if (said.error !== undefined || said.status !== 200) throw new Error(`${method}: ${JSON.stringify(said)}`);
  equal(said.id, id, "id");
  return said.result;
}

await check("adding the network: chain id and version agree", async () => {
  equal(Number(await result("eth_chainId")), Number(await result("net_version")), "net_version");
});
const block = await check("newest block", () => result("eth_blockNumber"));
await check("own balance at that block", async () => {
  if (BigInt(await result("eth_getBalance", [me, block])) === 0n) throw new Error("own balance reads zero");
});
await check("balances of other accounts read zero", async () => {
  equal(await result("eth_getBalance", [settings.recipient, block]), "0x0", "balance");
});
await check("fee market: the block names a base fee", async () => {
  const { baseFeePerGas } = await result("eth_getBlockByNumber", ["latest", false]);
  if (!baseFeePerGas) throw new Error("no baseFeePerGas");
});
await check("is the recipient a contract? No code is there", async () => {
  equal(await result("eth_getCode", [settings.recipient, block]), "0x", "code");
});
await check("fee history of five blocks", async () => {
  const { baseFeePerGas } = await result("eth_feeHistory", ["0x5", "latest", [10, 20, 30]]);
  if (baseFeePerGas.length < 2) throw new Error("too few base fees");
});
const price = BigInt(await check("gas price", () => result("eth_gasPrice")));
await check("a page asks for a contract: not in a wallet's URL", async () => {
  const said = await ask("eth_call", [{ to: contract, data: "0x18160ddd" }, block]);
  equal(said.status, 404, "status");
  equal(said.error.code, -32601, "code");
});

const call = { from: me, to: settings.recipient, value: "0x3e8" };
const gas = await check("estimate", () => result("eth_estimateGas", [call]));
const nonce = Number(await check("nonce, pending ones included", () => result("eth_getTransactionCount", [me, "pending"])));
const signed = await wallet.signTransaction(
  Transaction.from({
    type: 2,
    chainId: BigInt(await result("eth_chainId")),
    to: settings.recipient,
    value: 1000n,
    nonce,
    gasLimit: BigInt(gas),
    maxFeePerGas: price * 2n,
    maxPriorityFeePerGas: 1_000_000_000n > price ? price : 1_000_000_000n,
  }),
);
const hash = keccak256(signed);
await check("send", async () => equal(await result("eth_sendRawTransaction", [signed]), hash, "hash"));
const receipt = await check("receipt, asked for until it is there", async () => {
  for (let tries = 0; tries < 200; tries += 1) {
    const found = await result("eth_getTransactionReceipt", [hash]);
    if (found !== null) return JSON.stringify(found);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("never mined");
});
await check("its block and the transaction in it", async () => {
  const { blockNumber, status } = JSON.parse(receipt);
  equal(status, "0x1", "status");
  equal((await result("eth_getTransactionByHash", [hash])).blockNumber, blockNumber, "block");
  const { transactions } = await result("eth_getBlockByNumber", [blockNumber, false]);
  equal(transactions.includes(hash), true, "own transaction in the block");
});
await check("the nonce moved on", async () => equal(await result("eth_getTransactionCount", [me, "latest"]), toQuantity(nonce + 1), "nonce"));

finish();
