// viem against a running gateway.
import { createPublicClient, createWalletClient, defineChain, http, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { settings, token } from "./rpc.mjs";
import { check, equal, finish } from "./shared.mjs";

const transport = http(settings.url, {
  batch: true,
  fetchOptions: { headers: { Authorization: `Bearer ${settings.token}` } },
});
const account = privateKeyToAccount(settings.key);
const probe = createPublicClient({ transport });
const chain = defineChain({
  id: await probe.getChainId(),
  name: "ledger",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [settings.url] } },
});
const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
const writer = createWalletClient({ account, chain, transport });
const { abi, bytecode } = token;

await check("chain id", async () => equal(await reader.getChainId(), chain.id, "chain id"));
await check("own balance", async () => {
  if ((await reader.getBalance({ address: account.address })) === 0n) throw new Error("own balance is zero");
});
await check("nonce", async () => reader.getTransactionCount({ address: account.address }));
await check("fees", async () => (await reader.estimateFeesPerGas()).maxFeePerGas);

let address;
await check("deploy", async () => {
  const hash = await writer.deployContract({ abi, bytecode, args: ["Viem Dollar", "VUD", parseEther("1000")] });
  const receipt = await reader.waitForTransactionReceipt({ hash });
  equal(receipt.status, "success", "status");
  address = receipt.contractAddress;
  return address;
});
await check("call", async () => {
  const balance = await reader.readContract({ address, abi, functionName: "balanceOf", args: [account.address] });
  equal(balance, parseEther("1000"), "balance");
});
await check("simulate and send", async () => {
  const { request } = await reader.simulateContract({
    account,
    address,
    abi,
    functionName: "transfer",
    args: [settings.recipient, parseEther("3")],
  });
  const receipt = await reader.waitForTransactionReceipt({ hash: await writer.writeContract(request) });
  equal(receipt.status, "success", "status");
  equal(receipt.logs.length, 1, "logs");
  const logs = await reader.getContractEvents({ address, abi, eventName: "Transfer", fromBlock: receipt.blockNumber });
  equal(logs.length, 1, "events");
  equal(logs[0].args.value, parseEther("3"), "value");
  const block = await reader.getBlock({ blockNumber: receipt.blockNumber, includeTransactions: true });
  equal(block.transactions.length, 1, "own transactions in the block");
});
await check("revert reason", async () => {
  try {
    await reader.simulateContract({
      account,
      address,
      abi,
      functionName: "transfer",
      args: [settings.recipient, parseEther("1000000")],
    });
  } catch (error) {
    if (!String(error.message).includes("balance exceeded")) throw error;
    return;
  }
  throw new Error("did not revert");
});
finish();
