//! `GET /me/orgs`: the organizations in which the caller is an active member (decision 32).

use crate::state::IdentityState;
use axum::{Json, extract::State};
use gw_http::{ApiError, AuthenticatedUser, ErrorBody};
use gw_policy::access::active_orgs;
use serde::Serialize;

/// The caller's organizations.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct MyOrganizationsResponse {
    /// The organizations, without system organizations.
    organizations: Vec<UserOrgResponse>,
}

/// One organization.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct UserOrgResponse {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// Its slug.
    slug: String,
}

/// My organizations
#[utoipa::path(
    get,
    path = "/me/orgs",
    operation_id = "myOrganizations",
    tag = "me",
    security(("bearer" = [])),
    responses(
        (status = 200, body = MyOrganizationsResponse),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn orgs(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
) -> Result<Json<MyOrganizationsResponse>, ApiError> {
    let organizations = active_orgs(&caller.snapshot, caller.user.id, state.http_context.now())
        .into_iter()
        .filter_map(|id| caller.snapshot.organization(id))
        .filter(|org| !org.is_system)
        .map(|org| UserOrgResponse {
            id: org.id.to_string(),
            name: org.name.to_string(),
            slug: org.slug.to_string(),
        })
        .collect();
    Ok(Json(MyOrganizationsResponse { organizations }))
}
