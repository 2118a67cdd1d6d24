// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// A collection of single tokens (ERC-721), as far as an index reads it.
contract Collection {
    string public constant name = "Collection";
    string public constant symbol = "ONE";
    mapping(uint256 => address) public ownerOf;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event ApprovalForAll(address indexed owner, address indexed operator, bool approved);

    function mint(address to, uint256 id) external {
        ownerOf[id] = to;
        balanceOf[to] += 1;
        emit Transfer(address(0), to, id);
    }

    function transferFrom(address from, address to, uint256 id) external {
        require(ownerOf[id] == from, "not the owner");
        ownerOf[id] = to;
        balanceOf[from] -= 1;
        balanceOf[to] += 1;
        emit Transfer(from, to, id);
    }

    function setApprovalForAll(address operator, bool approved) external {
        emit ApprovalForAll(msg.sender, operator, approved);
    }
}

/// Several tokens in one contract (ERC-1155), as far as an index reads them.
contract Bundle {
    mapping(address => mapping(uint256 => uint256)) private balances;

    event TransferSingle(
        address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value
    );
    event TransferBatch(
        address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values
    );

    function balanceOf(address account, uint256 id) external view returns (uint256) {
        return balances[account][id];
    }

    function mint(address to, uint256 id, uint256 value) external {
        balances[to][id] += value;
        emit TransferSingle(msg.sender, address(0), to, id, value);
    }

    function mintBatch(address to, uint256[] calldata ids, uint256[] calldata values) external {
        for (uint256 i = 0; i < ids.length; i++) {
            balances[to][ids[i]] += values[i];
        }
        emit TransferBatch(msg.sender, address(0), to, ids, values);
    }
}

/// A token with a name of the type bytes32, as early tokens have it.
contract EarlyToken {
    bytes32 public constant name = "Early";
    bytes32 public constant symbol = "EAR";
    uint256 public constant totalSupply = 7;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor() {
        balanceOf[msg.sender] = 7;
        emit Transfer(address(0), msg.sender, 7);
    }
}

/// A token whose answers are those of another contract.
contract PryingToken {
    address private immutable other;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(address other_) {
        other = other_;
        emit Transfer(address(0), msg.sender, 1);
    }

    fallback(bytes calldata input) external returns (bytes memory) {
        (, bytes memory output) = other.staticcall(input);
        return output;
    }
}

/// Creates contracts by code, and forwards calls that may fail.
contract Workshop {
    event Made(address made);

    function make(bytes32 salt, bool fails) external returns (address made) {
        made = address(new Collection{salt: salt}());
        emit Made(made);
        new EarlyToken();
        require(!fails, "made for nothing");
    }

    function forward(address to, bytes calldata input) external payable {
        (bool ok,) = to.call{value: msg.value}(input);
        ok;
    }
}

/// A proxy of EIP-1967 that anybody may upgrade.
contract UpgradeableProxy {
    bytes32 private constant SLOT = 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc;

    event Upgraded(address indexed implementation);

    constructor(address implementation) {
        upgrade(implementation);
    }

    function upgrade(address implementation) public {
        assembly {
            sstore(SLOT, implementation)
        }
        emit Upgraded(implementation);
    }
}
