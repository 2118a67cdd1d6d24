use super::{ClearRequest, Consequence};
use crate::{AdminState, body::JsonBody, error::AdminError, scope::Admin, wire::ClearMinedRequest};
use axum::extract::{Path, State};
use gw_http::{ApiError, Message};
use gw_types::SuspensionId;

/// Clears a suspension, so that the user may send transactions again; super, or a user who administers every affected
/// organization. The audit log keeps the reason.
#[utoipa::path(post, path = "/api/v1/admin/mined/suspensions/{id}/clear", tag = "mined",
    params(("id" = String, Path, format = Uuid)), request_body = ClearMinedRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn clear_suspension(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    body: Result<JsonBody<ClearMinedRequest>, ApiError>,
) -> Result<Message, AdminError> {
    let request = ClearRequest::<SuspensionId>::new(&admin, &state, &id, body, "suspension not found")?;
    let suspension = state.store.read().find_suspension(request.id).await?;
    let suspension = suspension.ok_or_else(|| request.unknown())?;
    let consequence = Consequence::Suspension(request.id);
    request.clear(suspension.conviction, consequence).await?;
    Ok(Message::new("suspension cleared"))
}
