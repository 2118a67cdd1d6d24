//! Blocks. Their headers are public; their transactions are counted and listed as the viewer sees them.

use super::{parse_block_number, parse_hash};
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits},
    places::block_range,
    position::Position,
    rows::{bytes, hash, lower, time},
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::{Block, ExplorerBlockNumberResponse, InternalTransaction, Transaction},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_chain_store::rows::BlockRow;
use gw_http::{GrowingList, QueryParams};
use gw_postings::{RowSet, Space};
use gw_types::B256;

const MISSING: &str = "block not found";

/// Lists blocks, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/blocks", tag = "explorer", params(FeedQuery),
    responses((status = 200, body = ExplorerListResponse<Block>), ExplorerError))]
pub(crate) async fn list_blocks(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<FeedQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<Block>>, ExplorerError> {
    let page = query.page(Limits::ROWS)?;
    let view = View::open(&state, &caller, &[Space::Transactions]).await?;
    let all = view.blocks();
    let bound = page.before.map_or(all.end, |before| before.clamp(all.start, all.end));
    let cursor = view.cursor_block(&list)?.map(|block| block.min(all.end));
    let end = match (cursor, page.before) {
        (Some(block), _) => block,
        (None, _) => bound.saturating_sub(page.offset),
    };
    // A bound below the cursor is ignored.
    let list_end = if end <= bound { bound } else { all.end };
    let numbers = all.start.min(end)..end;
    let rows = view.reader.list_blocks(numbers, page.limit as u64).await?;
    let selected = view.rows(Space::Transactions)?;
    let data = rows
        .iter()
        .map(|row| view.block(row, &selected))
        .collect::<Result<Vec<_>, _>>()?;
    let next_cursor = match rows
        .last()
        .map(|row| row.block.number)
        .filter(|number| *number > all.start)
    {
        Some(block) => view.cursor_at(&list, Position::of_block(block, view.version)),
        None => None,
    };
    Ok(Json(ExplorerListResponse {
        data,
        total: Some(list_end.saturating_sub(all.start)),
        next_cursor,
    }))
}

/// The number of the newest block.
#[utoipa::path(get, path = "/api/v1/explorer/blocks/latest/number", tag = "explorer",
    responses((status = 200, body = ExplorerBlockNumberResponse), ExplorerError))]
pub(crate) async fn latest_block_number(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
) -> Result<Json<ExplorerBlockNumberResponse>, ExplorerError> {
    let view = View::open(&state, &caller, &[]).await?;
    Ok(Json(ExplorerBlockNumberResponse {
        number: view.version.newest,
    }))
}

/// The block with this number.
#[utoipa::path(get, path = "/api/v1/explorer/blocks/{number}", tag = "explorer",
    params(("number" = String, Path, description = "The number of the block", example = "1200")),
    responses((status = 200, body = Block), ExplorerError))]
pub(crate) async fn get_block(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(number): Path<String>,
) -> Result<Json<Block>, ExplorerError> {
    let number = parse_block_number(&number)?;
    let view = View::open(&state, &caller, &[Space::Transactions]).await?;
    view.require_block(number)?;
    let row = view.reader.find_block(number).await?;
    let row = row.ok_or_else(|| ExplorerError::not_found(MISSING))?;
    Ok(Json(view.block(&row, &view.rows(Space::Transactions)?)?))
}

/// The block with this hash.
#[utoipa::path(get, path = "/api/v1/explorer/blocks/hash/{hash}", tag = "explorer",
    params(("hash" = String, Path, description = "The hash of the block")),
    responses((status = 200, body = Block), ExplorerError))]
pub(crate) async fn get_block_by_hash(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(hash): Path<String>,
) -> Result<Json<Block>, ExplorerError> {
    let hash = parse_hash(&hash)?;
    let view = View::open(&state, &caller, &[Space::Transactions]).await?;
    let row = view.reader.find_block_by_hash(hash).await?;
    let row = row.ok_or_else(|| ExplorerError::not_found(MISSING))?;
    view.require_block(row.block.number)?;
    Ok(Json(view.block(&row, &view.rows(Space::Transactions)?)?))
}

/// Lists the transactions of a block that the viewer sees, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/blocks/{number}/transactions", tag = "explorer", params(FeedQuery,
    ("number" = String, Path, description = "The number of the block", example = "1200")),
    responses((status = 200, body = ExplorerListResponse<Transaction>), ExplorerError))]
pub(crate) async fn list_block_transactions(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(number): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<Transaction>>, ExplorerError> {
    let (number, page) = (parse_block_number(&number)?, query.page(Limits::ROWS)?);
    let view = View::open(&state, &caller, &[Space::Transactions]).await?;
    view.require_block(number)?;
    let rows = view.in_block(&view.rows(Space::Transactions)?, number)?;
    let page = view.page_ids(&rows, &list, page)?;
    let data = view.transactions(&page.ids, false).await?;
    Ok(Json(view.answer(Space::Transactions, &list, page, data)?))
}

/// Lists the internal transactions of a block that the viewer sees, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/blocks/{number}/internal", tag = "explorer", params(FeedQuery,
    ("number" = String, Path, description = "The number of the block", example = "1200")),
    responses((status = 200, body = ExplorerListResponse<InternalTransaction>), ExplorerError))]
pub(crate) async fn list_block_internal(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(number): Path<String>,
    QueryParams(query): QueryParams<FeedQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<InternalTransaction>>, ExplorerError> {
    let (number, page) = (parse_block_number(&number)?, query.page(Limits::ROWS)?);
    let view = View::open(&state, &caller, &[Space::Frames]).await?;
    view.require_block(number)?;
    let rows = view.in_block(&view.rows(Space::Frames)?, number)?;
    let page = view.page_ids(&rows, &list, page)?;
    let data = view.frames(&page.ids).await?;
    Ok(Json(view.answer(Space::Frames, &list, page, data)?))
}

impl View {
    /// # Errors
    /// 404 unless the block is shown.
    fn require_block(&self, number: u64) -> Result<(), ExplorerError> {
        let is_shown = self.blocks().contains(&number);
        is_shown.then_some(()).ok_or_else(|| ExplorerError::not_found(MISSING))
    }

    /// The rows of one block.
    fn in_block(&self, rows: &RowSet, number: u64) -> Result<RowSet, ExplorerError> {
        self.index(|postings| rows.intersection(&postings.rows_in_blocks(rows.space(), block_range(number))))
    }

    fn block(&self, row: &BlockRow, selected: &RowSet) -> Result<Block, ExplorerError> {
        let block = &row.block;
        let settings = &self.state.policy_settings;
        let root = |root: B256| hash(if settings.hide_block_roots { B256::ZERO } else { root });
        let ids = self.index(|postings| postings.ids_in_blocks(Space::Transactions, block_range(block.number)))?;
        Ok(Block {
            number: block.number,
            hash: hash(block.hash),
            parent_hash: hash(block.parent_hash),
            timestamp: block.timestamp,
            gas_limit: block.gas_limit,
            base_fee_per_gas: (block.base_fee_per_gas)
                .filter(|_| !settings.hide_base_fee)
                .map(|fee| fee.to_string()),
            transaction_count: selected.count_in(ids),
            difficulty: block.difficulty.to_string(),
            total_difficulty: block.total_difficulty.map(|total| total.to_string()),
            nonce: format!("0x{:016x}", block.nonce),
            miner: lower(block.miner),
            extra_data: bytes(&block.extra_data),
            state_root: root(block.state_root),
            transactions_root: root(block.transactions_root),
            receipts_root: root(block.receipts_root),
            created_at: time(block.timestamp),
        })
    }
}
