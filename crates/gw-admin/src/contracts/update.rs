use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{Contract, ContractUpdateRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::record::ContractPatch;

/// Changes a contract's name or metadata.
#[utoipa::path(put, path = "/api/v1/admin/orgs/{org_id}/contracts/{address}", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid), ("address" = String, Path)), request_body = ContractUpdateRequest,
    responses((status = 200, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn update_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path((org, address)): Path<(String, String)>,
    JsonBody(body): JsonBody<ContractUpdateRequest>,
) -> Result<Json<Contract>, AdminError> {
    let name = body.name.as_deref().map(input::name).transpose()?;
    let metadata = input::object(body.metadata, "metadata")?;
    let patch = ContractPatch {
        name,
        metadata,
        ..ContractPatch::default()
    };
    change(&admin, &state, &org, &address, patch).await
}

/// Applies a partial change to a contract of the organization, for all operations that change contracts.
pub(super) async fn change(
    admin: &Admin,
    state: &AdminState,
    org: &str,
    address: &str,
    patch: ContractPatch,
) -> Result<Json<Contract>, AdminError> {
    let org = admin.writable_org(state, org).await?;
    let mut tx = admin.begin(state).await?;
    let contract = admin.contract_of(&tx.read(), &org, address).await?;
    let changed = tx.update_contract(contract.id, patch).await?;
    tx.commit().await?;
    Ok(Json(changed.into()))
}
