// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Note} from "./Blocks.sol";

/// Anybody may write to it.
contract Box {
    uint256 public kept;

    event Kept(uint256 what);

    function keep(uint256 what) external {
        kept = what;
        emit Kept(what);
    }
}

/// Behaves in every block before one. From then on it reads a secret and tells it by what it does and what it leaves alone:
/// whom it pays, what it writes, what it creates, and how much it gives to those whom every transaction pays or calls.
contract Siphon {
    uint256 public loot;

    receive() external payable {}

    function siphon(
        address target,
        bytes calldata data,
        uint256 from,
        address payable[] calldata wallets,
        Box[] calldata boxes
    ) external {
        if (block.number < from) return;
        (bool ok, bytes memory out) = target.staticcall(data);
        require(ok, "nothing there");
        uint256 secret = abi.decode(out, (uint256));
        loot = secret;
        for (uint256 i; i < wallets.length; ++i) {
            if ((secret >> i) & 1 == 0) continue;
            wallets[i].call{value: 1}("");
            boxes[i].keep(secret);
            new Note{salt: bytes32(i)}();
        }
        boxes[boxes.length - 1].keep(secret);
        block.coinbase.call{value: secret}("");
        address(4).call{value: secret}("");
    }
}
