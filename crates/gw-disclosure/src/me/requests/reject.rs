use crate::{
    DisclosureState,
    caller::{OptionalBody, User},
    error::OwnerError,
    input::decision_reason,
    me::request_id,
    wire::{DisclosureReasonBody, DisclosureStatusResponse},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::ApiError;

/// Rejects a request for the caller's data.
#[utoipa::path(post, path = "/api/v1/me/disclosure/requests/{request_id}/reject", tag = "disclosure",
    security(("bearer" = [])), params(("request_id" = String, Path, format = Uuid, description = "The request")),
    request_body = Option<DisclosureReasonBody>,
    responses((status = 200, body = DisclosureStatusResponse), OwnerError))]
pub(crate) async fn reject_disclosure_request(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
    body: Result<OptionalBody<DisclosureReasonBody>, ApiError>,
) -> Result<Json<DisclosureStatusResponse>, OwnerError> {
    let id = request_id(&id)?;
    let OptionalBody(body) = body?;
    let reason = decision_reason(body.reason)?;
    let mut tx = user.begin::<OwnerError>(&state).await?;
    let request = tx.reject_disclosure(id, user.id(), reason.as_deref()).await?;
    tx.commit().await?;
    user.origin.set_org(request.org);
    Ok(Json(DisclosureStatusResponse { status: "rejected" }))
}
