use crate::{AdminState, error::AdminError, scope::Admin, wire::WebhookTest};
use axum::{
    Json,
    extract::{Path, State},
};
use http::StatusCode;

/// Queues an event `webhook.test` for the webhook of an organization. It is delivered as every other event; the
/// webhook's settings show the result.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/webhook/test", tag = "organizations",
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 202, body = WebhookTest), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn test_webhook(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
) -> Result<(StatusCode, Json<WebhookTest>), AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let mut tx = admin.begin(&state).await?;
    let id = tx.add_webhook_test(org.id).await?;
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Json(WebhookTest { id })))
}
