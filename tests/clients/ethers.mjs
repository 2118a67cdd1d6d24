// ethers v6 with its default batching against a running gateway.
import { Contract, ContractFactory, FetchRequest, JsonRpcProvider, Wallet, parseEther } from "ethers";
import { settings, token } from "./rpc.mjs";
import { check, equal, finish } from "./shared.mjs";

const request = new FetchRequest(settings.url);
request.setHeader("Authorization", `Bearer ${settings.token}`);
// Batching stays as it is by default; the 250 ms answer cache is off because a development chain mines faster than that.
const provider = new JsonRpcProvider(request, undefined, { cacheTimeout: -1, pollingInterval: 100 });
const wallet = new Wallet(settings.key, provider);

await check("chain id", async () => (await provider.getNetwork()).chainId);
await check("block number", async () => provider.getBlockNumber());
await check("own balance", async () => {
  const balance = await provider.getBalance(wallet.address);
  if (balance === 0n) throw new Error("own balance is zero");
  return balance;
});
await check("batched reads", async () => {
  // ethers sends these in one JSON-RPC batch.
  const [nonce, balance, block] = await Promise.all([
    provider.getTransactionCount(wallet.address),
    provider.getBalance(wallet.address),
    provider.getBlockNumber(),
  ]);
  return `nonce ${nonce}, ${balance} wei, block ${block}`;
});
await check("fee data is EIP-1559", async () => {
  const fees = await provider.getFeeData();
  if (fees.maxFeePerGas === null) throw new Error("no maxFeePerGas: clients fall back to legacy transactions");
  return fees.maxFeePerGas;
});

let deployed;
await check("deploy", async () => {
  const factory = new ContractFactory(token.abi, token.bytecode, wallet);
  deployed = await factory.deploy("Ethers Dollar", "EUD", parseEther("1000"));
  await deployed.waitForDeployment();
  return deployed.getAddress();
});
const address = await deployed.getAddress();
const erc20 = new Contract(address, token.abi, wallet);
await check("code", async () => {
  if ((await provider.getCode(address)) === "0x") throw new Error("no code");
});
await check("call", async () => {
  equal(await erc20.balanceOf(wallet.address), parseEther("1000"), "balance");
  equal(await erc20.symbol(), "EUD", "symbol");
});
await check("estimate gas", async () => erc20.transfer.estimateGas(settings.recipient, 1n));
let receipt;
await check("send", async () => {
  const sent = await erc20.transfer(settings.recipient, parseEther("7"));
  receipt = await sent.wait();
  equal(receipt.status, 1, "status");
  return receipt.hash;
});
await check("transaction by hash", async () => {
  const found = await provider.getTransaction(receipt.hash);
  equal(found.from, wallet.address, "from");
  equal(found.to, address, "to");
});
await check("receipt logs", async () => equal(receipt.logs.length, 1, "logs"));
await check("query events", async () => {
  const events = await erc20.queryFilter(erc20.filters.Transfer(wallet.address), receipt.blockNumber);
  equal(events.length, 1, "events");
  equal(events[0].args.value, parseEther("7"), "value");
});
await check("block", async () => {
  const block = await provider.getBlock(receipt.blockNumber);
  if (!block.transactions.includes(receipt.hash)) throw new Error("own transaction is not in its block");
});
await check("revert reason", async () => {
  try {
    await erc20.transfer.staticCall(settings.recipient, parseEther("1000000"));
  } catch (error) {
    equal(error.reason, "balance exceeded", "reason");
    return;
  }
  throw new Error("did not revert");
});
await check("value transfer", async () => {
  const sent = await wallet.sendTransaction({ to: settings.recipient, value: 1n });
  equal((await sent.wait()).status, 1, "status");
});
provider.destroy();
finish();
