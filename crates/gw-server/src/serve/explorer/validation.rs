//! Which blocks the gateway has validated (HD2): no data of another block is shown.

use arc_swap::ArcSwap;
use gw_chain_store::{ChainStore, ChainStoreError, rows::BlockNumHash};
use gw_evm::BlockId;
use gw_explorer::BlockValidation;
use gw_node::{Node, NodeError, RecentBlocks};
use gw_types::B256;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// Pause before the newest blocks are read again after the node failed.
const RETRY: Duration = Duration::from_millis(500);

/// The followed head of the node and its ancestors. The head advances only to validated blocks.
#[derive(Debug)]
pub(super) struct ValidatedBlocks {
    node: Arc<Node>,
    /// The newest ancestors of a recent head.
    recent: ArcSwap<RecentBlocks>,
}

impl ValidatedBlocks {
    pub(super) fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            recent: ArcSwap::default(),
        }
    }

    /// Follows the head until the future is dropped.
    pub(super) async fn follow(&self) {
        let mut moves = self.node.head_moves();
        loop {
            moves.mark_unchanged();
            match self.node.recent_blocks().await {
                Ok(recent) => {
                    self.recent.store(recent);
                    if moves.changed().await.is_err() {
                        return;
                    }
                }
                Err(_) => sleep(RETRY).await,
            }
        }
    }
}

impl BlockValidation for ValidatedBlocks {
    fn validated_head(&self) -> Option<BlockNumHash> {
        self.node.head().map(|head| BlockNumHash {
            number: head.number,
            hash: head.hash,
        })
    }

    /// Blocks that are older than the recent ones count as ancestors, as in [`Node::follows`]. The store was on the
    /// node's chain when following began ([`is_on_chain`]).
    fn is_validated(&self, block: BlockNumHash) -> bool {
        let Some(head) = self.validated_head() else {
            return false;
        };
        if block.number >= head.number {
            return block == head;
        }
        let recent = self.recent.load();
        let is_current = recent.hash(head.number) == Some(head.hash);
        is_current && recent.hash(block.number).is_none_or(|ancestor| ancestor == block.hash)
    }
}

/// Why the stored chain could not be compared with that of the node.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompareError {
    #[error("the explorer's database could not be read")]
    Store(#[from] ChainStoreError),
    #[error("the node could not be queried")]
    Node(#[from] NodeError),
}

/// Whether the stored blocks are those of the node's chain, up to the followed head. `false` while there is no head.
///
/// # Errors
/// If the store or the node fails.
pub(super) async fn is_on_chain(store: &ChainStore, node: &Node) -> Result<bool, CompareError> {
    let Some(head) = node.head() else { return Ok(false) };
    let reader = store.reader().await?;
    let Some(stored) = &reader.progress().head else {
        return Ok(true);
    };
    let number = stored.block.number.min(head.number);
    let stored: Option<B256> = reader.find_block(number).await?.map(|row| row.block.hash);
    drop(reader);
    let own = if number == head.number {
        Some(head.hash)
    } else {
        node.block(BlockId::Number(number)).await?.map(|block| block.hash)
    };
    Ok(stored.is_some() && stored == own)
}
