//! The hashes of the newest blocks, to find new blocks and blocks that left the chain.
//!
//! Invariant: each block is the parent of the next, and the last one is the head that the record was made for.

use crate::{error::NodeError, head::Block};
use gw_types::B256;
use std::{collections::VecDeque, ops::Range};

/// Most blocks in the record.
const MAX_BLOCKS: usize = 256;
/// Most blocks in one request to the node.
const BLOCKS_PER_REQUEST: u64 = 64;
/// How many blocks at a time are fetched to find the start of a reorganization.
const REORG_STEP: u64 = 8;

/// The newest blocks, oldest first, without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentBlocks {
    first: u64,
    hashes: Vec<B256>,
}

impl RecentBlocks {
    /// The number after the newest block.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.hashes.len() as u64)
    }

    /// The hash of the block of this number, if it is in the record.
    pub fn hash(&self, number: u64) -> Option<B256> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.hashes.get(index).copied()
    }

    /// Whether this block left the chain. Blocks older than the record count as part of the chain.
    pub fn has_left_chain(&self, number: u64, hash: B256) -> bool {
        number >= self.first && self.hash(number) != Some(hash)
    }

    /// The block number at which a subscription continues that was sent all blocks of `older` below `next`: `next`, or
    /// the first of those blocks that was replaced.
    pub fn resume(&self, older: &Self, next: u64) -> u64 {
        let sent = older.first.max(self.first)..older.end().min(next);
        sent.into_iter()
            .find(|number| self.hash(*number) != older.hash(*number))
            .unwrap_or(next)
    }

    /// The record that ends with `head`; missing blocks are fetched by number.
    pub(crate) async fn extended<F>(&self, head: Block, fetch: impl Fn(Range<u64>) -> F) -> Result<Self, NodeError>
    where
        F: Future<Output = Result<Vec<Block>, NodeError>>,
    {
        let mut newer = VecDeque::from([head]);
        let mut lowest = head;
        // The first record begins with its head.
        let is_first = self.hashes.is_empty();
        while !is_first
            && newer.len() < MAX_BLOCKS
            && lowest.number > 0
            && self.hash(lowest.number.saturating_sub(1)) != Some(lowest.parent)
        {
            let gap = lowest.number.saturating_sub(self.end());
            let count = if gap == 0 {
                REORG_STEP
            } else {
                gap.min(BLOCKS_PER_REQUEST)
            };
            for block in fetch(lowest.number.saturating_sub(count)..lowest.number)
                .await?
                .into_iter()
                .rev()
            {
                // The chain was reorganized while it was read; the next call reads a consistent chain.
                if block.hash != lowest.parent {
                    return Err(NodeError::NoHead);
                }
                newer.push_front(block);
                lowest = block;
            }
        }
        let kept = self
            .hashes
            .iter()
            .take(usize::try_from(lowest.number.saturating_sub(self.first)).unwrap_or(0));
        let is_connected = self.hash(lowest.number.wrapping_sub(1)) == Some(lowest.parent);
        let mut hashes: Vec<B256> = if is_connected {
            kept.copied().collect()
        } else {
            Vec::new()
        };
        hashes.extend(newer.iter().map(|block| block.hash));
        hashes.drain(..hashes.len().saturating_sub(MAX_BLOCKS));
        let first = head.number.saturating_add(1).saturating_sub(hashes.len() as u64);
        Ok(Self { first, hashes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::{Address, U256};

    /// Block `number` of a chain that left the first one above `fork`.
    fn block(number: u64, fork: u64) -> Block {
        let hash = |number: u64| {
            B256::from(U256::from(number + 1) + (U256::from(if number > fork { fork + 1 } else { 0 }) << 64))
        };
        Block {
            number,
            hash: hash(number),
            parent: number.checked_sub(1).map(hash).unwrap_or_default(),
            timestamp: 0,
            gas_limit: 0,
            coinbase: Address::ZERO,
            base_fee: None,
        }
    }

    async fn extended(record: &RecentBlocks, head: u64, fork: u64) -> RecentBlocks {
        let fetch = |numbers: Range<u64>| std::future::ready(Ok(numbers.map(|number| block(number, fork)).collect()));
        record.extended(block(head, fork), fetch).await.unwrap()
    }

    const NO_FORK: u64 = u64::MAX - 1;

    #[tokio::test]
    async fn the_record_grows_with_its_head_and_drops_its_oldest_blocks() {
        let record = extended(&RecentBlocks::default(), 10, NO_FORK).await;
        assert_eq!(
            (record.end(), record.hash(9), record.hash(10)),
            (11, None, Some(block(10, NO_FORK).hash))
        );
        let longer = extended(&record, 200, NO_FORK).await;
        assert_eq!((longer.first, longer.end(), longer.resume(&record, 11)), (10, 201, 11));
        let newer_record = extended(&longer, 400, NO_FORK).await;
        assert_eq!((newer_record.hashes.len(), newer_record.end()), (MAX_BLOCKS, 401));
        let far = extended(&newer_record, 10_000, NO_FORK).await;
        assert_eq!(
            (far.first, far.end(), far.resume(&newer_record, 401)),
            (10_001 - MAX_BLOCKS as u64, 10_001, 401)
        );
    }

    #[tokio::test]
    async fn ws4_a_reorganization_resumes_at_the_first_replaced_block() {
        let record = extended(&extended(&RecentBlocks::default(), 10, NO_FORK).await, 60, NO_FORK).await;
        for fork in [59, 55, 40, 12] {
            let reorganized = extended(&record, 61, fork).await;
            assert_eq!(reorganized.resume(&record, 61), fork + 1);
            assert!(
                reorganized.has_left_chain(fork + 1, block(fork + 1, NO_FORK).hash)
                    && !reorganized.has_left_chain(fork, block(fork, NO_FORK).hash)
            );
            // No block from 20 on was sent, so none is replaced.
            assert_eq!(reorganized.resume(&record, 20), 20.min(fork + 1));
        }
        // A reorganization to a shorter chain.
        let shorter = extended(&record, 50, 45).await;
        assert_eq!((shorter.end(), shorter.resume(&record, 61)), (51, 46));
    }

    #[tokio::test]
    async fn a_chain_reorganized_while_it_is_read_is_an_error() {
        let record = extended(&extended(&RecentBlocks::default(), 10, NO_FORK).await, 20, NO_FORK).await;
        let fetch = |numbers: Range<u64>| std::future::ready(Ok(numbers.map(|number| block(number, 15)).collect()));
        assert!(matches!(
            record.extended(block(40, 30), fetch).await,
            Err(NodeError::NoHead)
        ));
    }
}
