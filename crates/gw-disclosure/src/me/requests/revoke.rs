use crate::{
    DisclosureState,
    caller::{OptionalBody, User},
    error::OwnerError,
    input::decision_reason,
    me::{own_grant, request_id},
    wire::{DisclosureReasonBody, DisclosureStatusResponse},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::ApiError;
use gw_types::DisclosureRequestId;

/// Withdraws the approval of a request: its grant ends at once.
#[utoipa::path(post, path = "/api/v1/me/disclosure/requests/{request_id}/revoke", tag = "disclosure",
    security(("bearer" = [])), params(("request_id" = String, Path, format = Uuid, description = "The request")),
    request_body = Option<DisclosureReasonBody>,
    responses((status = 200, body = DisclosureStatusResponse), OwnerError))]
pub(crate) async fn revoke_disclosure_request(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
    body: Result<OptionalBody<DisclosureReasonBody>, ApiError>,
) -> Result<Json<DisclosureStatusResponse>, OwnerError> {
    revoke(&state, &user, request_id(&id)?, body?).await
}

/// Revokes a grant of the caller's data: it ends at once.
#[utoipa::path(post, path = "/api/v1/me/disclosure/grants/{grant_id}/revoke", tag = "disclosure",
    security(("bearer" = [])), params(("grant_id" = String, Path, format = Uuid, description = "The grant")),
    request_body = Option<DisclosureReasonBody>,
    responses((status = 200, body = DisclosureStatusResponse), OwnerError))]
pub(crate) async fn revoke_my_disclosure_grant(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
    body: Result<OptionalBody<DisclosureReasonBody>, ApiError>,
) -> Result<Json<DisclosureStatusResponse>, OwnerError> {
    let body = body?;
    let grant = own_grant(&state, &user, &id).await?.grant;
    revoke(&state, &user, grant.request, body).await
}

async fn revoke(
    state: &DisclosureState,
    user: &User,
    request: DisclosureRequestId,
    OptionalBody(body): OptionalBody<DisclosureReasonBody>,
) -> Result<Json<DisclosureStatusResponse>, OwnerError> {
    let reason = decision_reason(body.reason)?;
    let mut tx = user.begin::<OwnerError>(state).await?;
    let request = tx.revoke_disclosure(request, user.id(), reason.as_deref()).await?;
    tx.commit().await?;
    user.origin.set_org(request.org);
    Ok(Json(DisclosureStatusResponse { status: "revoked" }))
}
