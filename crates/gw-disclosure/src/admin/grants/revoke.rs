use crate::{
    DisclosureState,
    admin::readable_grant,
    caller::{Admin, OptionalBody},
    error::AdminError,
    grantee::reports::forget_reports,
    input::decision_reason,
    wire::{DisclosureReasonBody, DisclosureStatusResponse},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::ApiError;

/// Revokes a grant. A second revocation changes nothing, and keeps the first time and reason.
#[utoipa::path(post, path = "/api/v1/admin/disclosure/grants/{grant_id}/revoke", tag = "disclosure",
    params(("grant_id" = String, Path, format = Uuid, description = "The grant")),
    request_body = Option<DisclosureReasonBody>,
    responses((status = 200, body = DisclosureStatusResponse), AdminError))]
pub(crate) async fn revoke_disclosure_grant(
    admin: Admin,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
    body: Result<OptionalBody<DisclosureReasonBody>, ApiError>,
) -> Result<Json<DisclosureStatusResponse>, AdminError> {
    let OptionalBody(body) = body?;
    let grant = readable_grant(&state, &admin, &id).await?.grant;
    admin.require_writer(grant.org)?;
    let reason = decision_reason(body.reason)?;
    let mut tx = admin.begin::<AdminError>(&state).await?;
    tx.revoke_disclosure_grant(grant.id, reason.as_deref()).await?;
    tx.commit().await?;
    forget_reports(&state, grant.id).await;
    Ok(Json(DisclosureStatusResponse { status: "revoked" }))
}
