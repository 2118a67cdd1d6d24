//! The chain and its numbers.

use crate::{
    error::ExplorerError,
    page::number,
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::{ChainStats, ExplorerChainIDResponse, TxHistoryPoint},
};
use axum::{Json, extract::State};
use gw_chain_store::rows::BlockRow;
use gw_http::QueryParams;
use gw_postings::Space;
use gw_types::Timestamp;
use serde::Deserialize;

/// The number of blocks of the mean block time.
const TIMED_BLOCKS: u64 = 100;

/// The id of the chain.
#[utoipa::path(get, path = "/api/v1/explorer/chain-id", tag = "explorer",
    responses((status = 200, body = ExplorerChainIDResponse), ExplorerError))]
pub(crate) async fn chain_id(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
) -> Result<Json<ExplorerChainIDResponse>, ExplorerError> {
    // A token that is not valid is refused on every route (E10).
    caller.pin(&state)?;
    Ok(Json(ExplorerChainIDResponse {
        chain_id: state.chain_id,
    }))
}

/// Numbers of the chain, counted over what the viewer sees.
#[utoipa::path(get, path = "/api/v1/explorer/stats", tag = "explorer",
    responses((status = 200, body = ChainStats), ExplorerError))]
pub(crate) async fn stats(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
) -> Result<Json<ChainStats>, ExplorerError> {
    let view = View::open(&state, &caller, &[Space::Transactions, Space::Transfers, Space::Frames]).await?;
    let blocks = view.blocks();
    let timed = blocks.end.saturating_sub(TIMED_BLOCKS).max(blocks.start)..blocks.end;
    let timed = view.reader.list_blocks(timed, TIMED_BLOCKS).await?;
    let viewer = view.viewer();
    Ok(Json(ChainStats {
        total_blocks: blocks.end.saturating_sub(blocks.start),
        total_transactions: view.rows(Space::Transactions)?.len(),
        total_addresses: view.active_addresses(&viewer)?.len() as u64,
        total_tokens: view.visible_tokens(&viewer).await?.len() as u64,
        avg_block_time: mean_block_time(&timed),
        privacy_enabled: true,
    }))
}

/// The mean time between these blocks in seconds, the newest first.
pub(crate) fn mean_block_time(blocks: &[BlockRow]) -> f64 {
    let span = match (blocks.first(), blocks.last()) {
        (Some(newest), Some(oldest)) => newest.block.timestamp.saturating_sub(oldest.block.timestamp),
        _ => 0,
    };
    let steps = blocks.len().saturating_sub(1).max(1);
    to_float(span) / to_float(i64::try_from(steps).unwrap_or(1))
}

/// Seconds for the mean. Both numbers are small.
fn to_float(seconds: i64) -> f64 {
    f64::from(i32::try_from(seconds).unwrap_or(i32::MAX))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct HistoryQuery {
    /// The length of a span in seconds: 60 if it is left out, at least 60, at most 604800.
    #[param(required = false, value_type = u64, example = 3600)]
    interval: Option<String>,
    /// The number of spans: 30 if it is left out, at most 100.
    #[param(required = false, value_type = u64, example = 30)]
    limit: Option<String>,
}

impl HistoryQuery {
    /// The length of a span in seconds, and the number of spans.
    ///
    /// # Errors
    /// 400 if a member is no number.
    pub(crate) fn spans(&self) -> Result<(i64, i64), ExplorerError> {
        let interval = number("interval", self.interval.as_deref())?.unwrap_or(60);
        let limit = number("limit", self.limit.as_deref())?.unwrap_or(30);
        Ok((
            i64::try_from(interval.clamp(60, 604_800)).unwrap_or(60),
            i64::try_from(limit.clamp(1, 100)).unwrap_or(30),
        ))
    }
}

/// The number of transactions that the viewer sees in each of the latest spans of time, the oldest first.
#[utoipa::path(get, path = "/api/v1/explorer/stats/tx-history", tag = "explorer", params(HistoryQuery),
    responses((status = 200, body = [TxHistoryPoint]), ExplorerError))]
pub(crate) async fn tx_history(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<HistoryQuery>,
) -> Result<Json<Vec<TxHistoryPoint>>, ExplorerError> {
    let (interval, limit) = query.spans()?;
    let view = View::open(&state, &caller, &[Space::Transactions]).await?;
    let newest = view.now.secs().div_euclid(interval).saturating_mul(interval);
    let rows = view.rows(Space::Transactions)?;
    let mut points = Vec::new();
    for steps in (0..limit).rev() {
        let start = newest.saturating_sub(steps.saturating_mul(interval));
        let (from, to) = (
            Timestamp::from_secs(start),
            Timestamp::from_secs(start.saturating_add(interval)),
        );
        let ids = view.index(|postings| postings.ids_between(Space::Transactions, from, to))?;
        points.push(TxHistoryPoint {
            timestamp: start,
            count: rows.count_in(ids),
        });
    }
    Ok(Json(points))
}
