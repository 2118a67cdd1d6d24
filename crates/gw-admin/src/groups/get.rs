use crate::{AdminState, error::AdminError, scope::Admin, wire::Group};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns one group.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}/groups/{group_id}", tag = "groups",
    params(("org_id" = String, Path, format = Uuid), ("group_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Group), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_group(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, group)): Path<(String, String)>,
) -> Result<Json<Group>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    Ok(Json(
        admin.group_of(&state.store.read(), &org, &group).await?.group.into(),
    ))
}
