use super::proof::{deployed_by_member, first_block};
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{ContractClaimRequest, ContractClaimResponse},
};
use axum::extract::{Path, State};
use gw_http::Created;
use gw_store::{Conflict, StoreError, record::NewContract};

/// The only 400 text for a failed proof (K4). The log has the cause.
pub(super) const FAILED: &str = "contract registration failed";

/// Registers a contract that a member of the organization deployed without the gateway.
///
/// The transaction must have succeeded and created the contract, directly or through a factory. Its sender must be
/// linked to a member. The address must hold code, must not be registered, and must not be a linked wallet.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts/claim", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)), request_body = ContractClaimRequest,
    responses((status = 201, body = ContractClaimResponse), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn claim_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<ContractClaimRequest>,
) -> Result<Created<ContractClaimResponse>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let address = input::address(&body.address)?;
    let hash = input::hash(&body.deployment_tx_hash, "deployment_tx_hash")?;
    let name = if body.name.is_empty() {
        String::new()
    } else {
        input::name(&body.name)?
    };
    let is_proven = deployed_by_member(&state, &org, address, hash)
        .await
        .unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the proof of a contract claim could not be checked: the claim is refused"
            );
            false
        });
    if !is_proven {
        return Err(AdminError::bad_request(FAILED));
    }
    let first_block = first_block(&state, address).await;
    let new = NewContract {
        first_block,
        ..NewContract::plain(org.id, address, name)
    };
    let mut tx = admin.begin(&state).await?;
    let created = match tx.create_contract(new).await {
        Err(StoreError::Conflict(Conflict::ContractAddress) | StoreError::Rule("contract_first_block")) => {
            return Err(AdminError::bad_request(FAILED));
        }
        created => created?,
    };
    tx.commit().await?;
    Ok(Created(
        format!("/api/v1/admin/orgs/{}/contracts/{:#x}", created.org, created.address),
        created.into(),
    ))
}
