//! The data API of the explorer (spec/40): `/api/v1/explorer/*`.
//!
//! - [`router`]: start reading here, one line per operation.
//! - [`IndexFollower`] keeps the [`SharedIndex`] in step with the chain store, up to the validated head.
//! - `view`: a viewer, a policy snapshot and a state of the chain, for one request. `selection`: the rows of a viewer.
//! - `rows`: rows by their ids, evaluated again by `gw-policy` and written as it says.
//! - [`unfiltered`]: apart from all that, the read API of the process that only indexes. The gateway does not serve it.
//!
//! Invariants of the data API: no row is read that the index did not select, and none is shown that the policy core
//! does not let survive. Without an index that is in step there is no answer. Ids of rows are in no
//! body and no log line, and in cursors only as encrypted positions.
#![warn(missing_docs)]

mod error;
mod grants;
mod index;
mod page;
mod places;
mod position;
mod readings;
mod reads;
mod record;
mod routes;
mod rows;
mod selection;
mod state;
pub mod unfiltered;
mod view;
mod viewer;
mod wire;

pub use grants::{ActivityCall, ActivityPage, GrantFault, GrantFuture, GrantRefusal, Grants, NoGrants, PreviewFuture};
pub use index::{BlockValidation, FollowError, IndexFollower, IndexStep, SharedIndex};
pub use reads::ViewerReads;
pub use selection::SelectionCache;
pub use state::{
    Aliases, BalanceFuture, Balances, ExplorerState, IndexerProgress, NoAliases, NodeUnavailable, TokenFuture,
    TokenQuery,
};
pub use viewer::Impersonation;

use axum::{Router, middleware::from_fn_with_state};
use gw_http::{KnownQueries, known_queries};
use routes::{
    abi, accounts, addresses, blocks, chain, grants as grant_routes, indexing, logs, preview, search, sync, tokens,
    transactions, transfers, viewer as own_routes,
};
use utoipa::openapi::{
    Object, OpenApi, Required, Type,
    path::{Parameter, ParameterBuilder, ParameterIn},
};
use utoipa_axum::{router::OpenApiRouter, routes};

/// All operations below `/api/v1/explorer`; each request is recorded. The caller adds the network check around this
/// router.
pub fn router(state: ExplorerState) -> Router {
    // HD33: query parameters that the API description does not name are rejected.
    let known = from_fn_with_state(KnownQueries::from_api(&api(), &[]), known_queries);
    let audit = from_fn_with_state(state.clone(), record::audit);
    let record = from_fn_with_state(state.clone(), record::record);
    Router::from(operations())
        .layer(known)
        .layer(audit)
        .layer(record)
        .with_state(state)
}

/// The OpenAPI description of all operations.
pub fn api() -> OpenApi {
    let mut api = operations().into_openapi();
    for operation in api.paths.paths.values_mut().filter_map(|item| item.get.as_mut()) {
        operation
            .parameters
            .get_or_insert_default()
            .push(org_parameter().into());
    }
    api
}

/// `X-Org-Id` (HD39).
fn org_parameter() -> Parameter {
    ParameterBuilder::new()
        .name("X-Org-Id")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "The organization whose rights count. The viewer is a member of it; otherwise the answer is 404.",
        ))
        .schema(Some(Object::with_type(Type::String)))
        .build()
}

fn operations() -> OpenApiRouter<ExplorerState> {
    OpenApiRouter::new()
        .routes(routes!(chain::chain_id))
        .routes(routes!(chain::stats))
        .routes(routes!(chain::tx_history))
        .routes(routes!(blocks::list_blocks))
        .routes(routes!(blocks::latest_block_number))
        .routes(routes!(blocks::get_block_by_hash))
        .routes(routes!(blocks::get_block))
        .routes(routes!(blocks::list_block_transactions))
        .routes(routes!(blocks::list_block_internal))
        .routes(routes!(transactions::list_transactions))
        .routes(routes!(transactions::list_transactions_by_page))
        .routes(routes!(transactions::get_transaction))
        .routes(routes!(transactions::list_internal))
        .routes(routes!(transactions::list_transfers))
        .routes(routes!(transactions::list_logs))
        .routes(routes!(transactions::get_op_deposit))
        .routes(routes!(addresses::get_address_stats))
        .routes(routes!(addresses::list_address_transactions))
        .routes(routes!(addresses::list_address_transfers))
        .routes(routes!(addresses::list_address_internal))
        .routes(routes!(addresses::list_address_logs))
        .routes(routes!(addresses::is_contract))
        .routes(routes!(addresses::list_accounts))
        .routes(routes!(logs::list_all_logs))
        .routes(routes!(transfers::list_all_transfers))
        .routes(routes!(accounts::get_balance))
        .routes(routes!(accounts::get_code))
        .routes(routes!(accounts::list_balances))
        .routes(routes!(accounts::get_contract))
        .routes(routes!(abi::set_contract_abi))
        .routes(routes!(tokens::list_tokens))
        .routes(routes!(tokens::get_token))
        .routes(routes!(tokens::list_holders))
        .routes(routes!(tokens::list_token_transfers))
        .routes(routes!(search::suggest))
        .routes(routes!(own_routes::viewable_addresses))
        .routes(routes!(grant_routes::resolve_grant_address))
        .routes(routes!(grant_routes::list_grant_transactions))
        .routes(routes!(grant_routes::list_grant_activity))
        .routes(routes!(preview::preview_disclosure_request))
        .routes(routes!(sync::sync_status))
        .routes(routes!(sync::indexer_progress))
        .routes(routes!(sync::catchup))
        .routes(routes!(indexing::reindex_block))
}
