use super::{reason, require_clearance};
use crate::{AdminState, body::JsonBody, error::AdminError, scope::Admin, wire::ClearMinedRequest};
use axum::extract::{Path, State};
use gw_http::Message;
use gw_types::SuspensionId;

/// Lets a suspended user send transactions again; super, or administrators of every affected organization. The reason
/// is kept in the audit log.
#[utoipa::path(post, path = "/api/v1/admin/mined/suspensions/{id}/clear", tag = "mined",
    params(("id" = String, Path, format = Uuid)), request_body = ClearMinedRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn clear_suspension(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    body: Result<JsonBody<ClearMinedRequest>, gw_http::ApiError>,
) -> Result<Message, AdminError> {
    const UNKNOWN: &str = "suspension not found";
    admin.require_writer()?;
    let JsonBody(body) = body?;
    let id: SuspensionId = id.parse().map_err(|_| admin.unknown_target(UNKNOWN))?;
    let suspension = state
        .store
        .read()
        .find_suspension(id)
        .await?
        .ok_or_else(|| admin.unknown_target(UNKNOWN))?;
    require_clearance(&admin, &state, suspension.conviction, UNKNOWN).await?;
    let reason = reason(&body)?;
    let mut tx = admin.begin(&state).await?;
    tx.clear_suspension(id, reason).await?;
    tx.commit().await?;
    Ok(Message::new("suspension cleared"))
}
