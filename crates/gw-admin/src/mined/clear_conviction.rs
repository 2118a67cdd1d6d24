use super::{ClearRequest, Consequence};
use crate::{AdminState, body::JsonBody, error::AdminError, scope::Admin, wire::ClearMinedRequest};
use axum::extract::{Path, State};
use gw_http::{ApiError, Message};
use gw_types::ConvictionId;

/// Shows a withheld transaction again; super, or administrators of every affected organization. The reason is kept in
/// the audit log.
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
    // If one organization is affected, the audit entry is filed under it, so that its administrators find it.
    let org = if let [only] = conviction.wronged.as_slice() {
        Some(*only)
    } else {
        None
    };
    let consequence = Consequence::Conviction(conviction.id, org);
    request.clear(Some(conviction.id), consequence).await?;
    Ok(Message::new("conviction cleared"))
}
