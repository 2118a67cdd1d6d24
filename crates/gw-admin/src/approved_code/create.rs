use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{ApprovedCode, ApprovedCodeInput},
};
use alloy_primitives::keccak256;
use axum::extract::State;
use gw_http::{ApiError, Created};
use gw_types::Bytes;

/// Approves creation code for deployment, with any constructor arguments; super only. The approval is effective while
/// the configuration has `DEPLOYMENTS=approved`.
#[utoipa::path(post, path = "/api/v1/admin/approved-code", tag = "approved code", request_body = ApprovedCodeInput,
    responses((status = 201, body = ApprovedCode), (status = 400), (status = 401), (status = 403), (status = 409)))]
pub(crate) async fn approve_code(
    admin: Admin,
    State(state): State<AdminState>,
    body: Result<JsonBody<ApprovedCodeInput>, ApiError>,
) -> Result<Created<ApprovedCode>, AdminError> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let name = input::name(&body.name)?;
    let code: Bytes = body
        .creation_code
        .parse()
        .map_err(|_| AdminError::bad_request("creation_code must be bytes in hex"))?;
    if code.is_empty() {
        return Err(AdminError::bad_request(
            "creation_code must not be empty: every creation begins with nothing",
        ));
    }
    let size = u32::try_from(code.len()).map_err(|_| AdminError::bad_request("creation_code is too long"))?;
    let mut tx = admin.begin(&state).await?;
    let approved = tx.approve_code(keccak256(&code), size, name).await?;
    tx.commit().await?;
    Ok(Created(
        format!("/api/v1/admin/approved-code/{:#x}", approved.hash),
        approved.into(),
    ))
}
