use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    scope::Admin,
    wire::{Contract, ContractAbiUpdateRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::{AbiText, ContractPatch};

/// Sets the contract's ABI, which parameter rules and the masking of logs use; `null` clears it.
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}/abi", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)),
    request_body = ContractAbiUpdateRequest,
    responses((status = 200, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn set_abi(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<ContractAbiUpdateRequest>,
) -> Result<Json<Contract>, AdminError> {
    let abi = body
        .abi
        .map(AbiText::parse)
        .transpose()
        .map_err(|error| AdminError::bad_request(error.to_string()))?;
    let patch = ContractPatch {
        abi: Some(abi),
        ..ContractPatch::default()
    };
    super::update::change(&admin, &state, &org, &address, patch).await
}
