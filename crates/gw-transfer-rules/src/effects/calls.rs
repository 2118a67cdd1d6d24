//! Transfers and allowances that the calldata of one call shows (the rows "static" and "allowances" of spec/60 section
//! 6). Truncated calldata shows none.

use super::{Effect, EffectKind, Evidence, words::Words};
use crate::token::Token;
use alloy_primitives::hex;
use gw_types::{Address, U256};

/// A function selector.
pub(super) type Selector = [u8; 4];

const TRANSFER: Selector = hex!("a9059cbb");
/// ERC-20 and ERC-721 share it: the last argument is an amount or an id.
const TRANSFER_FROM: Selector = hex!("23b872dd");
const SAFE_TRANSFER_FROM: Selector = hex!("42842e0e");
const SAFE_TRANSFER_FROM_WITH_DATA: Selector = hex!("b88d4fde");
const SAFE_TRANSFER_FROM_1155: Selector = hex!("f242432a");
const SAFE_BATCH_TRANSFER_FROM: Selector = hex!("2eb2c2d6");
const SEND: Selector = hex!("9bd9bbc6");
const OPERATOR_SEND: Selector = hex!("62ad1b83");
const TRANSFER_AND_CALL_WITH_DATA: Selector = hex!("4000aea0");
const TRANSFER_AND_CALL: Selector = hex!("1296ee62");
const TRANSFER_FROM_AND_CALL_WITH_DATA: Selector = hex!("c1d34b89");
const TRANSFER_FROM_AND_CALL: Selector = hex!("d8fbe994");
const TRANSFER_WITH_AUTHORIZATION: Selector = hex!("e3ee160e");
const RECEIVE_WITH_AUTHORIZATION: Selector = hex!("ef55bec6");

const APPROVE: Selector = hex!("095ea7b3");
const INCREASE_ALLOWANCE: Selector = hex!("39509351");
const PERMIT: Selector = hex!("d505accf");
const PERMIT_DAI: Selector = hex!("8fcbaf0c");
const SET_APPROVAL_FOR_ALL: Selector = hex!("a22cb465");

/// The selector of calldata.
pub(super) fn selector(input: &[u8]) -> Option<Selector> {
    input.first_chunk().copied()
}

/// The transfers that a call of `caller` to the token contract shows.
pub(super) fn transfers(contract: Address, caller: Address, input: &[u8]) -> Vec<Effect> {
    read_transfers(contract, caller, input).unwrap_or_default()
}

fn read_transfers(contract: Address, caller: Address, input: &[u8]) -> Option<Vec<Effect>> {
    let arguments = |heads| Words::arguments(input, heads);
    let effect = |kind, id, from, to, amount| Effect {
        kind,
        token: Token::Contract(contract),
        id,
        from,
        to,
        amount: Some(amount),
        evidence: Evidence::Calldata,
    };
    // The receiver and the amount are the first arguments, or follow the owner.
    let pays = |heads| {
        let words = arguments(heads)?;
        let paid = effect(EffectKind::Erc20, None, caller, words.address(0)?, words.uint(1)?);
        Some(vec![paid])
    };
    let pays_from = |heads| {
        let words = arguments(heads)?;
        let paid = effect(
            EffectKind::Erc20,
            None,
            words.address(0)?,
            words.address(1)?,
            words.uint(2)?,
        );
        Some(vec![paid])
    };
    match selector(input)? {
        TRANSFER | TRANSFER_AND_CALL => pays(2),
        SEND | TRANSFER_AND_CALL_WITH_DATA => pays(3),
        TRANSFER_FROM | TRANSFER_FROM_AND_CALL => pays_from(3),
        TRANSFER_FROM_AND_CALL_WITH_DATA => pays_from(4),
        OPERATOR_SEND => pays_from(5),
        TRANSFER_WITH_AUTHORIZATION | RECEIVE_WITH_AUTHORIZATION => pays_from(9),
        found @ (SAFE_TRANSFER_FROM | SAFE_TRANSFER_FROM_WITH_DATA) => {
            let words = arguments(if found == SAFE_TRANSFER_FROM { 3 } else { 4 })?;
            let (from, to, id) = (words.address(0)?, words.address(1)?, words.uint(2)?);
            Some(vec![effect(EffectKind::Erc721, Some(id), from, to, U256::ONE)])
        }
        SAFE_TRANSFER_FROM_1155 => {
            let words = arguments(5)?;
            let (from, to, id) = (words.address(0)?, words.address(1)?, words.uint(2)?);
            Some(vec![effect(EffectKind::Erc1155, Some(id), from, to, words.uint(3)?)])
        }
        SAFE_BATCH_TRANSFER_FROM => {
            let words = arguments(5)?;
            let (from, to) = (words.address(0)?, words.address(1)?);
            let paid = batch(&words, 2)?;
            let effects = paid.map(|(id, amount)| effect(EffectKind::Erc1155, Some(id), from, to, amount));
            Some(effects.collect())
        }
        _ => None,
    }
}

