use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
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

/// A5: a group cannot make its members administrators and read-only administrators at once.
pub(super) fn check_admin_flags(admin: bool, readonly: bool) -> Result<(), AdminError> {
    if admin && readonly {
        return Err(AdminError::bad_request(
            "is_org_admin and is_org_readonly_admin exclude each other",
        ));
    }
    Ok(())
}

/// Changes a group. Only super changes administrator groups, and only super removes the read-only administrator flag of
/// a group with members (C4).
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
) -> Result<Json<Group>, AdminError> {
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
    let group_access = admin.group_of(&tx.read(), &org, &group).await?;
    if body.is_org_readonly_admin == Some(false) {
        admin.may_disempower_all(&tx.read(), &group_access).await?;
    }
    admin.require_super_for_admin_group(&group_access)?;
    if body.is_org_admin == Some(true) {
        admin.require_super()?;
        if group_access.access.claims.iter().next().is_some() {
            return Err(AdminError::bad_request(
                "an administrator group has no claims of its own: clear them first",
            ));
        }
    }
    check_admin_flags(
        body.is_org_admin.unwrap_or(group_access.group.is_org_admin),
        body.is_org_readonly_admin
            .unwrap_or(group_access.group.is_org_readonly_admin),
    )?;
    let last_admin = LastAdmin::for_orgs(&tx, &[org.id]).await?;
    let changed = tx.update_group(group_access.group.id, patch).await?;
    last_admin.keep(&admin, &mut tx).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}
