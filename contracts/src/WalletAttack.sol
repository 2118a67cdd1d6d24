// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// What an attacker links as a wallet: it says yes if a fact about somebody else is so, instead of looking at a signature
/// (ERC-1271). For tests only.
contract OracleWallet {
    uint256 public own = 1;

    /// The signature is the question: what to look at, where, with which calldata, and what the fact is compared with.
    function isValidSignature(bytes32, bytes calldata question) external returns (bytes4) {
        (uint256 kind, address target, bytes memory data, uint256 bound) =
            abi.decode(question, (uint256, address, bytes, uint256));
        uint256 fact;
        bytes memory out;
        if (kind == 0) {
            fact = target.balance;
        } else if (kind == 1) {
            fact = uint256(target.codehash);
        } else if (kind == 2) {
            fact = target.code.length;
        } else if (kind == 3) {
            assembly {
                extcodecopy(target, 0, 0, 32)
                fact := mload(0)
            }
        } else if (kind == 4) {
            (, out) = target.staticcall(data);
        } else if (kind == 5) {
            (, out) = target.delegatecall(data);
        } else if (kind == 6) {
            (bool ok,) = target.call("");
            fact = ok ? 1 : 0;
        } else if (kind == 7) {
            fact = uint160(address(new OracleChild()));
        } else if (kind == 8) {
            fact = own;
        } else {
            fact = address(this).balance + 1;
        }
        if (out.length >= 32) fact = abi.decode(out, (uint256));
        return fact >= bound ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

contract OracleChild {}

/// Holds a secret number, for whoever may ask.
contract Secret {
    uint256 public secret = 42;
}

/// The code that all wallets of a kind share, and the small proxies that are the wallets: laid out like a Safe.
contract SafeSingleton {
    address internal singleton;
    address public owner;

    function setup(address owner_) external {
        require(owner == address(0), "already set up");
        owner = owner_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        (bytes32 r, bytes32 s) = abi.decode(signature[:64], (bytes32, bytes32));
        return ecrecover(hash, uint8(signature[64]), r, s) == owner ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

contract SafeProxy {
    address internal singleton;

    constructor(address singleton_) {
        singleton = singleton_;
    }

    fallback() external payable {
        assembly {
            let code := sload(0)
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), code, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(ok) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }
}
