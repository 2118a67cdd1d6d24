use super::{
    claim::FAILED,
    proof::{deployed_by_member, first_block},
};
use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::Admin,
    wire::{Contract, ContractCreateRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorCode};
use gw_store::{Conflict, StoreError, record::NewContract};
use http::StatusCode;

/// Registers a contract for an organization.
///
/// Super registers any address. An organization's administrator names the transaction that created the contract, unless
/// the organization reserved the address by sending it through the gateway (K3, decision 48): mined with success, sent by
/// a member of the organization, code at the address, and nobody's wallet. Every miss is one refusal.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)), request_body = ContractCreateRequest,
    responses((status = 201, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn create_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<ContractCreateRequest>,
) -> Result<(StatusCode, Json<Contract>), Failure> {
    let org = admin.writable_org(&state, &org).await?;
    let address = input::address(&body.address)?;
    if !admin.is_super() {
        // Its own contract is taken, whether what reserved it is still known or not.
        if state
            .store
            .read()
            .find_contract(address)
            .await?
            .is_some_and(|found| found.org == org.id)
        {
            return Err(StoreError::Conflict(Conflict::ContractAddress).into());
        }
        let named = body
            .deployment_tx_hash
            .as_deref()
            .map(|hash| input::hash(hash, "deployment_tx_hash"))
            .transpose()?;
        let proof = match named {
            Some(hash) => Some(hash),
            None => state.store.read().reserving_transaction(org.id, address).await?,
        };
        let proved = match proof {
            Some(hash) => deployed_by_member(&state, &org, address, hash).await.map_err(|error| {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a registration could not be checked"
                );
                Failure::Api(ApiError::new(ErrorCode::BadGateway, "the node did not answer"))
            })?,
            None => false,
        };
        if !proved {
            return Err(Failure::bad(FAILED));
        }
    }
    let name = if body.name.is_empty() {
        String::new()
    } else {
        input::name(&body.name)?
    };
    let new = NewContract {
        metadata: input::object(body.metadata, "metadata")?.unwrap_or_default(),
        takes_over_retired: admin.is_super(),
        first_block: first_block(&state, address).await,
        ..NewContract::plain(org.id, address, name)
    };
    let mut tx = admin.begin(&state).await?;
    let made = tx.create_contract(new).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}
