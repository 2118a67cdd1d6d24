use crate::{AdminState, error::AdminError, scope::Admin, wire::Organization};
use axum::{
    Json,
    extract::{Path, State},
};

/// Returns one organization.
#[utoipa::path(get, path = "/api/v1/admin/orgs/{org_id}", tag = "organizations",
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = Organization), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_org(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
) -> Result<Json<Organization>, AdminError> {
    Ok(Json(admin.readable_org_or_operator(&state, &org).await?.into()))
}
