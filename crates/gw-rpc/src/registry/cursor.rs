//! The position of a filter or a subscription in the chain, and the rows that were delivered recently.

use gw_evm::Topic;
use gw_node::RecentBlocks;
use gw_policy::{Disclosed, view::DeliveredLog};
use gw_types::B256;
use std::{
    collections::{HashSet, VecDeque},
    ops::Range,
    sync::Arc,
};

/// The number of blocks during which a delivered row can be marked as removed, and the most bytes of kept rows.
const KEPT_BLOCKS: u64 = 64;
const KEPT_BYTES: usize = 128 * 1024;

/// A topic, a position, and the recently delivered rows.
#[derive(Debug)]
pub(crate) struct LogCursor {
    topic: Topic,
    /// The chain at the last poll.
    recent_blocks: Arc<RecentBlocks>,
    /// The next block to deliver.
    next: u64,
    delivered: VecDeque<DeliveredLog>,
    delivered_bytes: usize,
}

/// The updates since the last poll.
#[derive(Debug)]
pub(crate) enum Updates {
    /// Rows of logs: first the removed ones, whose block left the chain, then the new ones.
    Logs(Vec<Disclosed>),
    /// The hashes of new blocks.
    Blocks(Vec<B256>),
}

impl LogCursor {
    /// A cursor at the block after these.
    pub(crate) fn new(topic: Topic, recent_blocks: Arc<RecentBlocks>) -> Self {
        Self {
            topic,
            next: recent_blocks.end(),
            recent_blocks,
            delivered: VecDeque::new(),
            delivered_bytes: 0,
        }
    }

    pub(crate) const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The blocks of the chain whose updates are to be delivered next.
    pub(crate) fn undelivered(&self, recent_blocks: &RecentBlocks) -> Range<u64> {
        recent_blocks.resume(&self.recent_blocks, self.next)..recent_blocks.end()
    }

    /// Moves the position to block `next` of the chain.
    pub(crate) fn advance(&mut self, recent_blocks: Arc<RecentBlocks>, next: u64) {
        self.recent_blocks = recent_blocks;
        self.next = next;
    }

    /// The next block to deliver.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Moves the position back to block `next`, whose updates were not delivered.
    pub(crate) fn rewind(&mut self, next: u64) {
        self.next = self.next.min(next);
    }

    /// Marks delivered rows that have left the chain as removed, and skips rows that were delivered before (WS-4).
    pub(crate) fn deliver(&mut self, recent_blocks: &RecentBlocks, rows: Vec<DeliveredLog>) -> Vec<Disclosed> {
        let is_removed = |log: &DeliveredLog| recent_blocks.has_left_chain(log.block_number, log.block_hash);
        let removed = self
            .delivered
            .iter()
            .rev()
            .filter(|log| is_removed(log))
            .map(DeliveredLog::removed);
        let mut out: Vec<Disclosed> = removed.collect();
        self.delivered.retain(|log| !is_removed(log));
        let delivered_keys: HashSet<(B256, u64)> = self
            .delivered
            .iter()
            .map(|log| (log.block_hash, log.log_index))
            .collect();
        for log in rows {
            if !delivered_keys.contains(&(log.block_hash, log.log_index)) {
                out.push(log.row.clone());
                self.delivered.push_back(log);
            }
        }
        self.forget_before(recent_blocks.end().saturating_sub(KEPT_BLOCKS));
        out
    }

    fn forget_before(&mut self, block: u64) {
        self.delivered_bytes = self.delivered.iter().map(|log| log.row.as_str().len()).sum();
        while let Some(oldest) = self.delivered.front()
            && (oldest.block_number < block || self.delivered_bytes > KEPT_BYTES)
        {
            self.delivered_bytes = self.delivered_bytes.saturating_sub(oldest.row.as_str().len());
            self.delivered.pop_front();
        }
    }
}
