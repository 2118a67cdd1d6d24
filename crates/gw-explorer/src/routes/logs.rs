//! Event logs. Some are known to be shown from the index alone; the others, the candidates, have to be evaluated.

use super::{parse_address, parse_hash};
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits, PageRequest, number},
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::Log,
};
use axum::{Json, extract::State};
use gw_evm::TopicFilter;
use gw_http::{GrowingList, QueryParams, fitting};
use gw_policy::visibility::LogVisibility;
use gw_postings::{BlockRange, RowId, RowSet, Space};
use gw_types::B256;
use serde::Deserialize;

/// The most logs that are all evaluated, so that their exact number is known.
const EVALUATED: u64 = 1000;
/// The most logs that are evaluated to fill a page. Then the page is shorter, and its cursor leads on.
const SCANNED: usize = 4000;
/// The logs that are evaluated at once.
const CHUNK: usize = 250;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct LogFilter {
    /// Only logs of this contract.
    #[param(required = false)]
    address: Option<String>,
    /// Only logs with this first topic. A topic that the viewer may not see does not match.
    #[param(required = false)]
    topic0: Option<String>,
    /// Only logs of this block and later ones.
    #[param(required = false, example = 1000)]
    from: Option<String>,
    /// Only logs of this block and earlier ones.
    #[param(required = false, example = 1200)]
    to: Option<String>,
}

/// Lists logs that the viewer sees, the newest first: 100 unless `limit` says otherwise, at most 1000.
///
/// If very many logs would have to be evaluated to count them, `total` is left out, and a page may be shorter than its
/// limit although `next_cursor` leads on.
#[utoipa::path(get, path = "/api/v1/explorer/logs", tag = "explorer", params(LogFilter, FeedQuery),
    responses((status = 200, body = ExplorerListResponse<Log>), ExplorerError))]
pub(crate) async fn list_all_logs(
    State(state): State<ExplorerState>,
    caller: RequestCaller,
    QueryParams(filter): QueryParams<LogFilter>,
    QueryParams(query): QueryParams<FeedQuery>,
    list: GrowingList,
) -> Result<Json<ExplorerListResponse<Log>>, ExplorerError> {
    let page = query.page(Limits::LOGS)?;
    let address = filter.address.as_deref().map(parse_address).transpose()?;
    let topic0 = filter.topic0.as_deref().map(parse_hash).transpose()?;
    let blocks = BlockRange {
        start: number("from", filter.from.as_deref())?.unwrap_or_default(),
        end: number("to", filter.to.as_deref())?.map_or(u64::MAX, |to| to.saturating_add(1)),
    };
    let view = View::open(&state, &caller, &[Space::Logs]).await?;
    let within = view.index(|postings| {
        let in_blocks = postings.rows_in_blocks(Space::Logs, blocks);
        match address {
            Some(address) => in_blocks.intersection(&postings.rows_of_address(Space::Logs, address)),
            None => in_blocks,
        }
    })?;
    Ok(Json(view.log_page(&within, topic0, &list, page).await?))
}

impl View {
    /// A page of the logs within these rows, of those with this first topic as it is shown.
    ///
    /// # Errors
    /// 400 for an invalid cursor; any error of the store.
    pub(crate) async fn log_page(
        &self,
        within: &RowSet,
        topic0: Option<B256>,
        list: &GrowingList,
        page: PageRequest,
    ) -> Result<ExplorerListResponse<Log>, ExplorerError> {
        let possible = self.possible_rows(Space::Logs)?.intersection(within);
        let certain = self.rows(Space::Logs)?.intersection(within);
        if topic0.is_none() && certain.len() == possible.len() {
            let page = self.page_ids(&certain, list, page)?;
            let logs = self.logs(&page.ids, |_, _| true).await?;
            let logs = logs.into_iter().map(|(_, log)| log).collect();
            return self.answer(Space::Logs, list, page, logs);
        }
        let criteria = topic0.map(|topic0| TopicFilter::OneOf(vec![topic0]));
        let is_wanted = |visibility: &LogVisibility, topics: &[B256]| {
            let criteria = criteria.as_ref();
            criteria.is_none_or(|criterion| visibility.matches(topics, std::slice::from_ref(criterion)))
        };
        let start = self.page_start(Space::Logs, list, page)?;
        let is_counted = possible.len() <= EVALUATED;
        let mut total = 0;
        // With a known total all logs are evaluated, else those from the start of the page on.
        let mut before = start.filter(|_| !is_counted);
        let (mut shown, mut scanned, mut skip) = (Vec::new(), 0, page.offset);
        let mut rest = true;
        while rest && (is_counted || (shown.len() <= page.limit && scanned < SCANNED)) {
            let ids = possible.page_before(before, CHUNK);
            rest = ids.len() == CHUNK;
            before = ids.last().copied().or(before);
            scanned += ids.len();
            for (id, log) in self.logs(&ids, is_wanted).await? {
                total += 1;
                if start.is_some_and(|start| id >= start) {
                    continue;
                }
                if start.is_none() && skip > 0 {
                    skip -= 1;
                } else if shown.len() <= page.limit {
                    shown.push((id, log));
                }
            }
        }
        self.log_answer(
            shown,
            page.limit,
            is_counted.then_some(total),
            before.filter(|_| rest),
            list,
        )
    }

    /// `scanned_to` is the last evaluated log, if there are others behind it.
    fn log_answer(
        &self,
        mut shown: Vec<(RowId, Log)>,
        limit: usize,
        total: Option<u64>,
        scanned_to: Option<RowId>,
        list: &GrowingList,
    ) -> Result<ExplorerListResponse<Log>, ExplorerError> {
        let has_more = shown.len() > limit;
        shown.truncate(limit);
        let count = shown.len();
        let (ids, logs): (Vec<RowId>, Vec<Log>) = shown.into_iter().unzip();
        let data = if logs.is_empty() { logs } else { fitting(logs) };
        let last_shown = data.len().checked_sub(1).and_then(|last| ids.get(last)).copied();
        let next = if has_more || data.len() < count {
            last_shown
        } else {
            scanned_to
        };
        let next_cursor = match next {
            Some(row) => self.cursor_after(Space::Logs, list, row)?,
            None => None,
        };
        Ok(ExplorerListResponse {
            data,
            total,
            next_cursor,
        })
    }
}
