use super::proof::{deployed_by_member, first_block};
use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::Admin,
    wire::{ContractClaimRequest, ContractClaimResponse},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::{Conflict, StoreError, record::NewContract};
use http::StatusCode;

/// The one refusal (K4): what exactly was missing stands in our log.
pub(super) const FAILED: &str = "contract registration failed";

/// Registers a contract that a member of the organization deployed past the gateway.
///
/// The transaction must have created it, itself or through a factory, with success; its sender must be linked to a
/// member; the address must hold code, be registered nowhere and be nobody's wallet.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts/claim", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)), request_body = ContractClaimRequest,
    responses((status = 201, body = ContractClaimResponse), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn claim_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<ContractClaimRequest>,
) -> Result<(StatusCode, Json<ContractClaimResponse>), Failure> {
    let org = admin.writable_org(&state, &org).await?;
    let address = input::address(&body.address)?;
    let hash = input::hash(&body.deployment_tx_hash, "deployment_tx_hash")?;
    let name = if body.name.is_empty() {
        String::new()
    } else {
        input::name(&body.name)?
    };
    let proved = deployed_by_member(&state, &org, address, hash)
        .await
        .unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a claim of a contract could not be checked"
            );
            false
        });
    if !proved {
        return Err(Failure::bad(FAILED));
    }
    let first_block = first_block(&state, address).await;
    let new = NewContract {
        first_block,
        ..NewContract::plain(org.id, address, name)
    };
    let mut tx = admin.begin(&state).await?;
    let made = match tx.create_contract(new).await {
        Err(StoreError::Conflict(Conflict::ContractAddress) | StoreError::Rule("contract_first_block")) => {
            return Err(Failure::bad(FAILED));
        }
        made => made?,
    };
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}
