//! All token transfers.

use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits},
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::TokenTransfer,
};
use axum::{Json, extract::State};
use gw_http::{GrowingList, QueryParams};
use gw_postings::Space;

/// Lists token transfers that the viewer sees, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/transfers", tag = "explorer", params(FeedQuery),
    responses((status = 200, body = ExplorerListResponse<TokenTransfer>), ExplorerError))]
pub(crate) async fn list_all_transfers(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<FeedQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<TokenTransfer>>, ExplorerError> {
    let page = query.page(Limits::ROWS)?;
    let view = View::open(&state, &caller, &[Space::Transfers]).await?;
    let page = view.page_ids(&view.rows(Space::Transfers)?, &list, page)?;
    let data = view.transfers(&page.ids).await?;
    Ok(Json(view.answer(Space::Transfers, &list, page, data)?))
}
