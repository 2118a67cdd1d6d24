use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{MinedSuspension, MinedSuspensionListResponse},
};
use axum::{Json, extract::State};

/// Users who lost the right to send, the newest first; super only.
#[utoipa::path(get, path = "/api/v1/admin/mined/suspensions", tag = "mined",
    responses((status = 200, body = MinedSuspensionListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_suspensions(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<MinedSuspensionListResponse>, Failure> {
    admin.require_super()?;
    let data = state.store.read().list_suspensions().await?;
    Ok(Json(MinedSuspensionListResponse { data: data.into_iter().map(MinedSuspension::from).collect() }))
}
