use crate::{
    AdminState,
    error::Failure,
    scope::Admin,
    wire::{AllowedDirectoryTenant, DirectoryTenantListResponse},
};
use axum::{Json, extract::State};

/// The directory tenants whose users may log in, by label; super only.
#[utoipa::path(get, path = "/api/v1/admin/directory-tenants", tag = "directory",
    responses((status = 200, body = DirectoryTenantListResponse), (status = 401), (status = 403)))]
pub(crate) async fn list_tenants(
    admin: Admin,
    State(state): State<AdminState>,
) -> Result<Json<DirectoryTenantListResponse>, Failure> {
    admin.require_super()?;
    let data = state.store.read().list_tenants().await?;
    Ok(Json(DirectoryTenantListResponse {
        data: data.into_iter().map(AllowedDirectoryTenant::from).collect(),
    }))
}
