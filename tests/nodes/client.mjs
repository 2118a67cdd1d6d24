// Hardhat against a running gateway: a compiled artefact deployed, called, sent to and refused, through Hardhat's own
// provider with its signer and its headers. Run as `hardhat --config client.config.js run --no-compile client.mjs`.
import { BrowserProvider, ContractFactory, EventLog } from "ethers";
import { network } from "hardhat";
import { settings, token } from "../clients/rpc.mjs";
import { check, equal, finish } from "../clients/shared.mjs";

const { provider } = await network.create({ network: "gateway" });
const signer = await new BrowserProvider(provider).getSigner();
const me = await signer.getAddress();

const contract = await check("deploy", async () => {
  const factory = new ContractFactory(token.abi, token.bytecode, signer);
  const made = await factory.deploy("Hardhat Dollar", "HUD", 1_000n);
  return made.waitForDeployment();
});
if (!contract) finish();
await check("call", async () => equal(await contract.balanceOf(me), 1_000n, "balance"));
await check("send, and its event", async () => {
  const receipt = await (await contract.transfer(settings.recipient, 5n)).wait();
  equal(receipt.status, 1, "status");
  equal(receipt.logs.filter((log) => log instanceof EventLog && log.eventName === "Transfer").length, 1, "Transfer events");
});
await check("logs", async () => equal((await contract.queryFilter("Transfer", 0)).length, 2, "events"));
await check("what a revert says", async () => {
  const error = await contract.transfer(settings.recipient, 50_000n).then(
    () => new Error("it went through"),
    (error) => error,
  );
  if (!/balance exceeded/.test(error.message)) throw error;
});
// Hardhat hides the body of a 404: RPC_DENY_HTTP_STATUS=200 is for clients like it.
await check("a method that is not served", async () => {
  const error = await provider.request({ method: "eth_pendingTransactions" }).then(
    () => new Error("it was served"),
    (error) => error,
  );
  if (!/unexpected status code/.test(error.message)) throw error;
});

finish();
