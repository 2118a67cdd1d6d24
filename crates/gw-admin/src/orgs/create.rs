use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{OrgCreateRequest, Organization},
};
use axum::extract::State;
use gw_http::Created;
use gw_store::record::NewOrganization;

/// Creates an organization. Its slug must be unique (A1).
#[utoipa::path(post, path = "/api/v1/admin/orgs", tag = "organizations", request_body = OrgCreateRequest,
    responses((status = 201, body = Organization), (status = 400), (status = 401), (status = 403), (status = 409)))]
pub(crate) async fn create_org(
    admin: Admin,
    State(state): State<AdminState>,
    JsonBody(body): JsonBody<OrgCreateRequest>,
) -> Result<Created<Organization>, AdminError> {
    admin.require_super_or_operator()?;
    let new = NewOrganization {
        slug: input::slug(&body.slug)?,
        name: input::name(&body.name)?,
        settings: input::object(body.settings, "settings")?.unwrap_or_default(),
    };
    let mut tx = admin.begin(&state).await?;
    let created = tx.create_organization(new).await?;
    tx.commit().await?;
    Ok(Created(format!("/api/v1/admin/orgs/{}", created.id), created.into()))
}
