use crate::{AdminState, error::AdminError, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;

/// Deletes a group's grant on a contract.
#[utoipa::path(delete, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/grants/{group_id}", tag = "grants",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path),
        ("group_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_grant(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address, group)): Path<(String, String, String)>,
) -> Result<Message, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let contract = admin.contract_of(&tx.read(), &org, &address).await?;
    let group = admin.group_of(&tx.read(), &org, &group).await?.group.id;
    tx.delete_grant(contract.id, group).await?;
    tx.commit().await?;
    Ok(Message::new("grant deleted"))
}
