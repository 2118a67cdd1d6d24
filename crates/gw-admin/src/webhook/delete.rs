use crate::{AdminState, error::AdminError, scope::Admin};
use axum::extract::{Path, State};
use gw_http::Message;

/// Deletes the webhook of an organization. Events that wait for delivery are deleted with it.
#[utoipa::path(delete, path = "/api/v1/admin/orgs/{org_id}/webhook", tag = "organizations",
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Message), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn delete_webhook(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
) -> Result<Message, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    tx.delete_webhook(org.id).await?;
    tx.commit().await?;
    Ok(Message::new("webhook deleted"))
}
