use crate::{
    AdminState,
    error::Failure,
    scope::{Access, Admin},
    wire::User,
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::QueryParams;
use serde::Deserialize;

/// For which organization.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ForOrg {
    /// The organization whose record of the user is meant; without it an administrator of organizations means all theirs
    /// that the user was put into, and super the account.
    #[serde(default)]
    #[param(required = false)]
    pub(crate) org_id: Option<String>,
}

/// One user. To administrators of organizations: with their organizations' own note, metadata, KYC mark and ban; what the
/// platform says of the user counts in once the user agreed to be a member.
#[utoipa::path(get, path = "/api/v1/admin/users/{user_id}", tag = "users",
    params(("user_id" = String, Path, format = Uuid), ForOrg),
    responses((status = 200, body = User), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn get_user(
    admin: Admin,
    State(state): State<AdminState>,
    Path(user): Path<String>,
    QueryParams(ForOrg { org_id }): QueryParams<ForOrg>,
) -> Result<Json<User>, Failure> {
    admin.scope()?;
    let reads = state.store.read();
    let known = admin.known_user(&reads, &user, org_id.as_deref(), Access::Read).await?;
    Ok(Json(known.shown(&reads).await?))
}
