// What the scripts that call /rpc share: settings from the environment, and the demo token.
import { readFileSync } from "node:fs";
import { need } from "./shared.mjs";

/** GW_RPC_URL: the gateway's /rpc; GW_TOKEN: an access token of a member who may deploy; GW_PRIVATE_KEY: the
 *  member's linked key; GW_RECIPIENT: any address. */
export const settings = {
  url: need("GW_RPC_URL"),
  token: need("GW_TOKEN"),
  key: need("GW_PRIVATE_KEY"),
  recipient: need("GW_RECIPIENT"),
};

export const token = JSON.parse(readFileSync(new URL("../../contracts/artifacts/DemoERC20.json", import.meta.url)));
