// ethers v6 event listeners over a connection that stays, and over polled filters.
import { Contract, ContractFactory, FetchRequest, JsonRpcProvider, Wallet, WebSocketProvider, parseEther } from "ethers";
import WebSocket from "ws";
import { settings, token } from "./rpc.mjs";
import { check, equal, finish, once } from "./shared.mjs";

const live = settings.url.replace(/^http/, "ws") + "/ws";
const headers = { Authorization: `Bearer ${settings.token}` };
// The 250 ms answer cache is off because a development chain mines faster than that.
const provider = new WebSocketProvider(() => new WebSocket(live, { headers }), undefined, { cacheTimeout: -1 });
const wallet = new Wallet(settings.key, provider);
let erc20;

await check("reads over the connection", async () => {
  if ((await provider.getBalance(wallet.address)) === 0n) throw new Error("own balance is zero");
});
await check("deploy over the connection", async () => {
  const deployed = await new ContractFactory(token.abi, token.bytecode, wallet).deploy("Live", "LIV", parseEther("9"));
  await deployed.waitForDeployment();
  erc20 = new Contract(await deployed.getAddress(), token.abi, wallet);
});
await check("contract events", async () => {
  const heard = once((tell) => erc20.on("Transfer", (from, to, value, event) => tell({ from, to, value, event })));
  // Subscribing is asynchronous in ethers; it is done when a later call on the same connection is answered.
  await provider.getBlockNumber();
  const sent = await erc20.transfer(settings.recipient, parseEther("2"));
  const { from, value, event } = await heard;
  equal(from, wallet.address, "from");
  equal(value, parseEther("2"), "value");
  equal(event.log.transactionHash, sent.hash, "transaction");
  await erc20.off("Transfer");
});
await check("blocks", async () => {
  const heard = once((tell) => provider.on("block", tell));
  await provider.getBlockNumber();
  const sent = await erc20.transfer(settings.recipient, 1n);
  const receipt = await sent.wait();
  if ((await heard) < receipt.blockNumber - 1) throw new Error("an old block");
  await provider.off("block");
});
await check("nothing pending", async () => {
  try {
    await provider.send("eth_subscribe", ["newPendingTransactions"]);
  } catch {
    return;
  }
  throw new Error("subscribed to what is pending");
});
// `off` does not wait for its own eth_unsubscribe, which `destroy` then cancels.
process.on("unhandledRejection", (error) => {
  if (error?.operation !== "eth_unsubscribe") throw error;
});
await provider.destroy();

const request = new FetchRequest(settings.url);
request.setHeader("Authorization", headers.Authorization);
const polling = new JsonRpcProvider(request, undefined, { cacheTimeout: -1, pollingInterval: 100, polling: false });
await check("contract events by a filter", async () => {
  const watched = new Contract(await erc20.getAddress(), token.abi, new Wallet(settings.key, polling));
  const heard = once((tell) => watched.on("Transfer", (from, to, value) => tell(value)));
  // ethers makes its filter in its own time: what is sent before is not news.
  let told = false;
  heard.then(() => (told = true));
  while (!told) {
    await (await watched.transfer(settings.recipient, 3n)).wait();
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  equal(await heard, 3n, "value");
  await watched.off("Transfer");
});
polling.destroy();
finish();
