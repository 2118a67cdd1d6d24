use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{MinedQuarantine, MinedQuarantineListResponse},
};
use axum::{Json, extract::State};

/// Addresses that nobody reads, the newest first; super only.
#[utoipa::path(get, path = "/api/v1/admin/mined/quarantines", tag = "mined",
    responses((status = 200, body = MinedQuarantineListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_quarantines(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<MinedQuarantineListResponse>, Failure> {
    admin.require_super()?;
    let data = state.store.read().list_quarantines().await?;
    Ok(Json(MinedQuarantineListResponse { data: data.into_iter().map(MinedQuarantine::from).collect() }))
}
