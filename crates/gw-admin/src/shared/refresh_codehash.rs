use crate::{AdminState, error::AdminError, input, scope::Admin, wire::SharedInfrastructure};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorCode};

/// Pins a shared contract to the code that is on the chain now; super only. For a proxy (ERC-1967, ERC-1167) the pin is
/// the pair of its own code and its implementation's code (HD9).
#[utoipa::path(post, path = "/api/v1/admin/shared-infrastructure/{address}/refresh-codehash",
    tag = "shared infrastructure", params(("address" = String, Path)),
    responses((status = 200, body = SharedInfrastructure), (status = 400), (status = 401), (status = 403),
        (status = 404), (status = 409), (status = 502)))]
pub(crate) async fn refresh_codehash(
    admin: Admin,
    State(state): State<AdminState>,
    Path(address): Path<String>,
) -> Result<Json<SharedInfrastructure>, AdminError> {
    admin.require_super()?;
    let address = input::address(&address)?;
    if state.store.read().find_shared_infra(address).await?.is_none() {
        return Err(AdminError::not_found("shared contract not found"));
    }
    let code = state.node.code_pair(address).await.map_err(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the code of a shared contract could not be read"
        );
        AdminError::Api(ApiError::new(ErrorCode::BadGateway, "the node did not answer"))
    })?;
    let Some(code) = code else {
        return Err(AdminError::Api(ApiError::conflict("there is no code at this address")));
    };
    let mut tx = admin.begin(&state).await?;
    let pinned = tx.pin_shared_infra(address, code.code, code.implementation).await?;
    tx.commit().await?;
    Ok(Json(pinned.into()))
}
