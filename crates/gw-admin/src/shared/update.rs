use super::parse_input;
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{SharedInfraInput, SharedInfrastructure},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::ApiError;

/// Replaces the properties of a shared contract; super only. The address cannot change.
#[utoipa::path(put, path = "/api/v1/admin/shared-infrastructure/{address}", tag = "shared infrastructure",
    params(("address" = String, Path)), request_body = SharedInfraInput,
    responses((status = 200, body = SharedInfrastructure), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn update_shared_infra(
    admin: Admin,
    State(state): State<AdminState>,
    Path(address): Path<String>,
    body: Result<JsonBody<SharedInfraInput>, ApiError>,
) -> Result<Json<SharedInfrastructure>, AdminError> {
    admin.require_super()?;
    let JsonBody(body) = body?;
    let address = input::address(&address)?;
    if let Some(requested) = body.address.as_deref()
        && input::address(requested)? != address
    {
        return Err(AdminError::bad_request(
            "the address of a shared contract cannot change: delete it and tag the other",
        ));
    }
    let input = parse_input(&body)?;
    let mut tx = admin.begin(&state).await?;
    let changed = tx.update_shared_infra(address, input).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}
