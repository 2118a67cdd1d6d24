use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{SharedInfraListResponse, SharedInfrastructure},
};
use axum::{Json, extract::State};

/// All shared contracts, by name; super only.
#[utoipa::path(get, path = "/api/v1/admin/shared-infrastructure", tag = "shared infrastructure",
    responses((status = 200, body = SharedInfraListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_shared_infra(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<SharedInfraListResponse>, Failure> {
    admin.require_super()?;
    let data = state.store.read().list_shared_infra().await?;
    Ok(Json(SharedInfraListResponse {
        data: data.into_iter().map(SharedInfrastructure::from).collect(),
    }))
}
