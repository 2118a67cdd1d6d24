//! Configuration of the indexer.

use std::{num::NonZeroUsize, time::Duration};

/// Configuration of the indexer.
#[derive(Clone, Debug)]
pub struct IndexerConfig {
    /// The name that other instances show while this one writes.
    pub name: String,
    /// The first block of an empty store.
    pub first_block: u64,
    /// How many blocks stay above the newest indexed block. None in the gateway, whose block validation decides which
    /// blocks exist for users.
    pub confirmations: u64,
    /// How many blocks are read at the same time.
    pub concurrent_reads: NonZeroUsize,
    /// Whether to remove all blocks and start again after a chain reset (`FORCE_REINDEX`).
    pub reindex_after_reset: bool,
    /// The times between attempts.
    pub delays: Delays,
}

/// The times between attempts.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// Between two looks at the head, in case the node's notice of a new head is missed.
    pub poll: Duration,
    /// Before a failed read or write is repeated for the first time; each further time it is doubled.
    pub first_retry: Duration,
    /// The longest time before a failed read or write is repeated.
    pub longest_retry: Duration,
    /// Between two attempts to become the writer.
    pub standby: Duration,
    /// Between two renewals of the writer's lease.
    pub lease: Duration,
    /// Between two looks at the newest finalized block.
    pub finalized: Duration,
}

impl Default for IndexerConfig {
    fn default() -> Self {
        Self {
            name: "indexer".to_owned(),
            first_block: 0,
            confirmations: 0,
            concurrent_reads: NonZeroUsize::MIN.saturating_add(7),
            reindex_after_reset: false,
            delays: Delays::default(),
        }
    }
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(2),
            first_retry: Duration::from_millis(200),
            longest_retry: Duration::from_secs(10),
            standby: Duration::from_secs(5),
            lease: Duration::from_secs(10),
            finalized: Duration::from_secs(10),
        }
    }
}

impl Delays {
    /// The time before the repetition after this many failures.
    pub(crate) fn before_retry(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        self.first_retry.saturating_mul(1 << doublings).min(self.longest_retry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let delays = Delays::default();
        let millis = |failures| delays.before_retry(failures).as_millis();
        assert_eq!(
            [1, 2, 3, 6, 7, u32::MAX].map(millis),
            [200, 400, 800, 6400, 10_000, 10_000]
        );
    }
}
