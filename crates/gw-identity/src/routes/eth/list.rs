//! `GET /eth/addresses`: the caller's linked addresses.

use crate::{error::storage, state::IdentityState};
use axum::{Json, extract::State};
use gw_http::{ApiError, AuthenticatedUser, ErrorBody};
use serde::Serialize;

/// The caller's addresses, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct EthAddressListResponse {
    /// The addresses.
    addresses: Vec<EthAddressResponse>,
}

/// One linked address.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct EthAddressResponse {
    /// The address, in lower case.
    address: String,
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    ens_name: Option<String>,
    /// When the name was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    ens_resolved_at: Option<String>,
    /// When the address was proved or inferred.
    verified_at: String,
}

/// List my addresses
#[utoipa::path(
    get,
    path = "/eth/addresses",
    operation_id = "linkedAddresses",
    tag = "eth",
    security(("bearer" = [])),
    responses(
        (status = 200, body = EthAddressListResponse),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 500, body = ErrorBody),
    ),
)]
pub(crate) async fn list(
    State(state): State<IdentityState>,
    caller: AuthenticatedUser,
) -> Result<Json<EthAddressListResponse>, ApiError> {
    let links = state
        .store
        .read()
        .list_links(caller.user.id)
        .await
        .map_err(|error| storage(&error))?;
    let addresses = links
        .into_iter()
        .map(|link| EthAddressResponse {
            address: format!("{:#x}", link.address),
            ens_name: link.ens_name,
            ens_resolved_at: link.ens_resolved_at.map(|at| at.to_rfc3339()),
            verified_at: link.verified_at.to_rfc3339(),
        })
        .collect();
    Ok(Json(EthAddressListResponse { addresses }))
}
