use super::reason;
use crate::{AdminState, body::JsonBody, error::AdminError, scope::Admin, wire::LiftHoldRequest};
use axum::extract::{Path, State};
use gw_http::{ApiError, Message};
use gw_types::LegalHoldId;

/// Lifts a legal hold; super only. Entries that no other hold keeps are deleted by the next prune.
#[utoipa::path(post, path = "/api/v1/admin/legal-holds/{id}/lift", tag = "logs",
    params(("id" = String, Path, format = Uuid)), request_body = LiftHoldRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn lift_legal_hold(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    body: Result<JsonBody<LiftHoldRequest>, ApiError>,
) -> Result<Message, AdminError> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let id: LegalHoldId = id.parse().map_err(|_| AdminError::not_found("legal hold not found"))?;
    let reason = reason(&body.reason)?;
    let mut tx = admin.begin(&state).await?;
    tx.clear_legal_hold(id, reason).await?;
    tx.commit().await?;
    Ok(Message::new("legal hold lifted"))
}
