use super::parse_input;
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{SharedInfraInput, SharedInfrastructure},
};
use axum::extract::State;
use gw_http::{ApiError, Created};

/// Lets every organization call a contract; super only. Without a `codehash` the address may hold any code;
/// `refresh-codehash` pins the code that is on the chain.
#[utoipa::path(post, path = "/api/v1/admin/shared-infrastructure", tag = "shared infrastructure",
    request_body = SharedInfraInput,
    responses((status = 201, body = SharedInfrastructure), (status = 400), (status = 401), (status = 403),
        (status = 409)))]
pub(crate) async fn create_shared_infra(
    admin: Admin,
    State(state): State<AdminState>,
    body: Result<JsonBody<SharedInfraInput>, ApiError>,
) -> Result<Created<SharedInfrastructure>, AdminError> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let address = input::address(body.address.as_deref().unwrap_or_default())?;
    let input = parse_input(&body)?;
    let mut tx = admin.begin(&state).await?;
    let created = tx.create_shared_infra(address, input).await?;
    tx.commit().await?;
    let location = format!("/api/v1/admin/shared-infrastructure/{address:#x}");
    Ok(Created(location, created.into()))
}
