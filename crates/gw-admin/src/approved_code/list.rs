use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{ApprovedCode, ApprovedCodeListResponse},
};
use axum::{Json, extract::State};

/// All approved creation code, by name; super only.
#[utoipa::path(get, path = "/api/v1/admin/approved-code", tag = "approved code",
    responses((status = 200, body = ApprovedCodeListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_approved_code(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<ApprovedCodeListResponse>, Failure> {
    admin.require_super()?;
    let data = state.store.read().list_approved_code().await?;
    Ok(Json(ApprovedCodeListResponse {
        data: data.into_iter().map(ApprovedCode::from).collect(),
    }))
}
