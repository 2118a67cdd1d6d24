//! The read API of the indexer (X2): the rows of the chain as they are, for an explorer without privacy (E2).
//!
//! It has no viewers and no access decisions: every client that reaches it reads every row. Only the process
//! `ledger-gateway indexer` serves it, on an internal address; the gateway never does. It has the paths and records of
//! the data API, because an explorer in direct mode requests them instead.
//!
//! - [`router`]: start reading here. GET only.
//! - `records`: rows of the store as records.
//! - `view`: one state of the chain, and pages on it.
//!
//! Pages: the lists of rows are read by cursor, at most 100 rows at once; tokens, holders, addresses and
//! `transactions/paginated` by offset or page number. No request visits more rows of the store than its page has: logs
//! need an address, or a range of at most a thousand blocks.

mod records;
mod routes;
mod tokens;
mod view;

use crate::{
    index::{BlockValidation, SharedIndex},
    state::{Balances, IndexerProgress},
};
use axum::{Router, routing::get};
use gw_chain_store::ChainStore;
use std::sync::Arc;
use view::AccountList;

/// What the read API needs; cheap to clone.
#[derive(Clone, Debug)]
pub struct UnfilteredState {
    /// The blocks of the chain.
    pub store: ChainStore,
    /// The index of these blocks. An [`IndexFollower`](crate::IndexFollower) writes it.
    pub index: SharedIndex,
    /// Which blocks are on the node's chain.
    pub validation: Arc<dyn BlockValidation>,
    /// Balances that the indexer did not read.
    pub balances: Arc<dyn Balances>,
    /// The progress of the indexer.
    pub indexer: Arc<dyn IndexerProgress>,
    /// The id of the chain.
    pub chain_id: u64,
    /// The addresses by activity, as they were lately.
    pub accounts: AccountCache,
}

/// The addresses by activity, as they were lately; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct AccountCache(Arc<tokio::sync::Mutex<Option<AccountList>>>);

/// All operations below `/api/v1/explorer` that need no viewer. The caller must serve them on an internal address only.
pub fn router(state: UnfilteredState) -> Router {
    let routes = Router::new()
        .route("/chain-id", get(routes::chain_id))
        .route("/stats", get(routes::stats))
        .route("/stats/tx-history", get(routes::tx_history))
        .route("/blocks", get(routes::list_blocks))
        .route("/blocks/latest/number", get(routes::latest_block_number))
        .route("/blocks/hash/{hash}", get(routes::get_block_by_hash))
        .route("/blocks/{number}", get(routes::get_block))
        .route("/blocks/{number}/transactions", get(routes::list_block_transactions))
        .route("/blocks/{number}/internal", get(routes::list_block_internal))
        .route("/transactions", get(routes::list_transactions))
        .route("/transactions/paginated", get(routes::list_transactions_by_page))
        .route("/transactions/{hash}", get(routes::get_transaction))
        .route("/transactions/{hash}/internal", get(routes::list_internal))
        .route("/transactions/{hash}/transfers", get(routes::list_transfers))
        .route("/transactions/{hash}/logs", get(routes::list_logs))
        .route("/addresses/{address}/stats", get(routes::get_address_stats))
        .route(
            "/addresses/{address}/transactions",
            get(routes::list_address_transactions),
        )
        .route("/addresses/{address}/transfers", get(routes::list_address_transfers))
        .route("/addresses/{address}/internal", get(routes::list_address_internal))
        .route("/addresses/{address}/logs", get(routes::list_address_logs))
        .route("/addresses/{address}/balance", get(routes::get_balance))
        .route("/addresses/{address}/code", get(routes::get_code))
        .route("/addresses/{address}/balances", get(routes::list_balances))
        .route("/addresses/{address}/contract", get(routes::get_contract))
        .route("/addresses/{address}/is-contract", get(routes::is_contract))
        .route("/accounts", get(routes::list_accounts))
        .route("/logs", get(routes::list_all_logs))
        .route("/transfers", get(routes::list_all_transfers))
        .route("/tokens", get(tokens::list_tokens))
        .route("/tokens/{address}", get(tokens::get_token))
        .route("/tokens/{address}/holders", get(tokens::list_holders))
        .route("/tokens/{address}/transfers", get(tokens::list_token_transfers))
        .route("/search/suggestions", get(routes::suggest))
        .route("/sync/status", get(routes::sync_status))
        .route("/sync/indexer-progress", get(routes::indexer_progress))
        .route("/sync/catchup", get(routes::catchup))
        .with_state(state);
    Router::new().nest("/api/v1/explorer", routes)
}
