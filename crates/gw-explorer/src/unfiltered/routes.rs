//! The operations: the paths and records of the data API, without a viewer.

use super::{
    UnfilteredState, records,
    view::{ChainView, LOG_BLOCKS, ListRows, refuse_scan},
};
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits, NumberedQuery, PageRequest},
    places::block_range,
    routes::{
        accounts::hex_number,
        chain::HistoryQuery,
        logs::LogFilter,
        parse_address, parse_block_number, parse_hash,
        search::{SearchQuery, suggestion},
        transactions::CategoriesQuery,
    },
    rows::{bytes, hash, lower, time},
    wire::{
        AddressStats, AddressTransactionsResponse, AddressTransfersResponse, Balance, Block, ChainStats, Contract,
        ExplorerBlockNumberResponse, ExplorerCatchupProgressResponse, ExplorerChainIDResponse,
        ExplorerIsContractResponse, IndexerProgressResponse, InternalTransaction, Log, SearchSuggestion, SyncStatus,
        TokenTransfer, Transaction, TxHistoryPoint,
    },
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_chain_store::{HashPrefix, TokenHolding, rows::TransactionRow};
use gw_http::QueryParams;
use gw_postings::{BlockRange, RowId, Space};
use gw_types::{Address, Timestamp};
use std::collections::BTreeSet;

pub(super) type Answer<T> = Result<Json<T>, ExplorerError>;
pub(super) type ListAnswer<T> = Answer<ExplorerListResponse<T>>;

/// The number of blocks of the mean block time.
const TIMED_BLOCKS: u64 = 100;
/// The token balances that are read at once.
const BALANCES: u64 = 500;
/// The most balances to be read again that are looked at.
pub(super) const PENDING: u64 = 5_000;
/// The spaces of the statistics of an address.
const COUNTED: [Space; 3] = [Space::Transactions, Space::Transfers, Space::Frames];

/// The page of a list that is read by cursor.
///
/// # Errors
/// 400 for an offset: the page would shift with each new row.
pub(super) fn feed(query: &FeedQuery, limits: Limits) -> Result<PageRequest, ExplorerError> {
    let page = query.page(limits)?;
    if page.offset > 0 {
        return Err(ExplorerError::bad_request(
            "this list has no offset: follow `next_cursor`",
        ));
    }
    Ok(page)
}

pub(super) fn missing(text: &'static str) -> impl FnOnce() -> ExplorerError {
    move || ExplorerError::not_found(text)
}

pub(super) async fn chain_id(State(state): State<UnfilteredState>) -> Json<ExplorerChainIDResponse> {
    Json(ExplorerChainIDResponse {
        chain_id: state.chain_id,
    })
}

pub(super) async fn stats(State(state): State<UnfilteredState>) -> Answer<ChainStats> {
    let view = ChainView::open(&state).await?;
    let blocks = view.blocks();
    let timed = blocks.end.saturating_sub(TIMED_BLOCKS).max(blocks.start)..blocks.end;
    let timed = view.reader.list_blocks(timed, TIMED_BLOCKS).await?;
    let all = view.index(|postings| postings.ids_in_blocks(Space::Transactions, view.all_blocks()))?;
    Ok(Json(ChainStats {
        total_blocks: blocks.end.saturating_sub(blocks.start),
        total_transactions: all.end.saturating_sub(all.start),
        total_addresses: view.accounts().await?.len() as u64,
        total_tokens: view.reader.count_tokens(None, view.version.newest).await?,
        avg_block_time: crate::routes::chain::mean_block_time(&timed),
        privacy_enabled: false,
    }))
}

pub(super) async fn tx_history(
    State(state): State<UnfilteredState>,
    QueryParams(query): QueryParams<HistoryQuery>,
) -> Answer<Vec<TxHistoryPoint>> {
    let (interval, limit) = query.spans()?;
    let view = ChainView::open(&state).await?;
    // Without a clock, the newest span is that of the newest block.
    let newest = view.reader.find_block(view.version.newest).await?;
    let newest = newest.map_or(0, |row| row.block.timestamp);
    let newest = newest.div_euclid(interval).saturating_mul(interval);
    let mut points = Vec::new();
    for steps in (0..limit).rev() {
        let start = newest.saturating_sub(steps.saturating_mul(interval));
        let end = Timestamp::from_secs(start.saturating_add(interval));
        let ids = view.index(|postings| postings.ids_between(Space::Transactions, Timestamp::from_secs(start), end))?;
        points.push(TxHistoryPoint {
            timestamp: start,
            count: ids.end.saturating_sub(ids.start),
        });
    }
    Ok(Json(points))
}

