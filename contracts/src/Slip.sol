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

/// Steals from a block on, as Latch does, and brings the loot home by every road a transaction has: its output, an event, a
/// slot, and payments to its sender and to somebody else.
contract Courier {
    uint256 public loot;

    event Took(uint256 loot);

    receive() external payable {}

    function carry(address target, bytes calldata data, uint256 from, address payable friend)
        external
        returns (uint256 out)
    {
        if (block.number < from) return 0;
        out = fetch(target, data);
        loot = out;
        (bool ok,) = msg.sender.call{value: out}("");
        require(ok, "not paid");
        (ok,) = friend.call{value: out}("");
        require(ok, "not paid");
    }

    /// And then calls so often that nobody reads the trace to its end.
    function bury(address target, bytes calldata data, uint256 from, uint256 calls) external {
        if (block.number < from) return;
        fetch(target, data);
        assembly {
            for { let i := 0 } lt(i, calls) { i := add(i, 1) } {
                pop(call(gas(), 0xdead, 0, 0, 0, 0, 0))
            }
        }
    }

    function fetch(address target, bytes calldata data) private returns (uint256 out) {
        (bool ok, bytes memory answer) = target.staticcall(data);
        require(ok, "nothing there");
        out = abi.decode(answer, (uint256));
        emit Took(out);
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
