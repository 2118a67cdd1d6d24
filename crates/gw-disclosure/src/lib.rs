//! The API of disclosure (spec/50): an owner lets a grantee see data at a level, for a limited time.
//!
//! - [`admin_router`]: requests and grants of organizations, and what grantees read below the same path.
//! - [`router`]: the routes of owners below `/api/v1/me/disclosure`, and the tokens of grantees.
//! - [`DisclosureState::open_grant`]: a grant with its names and addresses, for the explorer's pages of a grant;
//!   [`DisclosureState::preview`]: the grant that an approval would make.
//!
//! Start with these two functions: one line per operation. Each operation has its own file, in a folder named after its
//! path. Not here: state machines, scopes and names (`gw_policy::disclosure`), rows and their audit entries
//! (`gw-store`), and rows of the chain (`gw-explorer`).
//!
//! Invariants: being an administrator opens no disclosed data, only being the grantee does. A read is in the journal
//! before its answer leaves.
#![warn(missing_docs)]

mod activity;
mod admin;
mod caller;
mod canonical;
mod counters;
mod csv;
mod error;
mod events;
mod grantee;
mod grants;
mod input;
mod mask;
mod me;
mod preview;
mod receipt;
mod record;
mod signature;
mod state;
mod wire;

pub use activity::{ActivityCall, ActivityPage, check_activity};
pub use grants::GrantRefusal;
pub use signature::DocumentKey;
pub use state::{DisclosureSettings, DisclosureState};

use axum::{Extension, Router, middleware::from_fn_with_state};
use gw_http::KnownQueries;
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

/// The operations below `/api/v1/admin/disclosure`; each request is recorded. The caller adds the network and body size
/// checks around this router: see [`gw_http::admin::guard`].
pub fn admin_router(state: DisclosureState) -> Router {
    let mask = from_fn_with_state(state.clone(), mask::mask);
    with_layers(Router::from(admin_routes()).layer(mask), state)
}

/// The operations of owners and the tokens of grantees; each request is recorded.
pub fn router(state: DisclosureState) -> Router {
    with_layers(Router::from(routes()), state)
}

fn with_layers(routes: Router<DisclosureState>, state: DisclosureState) -> Router {
    let record = from_fn_with_state(state.clone(), record::record);
    let fresh_policy = from_fn_with_state(state.clone(), record::require_fresh_policy);
    // HD33: the extractors reject query parameters that the API description does not name.
    let known_queries = Extension(KnownQueries::from_api(&api(), &[]));
    routes
        .layer(fresh_policy)
        .layer(known_queries)
        .layer(record)
        .with_state(state)
}

/// The OpenAPI description of all operations.
pub fn api() -> OpenApi {
    routes().merge(admin_routes()).into_openapi()
}

fn admin_routes() -> OpenApiRouter<DisclosureState> {
    OpenApiRouter::new()
        .routes(routes!(
            admin::requests::list::list_disclosure_requests,
            admin::requests::create::create_disclosure_request
        ))
        .routes(routes!(
            admin::requests::get::get_disclosure_request,
            admin::requests::delete::delete_disclosure_request
        ))
        .routes(routes!(admin::grants::list::list_disclosure_grants))
        .routes(routes!(admin::grants::revoke::revoke_disclosure_grant))
        .routes(routes!(admin::check_access::check_disclosure_access))
        .routes(routes!(admin::counters::count_disclosures))
        .routes(routes!(grantee::events::list_disclosure_events))
        .routes(routes!(grantee::logs::list_disclosed_logs))
        .routes(routes!(grantee::summary::get_disclosed_summary))
        .routes(routes!(grantee::report::get_disclosure_report))
}

fn routes() -> OpenApiRouter<DisclosureState> {
    OpenApiRouter::new()
        .routes(routes!(me::requests::list::list_my_pending_disclosure_requests))
        .routes(routes!(me::requests::list::list_my_disclosure_requests))
        .routes(routes!(me::requests::get::get_my_disclosure_request))
        .routes(routes!(me::requests::approve::approve_disclosure_request))
        .routes(routes!(me::requests::reject::reject_disclosure_request))
        .routes(routes!(me::requests::revoke::revoke_disclosure_request))
        .routes(routes!(
            me::grants::list::list_my_active_disclosure_grants,
            me::grants::create::grant_disclosure
        ))
        .routes(routes!(me::grants::list::list_my_disclosure_grants))
        .routes(routes!(me::grants::get::get_my_disclosure_grant))
        .routes(routes!(me::requests::revoke::revoke_my_disclosure_grant))
        .routes(routes!(me::grants::events::list_my_disclosure_events))
        .routes(routes!(me::grants::receipt::get_disclosure_receipt))
        .routes(routes!(me::counters::count_my_disclosures))
        .routes(routes!(me::export::export_my_disclosures))
        .routes(routes!(grantee::token::create_disclosure_token))
}