pub(super) async fn list_blocks(
    State(state): State<UnfilteredState>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<Block> {
    let page = feed(&query, Limits::ROWS)?;
    let view = ChainView::open(&state).await?;
    let all = view.blocks();
    let end = match (query.cursor(), page.before) {
        (Some(cursor), _) => view.block_before(cursor)?,
        (None, Some(before)) => before,
        (None, None) => all.end,
    };
    let end = end.min(all.end);
    let rows = view
        .reader
        .list_blocks(all.start.min(end)..end, page.limit as u64)
        .await?;
    let last = rows.last().map(|row| row.block.number);
    Ok(Json(ExplorerListResponse {
        data: rows.iter().map(records::block).collect(),
        total: Some(all.end.saturating_sub(all.start)),
        next_cursor: last
            .filter(|number| *number > all.start)
            .map(|number| view.block_cursor(number)),
    }))
}

pub(super) async fn latest_block_number(State(state): State<UnfilteredState>) -> Answer<ExplorerBlockNumberResponse> {
    let view = ChainView::open(&state).await?;
    Ok(Json(ExplorerBlockNumberResponse {
        number: view.version.newest,
    }))
}

pub(super) async fn get_block(State(state): State<UnfilteredState>, Path(number): Path<String>) -> Answer<Block> {
    let number = parse_block_number(&number)?;
    let view = ChainView::open(&state).await?;
    let row = view.reader.find_block(number).await?;
    let row = row.filter(|row| view.blocks().contains(&row.block.number));
    Ok(Json(records::block(&row.ok_or_else(missing("block not found"))?)))
}

pub(super) async fn get_block_by_hash(State(state): State<UnfilteredState>, Path(hash): Path<String>) -> Answer<Block> {
    let hash = parse_hash(&hash)?;
    let view = ChainView::open(&state).await?;
    let row = view.reader.find_block_by_hash(hash).await?;
    let row = row.filter(|row| view.blocks().contains(&row.block.number));
    Ok(Json(records::block(&row.ok_or_else(missing("block not found"))?)))
}

pub(super) async fn list_block_transactions(
    State(state): State<UnfilteredState>,
    Path(number): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<Transaction> {
    let (number, page) = (parse_block_number(&number)?, feed(&query, Limits::ROWS)?);
    let view = ChainView::open(&state).await?;
    view.require_block(number)?;
    let rows = view.rows_in(Space::Transactions, block_range(number))?;
    view.transaction_page(&rows, page, query.cursor(), false).await
}

pub(super) async fn list_block_internal(
    State(state): State<UnfilteredState>,
    Path(number): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<InternalTransaction> {
    let (number, page) = (parse_block_number(&number)?, feed(&query, Limits::ROWS)?);
    let view = ChainView::open(&state).await?;
    view.require_block(number)?;
    let rows = view.rows_in(Space::Frames, block_range(number))?;
    view.frame_page(&rows, page, query.cursor()).await
}

pub(super) async fn list_transactions(
    State(state): State<UnfilteredState>,
    QueryParams(query): QueryParams<FeedQuery>,
    QueryParams(categories): QueryParams<CategoriesQuery>,
) -> ListAnswer<Transaction> {
    let page = feed(&query, Limits::ROWS)?;
    let view = ChainView::open(&state).await?;
    let rows = view.rows_in(Space::Transactions, view.all_blocks())?;
    view.transaction_page(&rows, page, query.cursor(), categories.with_categories)
        .await
}

pub(super) async fn list_transactions_by_page(
    State(state): State<UnfilteredState>,
    QueryParams(query): QueryParams<NumberedQuery>,
    QueryParams(categories): QueryParams<CategoriesQuery>,
) -> ListAnswer<Transaction> {
    let page = query.page(Limits::ROWS)?;
    let view = ChainView::open(&state).await?;
    let rows = view.rows_in(Space::Transactions, view.all_blocks())?;
    let mut answer = view
        .transaction_page(&rows, page, None, categories.with_categories)
        .await?;
    answer.next_cursor = None;
    Ok(answer)
}

pub(super) async fn get_transaction(
    State(state): State<UnfilteredState>,
    Path(hash): Path<String>,
    QueryParams(categories): QueryParams<CategoriesQuery>,
) -> Answer<Transaction> {
    let (view, row) = open_transaction(&state, &hash).await?;
    let row = row.ok_or_else(missing("transaction not found"))?;
    Ok(Json(view.transaction(&row, categories.with_categories)?))
}

pub(super) async fn list_internal(
    State(state): State<UnfilteredState>,
    Path(hash): Path<String>,
) -> Answer<Vec<InternalTransaction>> {
    let (view, row) = open_transaction(&state, &hash).await?;
    let Some(row) = row else { return Ok(Json(Vec::new())) };
    let rows = view.reader.list_frames(row.id).await?;
    Ok(Json(rows.iter().map(records::frame).collect()))
}

pub(super) async fn list_transfers(
    State(state): State<UnfilteredState>,
    Path(hash): Path<String>,
) -> Answer<Vec<TokenTransfer>> {
    let (view, row) = open_transaction(&state, &hash).await?;
    let Some(row) = row else { return Ok(Json(Vec::new())) };
    let rows = view.reader.list_transfers(row.id).await?;
    Ok(Json(rows.iter().map(records::transfer).collect()))
}

pub(super) async fn list_logs(State(state): State<UnfilteredState>, Path(hash): Path<String>) -> Answer<Vec<Log>> {
    let (view, row) = open_transaction(&state, &hash).await?;
    let Some(row) = row else { return Ok(Json(Vec::new())) };
    let rows = view.reader.list_logs(row.id).await?;
    Ok(Json(rows.iter().map(records::log).collect()))
}

/// The transaction with this hash, if its block is shown.
async fn open_transaction(
    state: &UnfilteredState,
    hash: &str,
) -> Result<(ChainView, Option<TransactionRow>), ExplorerError> {
    let hash = parse_hash(hash)?;
    let view = ChainView::open(state).await?;
    let row = view.reader.find_transaction(hash).await?;
    let row = row.filter(|row| view.blocks().contains(&row.block_number));
    Ok((view, row))
}

pub(super) async fn get_address_stats(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
) -> Answer<AddressStats> {
    let address = parse_address(&address)?;
    let view = ChainView::open(&state).await?;
    let contracts = view.reader.contracts_among(&[address]).await?;
    Ok(Json(view.address_stats(address, contracts.contains(&address))?))
}

pub(super) async fn list_address_transactions(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> Answer<AddressTransactionsResponse> {
    let (address, page) = (parse_address(&address)?, feed(&query, Limits::ROWS)?);
    let view = ChainView::open(&state).await?;
    let rows = view.rows_of(Space::Transactions, address)?;
    let Json(list) = view.transaction_page(&rows, page, query.cursor(), false).await?;
    Ok(Json(AddressTransactionsResponse {
        transactions: list.data,
        next_cursor: list.next_cursor,
    }))
}

pub(super) async fn list_address_transfers(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> Answer<AddressTransfersResponse> {
    let (address, page) = (parse_address(&address)?, feed(&query, Limits::ROWS)?);
    let view = ChainView::open(&state).await?;
    let rows = view.rows_of(Space::Transfers, address)?;
    let Json(list) = view.transfer_page(&rows, page, query.cursor()).await?;
    Ok(Json(AddressTransfersResponse {
        transfers: list.data,
        next_cursor: list.next_cursor,
    }))
}

pub(super) async fn list_address_internal(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<InternalTransaction> {
    let (address, page) = (parse_address(&address)?, feed(&query, Limits::ROWS)?);
    let view = ChainView::open(&state).await?;
    let rows = view.rows_of(Space::Frames, address)?;
    view.frame_page(&rows, page, query.cursor()).await
}

pub(super) async fn list_address_logs(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<Log> {
    let (address, page) = (parse_address(&address)?, feed(&query, Limits::ROWS)?);
    let view = ChainView::open(&state).await?;
    let rows = view.rows_of(Space::Logs, address)?;
    view.log_page(&rows, page, query.cursor()).await
}

pub(super) async fn get_balance(State(state): State<UnfilteredState>, Path(address): Path<String>) -> Answer<String> {
    let address = parse_address(&address)?;
    let view = ChainView::open(&state).await?;
    let read = view.reader.find_balance(address).await?;
    let is_pending = view.reader.is_balance_pending(address).await?;
    let read = read.filter(|read| !is_pending && view.blocks().contains(&read.block_number));
    let balance = match read {
        Some(read) => Some(read.balance),
        // The indexer did not read it since its last change, or the address has no rows and has what the genesis block
        // gave it.
        None => state.balances.balance(address, view.version.newest).await,
    };
    let unavailable = || gw_http::ApiError::unavailable("the balance is not known yet");
    Ok(Json(hex_number(balance.ok_or_else(unavailable)?)))
}

pub(super) async fn get_code(State(state): State<UnfilteredState>, Path(address): Path<String>) -> Answer<String> {
    let address = parse_address(&address)?;
    let view = ChainView::open(&state).await?;
    let contract = view.reader.find_contract(address).await?;
    let contract = contract.filter(|row| view.blocks().contains(&row.block_number));
    Ok(Json(
        contract.map_or_else(|| bytes(&[]), |row| bytes(&row.contract.code)),
    ))
}

pub(super) async fn list_balances(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
) -> Answer<Vec<Balance>> {
    let address = parse_address(&address)?;
    let view = ChainView::open(&state).await?;
    let mut pending = view.reader.pending_balances_of(address, PENDING).await?;
    let (mut balances, mut after) = (Vec::new(), None);
    loop {
        let rows = view.reader.list_token_balances(address, after, BALANCES).await?;
        let Some(last) = rows.last() else { break };
        after = Some((last.token, last.token_id));
        for row in rows {
            let is_pending = pending.remove(&TokenHolding::from(&row));
            if is_pending || !row.balance.is_zero() {
                balances.push(records::balance(&row, is_pending));
            }
        }
    }
    // Those that were never read.
    let unread: BTreeSet<TokenHolding> = pending.into_iter().collect();
    balances.extend((unread.iter()).map(|holding| records::unread_balance(holding, view.version.newest)));
    Ok(Json(balances))
}

pub(super) async fn get_contract(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
) -> Answer<Contract> {
    let address = parse_address(&address)?;
    let view = ChainView::open(&state).await?;
    let row = view.reader.find_contract(address).await?;
    let row = row.filter(|row| view.blocks().contains(&row.block_number));
    Ok(Json(records::contract(&row.ok_or_else(missing("contract not found"))?)))
}

pub(super) async fn is_contract(
    State(state): State<UnfilteredState>,
    Path(address): Path<String>,
) -> Answer<ExplorerIsContractResponse> {
    let address = parse_address(&address)?;
    let view = ChainView::open(&state).await?;
    let contracts = view.reader.contracts_among(&[address]).await?;
    Ok(Json(ExplorerIsContractResponse {
        is_contract: contracts.contains(&address),
    }))
}

pub(super) async fn list_accounts(
    State(state): State<UnfilteredState>,
    QueryParams(query): QueryParams<NumberedQuery>,
) -> ListAnswer<AddressStats> {
    let page = query.page(Limits::ROWS)?;
    let view = ChainView::open(&state).await?;
    let all = view.accounts().await?;
    let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let shown: Vec<Address> = all.iter().skip(offset).take(page.limit).copied().collect();
    let contracts = view.reader.contracts_among(&shown).await?;
    let data = shown
        .iter()
        .map(|address| view.address_stats(*address, contracts.contains(address)))
        .collect::<Result<_, _>>()?;
    Ok(Json(ExplorerListResponse {
        data,
        total: Some(all.len() as u64),
        next_cursor: None,
    }))
}

pub(super) async fn list_all_logs(
    State(state): State<UnfilteredState>,
    QueryParams(filter): QueryParams<LogFilter>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<Log> {
    let page = feed(&query, Limits::LOGS)?;
    let (address, topic0, blocks) = filter.parse()?;
    let view = ChainView::open(&state).await?;
    let shown = view.all_blocks();
    let blocks = BlockRange {
        start: blocks.start.max(shown.start),
        end: blocks.end.min(shown.end),
    };
    let rows = match (address, topic0) {
        (None, None) if blocks.end.saturating_sub(blocks.start) <= LOG_BLOCKS => view.rows_in(Space::Logs, blocks)?,
        (None, _) => return Err(refuse_scan()),
        (Some(address), topic0) => ListRows::Set(view.index(|postings| {
            let of_address = match topic0 {
                Some(topic0) => postings.with_first_topic(&postings.rows_of_address(Space::Logs, address), topic0),
                None => postings.rows_of_address(Space::Logs, address),
            };
            of_address.intersection(&postings.rows_in_blocks(Space::Logs, blocks))
        })?),
    };
    view.log_page(&rows, page, query.cursor()).await
}

pub(super) async fn list_all_transfers(
    State(state): State<UnfilteredState>,
    QueryParams(query): QueryParams<FeedQuery>,
) -> ListAnswer<TokenTransfer> {
    let page = feed(&query, Limits::ROWS)?;
    let view = ChainView::open(&state).await?;
    let rows = view.rows_in(Space::Transfers, view.all_blocks())?;
    view.transfer_page(&rows, page, query.cursor()).await
}

pub(super) async fn suggest(
    State(state): State<UnfilteredState>,
    QueryParams(query): QueryParams<SearchQuery>,
) -> Answer<Vec<SearchSuggestion>> {
    let (text, limit) = query.parse()?;
    let view = ChainView::open(&state).await?;
    let mut suggestions = Vec::new();
    if let Some(block) = text.parse::<u64>().ok().filter(|block| view.blocks().contains(block)) {
        suggestions.push(suggestion("block", block.to_string(), format!("Block {block}")));
    }
    if let Ok(address) = parse_address(&text) {
        suggestions.push(suggestion("address", lower(address), lower(address)));
    }
    if let Some(prefix) = HashPrefix::parse(&text).filter(|_| text.len() >= crate::routes::search::PREFIX) {
        for block in view.reader.search_blocks(prefix, limit as u64).await? {
            if view.blocks().contains(&block.number) {
                suggestions.push(suggestion("block", hash(block.hash), format!("Block {}", block.number)));
            }
        }
        let end = view
            .index(|postings| postings.ids_in_blocks(Space::Transactions, view.all_blocks()))?
            .end;
        for (id, found) in view.reader.search_transactions(prefix, None, limit as u64).await? {
            if id.0 < end {
                suggestions.push(suggestion("transaction", hash(found), hash(found)));
            }
        }
    }
    if !text.is_empty() {
        for row in view.reader.search_tokens(&text, limit as u64).await? {
            if let gw_chain_store::rows::MetadataState::Known(metadata) = row.token.metadata {
                let label = metadata.name.or(metadata.symbol).unwrap_or_default();
                suggestions.push(suggestion("token", lower(row.token.address), label));
            }
        }
    }
    suggestions.truncate(limit);
    Ok(Json(suggestions))
}

pub(super) async fn sync_status(State(state): State<UnfilteredState>) -> Answer<SyncStatus> {
    let view = ChainView::open(&state).await?;
    let newest = view.version.newest;
    let latest = state.indexer.latest_chain_block();
    let finalized = view.reader.progress().finalized;
    Ok(Json(SyncStatus {
        last_indexed_block: newest,
        is_syncing: latest.is_some_and(|latest| latest > newest),
        updated_at: view.newest_time().await?,
        latest_chain_block: latest,
        gap_count: 0,
        finalized_block: finalized.filter(|finalized| *finalized <= newest),
    }))
}

pub(super) async fn indexer_progress(State(state): State<UnfilteredState>) -> Answer<IndexerProgressResponse> {
    let view = ChainView::open(&state).await?;
    Ok(Json(IndexerProgressResponse {
        id: 1,
        min_fetched_block: view.version.first,
        max_fetched_block: view.version.newest,
        backfill_complete: true,
        updated_at: view.newest_time().await?,
    }))
}

pub(super) async fn catchup(State(state): State<UnfilteredState>) -> Answer<ExplorerCatchupProgressResponse> {
    let view = ChainView::open(&state).await?;
    let latest = state.indexer.latest_chain_block();
    Ok(Json(ExplorerCatchupProgressResponse::new(view.blocks(), latest)))
}

impl ChainView {
    /// # Errors
    /// 404 unless the block is shown.
    fn require_block(&self, number: u64) -> Result<(), ExplorerError> {
        let is_shown = self.blocks().contains(&number);
        is_shown.then_some(()).ok_or_else(missing("block not found"))
    }

    async fn newest_time(&self) -> Result<String, ExplorerError> {
        let block = self.reader.find_block(self.version.newest).await?;
        Ok(time(block.map_or(0, |row| row.block.timestamp)))
    }

    fn transaction(&self, row: &TransactionRow, with_categories: bool) -> Result<Transaction, ExplorerError> {
        let transfers = with_categories.then(|| self.transfer_count(row.id)).transpose()?;
        Ok(records::transaction(row, transfers))
    }

    async fn transaction_page(
        &self,
        rows: &ListRows,
        page: PageRequest,
        cursor: Option<&str>,
        with_categories: bool,
    ) -> ListAnswer<Transaction> {
        let (ids, has_more) = self.page(rows, page, cursor)?;
        let read = self.reader.get_transactions(&ids).await?;
        let data = read
            .iter()
            .map(|row| self.transaction(row, with_categories))
            .collect::<Result<_, _>>()?;
        Ok(Json(self.answer(rows, &ids, has_more, data)?))
    }

    pub(super) async fn transfer_page(
        &self,
        rows: &ListRows,
        page: PageRequest,
        cursor: Option<&str>,
    ) -> ListAnswer<TokenTransfer> {
        let (ids, has_more) = self.page(rows, page, cursor)?;
        let read = self.reader.get_transfers(&ids).await?;
        let data = read.iter().map(records::transfer).collect();
        Ok(Json(self.answer(rows, &ids, has_more, data)?))
    }

    async fn frame_page(
        &self,
        rows: &ListRows,
        page: PageRequest,
        cursor: Option<&str>,
    ) -> ListAnswer<InternalTransaction> {
        let (ids, has_more) = self.page(rows, page, cursor)?;
        let read = self.reader.get_frames(&ids).await?;
        let data = read.iter().map(records::frame).collect();
        Ok(Json(self.answer(rows, &ids, has_more, data)?))
    }

    async fn log_page(&self, rows: &ListRows, page: PageRequest, cursor: Option<&str>) -> ListAnswer<Log> {
        let (ids, has_more) = self.page(rows, page, cursor)?;
        let read = self.reader.get_logs(&ids).await?;
        let data = read.iter().map(records::log).collect();
        Ok(Json(self.answer(rows, &ids, has_more, data)?))
    }

    fn address_stats(&self, address: Address, is_contract: bool) -> Result<AddressStats, ExplorerError> {
        let mut counts = [0; 3];
        let (mut first, mut last) = (None::<i64>, None::<i64>);
        for (count, space) in counts.iter_mut().zip(COUNTED) {
            let rows = self.index(|postings| postings.rows_of_address(space, address))?;
            *count = rows.len();
            let time_of = |row: RowId| self.index(|postings| Some(postings.block_of(space, row)?.time.secs()));
            if let (Some(oldest), Some(newest)) = (rows.oldest(), rows.newest()) {
                let (oldest, newest) = (time_of(oldest)?, time_of(newest)?);
                first = [first, oldest].into_iter().flatten().min();
                last = last.max(newest);
            }
        }
        let [tx_count, token_transfer_count, internal_tx_count] = counts;
        Ok(AddressStats {
            address: lower(address),
            tx_count,
            internal_tx_count,
            token_transfer_count,
            first_seen: first.unwrap_or_default(),
            last_seen: last.unwrap_or_default(),
            is_contract,
            updated_at: time(last.unwrap_or_default()),
        })
    }
}
