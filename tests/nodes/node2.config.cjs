// The node the tests start; everything else about it is as it comes.
module.exports = { solidity: "0.8.28", networks: { hardhat: { chainId: 31337 } } };
