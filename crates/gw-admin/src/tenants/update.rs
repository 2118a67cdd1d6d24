use super::{reference, row, tenant};
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{AllowedDirectoryTenant, DirectoryTenantUpdateRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::TenantPatch;

/// Changes a directory tenant; super only. `disabled` locks its users out at their next request, and can be reverted,
/// unlike a deletion.
#[utoipa::path(put, path = "/api/v1/admin/directory-tenants/{id}", tag = "directory",
    params(("id" = String, Path, format = Uuid)), request_body = DirectoryTenantUpdateRequest,
    responses((status = 200, body = AllowedDirectoryTenant), (status = 400), (status = 401), (status = 403),
        (status = 404), (status = 409)))]
pub(crate) async fn update_tenant(
    admin: Admin,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    body: Result<JsonBody<DirectoryTenantUpdateRequest>, gw_http::ApiError>,
) -> Result<Json<AllowedDirectoryTenant>, AdminError> {
    admin.require_super()?;
    let id = row(&id)?;
    let JsonBody(body) = body?;
    let patch = TenantPatch {
        tenant: body.tenant_id.as_deref().map(tenant).transpose()?,
        label: body
            .label
            .as_deref()
            .map(|label| input::text(label, "label", 255))
            .transpose()?,
        auto_provision: body.auto_provision,
        disabled: body.disabled,
        default_org: body
            .default_org_id
            .map(|org| reference(Some(&org), "default_org_id"))
            .transpose()?,
        default_group: body
            .default_group_id
            .map(|group| reference(Some(&group), "default_group_id"))
            .transpose()?,
    };
    let mut tx = admin.begin(&state).await?;
    let changed = tx.update_tenant(id, patch).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}
