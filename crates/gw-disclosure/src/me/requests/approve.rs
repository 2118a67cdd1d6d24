use crate::{
    DisclosureState,
    caller::{OptionalBody, User},
    error::OwnerError,
    me::request_id,
    wire::{ApproveDisclosureRequestBody, DisclosureApproveResponse},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::ApiError;

/// Approves a request for the caller's data, as it was made or with a narrower scope. The grant lasts 24 hours unless
/// the body says otherwise.
#[utoipa::path(post, path = "/api/v1/me/disclosure/requests/{request_id}/approve", tag = "disclosure",
    security(("bearer" = [])), params(("request_id" = String, Path, format = Uuid, description = "The request")),
    request_body = Option<ApproveDisclosureRequestBody>,
    responses((status = 200, body = DisclosureApproveResponse), OwnerError))]
pub(crate) async fn approve_disclosure_request(
    user: User,
    State(state): State<DisclosureState>,
    Path(id): Path<String>,
    body: Result<OptionalBody<ApproveDisclosureRequestBody>, ApiError>,
) -> Result<Json<DisclosureApproveResponse>, OwnerError> {
    let id = request_id(&id)?;
    let OptionalBody(body) = body?;
    let approval = body.into_approval()?;
    let mut tx = user.begin::<OwnerError>(&state).await?;
    let limits = state.settings.limits;
    let approved = tx
        .approve_disclosure(id, user.id(), &approval, limits, &state.key_cipher)
        .await?;
    tx.commit().await?;
    user.origin.set_org(approved.grant.org);
    Ok(Json(DisclosureApproveResponse {
        grant: approved.grant.into(),
        message: "Disclosure request approved",
    }))
}
