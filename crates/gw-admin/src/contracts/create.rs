use crate::{
    AdminState,
    error::Failure,
    input,
    scope::Admin,
    wire::{Contract, ContractCreateRequest},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{ApiError, ErrorCode, JsonBody};
use gw_store::record::{NewContract, Organization};
use gw_types::{Address, B256};
use http::StatusCode;

/// Registers a contract for an organization.
///
/// Super registers any address. An organization's administrator names the transaction that created the contract
/// (K3, decision 48): mined with success, sent by a member of the organization, code at the address, and nobody's
/// wallet. Every miss is one refusal.
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
        let proof =
            body.deployment_tx_hash.as_deref().map(|hash| input::hash(hash, "deployment_tx_hash")).transpose()?;
        let proved = match proof {
            Some(hash) => deployed_by_member(&state, &org, address, hash).await?,
            None => false,
        };
        if !proved {
            return Err(Failure::bad("contract registration failed"));
        }
    }
    let name = if body.name.is_empty() { String::new() } else { input::name(&body.name)? };
    let new = NewContract { metadata: body.metadata.unwrap_or_default(), ..NewContract::plain(org.id, address, name) };
    let mut tx = state.store.begin(&admin.actor()).await?;
    let made = tx.create_contract(new).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// K3, K4: what the chain and the links say about who created the contract.
async fn deployed_by_member(
    state: &AdminState,
    org: &Organization,
    address: Address,
    hash: B256,
) -> Result<bool, Failure> {
    let snapshot = state.feed.pin().snapshot;
    if !snapshot.links_at(address).is_empty() {
        return Ok(false);
    }
    let unreachable = |_| Failure::Api(ApiError::new(ErrorCode::BadGateway, "the node did not answer"));
    let Some(mined) = state.node.mined(hash).await.map_err(unreachable)? else { return Ok(false) };
    if !mined.succeeded || mined.created != Some(address) {
        return Ok(false);
    }
    let now = state.clock.now();
    let member = |user| {
        snapshot
            .memberships(user)
            .iter()
            .any(|m| m.active(now) && snapshot.group(m.group).is_some_and(|group| group.org == org.id))
    };
    if !snapshot.links_at(mined.sender).iter().any(|link| member(link.user)) {
        return Ok(false);
    }
    let Some(head) = state.node.head() else { return Err(unreachable(gw_node::NodeError::Timeout)) };
    state.node.has_code(address, head.hash).await.map_err(unreachable)
}
