// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Latch} from "./Slip.sol";

/// What a transaction makes that no trace showed.
contract Note {
    uint256 public text = 42;
}

/// Creates nothing in any block before one.
contract Late {
    address public made;

    function make(uint256 from) external {
        if (block.number >= from) made = address(new Note());
    }
}

/// Carries on what another contract of the same organization holds.
contract Copier {
    uint256 public kept;

    function copy(Latch from) external {
        kept = from.loot();
    }
}

/// Behaves in every block before one; from then on it tells what it took, and hides the tale below calls without number.
contract Flood {
    event Took(uint256 loot);

    function take(address target, bytes calldata data, uint256 from, uint256 calls) external {
        if (block.number < from) return;
        (bool ok, bytes memory out) = target.staticcall(data);
        require(ok, "nothing there");
        emit Took(abi.decode(out, (uint256)));
        new Note();
        for (uint256 i; i < calls; ++i) {
            assembly {
                pop(staticcall(gas(), caller(), 0, 0, 0, 0))
            }
        }
    }
}
