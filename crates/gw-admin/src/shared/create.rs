use super::said;
use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::Admin,
    wire::{SharedInfraInput, SharedInfrastructure},
};
use axum::{Json, extract::State};
use gw_http::ApiError;
use http::StatusCode;

/// Lets every organization call a contract; super only. Without a `codehash` any code at the address will do;
/// `refresh-codehash` pins what the chain shows.
#[utoipa::path(post, path = "/api/v1/admin/shared-infrastructure", tag = "shared infrastructure",
    request_body = SharedInfraInput,
    responses((status = 201, body = SharedInfrastructure), (status = 400), (status = 401), (status = 403),
        (status = 409)))]
pub(crate) async fn create_shared_infra(
    admin: Admin,
    State(state): State<AdminState>,
    body: Result<JsonBody<SharedInfraInput>, ApiError>,
) -> Result<(StatusCode, Json<SharedInfrastructure>), Failure> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let address = input::address(body.address.as_deref().unwrap_or_default())?;
    let input = said(&body)?;
    let mut tx = admin.begin(&state).await?;
    let made = tx.create_shared_infra(address, input).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}
