//! `GET /me/admin-status`: what the caller administers (80 §2 rule 2).

use crate::state::IdentityState;
use axum::{Json, extract::State};
use gw_http::{ApiError, AuthenticatedUser, ErrorBody};
use gw_types::OrgId;
use serde::Serialize;

/// The organizations that a user administers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct MyAdminStatusResponse {
    /// Whether the user is a full administrator of any organization.
    is_admin: bool,
    /// Whether the user is a read-only administrator of any organization.
    is_readonly_admin: bool,
    /// Organizations with full administration.
    admin_org_ids: Vec<String>,
    /// Organizations with read-only administration.
    readonly_admin_org_ids: Vec<String>,
}

/// My administration
#[utoipa::path(
    get,
    path = "/me/admin-status",
    operation_id = "myAdminStatus",
    tag = "me",
    security(("bearer" = [])),
    responses(
        (status = 200, body = MyAdminStatusResponse),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
pub(crate) async fn admin_status(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
) -> Result<Json<MyAdminStatusResponse>, ApiError> {
    let status = state
        .http_context
        .admin
        .status(&caller.snapshot, caller.user.id, state.http_context.now());
    let ids = |orgs: &[OrgId]| orgs.iter().map(ToString::to_string).collect();
    Ok(Json(MyAdminStatusResponse {
        is_admin: status.is_admin(),
        is_readonly_admin: status.is_readonly_admin(),
        admin_org_ids: ids(&status.full),
        readonly_admin_org_ids: ids(&status.readonly),
    }))
}
