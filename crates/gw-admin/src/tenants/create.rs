use super::{reference, tenant};
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{AllowedDirectoryTenant, DirectoryTenantCreateRequest},
};
use axum::extract::State;
use gw_http::Created;
use gw_store::record::NewTenant;

/// Lets the users of a directory tenant log in; super only. New users join the default group given here, which must not
/// be a group of administrators, or else the default group of the gateway.
#[utoipa::path(post, path = "/api/v1/admin/directory-tenants", tag = "directory",
    request_body = DirectoryTenantCreateRequest,
    responses((status = 201, body = AllowedDirectoryTenant), (status = 400), (status = 401), (status = 403),
        (status = 409)))]
pub(crate) async fn create_tenant(
    admin: Admin,
    State(state): State<AdminState>,
    body: Result<JsonBody<DirectoryTenantCreateRequest>, gw_http::ApiError>,
) -> Result<Created<AllowedDirectoryTenant>, AdminError> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let new = NewTenant {
        tenant: tenant(&body.tenant_id)?,
        label: input::text(body.label.as_deref().unwrap_or_default(), "label", 255)?,
        auto_provision: body.auto_provision.unwrap_or(true),
        disabled: body.disabled.unwrap_or(false),
        default_org: reference(body.default_org_id.as_deref(), "default_org_id")?,
        default_group: reference(body.default_group_id.as_deref(), "default_group_id")?,
    };
    let mut tx = admin.begin(&state).await?;
    let created = tx.create_tenant(new).await?;
    tx.commit().await?;
    Ok(Created(
        format!("/api/v1/admin/directory-tenants/{}", created.id),
        created.into(),
    ))
}
