//! Transfers and allowances that a log records. A log with data of another length than its event, or with a word that
//! is no address where one belongs, is malformed: its parties are screened and its amount is unknown. An unknown amount
//! lowers no sum.

use super::{Effect, EffectKind, Evidence, PartyRole, calls::batch, words::Words};
use crate::token::Token;
use alloy_primitives::b256;
use gw_evm::{abi::clean_address, trace::FrameLog};
use gw_types::{Address, B256, U256};

/// `Transfer(address,address,uint256)` of ERC-20 (three topics) and ERC-721 (four topics).
const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
/// `TransferSingle(address,address,address,uint256,uint256)` of ERC-1155.
const TRANSFER_SINGLE: B256 = b256!("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62");
/// `TransferBatch(address,address,address,uint256[],uint256[])` of ERC-1155.
const TRANSFER_BATCH: B256 = b256!("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb");
/// `Approval(address,address,uint256)` of ERC-20 and ERC-721.
const APPROVAL: B256 = b256!("8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925");
/// `ApprovalForAll(address,address,bool)` of ERC-721 and ERC-1155.
const APPROVAL_FOR_ALL: B256 = b256!("17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31");

/// What one log records.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LogContent {
    pub(super) effects: Vec<Effect>,
    /// Parties of a log that records no effect.
    pub(super) parties: Vec<(PartyRole, Address)>,
}

/// What a log records.
pub(super) fn read(log: &FrameLog) -> LogContent {
    let topics = log.topics.as_slice();
    let Some((event, indexed)) = topics.split_first() else {
        return LogContent::default();
    };
    let effects = match (*event, indexed) {
        (TRANSFER, [from, to]) => {
            let amount = word(&log.data).map(U256::from_be_bytes);
            vec![transfer(log, EffectKind::Erc20, None, [from, to], amount)]
        }
        (TRANSFER, [from, to, id]) => {
            let amount = log.data.is_empty().then_some(U256::ONE);
            vec![transfer(
                log,
                EffectKind::Erc721,
                Some((*id).into()),
                [from, to],
                amount,
            )]
        }
        (TRANSFER, _) => return unindexed(log, indexed),
        (TRANSFER_SINGLE, [_, from, to]) => {
            let (id, amount) = match log.data.as_chunks::<32>() {
                ([id, amount], []) => (Some(U256::from_be_bytes(*id)), Some(U256::from_be_bytes(*amount))),
                _ => (None, None),
            };
            vec![transfer(log, EffectKind::Erc1155, id, [from, to], amount)]
        }
        (TRANSFER_BATCH, [_, from, to]) => match batch(&Words::new(&log.data), 0) {
            Some(pairs) => pairs
                .map(|(id, amount)| transfer(log, EffectKind::Erc1155, Some(id), [from, to], Some(amount)))
                .collect(),
            None => vec![transfer(log, EffectKind::Erc1155, None, [from, to], None)],
        },
        (APPROVAL, [owner, spender] | [owner, spender, _]) | (APPROVAL_FOR_ALL, [owner, spender]) => {
            let spender = low_address(spender);
            // An ERC-721 contract clears the approval of an id when it moves.
            let given = Effect::approval(log.address, low_address(owner), spender, Evidence::Log);
            (!spender.is_zero()).then_some(given).into_iter().collect()
        }
        _ => Vec::new(),
    };
    LogContent {
        effects,
        parties: Vec::new(),
    }
}

fn transfer(
    log: &FrameLog,
    kind: EffectKind,
    id: Option<U256>,
    [from, to]: [&B256; 2],
    amount: Option<U256>,
) -> Effect {
    let is_clean = [from, to].into_iter().all(|topic| clean_address(topic).is_some());
    Effect {
        kind,
        token: Token::Contract(log.address),
        id,
        from: low_address(from),
        to: low_address(to),
        amount: amount.filter(|_| is_clean),
        evidence: Evidence::Log,
    }
}

/// A `Transfer` whose parties are not indexed, as old collectibles emit it. It is no transfer by the rule; its parties
/// are screened.
fn unindexed(log: &FrameLog, indexed: &[B256]) -> LogContent {
    let (data, _) = log.data.as_chunks::<32>();
    let words = indexed.iter().copied().chain(data.iter().map(|word| B256::from(*word)));
    let roles = [PartyRole::Owner, PartyRole::Recipient];
    LogContent {
        effects: Vec::new(),
        parties: roles.into_iter().zip(words.map(|word| low_address(&word))).collect(),
    }
}

/// The only word of the data.
fn word(data: &[u8]) -> Option<[u8; 32]> {
    data.try_into().ok()
}

fn low_address(word: &B256) -> Address {
    Address::from_word(*word)
}
