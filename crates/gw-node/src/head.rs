//! The followed head (decision 41): the block that `latest` means, for every call alike, until the head advances.
//!
//! Invariant: a head that could not be confirmed is not published. The follower publishes its failure, so that readers
//! need no clock.

use crate::{error::NodeError, message::Answer};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use gw_evm::{
    BlockId,
    wire::{self, Pin, UpstreamCall},
};
use gw_types::{Address, B256, U256};
use serde::Deserialize;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex as StdMutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{Mutex, watch};

/// The parts of a block header that the gateway needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The block number.
    pub number: u64,
    /// The block hash, which reads are pinned to (X3).
    pub hash: B256,
    /// The hash of the parent, by which the follower notices a reorganization.
    pub parent: B256,
    /// The block time, in seconds since 1970.
    pub timestamp: u64,
    /// The gas limit of the block, which limits a simulation that names no gas.
    pub gas_limit: u64,
    /// The recipient of the block's fees (X6).
    pub coinbase: Address,
    /// The base fee in wei, on chains that have one.
    pub base_fee: Option<U256>,
}

impl Block {
    /// The number and hash that calls are pinned to.
    pub const fn pin(&self) -> Pin {
        Pin {
            number: self.number,
            hash: self.hash,
        }
    }
}

/// The newest block at the last poll, with the gas price of that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The block.
    pub block: Block,
    /// The answer to `eth_gasPrice` until the next head, in wei.
    pub gas_price: U256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlock {
    number: U256,
    hash: B256,
    parent_hash: B256,
    timestamp: U256,
    gas_limit: U256,
    #[serde(alias = "author")]
    miner: Address,
    #[serde(default)]
    base_fee_per_gas: Option<U256>,
}

/// Gives direct access to the block's fields.
impl core::ops::Deref for Head {
    type Target = Block;
    fn deref(&self) -> &Block {
        &self.block
    }
}

/// The calls of one poll of the head, in the order that [`read`] expects.
pub(crate) fn head_query() -> [UpstreamCall; 2] {
    [wire::header(BlockId::LATEST), wire::gas_price()]
}

/// The block with this hash, for queries of the gateway itself. It may have left the chain.
pub(crate) const fn at_hash(hash: B256) -> BlockId {
    BlockId::Hash {
        hash,
        require_canonical: false,
    }
}

/// Reads the answers to [`head_query`].
pub(crate) fn read(answers: &[Answer<Bytes>]) -> Result<Head, NodeError> {
    let [Answer::Result(block), Answer::Result(price), ..] = answers else {
        return Err(NodeError::Unparsable);
    };
    Ok(Head {
        block: read_block(block)?.ok_or(NodeError::Unparsable)?,
        gas_price: parse(price)?,
    })
}

/// Reads the answer to a query for the chain id.
pub(crate) fn read_chain_id(answer: Option<&Answer<Bytes>>) -> Result<u64, NodeError> {
    match answer {
        Some(Answer::Result(id)) => to_u64(parse::<U256>(id)?),
        Some(Answer::Error(_)) | None => Err(NodeError::Unparsable),
    }
}

/// Reads a block with or without transactions; `null` means that there is no such block.
pub(crate) fn read_block(text: &Bytes) -> Result<Option<Block>, NodeError> {
    let Some(block) = parse::<Option<WireBlock>>(text)? else {
        return Ok(None);
    };
    Ok(Some(Block {
        number: to_u64(block.number)?,
        hash: block.hash,
        parent: block.parent_hash,
        timestamp: to_u64(block.timestamp)?,
        gas_limit: to_u64(block.gas_limit)?,
        coinbase: block.miner,
        base_fee: block.base_fee_per_gas,
    }))
}

/// Parses one JSON text as a typed value.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a Bytes) -> Result<T, NodeError> {
    serde_json::from_slice(text).map_err(|_| NodeError::Unparsable)
}

pub(crate) fn to_u64(number: U256) -> Result<u64, NodeError> {
    number.try_into().map_err(|_| NodeError::Unparsable)
}

/// Most followed blocks that are remembered: more than a replica of a node lags behind.
const MAX_FOLLOWED: usize = 256;

/// The published head, and the lock that merges concurrent polls into one.
#[derive(Debug, Default)]
pub(crate) struct HeadCell {
    current: ArcSwapOption<Head>,
    /// The numbers and hashes of the blocks that were the head, of one branch, the newest last.
    followed: StdMutex<VecDeque<(u64, B256)>>,
    changes: watch::Sender<()>,
    polls_begun: AtomicU64,
    poll_lock: Mutex<()>,
}

impl HeadCell {
    pub(crate) fn load(&self) -> Option<Arc<Head>> {
        self.current.load_full()
    }

    /// Whether this block is an ancestor of the published head, as far as it is remembered: a node that shows it as its
    /// newest one is behind.
    pub(crate) fn is_behind(&self, block: Block) -> bool {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        self.load().is_some_and(|head| block.number < head.number) && followed.contains(&(block.number, block.hash))
    }

    pub(crate) fn publish(&self, head: Option<Head>) {
        if let Some(head) = &head {
            let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
            while followed.pop_back_if(|(number, _)| *number >= head.number).is_some() {}
            // The rest is of another branch if this block does not continue it.
            let parent = head.number.checked_sub(1).map(|number| (number, head.parent));
            if followed
                .back()
                .is_some_and(|last| Some(last.0) == parent.map(|parent| parent.0) && Some(*last) != parent)
            {
                followed.clear();
            }
            followed.push_back((head.number, head.hash));
            while followed.len() > MAX_FOLLOWED {
                followed.pop_front();
            }
        }
        if self.current.load().as_deref() != head.as_ref() {
            self.current.store(head.map(Arc::new));
            self.changes.send_replace(());
        }
    }

    /// A receiver that is marked changed whenever the head changes or becomes invalid.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Publishes a head that was polled after this call began: by `poll`, or by waiting for a poll that began after it.
    pub(crate) async fn renew<E>(&self, poll: impl AsyncFnOnce() -> Result<Head, E>) -> Result<(), E> {
        let begun_before = self.polls_begun.load(Ordering::SeqCst);
        let _guard = self.poll_lock.lock().await;
        if self.polls_begun.load(Ordering::SeqCst) == begun_before {
            self.polls_begun.fetch_add(1, Ordering::SeqCst);
            self.publish(Some(poll().await?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn head(number: u64) -> Head {
        let (hash, parent, coinbase) = (B256::ZERO, B256::ZERO, Address::ZERO);
        let block = Block {
            number,
            hash,
            parent,
            timestamp: 0,
            gas_limit: 0,
            coinbase,
            base_fee: None,
        };
        Head {
            block,
            gas_price: U256::ZERO,
        }
    }

    #[tokio::test]
    async fn a_poll_that_began_before_the_call_does_not_count_for_it() {
        let cell = HeadCell::default();
        let polls = Cell::new(0u64);
        let poll = async || {
            polls.set(polls.get() + 1);
            let number = polls.get();
            tokio::task::yield_now().await;
            Ok::<_, NodeError>(head(number))
        };
        // The first poll begins before the other two calls; those two share the second poll.
        let (first, second, third) = tokio::join!(cell.renew(poll), cell.renew(poll), cell.renew(poll));
        assert!(first.is_ok() && second.is_ok() && third.is_ok());
        assert_eq!(polls.get(), 2);
        assert_eq!(cell.load().map(|head| head.block.number), Some(2));
    }
}
