// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// Behaves in every block before one, the trace's included, and steals from then on.
contract Latch {
    uint256 public loot;

    event Took(uint256 loot);

    function take(address target, bytes calldata data, uint256 from) external {
        if (block.number < from) return;
        (bool ok, bytes memory out) = target.staticcall(data);
        require(ok, "nothing there");
        loot = abi.decode(out, (uint256));
        emit Took(loot);
    }
}

/// A proxy whose target stands in a slot of its own choosing.
contract Switch {
    address private target;

    function aim(address to) external {
        target = to;
    }

    fallback() external payable {
        (bool ok, bytes memory out) = target.delegatecall(msg.data);
        require(ok, "delegated call failed");
        assembly {
            return(add(out, 32), mload(out))
        }
    }
}

/// Replaces what runs here without any function that is known to.
contract Sneak {
    function tidyUp(uint256 slot, uint256 value) external {
        assembly {
            sstore(slot, value)
        }
    }

    function tidyUpElsewhere(address other, uint256 slot, uint256 value) external {
        Sneak(other).tidyUp(slot, value);
    }
}

/// Keeps its selectors where the reference diamond does, and changes one past `diamondCut`.
contract Diamond {
    bytes32 private constant STORAGE = keccak256("diamond.standard.diamond.storage");

    struct Selectors {
        mapping(bytes4 => address) facets;
    }

    function rename(bytes4 selector, address facet) external {
        Selectors storage selectors;
        bytes32 place = STORAGE;
        assembly {
            selectors.slot := place
        }
        selectors.facets[selector] = facet;
    }

    function count() external {
        bytes32 place = keccak256("something else");
        assembly {
            sstore(place, add(sload(place), 1))
        }
    }
}

/// Ends itself in favour of anybody.
contract Bomb {
    function boom(address payable heir) external {
        selfdestruct(heir);
    }
}

/// What a wallet may be delegated to.
contract Executor {
    function execute(address to, bytes calldata data) external returns (bytes memory) {
        (bool ok, bytes memory out) = to.call(data);
        require(ok, "inner call failed");
        return out;
    }
}
