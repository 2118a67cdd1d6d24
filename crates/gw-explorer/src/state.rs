//! The state shared by the explorer's routes, and what the server provides for it.

use crate::{
    grants::Grants,
    index::{BlockValidation, SharedIndex},
    reads::ViewerReads,
    selection::SelectionCache,
};
use axum::extract::FromRef;
use gw_chain_store::ChainStore;
use gw_http::HttpContext;
use gw_journal::Journal;
use gw_policy::{PolicySettings, snapshot::VisibleState};
use gw_store::{Feed, Store};
use gw_types::{Address, DisclosureGrantId, Seconds, U256};
use std::{future::Future, pin::Pin, sync::Arc};
use tokio_util::task::TaskTracker;

/// The state shared by the explorer's routes; cheap to clone.
#[derive(Clone, Debug)]
pub struct ExplorerState {
    /// Authentication and the source of policy snapshots. It returns no snapshot while policy is stale.
    pub http_context: Arc<HttpContext>,
    /// The policy, for uploads of ABIs.
    pub policy_store: Store,
    /// The feed of the snapshots in `http_context`.
    pub feed: Feed,
    /// The blocks of the chain.
    pub store: ChainStore,
    /// The index of these blocks. An [`IndexFollower`](crate::IndexFollower) writes it.
    pub index: SharedIndex,
    /// Which blocks were validated.
    pub validation: Arc<dyn BlockValidation>,
    /// The rows that viewers may see.
    pub selections: Arc<SelectionCache>,
    /// The limits of the reads of each viewer.
    pub reads: Arc<ViewerReads>,
    /// The journal that records every request.
    pub journal: Arc<Journal>,
    /// The policy settings that every decision uses.
    pub policy_settings: Arc<PolicySettings>,
    /// The grants of disclosure.
    pub grants: Arc<dyn Grants>,
    /// `DISCLOSURE_TIME_BUCKET_SECONDS`: the times of rows on the page of a grant below Full are rounded down to it,
    /// and their blocks are not shown; 0 for exact times.
    pub grant_time_bucket: Seconds,
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

    /// The answer of a token contract at the end of a block, on this state, which undoes withheld changes (HD28).
    /// `None` if the contract gives none, or one that may not be used: the call is traced, and its answer is used under
    /// the conditions under which the indexer stores one (HD26).
    ///
    /// # Errors
    /// [`NodeUnavailable`] if the node does not answer.
    fn token<'a>(&'a self, token: Address, query: TokenQuery, block: u64, state: &'a VisibleState) -> TokenFuture<'a>;
}

/// A number that a token contract reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenQuery {
    /// `totalSupply()`.
    Supply,
    /// `balanceOf(address)`, or `balanceOf(address,uint256)` with a token id of ERC-1155.
    Balance {
        /// The holder.
        holder: Address,
        /// The token id.
        token_id: Option<U256>,
    },
}

impl TokenQuery {
    /// The calldata.
    #[must_use]
    pub fn input(self) -> Vec<u8> {
        let mut input;
        match self {
            Self::Supply => input = vec![0x18, 0x16, 0x0d, 0xdd],
            Self::Balance { holder, token_id } => {
                input = match token_id {
                    None => vec![0x70, 0xa0, 0x82, 0x31],
                    Some(_) => vec![0x00, 0xfd, 0xd5, 0x8e],
                };
                input.extend(holder.into_word());
                input.extend(token_id.iter().flat_map(|id| id.to_be_bytes::<32>()));
            }
        }
        input
    }

    /// The number in the output; `None` if it is no number.
    #[must_use]
    pub fn output(output: &[u8]) -> Option<U256> {
        let word = output.first_chunk::<32>()?;
        Some(U256::from_be_bytes(*word))
    }
}

/// The node does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node does not answer")]
pub struct NodeUnavailable;

/// The answer of [`Balances::token`].
pub type TokenFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<U256>, NodeUnavailable>> + Send + 'a>>;

/// The balance of [`Balances::balance`].
pub type BalanceFuture<'a> = Pin<Box<dyn Future<Output = Option<U256>> + Send + 'a>>;
