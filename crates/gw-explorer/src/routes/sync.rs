//! How far the explorer is.

use crate::{
    error::ExplorerError,
    rows::time,
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::{ExplorerCatchupProgressResponse, IndexerProgressResponse, SyncStatus},
};
use axum::{Json, extract::State};

/// How far the indexer is.
#[utoipa::path(get, path = "/api/v1/explorer/sync/status", tag = "explorer",
    responses((status = 200, body = SyncStatus), ExplorerError))]
pub(crate) async fn sync_status(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
) -> Result<Json<SyncStatus>, ExplorerError> {
    let view = View::open(&state, &caller, &[]).await?;
    let newest = view.version.newest;
    let latest = state.indexer.latest_chain_block();
    let block = view.reader.find_block(newest).await?;
    Ok(Json(SyncStatus {
        last_indexed_block: newest,
        is_syncing: latest.is_some_and(|latest| latest > newest),
        updated_at: time(block.map_or(0, |row| row.block.timestamp)),
        latest_chain_block: latest,
        gap_count: 0,
        finalized_block: view
            .reader
            .progress()
            .finalized
            .filter(|finalized| *finalized <= newest),
    }))
}

/// Which blocks the indexer has.
#[utoipa::path(get, path = "/api/v1/explorer/sync/indexer-progress", tag = "explorer",
    responses((status = 200, body = IndexerProgressResponse), ExplorerError))]
pub(crate) async fn indexer_progress(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
) -> Result<Json<IndexerProgressResponse>, ExplorerError> {
    let view = View::open(&state, &caller, &[]).await?;
    let block = view.reader.find_block(view.version.newest).await?;
    Ok(Json(IndexerProgressResponse {
        id: 1,
        min_fetched_block: view.version.first,
        max_fetched_block: view.version.newest,
        backfill_complete: true,
        updated_at: time(block.map_or(0, |row| row.block.timestamp)),
    }))
}

/// How far the indexer is behind the chain.
#[utoipa::path(get, path = "/api/v1/explorer/sync/catchup", tag = "explorer",
    responses((status = 200, body = ExplorerCatchupProgressResponse), ExplorerError))]
pub(crate) async fn catchup(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
) -> Result<Json<ExplorerCatchupProgressResponse>, ExplorerError> {
    let view = View::open(&state, &caller, &[]).await?;
    let latest = state.indexer.latest_chain_block();
    Ok(Json(ExplorerCatchupProgressResponse::new(view.blocks(), latest)))
}
