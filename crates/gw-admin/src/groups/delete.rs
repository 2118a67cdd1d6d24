use crate::{AdminState, error::AdminError, last_admin::LastAdmin, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;

/// Deletes a group with its memberships, access and grants. Only super deletes administrator groups, and groups of
/// read-only administrators that have members (C4).
#[utoipa::path(delete, path = "/api/v1/admin/orgs/{org_id}/groups/{group_id}", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), ("group_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_group(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, group)): Path<(String, String)>,
) -> Result<Message, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let group_access = admin.group_of(&tx.read(), &org, &group).await?;
    admin.may_disempower_all(&tx.read(), &group_access).await?;
    let last_admin = LastAdmin::for_orgs(&tx, &[org.id]).await?;
    tx.delete_group(group_access.group.id).await?;
    last_admin.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Message::new("group deleted"))
}
