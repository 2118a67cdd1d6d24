#!/usr/bin/env node
// The pinned npm `solc`, called as forge calls a compiler: `--version`, or `--standard-json` on the standard input.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const solc = createRequire(new URL("../tests/clients/package.json", import.meta.url))("solc");
if (process.argv.includes("--version")) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${solc.version()}`);
} else {
  console.log(solc.compile(readFileSync(0, "utf8")));
}
