use super::reason;
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{LegalHold, LegalHoldRequest},
};
use axum::extract::State;
use gw_http::{ApiError, Created};
use gw_store::record::HoldScope;

/// Places a legal hold on an organization's entries in all streams, or on all entries of one stream; super only. Held
/// entries are neither pruned nor erased. Only the beginning of a log can be pruned, so a hold also keeps all later
/// entries of the log. The organization may have been deleted.
#[utoipa::path(post, path = "/api/v1/admin/legal-holds", tag = "logs", request_body = LegalHoldRequest,
    responses((status = 201, body = LegalHold), (status = 400), (status = 401), (status = 403)))]
pub(crate) async fn place_legal_hold(
    admin: Admin,
    State(state): State<AdminState>,
    body: Result<JsonBody<LegalHoldRequest>, ApiError>,
) -> Result<Created<LegalHold>, AdminError> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let scope = match (body.org_id.as_deref(), body.stream.as_deref()) {
        (Some(org), None) => HoldScope::Organization(input::id(org, "org_id")?),
        (None, Some(stream)) => HoldScope::Stream(stream.parse().map_err(|_| {
            AdminError::bad_request("stream must be one of: admin, access, compliance, disclosure, security")
        })?),
        (Some(_), Some(_)) | (None, None) => return Err(AdminError::bad_request("use org_id OR stream")),
    };
    let reason = reason(&body.reason)?;
    let mut tx = admin.begin(&state).await?;
    let hold = tx.place_hold(scope, reason).await?;
    tx.commit().await?;
    Ok(Created(format!("/api/v1/admin/legal-holds/{}", hold.id), hold.into()))
}
