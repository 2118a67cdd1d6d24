// Hardhat as a client of a running gateway; the settings of tests/clients/rpc.mjs.
import { defineConfig } from "hardhat/config";

export default defineConfig({
  networks: {
    gateway: {
      type: "http",
      chainType: "l1",
      url: process.env.GW_RPC_URL,
      accounts: [`0x${process.env.GW_PRIVATE_KEY.replace(/^0x/, "")}`],
      httpHeaders: { Authorization: `Bearer ${process.env.GW_TOKEN}` },
    },
  },
});
