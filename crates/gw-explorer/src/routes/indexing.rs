//! Reading a block again, for operators.

use super::{RequestOrigin, parse_block_number};
use crate::{error::ExplorerError, record::CallerSlot, state::ExplorerState, wire::ExplorerBlockNumberResponse};
use axum::{
    Extension, Json,
    extract::{Path, State},
};
use gw_http::AdminCaller;
use gw_store::Actor;
use http::StatusCode;

/// Requests that the indexer reads a block again: its transactions, receipts and traces, and the metadata, supplies and
/// balances of its tokens. For the platform token only (`X-Admin-Token`). The answer is sent when the request is
/// queued; the indexer works on it as soon as it is near the head of the chain.
#[utoipa::path(post, path = "/api/v1/explorer/index/block/{number}", tag = "explorer",
    params(("number" = u64, Path, description = "The number of the block")),
    responses((status = 202, body = ExplorerBlockNumberResponse), (status = 403), (status = 429), ExplorerError))]
pub(crate) async fn reindex_block(
    admin: AdminCaller,
    State(state): State<ExplorerState>,
    Extension(slot): Extension<CallerSlot>,
    origin: RequestOrigin,
    Path(number): Path<String>,
) -> Result<(StatusCode, Json<ExplorerBlockNumberResponse>), ExplorerError> {
    match &admin {
        AdminCaller::Super | AdminCaller::Operator => slot.set_platform(),
        AdminCaller::User(_) => {}
    }
    admin.require_super()?;
    let number = parse_block_number(&number)?;
    if state.store.reader().await?.find_block(number).await?.is_none() {
        return Err(ExplorerError::not_found("block not found"));
    }
    // The entry comes first: without it nothing is queued.
    let mut tx = state
        .policy_store
        .begin(&origin.sign(Actor::named(Actor::SUPER_ADMIN)))
        .await?;
    tx.note_block_reindex(number);
    tx.commit().await?;
    state.store.request_block(number).await?;
    Ok((StatusCode::ACCEPTED, Json(ExplorerBlockNumberResponse { number })))
}