/// The ids and amounts of two parallel arrays whose offsets are at `index`; `None` if their lengths differ.
pub(super) fn batch<'a>(words: &Words<'a>, index: usize) -> Option<impl Iterator<Item = (U256, U256)> + 'a> {
    let (count, ids) = words.array(index)?;
    let (amount_count, amounts) = words.array(index.checked_add(1)?)?;
    (count == amount_count).then(|| (0..count).filter_map(move |at| Some((ids.uint(at)?, amounts.uint(at)?))))
}

/// The allowance that a call of `caller` to the token contract gives. The amount does not count: a spender is screened
/// even if the allowance is zero (CO-34).
pub(super) fn allowance(contract: Address, caller: Address, input: &[u8]) -> Option<Effect> {
    let (owner, spender) = match selector(input)? {
        APPROVE | INCREASE_ALLOWANCE | SET_APPROVAL_FOR_ALL => (caller, Words::arguments(input, 2)?.address(0)?),
        found @ (PERMIT | PERMIT_DAI) => {
            let words = Words::arguments(input, if found == PERMIT { 7 } else { 8 })?;
            (words.address(0)?, words.address(1)?)
        }
        _ => return None,
    };
    Some(Effect::approval(contract, owner, spender, Evidence::Calldata))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    /// The selectors are those of the named functions.
    #[test]
    fn selectors_are_hashes_of_signatures() {
        for (selector, signature) in [
            (TRANSFER, "transfer(address,uint256)"),
            (TRANSFER_FROM, "transferFrom(address,address,uint256)"),
            (SAFE_TRANSFER_FROM, "safeTransferFrom(address,address,uint256)"),
            (
                SAFE_TRANSFER_FROM_WITH_DATA,
                "safeTransferFrom(address,address,uint256,bytes)",
            ),
            (
                SAFE_TRANSFER_FROM_1155,
                "safeTransferFrom(address,address,uint256,uint256,bytes)",
            ),
            (
                SAFE_BATCH_TRANSFER_FROM,
                "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)",
            ),
            (SEND, "send(address,uint256,bytes)"),
            (OPERATOR_SEND, "operatorSend(address,address,uint256,bytes,bytes)"),
            (TRANSFER_AND_CALL_WITH_DATA, "transferAndCall(address,uint256,bytes)"),
            (TRANSFER_AND_CALL, "transferAndCall(address,uint256)"),
            (
                TRANSFER_FROM_AND_CALL_WITH_DATA,
                "transferFromAndCall(address,address,uint256,bytes)",
            ),
            (TRANSFER_FROM_AND_CALL, "transferFromAndCall(address,address,uint256)"),
            (
                TRANSFER_WITH_AUTHORIZATION,
                "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
            ),
            (
                RECEIVE_WITH_AUTHORIZATION,
                "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
            ),
            (APPROVE, "approve(address,uint256)"),
            (INCREASE_ALLOWANCE, "increaseAllowance(address,uint256)"),
            (PERMIT, "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)"),
            (
                PERMIT_DAI,
                "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)",
            ),
            (SET_APPROVAL_FOR_ALL, "setApprovalForAll(address,bool)"),
        ] {
            assert_eq!(keccak256(signature).0[..4], selector, "{signature}");
        }
    }
}
