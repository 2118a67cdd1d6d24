//! Comparison of registered contracts with the chain (K5): after the reset of a development chain, most of them are
//! gone.

use crate::{
    AdminState,
    body::JsonBody,
    error::AdminError,
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

/// Most contracts in one request to the node.
const MAX_ADDRESSES_PER_BATCH: usize = 16;
/// The time limit for all requests together.
const TIME_LIMIT: Seconds = Seconds(25);

/// Whether the chain has code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyLookup {
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
) -> Result<Json<ContractSyncCheckResponse>, AdminError> {
    let org = admin.readable_org(&state, &org).await?;
    let all_rows = Paging {
        limit: u64::from(u32::MAX),
        offset: 0,
    };
    let rows = state
        .store
        .read()
        .list_contracts(org.id, &ContractFilter::default(), all_rows)
        .await?
        .rows;
    let lookups = chain_statuses(&state, &rows).await;
    let mut response = ContractSyncCheckResponse {
        total: rows.len(),
        existing: Vec::new(),
        missing: Vec::new(),
        errors: Vec::new(),
    };
    for row in rows {
        let lookup = lookups
            .get(&row.address)
            .copied()
            .unwrap_or(ProxyLookup::Error("timeout"));
        let (list, status, error) = match lookup {
            ProxyLookup::Exists => (&mut response.existing, "exists", None),
            ProxyLookup::Missing => (&mut response.missing, "missing", None),
            ProxyLookup::Error(why) => (&mut response.errors, "error", Some(why)),
        };
        list.push(ContractSyncStatus {
            id: row.id,
            address: lower(row.address),
            name: row.name,
            status,
            error,
        });
    }
    Ok(Json(response))
}

/// Deletes registrations of contracts that are not on the chain; each one is checked again first. Unknown ids and ids
/// of other organizations are skipped with the same reason.
#[utoipa::path(post, path = "/api/v1/admin/orgs/{org_id}/contracts/sync-delete", tag = "contracts",
    params(("org_id" = String, Path, format = Uuid)), request_body = ContractSyncDeleteRequest,
    responses((status = 200, body = ContractSyncDeleteResponse), (status = 400), (status = 401), (status = 403),
        (status = 404)))]
pub(crate) async fn sync_delete(
    admin: Admin,
    State(state): State<AdminState>,
    Path(org): Path<String>,
    JsonBody(body): JsonBody<ContractSyncDeleteRequest>,
) -> Result<Json<ContractSyncDeleteResponse>, AdminError> {
    let org = admin.writable_org(&state, &org).await?;
    let ids = input::ids(&body.contract_ids, "contract_ids", "contracts")?;
    let of_this_org = |rows: Vec<Contract>| rows.into_iter().filter(|row| row.org == org.id).collect::<Vec<_>>();
    let rows = of_this_org(state.store.read().contracts_by_id(&ids).await?);
    let lookups = chain_statuses(&state, &rows).await;
    let last_block = state.node.head().map(|head| head.number);
    let mut tx = admin.begin(&state).await?;
    // Read again within the transaction.
    let rows = of_this_org(tx.read().contracts_by_id(&ids).await?);
    let mut response = ContractSyncDeleteResponse {
        deleted_count: 0,
        deleted_addresses: Vec::new(),
        skipped: Vec::new(),
    };
    for id in ids {
        let row = rows.iter().find(|row| row.id == id);
        let reason = match row.map(|row| (row, lookups.get(&row.address))) {
            None => "not found",
            Some((row, Some(ProxyLookup::Missing))) => {
                tx.delete_contract(id, last_block).await?;
                response.deleted_addresses.push(lower(row.address));
                continue;
            }
            Some((_, Some(ProxyLookup::Exists))) => "exists on chain",
            Some((_, Some(ProxyLookup::Error(why)))) => why,
            Some((_, None)) => "timeout",
        };
        response.skipped.push(ContractSyncDeleteSkipped { id, reason });
    }
    response.deleted_count = response.deleted_addresses.len();
    tx.commit().await?;
    Ok(Json(response))
}

/// The status of each contract at the head of the chain. Addresses not reached within the time limit are left out.
async fn chain_statuses(state: &AdminState, rows: &[Contract]) -> HashMap<Address, ProxyLookup> {
    let addresses: Vec<Address> = rows.iter().map(|row| row.address).collect();
    let deadline = state.clock.now().plus(TIME_LIMIT);
    let mut statuses = HashMap::with_capacity(addresses.len());
    for batch in addresses.chunks(MAX_ADDRESSES_PER_BATCH) {
        if state.clock.now() >= deadline {
            break;
        }
        match state.node.have_code(batch).await {
            Ok(codes) => {
                // HD28: by the policy of the newest block, a contract that a withheld transaction created does not
                // exist, and one that it removed still does.
                let snapshot = state.feed.pin().snapshot;
                let shown = |address| snapshot.shown_code(address, u64::MAX).map(|code| !code.is_empty());
                let status = |(address, code): (&Address, Option<bool>)| {
                    let status = match shown(*address).or(code) {
                        Some(true) => ProxyLookup::Exists,
                        Some(false) => ProxyLookup::Missing,
                        None => ProxyLookup::Error("the node could not tell"),
                    };
                    (*address, status)
                };
                statuses.extend(batch.iter().zip(codes).map(status));
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the node did not answer whether registered contracts still have code"
                );
                statuses.extend(
                    batch
                        .iter()
                        .map(|address| (*address, ProxyLookup::Error("the node did not answer"))),
                );
            }
        }
    }
    statuses
}
