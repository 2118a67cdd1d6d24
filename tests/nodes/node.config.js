// The node the tests start; everything else about it is as it comes.
export default { solidity: "0.8.28", networks: { node: { type: "edr-simulated", chainId: 31337 } } };
