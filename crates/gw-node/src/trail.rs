//! The newest blocks by hash: what came since, and what left the chain.
//!
//! Invariant: each block of a trail is the parent of the next, and the last is the head it was made for.

use crate::{Block, NodeError};
use gw_types::B256;
use std::{collections::VecDeque, ops::Range};

/// How many blocks are remembered.
const LENGTH: usize = 256;
/// The most blocks of one question.
const ASKED: u64 = 64;
/// How far down a reorganization is looked for at once.
const STEP: u64 = 8;

/// The newest blocks, oldest first, without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    first: u64,
    hashes: Vec<B256>,
}

impl Trail {
    /// The number after the newest block.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.hashes.len() as u64)
    }

    /// The hash of the block of this number, if it is remembered.
    pub fn hash(&self, number: u64) -> Option<B256> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.hashes.get(place).copied()
    }

    /// Whether this block left the chain. Of blocks older than the trail nothing is known; they are taken to stay.
    pub fn lost(&self, number: u64, hash: B256) -> bool {
        number >= self.first && self.hash(number) != Some(hash)
    }

    /// Where somebody goes on who was told all blocks of `older` below `next`: there, or at the first of them that is
    /// not the same any more.
    pub fn resume(&self, older: &Self, next: u64) -> u64 {
        let told = older.first.max(self.first)..older.end().min(next);
        told.into_iter()
            .find(|number| self.hash(*number) != older.hash(*number))
            .unwrap_or(next)
    }

    /// The trail that ends with `head`, with what is not known yet fetched by number.
    pub(crate) async fn extended<F>(&self, head: Block, fetch: impl Fn(Range<u64>) -> F) -> Result<Self, NodeError>
    where
        F: Future<Output = Result<Vec<Block>, NodeError>>,
    {
        let mut newer = VecDeque::from([head]);
        let mut lowest = head;
        // The first trail begins with its head.
        let begins = self.hashes.is_empty();
        while !begins
            && newer.len() < LENGTH
            && lowest.number > 0
            && self.hash(lowest.number.saturating_sub(1)) != Some(lowest.parent)
        {
            let gap = lowest.number.saturating_sub(self.end());
            let want = if gap == 0 { STEP } else { gap.min(ASKED) };
            for block in fetch(lowest.number.saturating_sub(want)..lowest.number)
                .await?
                .into_iter()
                .rev()
            {
                // The chain moved while it was read: the next look sees it whole.
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
        let joined = self.hash(lowest.number.wrapping_sub(1)) == Some(lowest.parent);
        let mut hashes: Vec<B256> = if joined { kept.copied().collect() } else { Vec::new() };
        hashes.extend(newer.iter().map(|block| block.hash));
        hashes.drain(..hashes.len().saturating_sub(LENGTH));
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

    async fn followed(trail: &Trail, head: u64, fork: u64) -> Trail {
        let fetch = |numbers: Range<u64>| std::future::ready(Ok(numbers.map(|number| block(number, fork)).collect()));
        trail.extended(block(head, fork), fetch).await.unwrap()
    }

    const NEVER: u64 = u64::MAX - 1;

    #[tokio::test]
    async fn a_trail_grows_with_its_head_and_forgets_its_beginning() {
        let trail = followed(&Trail::default(), 10, NEVER).await;
        assert_eq!(
            (trail.end(), trail.hash(9), trail.hash(10)),
            (11, None, Some(block(10, NEVER).hash))
        );
        let longer = followed(&trail, 200, NEVER).await;
        assert_eq!((longer.first, longer.end(), longer.resume(&trail, 11)), (10, 201, 11));
        let moved = followed(&longer, 400, NEVER).await;
        assert_eq!((moved.hashes.len(), moved.end()), (LENGTH, 401));
        let far = followed(&moved, 10_000, NEVER).await;
        assert_eq!(
            (far.first, far.end(), far.resume(&moved, 401)),
            (10_001 - LENGTH as u64, 10_001, 401)
        );
    }

    #[tokio::test]
    async fn ws4_a_reorganization_resumes_at_the_first_other_block() {
        let trail = followed(&followed(&Trail::default(), 10, NEVER).await, 60, NEVER).await;
        for fork in [59, 55, 40, 12] {
            let other = followed(&trail, 61, fork).await;
            assert_eq!(other.resume(&trail, 61), fork + 1);
            assert!(other.lost(fork + 1, block(fork + 1, NEVER).hash) && !other.lost(fork, block(fork, NEVER).hash));
            // Nothing was told above 20: nothing there can be taken back.
            assert_eq!(other.resume(&trail, 20), 20.min(fork + 1));
        }
        // A chain that became shorter.
        let shorter = followed(&trail, 50, 45).await;
        assert_eq!((shorter.end(), shorter.resume(&trail, 61)), (51, 46));
    }

    #[tokio::test]
    async fn a_chain_that_moves_while_it_is_read_gives_no_trail() {
        let trail = followed(&followed(&Trail::default(), 10, NEVER).await, 20, NEVER).await;
        let fetch = |numbers: Range<u64>| std::future::ready(Ok(numbers.map(|number| block(number, 15)).collect()));
        assert!(matches!(
            trail.extended(block(40, 30), fetch).await,
            Err(NodeError::NoHead)
        ));
    }
}
