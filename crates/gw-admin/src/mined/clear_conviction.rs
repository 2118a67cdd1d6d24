use super::{ClearRequest, Consequence};
use crate::{AdminState, body::JsonBody, error::AdminError, scope::Admin, wire::ClearMinedRequest};
use axum::extract::{Path, State};
use gw_http::{ApiError, Message};
use gw_types::ConvictionId;

/// Clears a conviction, so that its transaction is shown again; super, or a user who administers every affected
/// organization. The audit log keeps the reason.
#[utoipa::path(post, path = "/api/v1/admin/mined/convictions/{id}/clear", tag = "mined",
    params(("id" = String, Path, format = Uuid)), request_body = ClearMinedRequest,
    responses((status = 200, body = Message), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn clear_conviction(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    body: Result<JsonBody<ClearMinedRequest>, ApiError>,
) -> Result<Message, AdminError> {
    let request = ClearRequest::<ConvictionId>::new(&admin, &state, &id, body, "conviction not found")?;
    let conviction = state.store.read().find_conviction(request.id).await?;
    let conviction = conviction.ok_or_else(|| request.unknown())?;
    // If only one organization is affected, the audit entry belongs to it, so that its administrators can read the
    // entry.
    let org = if let [only] = conviction.wronged.as_slice() {
        Some(*only)
    } else {
        None
    };
    let consequence = Consequence::Conviction(conviction.id, org);
    request.clear(Some(conviction.id), consequence).await?;
    Ok(Message::new("conviction cleared"))
}
