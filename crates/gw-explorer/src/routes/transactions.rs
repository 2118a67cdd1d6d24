//! Transactions and what belongs to them.

use super::parse_hash;
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits, NumberedQuery},
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::{InternalTransaction, Log, TokenTransfer, Transaction},
};
use axum::{
    Json,
    extract::{Path, State},
};
use gw_http::{GrowingList, QueryParams};
use gw_postings::{RowId, Space};
use gw_types::B256;
use serde::Deserialize;

const MISSING: &str = "transaction not found";
const ROWS: &[Space] = &[Space::Transactions, Space::Transfers];

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct CategoriesQuery {
    /// Whether `txCategories` and `tokenTransferCount` are answered.
    #[param(required = false, value_type = bool, example = false)]
    pub(crate) with_categories: bool,
}

/// Lists transactions that the viewer sees, the newest first.
#[utoipa::path(get, path = "/api/v1/explorer/transactions", tag = "explorer", params(FeedQuery, CategoriesQuery),
    responses((status = 200, body = ExplorerListResponse<Transaction>), ExplorerError))]
pub(crate) async fn list_transactions(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<FeedQuery>,
    QueryParams(categories): QueryParams<CategoriesQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<Transaction>>, ExplorerError> {
    let page = query.page(Limits::ROWS)?;
    let view = View::open(&state, &caller, ROWS).await?;
    let page = view.page_ids(&view.rows(Space::Transactions)?, &list, page)?;
    let data = view.transactions(&page.ids, categories.with_categories).await?;
    Ok(Json(view.answer(Space::Transactions, &list, page, data)?))
}

/// Lists transactions that the viewer sees, the newest first, by page numbers.
#[utoipa::path(get, path = "/api/v1/explorer/transactions/paginated", tag = "explorer",
    params(NumberedQuery, CategoriesQuery),
    responses((status = 200, body = ExplorerListResponse<Transaction>), ExplorerError))]
pub(crate) async fn list_transactions_by_page(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(query): QueryParams<NumberedQuery>,
    QueryParams(categories): QueryParams<CategoriesQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<Transaction>>, ExplorerError> {
    let page = query.page(Limits::ROWS)?;
    let view = View::open(&state, &caller, ROWS).await?;
    let page = view.page_ids(&view.rows(Space::Transactions)?, &list, page)?;
    let data = view.transactions(&page.ids, categories.with_categories).await?;
    let mut answer = view.answer(Space::Transactions, &list, page, data)?;
    answer.next_cursor = None;
    Ok(Json(answer))
}

/// The transaction with this hash. One that the viewer does not see is not found.
#[utoipa::path(get, path = "/api/v1/explorer/transactions/{hash}", tag = "explorer", params(CategoriesQuery,
    ("hash" = String, Path, description = "The hash of the transaction")),
    responses((status = 200, body = Transaction), ExplorerError))]
pub(crate) async fn get_transaction(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(hash): Path<String>,
    QueryParams(categories): QueryParams<CategoriesQuery>,
) -> Result<Json<Transaction>, ExplorerError> {
    let hash = parse_hash(&hash)?;
    let view = View::open(&state, &caller, ROWS).await?;
    let id = view.find_transaction(hash).await?;
    let id = id.ok_or_else(|| ExplorerError::not_found(MISSING))?;
    let mut found = view.transactions(&[id], categories.with_categories).await?;
    found
        .pop()
        .map(Json)
        .ok_or(ExplorerError::Contradiction(Space::Transactions))
}

/// A view with the rows of transactions and of `space`, and the transaction with this hash if the viewer sees it.
async fn open_transaction(
    state: &ExplorerState,
    caller: &RequestCaller,
    hash: &str,
    space: Space,
) -> Result<(View, Option<RowId>), ExplorerError> {
    let hash = parse_hash(hash)?;
    let view = View::open(state, caller, &[Space::Transactions, space]).await?;
    let id = view.find_transaction(hash).await?;
    Ok((view, id))
}

/// Lists the internal transactions of a transaction in the order of the trace, as far as the viewer sees them. The list
/// is empty if the viewer does not see the transaction.
#[utoipa::path(get, path = "/api/v1/explorer/transactions/{hash}/internal", tag = "explorer",
    params(("hash" = String, Path, description = "The hash of the transaction")),
    responses((status = 200, body = [InternalTransaction]), ExplorerError))]
pub(crate) async fn list_internal(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(hash): Path<String>,
) -> Result<Json<Vec<InternalTransaction>>, ExplorerError> {
    let (view, transaction) = open_transaction(&state, &caller, &hash, Space::Frames).await?;
    let Some(id) = transaction else {
        return Ok(Json(Vec::new()));
    };
    let ids = view.rows_in_transaction(&view.rows(Space::Frames)?, id)?;
    Ok(Json(view.frames(&ids).await?))
}

/// Lists the token transfers of a transaction in the order of their events, as far as the viewer sees them. The list is
/// empty if the viewer does not see the transaction.
#[utoipa::path(get, path = "/api/v1/explorer/transactions/{hash}/transfers", tag = "explorer",
    params(("hash" = String, Path, description = "The hash of the transaction")),
    responses((status = 200, body = [TokenTransfer]), ExplorerError))]
pub(crate) async fn list_transfers(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(hash): Path<String>,
) -> Result<Json<Vec<TokenTransfer>>, ExplorerError> {
    let (view, transaction) = open_transaction(&state, &caller, &hash, Space::Transfers).await?;
    let Some(id) = transaction else {
        return Ok(Json(Vec::new()));
    };
    let ids = view.rows_in_transaction(&view.rows(Space::Transfers)?, id)?;
    Ok(Json(view.transfers(&ids).await?))
}

/// Lists the logs of a transaction in their order, as far as the viewer sees them. The list is empty if the viewer does
/// not see the transaction.
#[utoipa::path(get, path = "/api/v1/explorer/transactions/{hash}/logs",
    operation_id = "list_transaction_logs", tag = "explorer",
    params(("hash" = String, Path, description = "The hash of the transaction")),
    responses((status = 200, body = [Log]), ExplorerError))]
pub(crate) async fn list_logs(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    Path(hash): Path<String>,
) -> Result<Json<Vec<Log>>, ExplorerError> {
    let (view, transaction) = open_transaction(&state, &caller, &hash, Space::Logs).await?;
    let Some(id) = transaction else {
        return Ok(Json(Vec::new()));
    };
    let ids = view.rows_in_transaction(&view.possible_rows(Space::Logs)?, id)?;
    let logs = view.logs(&ids).await?;
    Ok(Json(logs.into_iter().map(|(_, log)| log).collect()))
}

/// Always 404: deposits of OP-stack chains are not indexed.
#[utoipa::path(get, path = "/api/v1/explorer/transactions/{hash}/op-deposit", tag = "explorer",
    params(("hash" = String, Path, description = "The hash of the transaction")),
    responses(ExplorerError))]
pub(crate) async fn get_op_deposit(_caller: RequestCaller) -> ExplorerError {
    ExplorerError::not_found("deposit not found")
}

impl View {
    /// The id of the transaction with this hash, if the viewer finds it by its hash.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn find_transaction(&self, hash: B256) -> Result<Option<RowId>, ExplorerError> {
        // One read whether it is hidden or missing. A hash may stand for several transactions: the newest counts. A
        // block that is stored but not shown yet has rows behind those of the index.
        let newest = self.reader.transaction_ids(&[hash]).await?.into_iter().max();
        match newest {
            Some(id) if self.finds_by_hash(id).await? => Ok(Some(id)),
            Some(_) | None => Ok(None),
        }
    }
}
