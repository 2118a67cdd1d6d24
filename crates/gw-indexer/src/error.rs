//! Why the indexer ends.

use gw_chain_store::ChainStoreError;

/// Why the indexer ended. It must not continue without an operator.
#[derive(Debug, thiserror::Error)]
pub enum IndexerError {
    /// The node's chain does not contain the stored blocks (X6).
    #[error(
        "the chain was reset: the newest indexed block is `{newest}`, the node's newest block is `{head}`; to remove \
         the indexed blocks and start again, set FORCE_REINDEX=true"
    )]
    ChainReset {
        /// The newest stored block.
        newest: u64,
        /// The node's newest block.
        head: u64,
    },
    /// No stored block is on the node's chain.
    #[error(
        "the node serves another chain with the same id: it has none of the indexed blocks; to remove these and start \
         again, set FORCE_REINDEX=true"
    )]
    OtherChain,
    /// The store failed for a reason that a retry does not remove.
    #[error("the database of the explorer failed")]
    Store(#[from] ChainStoreError),
}
