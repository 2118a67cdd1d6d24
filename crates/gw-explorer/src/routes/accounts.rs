//! Balances, code and contracts of addresses that the viewer may look up.

use super::parse_address;
use crate::{
    error::ExplorerError,
    rows::{bytes, hash, lower},
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::{AddressMetadata, Balance, Contract, PRIVATE},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_postings::Space;
use gw_types::{Address, U256};

/// The balance of the address in wei, in hex.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/balance", tag = "explorer",
    params(("address" = String, Path, description = "The address")),
    responses((status = 200, body = String), ExplorerError))]
pub(crate) async fn get_balance(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
) -> Result<Json<String>, ExplorerError> {
    let address = parse_address(&address)?;
    let view = View::open(&state, &caller, &[]).await?;
    view.require_account(address)?;
    if !view.viewer().shows_account(address) {
        return Ok(Json(hex_number(U256::ZERO)));
    }
    let read = view.reader.find_balance(address).await?;
    let is_pending = view.reader.is_balance_pending(address).await?;
    let read = read.filter(|read| !is_pending && view.blocks().contains(&read.block_number));
    let (balance, block) = match read {
        Some(read) => (read.balance, read.block_number),
        // The indexer did not read it since its last change, or the address has no rows and has what the genesis block
        // gave it.
        None => {
            let block = view.version.newest;
            let balance = state.balances.balance(address, block).await;
            let unavailable = || gw_http::ApiError::unavailable("the balance is not known yet");
            (balance.ok_or_else(unavailable)?, block)
        }
    };
    // HD28: without what a withheld transaction changed.
    Ok(Json(hex_number(view.snapshot.shown_balance(address, block, balance))))
}

/// The code of the address in hex; `0x` if it has none.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/code", tag = "explorer",
    params(("address" = String, Path, description = "The address")),
    responses((status = 200, body = String), ExplorerError))]
pub(crate) async fn get_code(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
) -> Result<Json<String>, ExplorerError> {
    let address = parse_address(&address)?;
    let view = View::open(&state, &caller, &[]).await?;
    view.require_account(address)?;
    if let Some(code) = view.snapshot.shown_code(address, view.version.newest) {
        return Ok(Json(bytes(code)));
    }
    let contract = view.reader.find_contract(address).await?;
    let contract = contract.filter(|row| view.blocks().contains(&row.block_number));
    Ok(Json(
        contract.map_or_else(|| bytes(&[]), |row| bytes(&row.contract.code)),
    ))
}

/// Lists the token balances of the address, for tokens that the viewer sees. Tokens that are printed as an alias or
/// whose balance is not shown follow the others, in an order that says nothing about them.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/balances", tag = "explorer",
    params(("address" = String, Path, description = "The address")),
    responses((status = 200, body = [Balance]), ExplorerError))]
pub(crate) async fn list_balances(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
) -> Result<Json<Vec<Balance>>, ExplorerError> {
    let address = parse_address(&address)?;
    let view = View::open(&state, &caller, &[]).await?;
    let viewer = view.viewer();
    view.require_address(&viewer, address)?;
    let (mut held, mut balances) = (view.balances_of(address).await?, Vec::new());
    for holding in held.holdings() {
        let Some(shown) = viewer.balance_entry(address, holding.token) else {
            continue;
        };
        let balance = view.shown_token_balance(&holding, &mut held).await?;
        if balance.is_zero() {
            continue;
        }
        let is_shown = shown.balance && shown.token.is_clear();
        let row = Balance {
            address: lower(address),
            token_address: view.print(holding.token, shown.token, &mut AddressMetadata::new()),
            // Not the block at which it was read: a withheld transaction, for example, makes it be read again.
            block_number: view.version.newest,
            token_id: holding.token_id.filter(|_| shown.balance).map(|id| id.to_string()),
            balance: if shown.balance {
                balance.to_string()
            } else {
                String::new()
            },
            is_pending: None,
        };
        balances.push((!is_shown, row));
    }
    // The sort is stable: the ids of a token keep their order where they are shown.
    balances.sort_by(|(a_last, a), (b_last, b)| (a_last, &a.token_address).cmp(&(b_last, &b.token_address)));
    // The number of ids is hidden with their balances.
    balances.dedup_by(|(_, a), (_, b)| {
        a.token_address == b.token_address && a.token_id.is_none() && a.balance == b.balance && a.balance.is_empty()
    });
    Ok(Json(balances.into_iter().map(|(_, row)| row).collect()))
}

/// The contract at the address.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/contract",
    operation_id = "get_address_contract", tag = "explorer",
    params(("address" = String, Path, description = "The address")),
    responses((status = 200, body = Contract), ExplorerError))]
pub(crate) async fn get_contract(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
) -> Result<Json<Contract>, ExplorerError> {
    let address = parse_address(&address)?;
    let view = View::open(&state, &caller, &[Space::Transactions]).await?;
    let missing = || ExplorerError::not_found("contract not found");
    if !view.viewer().opens_account(address) {
        return Err(missing());
    }
    let row = view.reader.find_contract(address).await?;
    let row = row
        .filter(|row| view.blocks().contains(&row.block_number))
        .ok_or_else(missing)?;
    let contract = &row.contract;
    let code = view
        .snapshot
        .shown_code(address, view.version.newest)
        .unwrap_or(&contract.code);
    let (creator, creation_tx) = view
        .contract_creation(address, contract.creator, contract.creation_transaction)
        .await?;
    Ok(Json(Contract {
        address: lower(address),
        bytecode: bytes(code),
        bytecode_hash: hash(contract.code_hash),
        creator,
        block_number: (creation_tx != PRIVATE).then_some(row.block_number),
        creation_tx,
        contract_name: view
            .snapshot
            .contract(address)
            .map(|contract| contract.name.to_string()),
        is_verified: view
            .snapshot
            .contract(address)
            .is_some_and(|contract| contract.abi.is_some()),
    }))
}

/// A number as an Ethereum quantity.
pub(crate) fn hex_number(number: U256) -> String {
    format!("0x{number:x}")
}

impl View {
    /// The creator of a contract and the transaction that created it, as the viewer sees them.
    async fn contract_creation(
        &self,
        contract: Address,
        creator: Option<Address>,
        transaction: Option<gw_types::B256>,
    ) -> Result<(String, String), ExplorerError> {
        let (Some(creator), Some(transaction)) = (creator, transaction) else {
            // A contract of the genesis block.
            return Ok((String::new(), String::new()));
        };
        let shown = match self.reader.find_transaction(transaction).await? {
            Some(row) => self.contract_visibility(contract, creator, row).await?,
            None => None,
        };
        let Some(shown) = shown else {
            return Ok((PRIVATE.to_owned(), PRIVATE.to_owned()));
        };
        let creation_tx = if shown.creation_tx {
            hash(transaction)
        } else {
            PRIVATE.to_owned()
        };
        Ok((
            self.print(creator, shown.creator, &mut AddressMetadata::new()),
            creation_tx,
        ))
    }
}
