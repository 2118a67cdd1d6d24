// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// What an attacker deploys inside his own organization to look at, or act on, what is not his.
contract Forwarder {
    function forward(address target, bytes calldata data) external payable returns (bytes memory) {
        (bool ok, bytes memory out) = target.call{value: msg.value}(data);
        require(ok, "inner call failed");
        return out;
    }

    function delegate(address target, bytes calldata data) external payable returns (bytes memory) {
        (bool ok, bytes memory out) = target.delegatecall(data);
        require(ok, "inner delegatecall failed");
        return out;
    }

    receive() external payable {}
}

/// Reads facts about accounts with opcodes no call frame shows.
contract Probe {
    function balanceOf(address account) external view returns (uint256) {
        return account.balance;
    }

    function codeHashOf(address account) external view returns (bytes32) {
        return account.codehash;
    }

    function codeSizeOf(address account) external view returns (uint256) {
        return account.code.length;
    }

    function touchThenBalance(address payable account) external returns (uint256) {
        (bool ok,) = account.call{value: 0}("");
        require(ok, "touch failed");
        return account.balance;
    }
}

/// Creates contracts at runtime.
contract Factory {
    event Created(address child);

    function create() external returns (address child) {
        child = address(new Child());
        emit Created(child);
    }

    function create2(bytes32 salt) external returns (address child) {
        child = address(new Child{salt: salt}());
        emit Created(child);
    }

    function callAt(address child) external view returns (uint256) {
        return Child(child).answer();
    }
}

contract Child {
    function answer() external pure returns (uint256) {
        return 42;
    }
}

/// Behaves differently by gas left: fine in one run, another thing in the next.
contract GasBranch {
    function read(address target, bytes calldata data, uint256 threshold) external view returns (bytes memory) {
        if (gasleft() < threshold) {
            (, bytes memory out) = target.staticcall(data);
            return out;
        }
        return "";
    }
}

/// Pays coin out to a wallet.
contract Payer {
    receive() external payable {}

    function pay(address payable to, uint256 value) external {
        (bool ok,) = to.call{value: value}("");
        require(ok, "payment failed");
    }
}

/// Logs with addresses in every kind of slot, for redaction.
contract Emitter {
    struct Party {
        address account;
        uint256 amount;
    }

    event Parties(address indexed first, address second, address[] others, Party party, string note);
    event Pair(address[2] pair, uint256 id);

    function emitParties(address first, address second, address[] calldata others, address third, string calldata note)
        external
    {
        emit Parties(first, second, others, Party(third, 7), note);
    }

    function emitPair(address a, address b) external {
        emit Pair([a, b], 100);
    }
}
