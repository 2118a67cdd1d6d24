//! What the indexer and the data API learn from the policy and from the node.

use gw_chain_store::rows::BlockNumHash;
use gw_evm::BlockId;
use gw_explorer::{BalanceFuture, Balances, IndexerProgress, NodeUnavailable, TokenFuture, TokenQuery};
use gw_indexer::{TokenReader, ViewPolicy};
use gw_node::Node;
use gw_policy::{
    PolicySettings,
    snapshot::{SystemToggle, VisibleState},
};
use gw_store::Feed;
use gw_types::{Address, Clock};
use std::{collections::BTreeSet, sync::Arc};

/// Stores an answer of a token if it depends only on contracts of the token's own organization, and on shared
/// infrastructure, which everybody may call (HD26).
#[derive(Debug)]
pub(super) struct OwnOrgOnly {
    pub(super) feed: Feed,
    pub(super) policy_settings: Arc<PolicySettings>,
    pub(super) clock: Arc<dyn Clock>,
}

impl ViewPolicy for OwnOrgOnly {
    fn may_depend_on(&self, token: Address, accounts: &BTreeSet<Address>) -> bool {
        let pinned = self.feed.pin();
        if !pinned.fresh {
            return false;
        }
        let snapshot = &pinned.snapshot;
        // If frames within an organization need a grant, its members do not all see what its contracts read.
        let toggle = SystemToggle::IntraOrgGrantTracing;
        let needs_grants = self.policy_settings.toggle(snapshot, toggle, self.clock.now());
        let owner = snapshot.owner(token).filter(|_| !needs_grants);
        accounts.iter().all(|account| {
            let is_own = owner.is_some() && snapshot.owner(*account) == owner;
            is_own || snapshot.shared(*account).is_some()
        })
    }
}

/// The upstream node, as the data API needs it.
#[derive(Debug)]
pub(crate) struct ExplorerNode {
    node: Arc<Node>,
    tokens: TokenReader,
}

impl ExplorerNode {
    /// Answers of tokens are used under the conditions of `policy`.
    pub(crate) fn new(node: Arc<Node>, policy: Arc<dyn ViewPolicy>) -> Self {
        Self {
            tokens: TokenReader::new(Arc::clone(&node), policy),
            node,
        }
    }
}

impl Balances for ExplorerNode {
    fn balance(&self, address: Address, block: u64) -> BalanceFuture<'_> {
        Box::pin(async move {
            let block = self.node.block(BlockId::Number(block)).await.ok()??;
            self.node.balance(address, block.hash).await.ok()
        })
    }

    fn token<'a>(&'a self, token: Address, query: TokenQuery, block: u64, state: &'a VisibleState) -> TokenFuture<'a> {
        Box::pin(async move {
            let block = self.node.block(BlockId::Number(block)).await;
            let block = block.map_err(|_| NodeUnavailable)?.ok_or(NodeUnavailable)?;
            let block = BlockNumHash {
                number: block.number,
                hash: block.hash,
            };
            let output = self.tokens.output(token, query.input().into(), block, state).await;
            let output = output.map_err(|_| NodeUnavailable)?;
            Ok(output.and_then(|output| TokenQuery::output(&output)))
        })
    }
}

impl IndexerProgress for ExplorerNode {
    fn latest_chain_block(&self) -> Option<u64> {
        self.node.head().map(|head| head.number)
    }
}
