//! `GET /me/admin-status`: what the caller administers (80 §2 rule 2).

use crate::state::IdentityState;
use axum::{Json, extract::State};
use gw_http::{ApiError, Authenticated, ErrorBody};
use gw_types::OrgId;
use serde::Serialize;

/// What somebody administers.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct MyAdminStatusResponse {
    /// Whether anything in full.
    is_admin: bool,
    /// Whether anything read-only.
    is_readonly_admin: bool,
    /// Organizations administered in full.
    admin_org_ids: Vec<String>,
    /// Organizations whose administration is only read.
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
    caller: Authenticated,
) -> Result<Json<MyAdminStatusResponse>, ApiError> {
    let status = state
        .edge
        .admin
        .status(&caller.snapshot, caller.user.id, state.edge.now());
    let ids = |orgs: &[OrgId]| orgs.iter().map(ToString::to_string).collect();
    Ok(Json(MyAdminStatusResponse {
        is_admin: status.is_admin(),
        is_readonly_admin: status.is_readonly_admin(),
        admin_org_ids: ids(&status.full),
        readonly_admin_org_ids: ids(&status.readonly),
    }))
}
