//! Uploads of ABIs. The ABI of a contract is a row of the policy store, the same one that the admin API changes: one
//! registry decides what is masked here and on `/rpc` (X13).

use super::{RequestOrigin, parse_address};
use crate::{
    error::ExplorerError, rows::lower, state::ExplorerState, view::RequestCaller, viewer::ViewerId,
    wire::ExplorerABIUpdateResponse,
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
};
use gw_http::read_body;
use gw_policy::snapshot::User;
use gw_store::{
    Actor,
    record::{AbiText, ContractPatch},
};
use gw_types::{Address, OrgId};
use std::error::Error;

const MISSING: &str = "address not found";

/// Replaces the ABI of a contract, for administrators of the organization that owns it. It decides at once what is
/// masked in the logs of the contract. The body is the ABI: a JSON array of at most 1 MiB. For everybody else, the
/// address is not found.
#[utoipa::path(post, path = "/api/v1/explorer/addresses/{address}/abi", tag = "explorer",
    params(("address" = String, Path, description = "The contract")),
    request_body(content = [Object], content_type = "application/json", description = "The ABI",
        example = json!([{
            "type": "function", "name": "pause", "inputs": [], "outputs": [], "stateMutability": "nonpayable"
        }])),
    responses((status = 200, body = ExplorerABIUpdateResponse), ExplorerError))]
pub(crate) async fn set_contract_abi(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    origin: RequestOrigin,
    Path(address): Path<String>,
    body: Body,
) -> Result<Json<ExplorerABIUpdateResponse>, ExplorerError> {
    let address = parse_address(&address)?;
    // Before the body is read: its content changes no answer to callers without the right.
    let (admin, org) = abi_admin(&state, &caller, address)?;
    let body = read_body(body).await;
    abi_admin(&state, &caller, address)?;
    let text = String::from_utf8(body?.into()).map_err(|error| invalid(&error))?;
    let abi = AbiText::parse(text).map_err(|error| invalid(&error))?;
    let actor = origin.sign(Actor::user(admin.id, &admin.external_id));
    let mut tx = state.policy_store.begin(&actor).await?;
    // HD20: no other mutation changes policy until this one ends, so the rights of now are those of the commit.
    if state.feed.epoch() < tx.head() {
        state.feed.catch_up_to(tx.head()).await;
    }
    abi_admin(&state, &caller, address)?;
    let contract = tx.read().find_contract(address).await?;
    let contract = contract.filter(|contract| contract.org == org).ok_or_else(missing)?;
    let patch = ContractPatch {
        abi: Some(Some(abi)),
        ..ContractPatch::default()
    };
    tx.update_contract(contract.id, patch).await?;
    tx.commit().await?;
    caller.set_org(org);
    Ok(Json(ExplorerABIUpdateResponse {
        success: true,
        address: lower(address),
    }))
}

/// 400 with the reason, which is about the caller's own text.
fn invalid(error: &dyn Error) -> ExplorerError {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    ExplorerError::bad_request(format!("invalid abi: {error}{cause}"))
}

fn missing() -> ExplorerError {
    ExplorerError::not_found(MISSING)
}

/// The caller and the organization that owns the contract, if the caller administers it and sees the contract Full.
/// Under impersonation nothing is changed (E11).
///
/// # Errors
/// 401 if the caller may not log in any more; 404 for everybody else; 503 if policy is stale.
fn abi_admin(state: &ExplorerState, caller: &RequestCaller, address: Address) -> Result<(User, OrgId), ExplorerError> {
    let (snapshot, id) = caller.pin(state)?;
    let ViewerId::User { user, org: named } = id else {
        return Err(missing());
    };
    let now = state.http_context.now();
    let org = snapshot
        .contract(address)
        .map(|contract| contract.org)
        .filter(|org| named.is_none_or(|named| named == *org))
        .ok_or_else(missing)?;
    let is_admin = state
        .http_context
        .admin
        .status(&snapshot, user, now)
        .full
        .contains(&org);
    let sees_contract = id.viewer(&snapshot, now, &state.policy_settings).opens_address(address);
    let user = snapshot.user(user).filter(|_| is_admin && sees_contract);
    user.map(|user| (User::clone(user), org)).ok_or_else(missing)
}
