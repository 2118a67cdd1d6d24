//! The followed head (decision 41): what `latest` means, the same for every call until the node moved on.
//!
//! Invariant: a head that could not be confirmed is no head. The follower publishes its failure, so that readers need
//! no clock.

use crate::{NodeError, message::Answer};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use gw_evm::wire::Pin;
use gw_types::{Address, B256, U256};
use serde::Deserialize;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{Mutex, watch};

/// What the gateway needs to know of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub number: u64,
    /// Its hash: what reads are pinned to (X3).
    pub hash: B256,
    /// The block before it: how the follower notices that others took its place.
    pub parent: B256,
    /// Its time in seconds.
    pub timestamp: u64,
    /// Its gas limit: the cap of a simulation that names no gas.
    pub gas_limit: u64,
    /// Who the block pays (X6).
    pub coinbase: Address,
    /// Its base fee, on chains that have one.
    pub base_fee: Option<U256>,
}

impl Block {
    /// The block as calls are pinned to it.
    pub const fn pin(&self) -> Pin {
        Pin {
            number: self.number,
            hash: self.hash,
        }
    }
}

/// The newest block as of the last look, with the price that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The block.
    pub block: Block,
    /// What `eth_gasPrice` answers until the next head.
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

/// A head is a block.
impl core::ops::Deref for Head {
    type Target = Block;
    fn deref(&self) -> &Block {
        &self.block
    }
}

/// The calls of one look, in the order [`read`] expects.
pub(crate) const LOOK: [(&str, &str); 2] = [("eth_getBlockByNumber", r#"["latest",false]"#), ("eth_gasPrice", "[]")];

/// What is asked beside it of a node that is not in use, in the order [`read`] expects.
pub(crate) const WHO: (&str, &str) = ("eth_chainId", "[]");

/// Reads the answers to [`LOOK`].
pub(crate) fn read(answers: &[Answer<Bytes>]) -> Result<Head, NodeError> {
    let [Answer::Result(block), Answer::Result(price), ..] = answers else {
        return Err(NodeError::Unparsable);
    };
    Ok(Head {
        block: read_block(block)?.ok_or(NodeError::Unparsable)?,
        gas_price: parse(price)?,
    })
}

/// Reads the answer to [`WHO`].
pub(crate) fn read_chain_id(answer: Option<&Answer<Bytes>>) -> Result<u64, NodeError> {
    match answer {
        Some(Answer::Result(id)) => small(parse::<U256>(id)?),
        Some(Answer::Error(_)) | None => Err(NodeError::Unparsable),
    }
}

/// Reads a block with or without transactions; `null` is no block.
pub(crate) fn read_block(text: &Bytes) -> Result<Option<Block>, NodeError> {
    let Some(block) = parse::<Option<WireBlock>>(text)? else {
        return Ok(None);
    };
    Ok(Some(Block {
        number: small(block.number)?,
        hash: block.hash,
        parent: block.parent_hash,
        timestamp: small(block.timestamp)?,
        gas_limit: small(block.gas_limit)?,
        coinbase: block.miner,
        base_fee: block.base_fee_per_gas,
    }))
}

/// One JSON text as a typed fact.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a Bytes) -> Result<T, NodeError> {
    serde_json::from_slice(text).map_err(|_| NodeError::Unparsable)
}

pub(crate) fn small(number: U256) -> Result<u64, NodeError> {
    number.try_into().map_err(|_| NodeError::Unparsable)
}

/// Where the head stands for readers, and what makes many looks one.
#[derive(Debug, Default)]
pub(crate) struct HeadCell {
    current: ArcSwapOption<Head>,
    moved: watch::Sender<()>,
    begun: AtomicU64,
    looking: Mutex<()>,
}

impl HeadCell {
    pub(crate) fn load(&self) -> Option<Arc<Head>> {
        self.current.load_full()
    }

    pub(crate) fn publish(&self, head: Option<Head>) {
        if self.current.load().as_deref() != head.as_ref() {
            self.current.store(head.map(Arc::new));
            self.moved.send_replace(());
        }
    }

    /// Marked changed by every other head, and by none.
    pub(crate) fn moves(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }

    /// Makes the head newer than this call: by `look`, or by waiting for one that began after the call did.
    pub(crate) async fn renew<E>(&self, look: impl AsyncFnOnce() -> Result<Head, E>) -> Result<(), E> {
        let seen = self.begun.load(Ordering::SeqCst);
        let _turn = self.looking.lock().await;
        if self.begun.load(Ordering::SeqCst) == seen {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.publish(Some(look().await?));
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
    async fn a_look_that_began_before_the_call_does_not_count_for_it() {
        let cell = HeadCell::default();
        let looks = Cell::new(0u64);
        let look = async || {
            looks.set(looks.get() + 1);
            let number = looks.get();
            tokio::task::yield_now().await;
            Ok::<_, NodeError>(head(number))
        };
        // The first begins to look before the other two call; those two share the second look.
        let (a, b, c) = tokio::join!(cell.renew(look), cell.renew(look), cell.renew(look));
        assert!(a.is_ok() && b.is_ok() && c.is_ok());
        assert_eq!(looks.get(), 2);
        assert_eq!(cell.load().map(|head| head.block.number), Some(2));
    }
}
