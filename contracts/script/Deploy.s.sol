// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {DemoERC20} from "../src/DemoERC20.sol";

interface Vm {
    function startBroadcast(uint256 key) external;
    function stopBroadcast() external;
    function envUint(string calldata name) external view returns (uint256);
    function envAddress(string calldata name) external view returns (address);
}

/// Deploys the demo token and pays some of it out: two transactions, the second to what the first makes.
contract Deploy {
    Vm private constant VM = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function run() external returns (DemoERC20 token) {
        VM.startBroadcast(VM.envUint("GW_PRIVATE_KEY"));
        token = new DemoERC20("Forge Dollar", "FUD", 1_000_000);
        token.transfer(VM.envAddress("GW_RECIPIENT"), 7);
        VM.stopBroadcast();
    }
}
