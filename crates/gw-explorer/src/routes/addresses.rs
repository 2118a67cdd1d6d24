//! Addresses that the viewer may look up, and their rows. Any other address is not found, whether it exists or not.

use super::{address_feed::AddressFeed, logs::LogQuery, parse_address};
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits, NumberedQuery},
    rows::{lower, time},
    selection::in_blocks,
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::{
        AddressStats, AddressTransactionsResponse, AddressTransfersResponse, ExplorerIsContractResponse,
        InternalTransaction, Log,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::QueryParams;
use gw_policy::Viewer;
use gw_postings::{BlockRange, RowSet, Space, VisibleAddress};
use gw_types::Address;

const MISSING: &str = "address not found";
const COUNTED: &[Space] = &[Space::Transactions, Space::Transfers, Space::Frames];

/// Numbers of an address, counted over what the viewer sees.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/stats", tag = "explorer",
    params(("address" = String, Path, description = "The address")),
    responses((status = 200, body = AddressStats), ExplorerError))]
pub(crate) async fn get_address_stats(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
) -> Result<Json<AddressStats>, ExplorerError> {
    let address = parse_address(&address)?;
    let view = View::open(&state, &caller, COUNTED).await?;
    let viewer = view.viewer();
    view.require_address(&viewer, address)?;
    let contracts = view.reader.contracts_among(&[address]).await?;
    Ok(Json(view.address_stats(
        &viewer,
        address,
        contracts.contains(&address),
    )?))
}

/// Lists the transactions that the address sent or received, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/transactions", tag = "explorer", params(FeedQuery,
    ("address" = String, Path, description = "The address")),
    responses((status = 200, body = AddressTransactionsResponse), ExplorerError))]
pub(crate) async fn list_address_transactions(
    feed: AddressFeed,
) -> Result<Json<AddressTransactionsResponse>, ExplorerError> {
    let view = feed.open(Space::Transactions).await?;
    let rows = view.rows_of_open_address(Space::Transactions, feed.address)?;
    let page = view.page_ids(&rows, &feed.list, feed.page)?;
    let data = view.transactions(&page.ids, false).await?;
    let answer = view.answer(Space::Transactions, &feed.list, page, data)?;
    Ok(Json(AddressTransactionsResponse {
        transactions: answer.data,
        next_cursor: answer.next_cursor,
    }))
}

/// Lists the token transfers from or to the address, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/transfers", tag = "explorer", params(FeedQuery,
    ("address" = String, Path, description = "The address")),
    responses((status = 200, body = AddressTransfersResponse), ExplorerError))]
pub(crate) async fn list_address_transfers(feed: AddressFeed) -> Result<Json<AddressTransfersResponse>, ExplorerError> {
    let view = feed.open(Space::Transfers).await?;
    let rows = view.rows_of_open_address(Space::Transfers, feed.address)?;
    let page = view.page_ids(&rows, &feed.list, feed.page)?;
    let data = view.transfers(&page.ids).await?;
    let answer = view.answer(Space::Transfers, &feed.list, page, data)?;
    Ok(Json(AddressTransfersResponse {
        transfers: answer.data,
        next_cursor: answer.next_cursor,
    }))
}

/// Lists the internal transactions from or to the address, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/internal", tag = "explorer", params(FeedQuery,
    ("address" = String, Path, description = "The address")),
    responses((status = 200, body = ExplorerListResponse<InternalTransaction>), ExplorerError))]
pub(crate) async fn list_address_internal(
    feed: AddressFeed,
) -> Result<Json<ExplorerListResponse<InternalTransaction>>, ExplorerError> {
    let view = feed.open(Space::Frames).await?;
    let rows = view.rows_of_open_address(Space::Frames, feed.address)?;
    let page = view.page_ids(&rows, &feed.list, feed.page)?;
    let data = view.frames(&page.ids).await?;
    Ok(Json(view.answer(Space::Frames, &feed.list, page, data)?))
}

/// Lists the logs that the address emitted, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/logs", tag = "explorer", params(FeedQuery,
    ("address" = String, Path, description = "The address")),
    responses((status = 200, body = ExplorerListResponse<Log>), ExplorerError))]
pub(crate) async fn list_address_logs(feed: AddressFeed) -> Result<Json<ExplorerListResponse<Log>>, ExplorerError> {
    let view = feed.open(Space::Logs).await?;
    let viewer = view.viewer();
    view.require_address(&viewer, feed.address)?;
    let query = LogQuery {
        emitter: Some(view.rows_in_list(&viewer, Space::Logs, feed.address)?),
        blocks: BlockRange::ALL,
        topic0: None,
    };
    Ok(Json(view.log_page(&query, &feed.list, feed.page).await?))
}

/// Whether the address is a contract.
#[utoipa::path(get, path = "/api/v1/explorer/addresses/{address}/is-contract", tag = "explorer",
    params(("address" = String, Path, description = "The address")),
    responses((status = 200, body = ExplorerIsContractResponse), ExplorerError))]
