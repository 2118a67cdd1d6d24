use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::Admin,
    wire::{Group, GroupCreateRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::NewGroup;
use http::StatusCode;

/// Makes a group without any access. Only super makes administrator groups (C4).
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/groups", tag = "groups",
    params(("org_id" = String, Path, format = Uuid)), request_body = GroupCreateRequest,
    responses((status = 201, body = Group), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn create_group(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<GroupCreateRequest>,
) -> Result<(StatusCode, Json<Group>), Failure> {
    let org = admin.writable_org(&state, &org).await?;
    if body.is_org_admin {
        admin.require_super()?;
    }
    super::update::exclusive(body.is_org_admin, body.is_org_readonly_admin)?;
    let new = NewGroup {
        description: input::text(&body.description, "description", 1000)?,
        is_org_admin: body.is_org_admin,
        is_org_readonly_admin: body.is_org_readonly_admin,
        ..NewGroup::plain(org.id, input::slug(&body.slug)?, input::name(&body.name)?)
    };
    let mut tx = admin.begin(&state).await?;
    let made = tx.create_group(new).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}
