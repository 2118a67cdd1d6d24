use super::UNKNOWN;
use crate::{AdminState, error::AdminError, scope::Admin, wire::Webhook};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns the webhook of an organization and the state of its deliveries, without the secret.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/webhook", tag = "organizations",
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Webhook), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_webhook(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
) -> Result<Json<Webhook>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let status = state.store.read().find_webhook(org.id).await?;
    let status = status.ok_or_else(|| AdminError::not_found(UNKNOWN))?;
    Ok(Json(Webhook::new(status, None)))
}
