// viem watchers over a connection that stays, and over polled filters.
import { createPublicClient, createWalletClient, defineChain, http, parseEther, webSocket } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import WebSocket from "ws";
import { settings, token } from "./rpc.mjs";
import { check, equal, finish, once } from "./shared.mjs";

const live = settings.url.replace(/^http/, "ws") + "/ws";
const polled = http(settings.url, { fetchOptions: { headers: { Authorization: `Bearer ${settings.token}` } } });
const account = privateKeyToAccount(settings.key);
const chain = defineChain({
  id: await createPublicClient({ transport: polled }).getChainId(),
  name: "ledger",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [settings.url], webSocket: [live] } },
});
const poller = createPublicClient({ chain, transport: polled, pollingInterval: 100 });
const writer = createWalletClient({ account, chain, transport: polled });
const { abi, bytecode } = token;

// viem opens its sockets itself and takes no headers: the token travels as a subprotocol, as from a browser.
let protocols = ["jsonrpc", `bearer.${settings.token}`];
globalThis.WebSocket = class extends WebSocket {
  constructor(url) {
    super(url, protocols);
  }
};
const listener = createPublicClient({ chain, transport: webSocket(live, { reconnect: false }) });

let address;
await check("deploy", async () => {
  const hash = await writer.deployContract({ abi, bytecode, args: ["Live", "LIV", parseEther("9")] });
  address = (await poller.waitForTransactionReceipt({ hash })).contractAddress;
});
const transfer = async (value) =>
  writer.writeContract({ address, abi, functionName: "transfer", args: [settings.recipient, value] });
async function watched(client, value) {
  let stop;
  const heard = once((tell) => {
    stop = client.watchContractEvent({ address, abi, eventName: "Transfer", onLogs: (logs) => tell(logs[0]) });
  });
  await client.getBlockNumber();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const hash = await transfer(value);
  const log = await heard;
  stop();
  equal(log.args.value, value, "value");
  equal(log.transactionHash, hash, "transaction");
}
await check("contract events over the connection", async () => watched(listener, 5n));
await check("contract events by a filter", async () => watched(poller, 6n));
await check("blocks over the connection", async () => {
  let stop;
  const heard = once((tell) => {
    stop = listener.watchBlocks({ onBlock: tell, emitOnBegin: false });
  });
  await listener.getBlockNumber();
  const receipt = await poller.waitForTransactionReceipt({ hash: await transfer(1n) });
  const block = await heard;
  stop();
  if (block.number < receipt.blockNumber - 1n) throw new Error("an old block");
  equal(block.gasUsed, 0n, "the gas of all");
});
await check("the first message may carry the token", async () => {
  protocols = [];
  const later = createPublicClient({ chain, transport: webSocket(live, { key: "later", reconnect: false }) });
  equal(await later.request({ method: "gateway_authenticate", params: [settings.token] }), true, "answer");
  equal(await later.getChainId(), chain.id, "chain id");
});
finish();
