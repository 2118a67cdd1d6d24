use super::row;
use crate::{AdminState, error::AdminError, scope::Admin, wire::AllowedDirectoryTenant};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns one directory tenant; super only.
#[utoipa::path(get, path = "/api/v1/admin/directory-tenants/{id}", tag = "directory",
    params(("id" = String, Path, format = Uuid)),
    responses((status = 200, body = AllowedDirectoryTenant), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_tenant(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Json<AllowedDirectoryTenant>, AdminError> {
    admin.require_super()?;
    let tenant = state.store.read().find_allowed_tenant(row(&id)?).await?;
    Ok(Json(
        tenant.ok_or_else(|| AdminError::not_found("tenant not found"))?.into(),
    ))
}
