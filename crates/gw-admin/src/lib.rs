//! The admin API (spec/80): organizations, groups and their access, users and memberships, contracts, grants, logs.
//!
//! Start with [`router`]: one line per operation. Each operation has its own file, in a folder named after its path. A
//! handler checks the caller's scope (`scope`), validates the body, then opens one [`gw_store::Tx`]. Rows, audit
//! entries and the policy epoch are committed in that transaction, and the response is sent after this instance has
//! applied it. No policy is evaluated here.

mod approved_code;
mod body;
mod contracts;
mod dev;
mod diagnostics;
mod error;
mod explorer_access;
mod grants;
mod groups;
mod holds;
mod input;
mod last_admin;
mod mined;
mod orgs;
mod private;
mod record;
mod records;
mod scope;
mod sessions;
mod shared;
mod state;
mod system;
mod tenants;
mod users;
mod webhook;
mod wire;

pub use explorer_access::{ExplorerFuture, ExplorerView, ImpersonatedExplorer};
pub use sessions::{LoginSession, LoginSessions, SessionFuture, SessionsUnavailable};
pub use state::{AdminSettings, AdminState, InstanceFacts};

use axum::{Extension, Router, middleware::from_fn_with_state};
use gw_http::KnownQueries;
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

/// All operations below `/api/v1/admin`; each request is recorded. The caller adds the network and body size checks
/// around this router: see [`gw_http::admin::guard`].
pub fn router(state: AdminState) -> Router {
    let record = from_fn_with_state(state.clone(), record::record);
    let mask = from_fn_with_state(state.clone(), private::mask);
    // HD33: query parameters that the API description does not name are rejected.
    let known_queries = Extension(KnownQueries::from_api(&api(), &[]));
    let routes = if state.settings.personal_urls {
        routes().merge(rpc_urls())
    } else {
        routes()
    };
    let fresh_policy = from_fn_with_state(state.clone(), record::require_fresh_policy);
    let routes = Router::from(routes).merge(diagnostics::explorer::routes());
    routes
        .layer(fresh_policy)
        .layer(known_queries)
        .layer(mask)
        .layer(record)
        .with_state(state)
}

/// The OpenAPI description of all operations, including those that the configuration switches off.
pub fn api() -> OpenApi {
    routes().merge(rpc_urls()).into_openapi()
}

/// Operations that exist only with `PERSONAL_RPC_URLS`.
fn rpc_urls() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(users::rpc_urls::list_user_rpc_urls))
        .routes(routes!(users::rpc_urls::end_user_rpc_url))
}

fn routes() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(orgs::list::list_orgs, orgs::create::create_org))
        .routes(routes!(
            orgs::get::get_org,
            orgs::update::update_org,
            orgs::delete::delete_org
        ))
        .routes(routes!(
            webhook::get::get_webhook,
            webhook::set::set_webhook,
            webhook::delete::delete_webhook
        ))
        .routes(routes!(webhook::test::test_webhook))
        .routes(routes!(groups::list::list_groups, groups::create::create_group))
        .routes(routes!(
            groups::get::get_group,
            groups::update::update_group,
            groups::delete::delete_group
        ))
        .routes(routes!(groups::batch_delete::batch_delete_preview))
        .routes(routes!(groups::batch_delete::batch_delete))
        .routes(routes!(groups::access::get_access, groups::access::set_access))
        .routes(routes!(users::list::list_users))
        .routes(routes!(
            users::get::get_user,
            users::update::update_user,
            users::delete::delete_user
        ))
        .routes(routes!(
            users::memberships::list_memberships,
            users::memberships::add_membership
        ))
        .routes(routes!(users::memberships::remove_membership))
        .routes(routes!(users::memberships::confirm_membership))
        .routes(routes!(users::by_did::add_by_did, users::by_did::remove_by_did))
        .routes(routes!(
            users::sessions::list_user_sessions,
            users::sessions::end_user_sessions
        ))
        .routes(routes!(users::sessions::end_user_session))
        .routes(routes!(users::effective_permissions::effective_permissions))
        .routes(routes!(users::links::list_linked_addresses))
        .routes(routes!(users::links::revoke_linked_address))
        .routes(routes!(users::links::list_collisions))
        .routes(routes!(
            contracts::list::list_contracts,
            contracts::create::create_contract
        ))
        .routes(routes!(
            contracts::get::get_contract,
            contracts::update::update_contract,
            contracts::delete::delete_contract
        ))
        .routes(routes!(contracts::claim::claim_contract))
        .routes(routes!(contracts::sync::sync_check))
        .routes(routes!(contracts::sync::sync_delete))
        .routes(routes!(contracts::batch_move::batch_move))
        .routes(routes!(contracts::abi::set_abi))
        .routes(routes!(contracts::events::list_events))
        .routes(routes!(contracts::flags::set_visibleto_unlock))
        .routes(routes!(contracts::flags::set_events_allow_dynamic_payload))
        .routes(routes!(contracts::flags::set_trusted_router))
        .routes(routes!(contracts::grant_summary::grant_summary))
        .routes(routes!(contracts::by_address::lookup_contract))
        .routes(routes!(grants::list::list_grants, grants::create::create_grant))
        .routes(routes!(grants::update::update_grant, grants::delete::delete_grant))
        .routes(routes!(tenants::list::list_tenants, tenants::create::create_tenant))
        .routes(routes!(
            tenants::get::get_tenant,
            tenants::update::update_tenant,
            tenants::delete::delete_tenant
        ))
        .routes(routes!(
            shared::list::list_shared_infra,
            shared::create::create_shared_infra
        ))
        .routes(routes!(
            shared::get::get_shared_infra,
            shared::update::update_shared_infra,
            shared::delete::delete_shared_infra
        ))
        .routes(routes!(shared::refresh_codehash::refresh_codehash))
        .routes(routes!(
            approved_code::list::list_approved_code,
            approved_code::create::approve_code
        ))
        .routes(routes!(approved_code::delete::withdraw_approval))
        .routes(routes!(system::status::get_status))
        .routes(routes!(
            system::toggles::get_eth_call_tracing,
            system::toggles::set_eth_call_tracing
        ))
        .routes(routes!(
            system::toggles::get_intra_org_grant_tracing,
            system::toggles::set_intra_org_grant_tracing
        ))
        .routes(routes!(diagnostics::test_request::test_request))
        .routes(routes!(diagnostics::access_check::check_access))
        .routes(routes!(diagnostics::dry_run::dry_run))
        .routes(routes!(diagnostics::view_as::view_as))
        .routes(routes!(dev::deploy_demo_erc20::deploy_demo_erc20))
        .routes(routes!(mined::convictions::list_convictions))
        .routes(routes!(mined::clear_conviction::clear_conviction))
        .routes(routes!(mined::suspensions::list_suspensions))
        .routes(routes!(mined::clear_suspension::clear_suspension))
        .routes(routes!(mined::quarantines::list_quarantines))
        .routes(routes!(mined::clear_quarantine::clear_quarantine))
        .routes(routes!(sessions::list::list_sessions))
        .routes(routes!(sessions::delete::delete_session))
        .routes(routes!(records::logs::list_logs))
        .routes(routes!(records::audit_logs::list_audit_logs))
        .routes(routes!(holds::list::list_legal_holds, holds::place::place_legal_hold))
        .routes(routes!(holds::get::get_legal_hold))
        .routes(routes!(holds::lift::lift_legal_hold))
}
