use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{OrgUpdateRequest, Organization},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::ApiError;
use gw_store::record::OrganizationPatch;

/// Changes an organization's name, slug or settings. Only super changes the slug.
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}", tag = "organizations",
    params(("org_id" = String, Path, format = Uuid)), request_body = OrgUpdateRequest,
    responses((status = 200, body = Organization), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn update_org(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<OrgUpdateRequest>,
) -> Result<Json<Organization>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let slug = body
        .slug
        .as_deref()
        .map(input::slug)
        .transpose()?
        .filter(|slug| *slug != org.slug);
    // HD40: a conflict would reveal the slugs of other organizations.
    if slug.is_some() && admin.require_super_or_operator().is_err() {
        return Err(AdminError::Api(ApiError::forbidden(
            "an organization's slug is changed by a super administrator",
        )));
    }
    let patch = OrganizationPatch {
        slug,
        name: body.name.as_deref().map(input::name).transpose()?,
        settings: input::object(body.settings, "settings")?,
    };
    let mut tx = admin.begin(&state).await?;
    let changed = tx.update_organization(org.id, patch).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}
