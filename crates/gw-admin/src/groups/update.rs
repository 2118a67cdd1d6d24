use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    last_admin::LastAdmin,
    scope::Admin,
    wire::{Group, GroupUpdateRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::GroupPatch;

/// A5: nobody is administrator and read-only administrator by one group.
pub(super) fn exclusive(admin: bool, readonly: bool) -> Result<(), Failure> {
    if admin && readonly {
        return Err(Failure::bad(
            "is_org_admin and is_org_readonly_admin exclude each other",
        ));
    }
    Ok(())
}

/// Changes a group. Only super touches administrator groups, and ends that a group with members makes read-only
/// administrators (C4).
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/groups/{group_id}", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), ("group_id" = String, Path, format = Uuid)),
    request_body = GroupUpdateRequest,
    responses((status = 200, body = Group), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn update_group(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, group)): Path<(String, String)>,
    JsonBody(body): JsonBody<GroupUpdateRequest>,
) -> Result<Json<Group>, Failure> {
    let org = admin.writable_org(&state, &org).await?;
    let patch = GroupPatch {
        name: body.name.as_deref().map(input::name).transpose()?,
        description: body
            .description
            .as_deref()
            .map(|d| input::text(d, "description", 1000))
            .transpose()?,
        is_org_admin: body.is_org_admin,
        is_org_readonly_admin: body.is_org_readonly_admin,
    };
    let mut tx = admin.begin(&state).await?;
    let found = admin.group_of(&tx.read(), &org, &group).await?;
    if body.is_org_readonly_admin == Some(false) {
        admin.may_disempower_all(&tx.read(), &found).await?;
    }
    admin.may_touch(&found)?;
    if body.is_org_admin == Some(true) {
        admin.require_super()?;
        if found.access.claims.iter().next().is_some() {
            return Err(Failure::bad(
                "an administrator group has no claims of its own: clear them first",
            ));
        }
    }
    exclusive(
        body.is_org_admin.unwrap_or(found.group.is_org_admin),
        body.is_org_readonly_admin.unwrap_or(found.group.is_org_readonly_admin),
    )?;
    let before = LastAdmin::of(&tx, &[org.id]).await?;
    let changed = tx.update_group(found.group.id, patch).await?;
    before.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}
