//! The state shared by the explorer's routes, and what the server provides for it.

use crate::{
    index::{BlockValidation, SharedIndex},
    selection::SelectionCache,
};
use axum::extract::FromRef;
use gw_chain_store::ChainStore;
use gw_http::HttpContext;
use gw_journal::Journal;
use gw_policy::PolicySettings;
use gw_types::{Address, DisclosureGrantId, U256};
use std::{future::Future, pin::Pin, sync::Arc};
use tokio_util::task::TaskTracker;

/// The state shared by the explorer's routes; cheap to clone.
#[derive(Clone, Debug)]
pub struct ExplorerState {
    /// Authentication and the source of policy snapshots. It returns no snapshot while policy is stale.
    pub http_context: Arc<HttpContext>,
    /// The blocks of the chain.
    pub store: ChainStore,
    /// The index of these blocks. An [`IndexFollower`](crate::IndexFollower) writes it.
    pub index: SharedIndex,
    /// Which blocks were validated.
    pub validation: Arc<dyn BlockValidation>,
    /// The rows that viewers may see.
    pub selections: Arc<SelectionCache>,
    /// The journal that records every request.
    pub journal: Arc<Journal>,
    /// The policy settings that every decision uses.
    pub policy_settings: Arc<PolicySettings>,
    /// The aliases of addresses under grants of disclosure.
    pub aliases: Arc<dyn Aliases>,
    /// Balances that the indexer did not read.
    pub balances: Arc<dyn Balances>,
    /// The progress of the indexer.
    pub indexer: Arc<dyn IndexerProgress>,
    /// The id of the chain.
    pub chain_id: u64,
    /// Tracks requests that outlive their client.
    pub tasks: TaskTracker,
}

impl FromRef<ExplorerState> for Arc<HttpContext> {
    fn from_ref(state: &ExplorerState) -> Self {
        Self::clone(&state.http_context)
    }
}

/// The aliases of addresses under grants of disclosure (spec/30 section 3).
pub trait Aliases: Send + Sync + std::fmt::Debug {
    /// The alias of an address under a grant. Without an alias the address reads `[PRIVATE]`.
    fn alias(&self, grant: DisclosureGrantId, address: Address) -> Option<String>;
}

/// No aliases: there are no grants of disclosure.
#[derive(Clone, Copy, Debug)]
pub struct NoAliases;

impl Aliases for NoAliases {
    fn alias(&self, _: DisclosureGrantId, _: Address) -> Option<String> {
        None
    }
}

/// What the indexer reports about itself.
pub trait IndexerProgress: Send + Sync + std::fmt::Debug {
    /// The newest block of the chain according to the node; `None` if it is not known.
    fn latest_chain_block(&self) -> Option<u64>;
}

/// Reads balances from the node.
pub trait Balances: Send + Sync + std::fmt::Debug {
    /// The balance of an address in wei at the end of a block; `None` if the node does not answer.
    fn balance(&self, address: Address, block: u64) -> BalanceFuture<'_>;
}

/// The balance of [`Balances::balance`].
pub type BalanceFuture<'a> = Pin<Box<dyn Future<Output = Option<U256>> + Send + 'a>>;