pub(crate) async fn is_contract(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(address): Path<String>,
) -> Result<Json<ExplorerIsContractResponse>, ExplorerError> {
    let address = parse_address(&address)?;
    let view = View::open(&state, &caller, &[]).await?;
    view.require_account(address)?;
    let contracts = view.reader.contracts_among(&[address]).await?;
    Ok(Json(ExplorerIsContractResponse {
        is_contract: contracts.contains(&address),
    }))
}

/// Lists the addresses that the viewer may look up, those with the most transactions first.
#[utoipa::path(get, path = "/api/v1/explorer/accounts", tag = "explorer", params(NumberedQuery),
    responses((status = 200, body = ExplorerListResponse<AddressStats>), ExplorerError))]
pub(crate) async fn list_accounts(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<NumberedQuery>,
) -> Result<Json<ExplorerListResponse<AddressStats>>, ExplorerError> {
    let page = query.page(Limits::ROWS)?;
    let view = View::open(&state, &caller, COUNTED).await?;
    let viewer = view.viewer();
    let mut active = view.active_addresses(&viewer)?;
    active.sort_by_key(|account| (std::cmp::Reverse(account.activity), account.address));
    let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let shown: Vec<Address> = (active.iter().skip(offset).take(page.limit))
        .map(|account| account.address)
        .collect();
    let contracts = view.reader.contracts_among(&shown).await?;
    let data = shown
        .iter()
        .map(|address| view.address_stats(&viewer, *address, contracts.contains(address)))
        .collect::<Result<_, _>>()?;
    Ok(Json(ExplorerListResponse {
        data,
        total: Some(active.len() as u64),
        next_cursor: None,
    }))
}

/// An address with rows that the viewer sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveAddress {
    pub(crate) address: Address,
    /// The number of its transactions, of its transfers and of its internal transactions.
    activity: (u64, u64, u64),
}

impl View {
    /// # Errors
    /// 404 unless the viewer may look the address up.
    pub(crate) fn require_address(&self, viewer: &Viewer<'_>, address: Address) -> Result<(), ExplorerError> {
        let is_open = viewer.opens_address(address);
        is_open.then_some(()).ok_or_else(|| ExplorerError::not_found(MISSING))
    }

    /// # Errors
    /// 404 unless balance and code of the address are shown.
    pub(crate) fn require_account(&self, address: Address) -> Result<(), ExplorerError> {
        let is_open = self.viewer().opens_account(address);
        is_open.then_some(()).ok_or_else(|| ExplorerError::not_found(MISSING))
    }

    /// The rows of an address that the viewer may look up.
    fn rows_of_open_address(&self, space: Space, address: Address) -> Result<RowSet, ExplorerError> {
        let viewer = self.viewer();
        self.require_address(&viewer, address)?;
        Ok(self
            .rows_in_list(&viewer, space, address)?
            .intersection(&self.rows(space)?))
    }

    /// The rows of an address in the blocks in which its lists contain them, without regard to other rules.
    fn rows_in_list(&self, viewer: &Viewer<'_>, space: Space, address: Address) -> Result<RowSet, ExplorerError> {
        let blocks: Vec<VisibleAddress> = in_blocks(&viewer.address_list_blocks(address));
        self.index(|postings| postings.rows_of_addresses(space, &blocks))
    }

    /// The addresses that the viewer may look up and that have rows.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn active_addresses(&self, viewer: &Viewer<'_>) -> Result<Vec<ActiveAddress>, ExplorerError> {
        let mut active = Vec::new();
        for address in self.scopes.addresses() {
            if address.is_zero() || !viewer.opens_address(address) {
                continue;
            }
            let count = |space| -> Result<u64, ExplorerError> {
                let rows = self.rows_in_list(viewer, space, address)?;
                Ok(rows.intersection(&self.rows(space)?).len())
            };
            let activity = (
                count(Space::Transactions)?,
                count(Space::Transfers)?,
                count(Space::Frames)?,
            );
            if activity != (0, 0, 0) {
                active.push(ActiveAddress { address, activity });
            }
        }
        Ok(active)
    }

    fn address_stats(
        &self,
        viewer: &Viewer<'_>,
        address: Address,
        is_contract: bool,
    ) -> Result<AddressStats, ExplorerError> {
        let mut counts = Vec::with_capacity(COUNTED.len());
        let (mut first, mut last) = (None::<i64>, None::<i64>);
        for space in COUNTED {
            let rows = self
                .rows_in_list(viewer, *space, address)?
                .intersection(&self.rows(*space)?);
            counts.push(rows.len());
            let time_of = |row| self.index(|postings| Some(postings.block_of(*space, row)?.time.secs()));
            if let (Some(oldest), Some(newest)) = (rows.oldest(), rows.newest()) {
                let (oldest, newest) = (time_of(oldest)?, time_of(newest)?);
                first = [first, oldest].into_iter().flatten().min();
                last = last.max(newest);
            }
        }
        let count = |position: usize| counts.get(position).copied().unwrap_or_default();
        Ok(AddressStats {
            address: lower(address),
            tx_count: count(0),
            token_transfer_count: count(1),
            internal_tx_count: count(2),
            first_seen: first.unwrap_or_default(),
            last_seen: last.unwrap_or_default(),
            is_contract,
            updated_at: time(last.unwrap_or_default()),
        })
    }
}
