// What the JavaScript client scripts share: settings from the environment, the demo token, and a check that counts.
import { readFileSync } from "node:fs";

const need = (name) => {
  const value = process.env[name];
  if (!value) {
    console.error(`${name} is not set`);
    process.exit(2);
  }
  return value;
};

/** GW_RPC_URL: the gateway's /rpc; GW_TOKEN: an access token of a member who may deploy; GW_PRIVATE_KEY: the
 *  member's linked key; GW_RECIPIENT: any address. */
export const settings = {
  url: need("GW_RPC_URL"),
  token: need("GW_TOKEN"),
  key: need("GW_PRIVATE_KEY"),
  recipient: need("GW_RECIPIENT"),
};

export const token = JSON.parse(readFileSync(new URL("../../contracts/artifacts/DemoERC20.json", import.meta.url)));

let passed = 0;
let failed = 0;

export async function check(name, run) {
  try {
    const said = await run();
    passed += 1;
    console.log(`ok ${name}${said === undefined ? "" : `: ${said}`}`);
    return said;
  } catch (error) {
    failed += 1;
    console.log(`not ok ${name}: ${error?.stack ?? error}`);
    return undefined;
  }
}

export function equal(actual, expected, what = "value") {
  if (actual !== expected) throw new Error(`${what} is ${actual}, expected ${expected}`);
}

/** What the first call of the callback given to `listen` was told; fails after ten seconds of silence. */
export function once(listen) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("nothing was heard")), 10_000);
    listen((said) => {
      clearTimeout(late);
      resolve(said);
    });
  });
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}
