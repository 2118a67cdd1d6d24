use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{Group, GroupCreateRequest},
};
use axum::extract::{Path, State};
use gw_http::Created;
use gw_store::record::NewGroup;

/// Creates a group without any access. Only super creates administrator groups (C4).
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/groups", tag = "groups",
    params(("org_id" = String, Path, format = Uuid)), request_body = GroupCreateRequest,
    responses((status = 201, body = Group), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn create_group(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<GroupCreateRequest>,
) -> Result<Created<Group>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    if body.is_org_admin {
        admin.require_super()?;
    }
    super::update::check_admin_flags(body.is_org_admin, body.is_org_readonly_admin)?;
    let new = NewGroup {
        description: input::text(&body.description, "description", 1000)?,
        is_org_admin: body.is_org_admin,
        is_org_readonly_admin: body.is_org_readonly_admin,
        ..NewGroup::plain(org.id, input::slug(&body.slug)?, input::name(&body.name)?)
    };
    let mut tx = admin.begin(&state).await?;
    let created = tx.create_group(new).await?;
    tx.commit().await?;
    Ok(Created(
        format!("/api/v1/admin/orgs/{}/groups/{}", created.org, created.id),
        created.into(),
    ))
}
