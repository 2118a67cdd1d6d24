use crate::{
    AdminState,
    error::AdminError,
    scope::{Access, Admin},
    wire::User,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::QueryParams;
use serde::Deserialize;

/// The organization on whose behalf the user is read or changed.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ForOrg {
    /// The organization whose record of the user is read or changed. If absent: for an administrator of organizations,
    /// the records of all their organizations that the user was added to; for super, the account.
    #[serde(default)]
    #[param(required = false)]
    pub(crate) org_id: Option<String>,
}

/// Returns one user. Administrators of organizations see their organizations' own note, metadata, KYC mark and ban. The
/// platform's KYC mark, ban and directory tenant are included once the user accepted a membership.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid), ForOrg),
    responses((status = 200, body = User), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_user(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    QueryParams(ForOrg { org_id }): QueryParams<ForOrg>,
) -> Result<Json<User>, AdminError> {
    admin.scope()?;
    let reads = state.store.read();
    let known = admin.known_user(&reads, &user, org_id.as_deref(), Access::Read).await?;
    Ok(Json(known.into_wire(&reads).await?))
}
