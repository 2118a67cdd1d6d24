use super::{
    claim::FAILED,
    proof::{deployed_by_member, first_block},
};
use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
    input,
    scope::Admin,
    wire::{Contract, ContractCreateRequest},
};
use axum::extract::{Path, State};
use gw_http::{ApiError, Created, ErrorCode};
use gw_store::{Conflict, StoreError, record::NewContract};

/// Registers a contract for an organization.
///
/// Super registers any address. An organization's administrator names the transaction that created the contract, unless
/// the organization reserved the address by sending that transaction through the gateway (K3, decision 48). The
/// transaction must have succeeded and must have been sent by a member of the organization; the address must hold code
/// and must not be a linked wallet. Every failed check gets the same 400.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)), request_body = ContractCreateRequest,
    responses((status = 201, body = Contract), (status = 400), (status = 401), (status = 403), (status = 404),
        (status = 409)))]
pub(crate) async fn create_contract(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<ContractCreateRequest>,
) -> Result<Created<Contract>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let address = input::address(&body.address)?;
    if !admin.is_super() {
        // An own contract gets the conflict, whether the transaction that reserved it is still known or not.
        if state
            .store
            .read()
            .find_contract(address)
            .await?
            .is_some_and(|contract| contract.org == org.id)
        {
            return Err(StoreError::Conflict(Conflict::ContractAddress).into());
        }
        let named_tx = body
            .deployment_tx_hash
            .as_deref()
            .map(|hash| input::hash(hash, "deployment_tx_hash"))
            .transpose()?;
        let proof_tx = match named_tx {
            Some(hash) => Some(hash),
            None => state.store.read().reserving_transaction(org.id, address).await?,
        };
        let is_proven = match proof_tx {
            Some(hash) => deployed_by_member(&state, &org, address, hash).await.map_err(|error| {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the proof of a contract registration could not be checked: the registration is refused"
                );
                AdminError::Api(ApiError::new(ErrorCode::BadGateway, "the node did not answer"))
            })?,
            None => false,
        };
        if !is_proven {
            return Err(AdminError::bad_request(FAILED));
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
    let created = tx.create_contract(new).await?;
    tx.commit().await?;
    Ok(Created(
        format!("/api/v1/admin/orgs/{}/contracts/{:#x}", created.org, created.address),
        created.into(),
    ))
}
