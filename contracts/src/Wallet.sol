// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A contract wallet: whoever its owner's key is, it says yes to (ERC-1271). For tests only.
contract Wallet {
    address public owner;
    /// 0 answers honestly, 1 reverts, 2 burns all gas, 3 says yes in too many bytes.
    uint256 public mood;

    constructor(address owner_) {
        owner = owner_;
    }

    function setOwner(address owner_) external {
        owner = owner_;
    }

    function setMood(uint256 mood_) external {
        mood = mood_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (mood == 1) revert("no");
        if (mood == 2) while (true) {}
        if (mood == 3) {
            assembly {
                mstore(0, 0x1626ba7e00000000000000000000000000000000000000000000000000000000)
                return(0, 64)
            }
        }
        if (signature.length != 65) return 0xffffffff;
        (bytes32 r, bytes32 s) = abi.decode(signature[:64], (bytes32, bytes32));
        return ecrecover(hash, uint8(signature[64]), r, s) == owner ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

/// A registry of names that is its own resolver, as far as a look-up asks (ENS). For tests only.
contract Names {
    mapping(bytes32 => string) public name;
    mapping(bytes32 => address) public addr;

    function set(bytes32 reverse, string calldata name_, bytes32 forward, address addr_) external {
        name[reverse] = name_;
        addr[forward] = addr_;
    }

    function resolver(bytes32 node) external view returns (address) {
        return bytes(name[node]).length > 0 || addr[node] != address(0) ? address(this) : address(0);
    }
}
