// Compiles contracts/src with the pinned npm `solc` and writes contracts/artifacts/<Name>.json {abi, bytecode}.
// Run from the repository root: node contracts/build.mjs [--check]
import { createRequire } from "node:module";
import { readFileSync, readdirSync, writeFileSync, existsSync } from "node:fs";

const root = new URL("..", import.meta.url);
const require = createRequire(new URL("tests/clients/package.json", root));
const solc = require("solc");

const sources = Object.fromEntries(
  readdirSync(new URL("contracts/src/", root))
    .filter((file) => file.endsWith(".sol"))
    .map((file) => [file, { content: readFileSync(new URL(`contracts/src/${file}`, root), "utf8") }]),
);
const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources,
      settings: {
        optimizer: { enabled: true, runs: 200 },
        evmVersion: "cancun",
        metadata: { bytecodeHash: "none" },
        outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
      },
    }),
  ),
);
const errors = (output.errors ?? []).filter((e) => e.severity === "error");
if (errors.length > 0) {
  console.error(errors.map((e) => e.formattedMessage).join("\n"));
  process.exit(1);
}
let stale = 0;
for (const contracts of Object.values(output.contracts)) {
  for (const [name, { abi, evm }] of Object.entries(contracts)) {
    const file = new URL(`contracts/artifacts/${name}.json`, root);
    const text = JSON.stringify({ contractName: name, abi, bytecode: `0x${evm.bytecode.object}` }, null, 1) + "\n";
    if (process.argv.includes("--check")) {
      if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
        console.error(`contracts/artifacts/${name}.json is not what contracts/src compiles to; run node contracts/build.mjs`);
        stale += 1;
      }
    } else {
      writeFileSync(file, text);
    }
  }
}
process.exit(stale > 0 ? 1 : 0);
