//! Whether registered contracts are still on the chain (K5): after a development chain was reset, most are not.

use crate::{
    AdminState,
    body::JsonBody,
    error::Failure,
    input,
    scope::Admin,
    wire::{
        ContractSyncCheckResponse, ContractSyncDeleteRequest, ContractSyncDeleteResponse, ContractSyncDeleteSkipped,
        ContractSyncStatus, lower,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_store::{
    read::{ContractFilter, Paging},
    record::Contract,
};
use gw_types::{Address, Seconds};
use std::collections::HashMap;

/// How many contracts one exchange asks about.
const TOGETHER: usize = 16;
/// How long the whole may take.
const PATIENCE: Seconds = Seconds(25);

/// What the chain says of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Exists,
    Missing,
    Error(&'static str),
}

/// Compares the organization's contracts with the chain.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts/sync-check", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)),
    responses((status = 200, body = ContractSyncCheckResponse), (status = 401), (status = 403), (status = 404)))]
pub(crate) async fn sync_check(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
) -> Result<Json<ContractSyncCheckResponse>, Failure> {
    let org = admin.readable_org(&state, &org).await?;
    let everything = Paging {
        limit: u64::from(u32::MAX),
        offset: 0,
    };
    let rows = state
        .store
        .read()
        .list_contracts(org.id, &ContractFilter::default(), everything)
        .await?
        .rows;
    let found = look(&state, &rows).await;
    let mut answer = ContractSyncCheckResponse {
        total: rows.len(),
        existing: Vec::new(),
        missing: Vec::new(),
        errors: Vec::new(),
    };
    for row in rows {
        let found = found.get(&row.address).copied().unwrap_or(Found::Error("timeout"));
        let (list, status, error) = match found {
            Found::Exists => (&mut answer.existing, "exists", None),
            Found::Missing => (&mut answer.missing, "missing", None),
            Found::Error(why) => (&mut answer.errors, "error", Some(why)),
        };
        list.push(ContractSyncStatus {
            id: row.id,
            address: lower(row.address),
            name: row.name,
            status,
            error,
        });
    }
    Ok(Json(answer))
}

/// Deletes registrations of contracts that are not on the chain, each looked at once more. Unknown and foreign ids are
/// skipped for one and the same reason.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts/sync-delete", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)), request_body = ContractSyncDeleteRequest,
    responses((status = 200, body = ContractSyncDeleteResponse), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn sync_delete(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<ContractSyncDeleteRequest>,
) -> Result<Json<ContractSyncDeleteResponse>, Failure> {
    let org = admin.writable_org(&state, &org).await?;
    let ids = input::ids(&body.contract_ids, "contract_ids", "contracts")?;
    let own = |rows: Vec<Contract>| rows.into_iter().filter(|row| row.org == org.id).collect::<Vec<_>>();
    let rows = own(state.store.read().contracts_by_id(&ids).await?);
    let found = look(&state, &rows).await;
    let last_block = state.node.head().map(|head| head.number);
    let mut tx = admin.begin(&state).await?;
    // As they stand now, under lock.
    let rows = own(tx.read().contracts_by_id(&ids).await?);
    let mut answer = ContractSyncDeleteResponse {
        deleted_count: 0,
        deleted_addresses: Vec::new(),
        skipped: Vec::new(),
    };
    for id in ids {
        let row = rows.iter().find(|row| row.id == id);
        let reason = match row.map(|row| (row, found.get(&row.address))) {
            None => "not found",
            Some((row, Some(Found::Missing))) => {
                tx.delete_contract(id, last_block).await?;
                answer.deleted_addresses.push(lower(row.address));
                continue;
            }
            Some((_, Some(Found::Exists))) => "exists on chain",
            Some((_, Some(Found::Error(why)))) => why,
            Some((_, None)) => "timeout",
        };
        answer.skipped.push(ContractSyncDeleteSkipped { id, reason });
    }
    answer.deleted_count = answer.deleted_addresses.len();
    tx.commit().await?;
    Ok(Json(answer))
}

/// What the head of the chain shows at each address; what is not reached in time is left out.
async fn look(state: &AdminState, rows: &[Contract]) -> HashMap<Address, Found> {
    let addresses: Vec<Address> = rows.iter().map(|row| row.address).collect();
    let end = state.clock.now().plus(PATIENCE);
    let mut found = HashMap::with_capacity(addresses.len());
    for some in addresses.chunks(TOGETHER) {
        if state.clock.now() >= end {
            break;
        }
        match state.node.have_code(some).await {
            Ok(codes) => {
                // HD28: what a withheld transaction made is not there, and what it removed is, by the policy of the newest block.
                let snapshot = state.feed.pin().snapshot;
                let shown = |address| snapshot.shown_code(address, u64::MAX).map(|code| !code.is_empty());
                let status = |(address, code): (&Address, Option<bool>)| {
                    let status = match shown(*address).or(code) {
                        Some(true) => Found::Exists,
                        Some(false) => Found::Missing,
                        None => Found::Error("the node could not tell"),
                    };
                    (*address, status)
                };
                found.extend(some.iter().zip(codes).map(status));
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "contracts could not be looked up"
                );
                found.extend(
                    some.iter()
                        .map(|address| (*address, Found::Error("the node did not answer"))),
                );
            }
        }
    }
    found
}
