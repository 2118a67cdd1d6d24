// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// Calls itself as often as it is told: what a benchmark of traced frames needs.
contract Frames {
    function calls(uint256 count) external view returns (uint256 sum) {
        for (uint256 i = 0; i < count; i++) {
            sum += this.one();
        }
    }

    function one() external pure returns (uint256) {
        return 1;
    }
}
