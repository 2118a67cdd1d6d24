use crate::{AdminState, error::AdminError, scope::Admin, wire::RpcUrlEntry};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{Message, Page, PageQuery, Paged};
use gw_store::read::Scope;
use gw_types::{OrgId, PersonalUrlId};

const UNKNOWN: &str = "rpc url not found";

fn covers(scope: &Scope, org: OrgId) -> bool {
    match scope {
        Scope::All => true,
        Scope::Orgs(orgs) => orgs.contains(&org),
    }
}

/// Lists a user's active personal RPC URLs for organizations in scope, without the secret addresses.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}/rpc-urls", tag = "users",
    params(("user_id" = String, Path, format = Uuid), PageQuery),
    responses((status = 200, body = Paged<RpcUrlEntry>), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn list_user_rpc_urls(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    page: Page<1000>,
) -> Result<Json<Paged<RpcUrlEntry>>, AdminError> {
    let scope = admin.scope()?;
    let user = admin.readable_user(&state.store.read(), &user).await?;
    let rows = state
        .store
        .read()
        .list_personal_urls(user.id, state.clock.now())
        .await?;
    let rpc_urls = rows
        .into_iter()
        .filter(|row| covers(&scope, row.org))
        .map(RpcUrlEntry::from)
        .collect();
    Ok(Json(page.of_all(rpc_urls)))
}

/// Ends a user's personal RPC URL for an organization that the caller may change.
#[utoipa::path(delete, path = "/api/v1/admin/users/{user_id}/rpc-urls/{id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid), ("id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn end_user_rpc_url(
    admin: Admin,
    State(state): State<AdminState>,
    Path((user, id)): Path<(String, String)>,
) -> Result<Message, AdminError> {
    admin.require_writer()?;
    let scope = admin.scope()?;
    let mut tx = admin.begin(&state).await?;
    let user = admin.writable_user(&tx.read(), &user).await?;
    let id: PersonalUrlId = id.parse().map_err(|_| AdminError::not_found(UNKNOWN))?;
    // A URL of another organization counts as unknown.
    let org = tx.find_personal_url(user.id, id).await?.org;
    if !covers(&scope, org) {
        return Err(AdminError::not_found(UNKNOWN));
    }
    admin.require_writer_of(org)?;
    tx.revoke_personal_url(user.id, id).await?;
    tx.commit().await?;
    Ok(Message::new("rpc url ended"))
}
