//! What grants of disclosure show to their grantees.
//!
//! Unknown grants, grants of others and unknown addresses of a grant have one answer. The rows of a grant come with the
//! disclosure feature: until then no grant exists.

use crate::{
    error::ExplorerError,
    grants::{Grant, GrantStatus, GrantedAddress},
    rows::lower,
    state::ExplorerState,
    view::RequestCaller,
    viewer::ViewerId,
    wire::ResolveAddressResponse,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::ApiError;
use gw_types::Level;

/// The address behind an id of a grant of disclosure.
#[utoipa::path(get, path = "/api/v1/explorer/grant/{grant_id}/resolve/{address_id}", tag = "explorer",
    params(("grant_id" = String, Path, description = "The grant"),
        ("address_id" = String, Path, description = "The id of the address under the grant")),
    responses((status = 200, body = ResolveAddressResponse), (status = 403), ExplorerError))]
pub(crate) async fn resolve_grant_address(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path((grant, address)): Path<(String, String)>,
) -> Result<Json<ResolveAddressResponse>, ExplorerError> {
    let grant = active_grant(&state, &caller, &grant)?;
    let address = granted_address(&grant, &address)?;
    Ok(Json(ResolveAddressResponse {
        disclosure_level: level_name(grant.level),
        grant_id: grant.id.to_string(),
        pseudonym: address.pseudonym.clone(),
        real_address: (grant.level == Level::Full).then(|| lower(address.address)),
        scope_methods: grant.methods.clone(),
    }))
}

/// The transactions of an address under a grant of disclosure.
#[utoipa::path(get, path = "/api/v1/explorer/grant/{grant_id}/{address_id}/transactions", tag = "explorer",
    params(("grant_id" = String, Path, description = "The grant"),
        ("address_id" = String, Path, description = "The id of the address under the grant")),
    responses((status = 403), ExplorerError))]
pub(crate) async fn list_grant_transactions(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path((grant, address)): Path<(String, String)>,
) -> Result<(), ExplorerError> {
    let grant = active_grant(&state, &caller, &grant)?;
    granted_address(&grant, &address)?;
    Err(missing())
}

/// The use of the gateway by the owner of the disclosed addresses.
#[utoipa::path(get, path = "/api/v1/explorer/grant/{grant_id}/activity", tag = "explorer",
    params(("grant_id" = String, Path, description = "The grant")),
    responses((status = 403), ExplorerError))]
pub(crate) async fn list_grant_activity(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(grant): Path<String>,
) -> Result<(), ExplorerError> {
    let grant = active_grant(&state, &caller, &grant)?;
    if !grant.discloses("activity_logs") {
        return Err(ApiError::forbidden("the grant does not disclose activity").into());
    }
    Err(missing())
}

const fn level_name(level: Level) -> &'static str {
    match level {
        Level::Full => "full",
        Level::Pseudonymous => "pseudonymous",
        Level::Redacted | Level::Hidden => "redacted",
    }
}

fn missing() -> ExplorerError {
    ExplorerError::not_found("grant not found")
}

/// A grant of the viewer that is in force. Under impersonation there is none: a grant counts only if it holds for both
/// (HD7).
///
/// # Errors
/// 401 without a viewer; 404 if the viewer has no such grant; 403 if it was revoked or has expired.
fn active_grant(state: &ExplorerState, caller: &RequestCaller, grant: &str) -> Result<Grant, ExplorerError> {
    let (snapshot, id) = caller.pin(state)?;
    let user = match id {
        ViewerId::Anonymous => return Err(ApiError::unauthorized("missing Authorization header").into()),
        ViewerId::Impersonation(_) => return Err(missing()),
        ViewerId::User { user, .. } => user,
    };
    let id = grant.parse().map_err(|_| missing())?;
    let grant = state.grants.find(&snapshot, user, id).ok_or_else(missing)?;
    match grant.status {
        GrantStatus::Active => Ok(grant),
        GrantStatus::Revoked => Err(ApiError::forbidden("the grant was revoked").into()),
        GrantStatus::Expired => Err(ApiError::forbidden("the grant has expired").into()),
    }
}

fn granted_address<'g>(grant: &'g Grant, id: &str) -> Result<&'g GrantedAddress, ExplorerError> {
    let address = grant.addresses.iter().find(|address| address.id == id);
    address.ok_or_else(missing)
}
