//! Event logs. Some are known to be shown from the index alone; the others, the candidates, have to be evaluated.

use super::{parse_address, parse_hash};
use crate::{
    error::ExplorerError,
    page::{ExplorerListResponse, FeedQuery, Limits, PageRequest, number},
    position::Position,
    state::ExplorerState,
    view::{RequestCaller, View},
    wire::Log,
};
use axum::{Json, extract::State};
use gw_evm::{TopicFilter, abi::possible_address};
use gw_http::{GrowingList, QueryParams, fitting};
use gw_policy::visibility::LogVisibility;
use gw_postings::{BlockRange, RowId, RowSet, Space};
use gw_types::{Address, B256};
use serde::Deserialize;

/// The most logs that are all evaluated, so that their exact number is known. Those of all blocks count, not only of
/// the requested ones: otherwise a choice of blocks would count the hidden logs in them.
const EVALUATED: u64 = 1000;
/// The most logs that are evaluated to fill a page. Windows of this many logs, counted from the oldest one, follow each
/// other; a page that is not full ends at the border of its window, and its cursor leads on.
const WINDOW: u64 = 4096;
/// The logs that are scanned at once.
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
    #[param(required = false, value_type = u64, example = 1000)]
    from: Option<String>,
    /// Only logs of this block and earlier ones.
    #[param(required = false, value_type = u64, example = 1200)]
    to: Option<String>,
}

impl LogFilter {
    /// The address, the first topic and the blocks.
    ///
    /// # Errors
    /// 400 if a member is malformed.
    pub(crate) fn parse(&self) -> Result<(Option<Address>, Option<B256>, BlockRange), ExplorerError> {
        let blocks = BlockRange {
            start: number("from", self.from.as_deref())?.unwrap_or_default(),
            end: number("to", self.to.as_deref())?.map_or(u64::MAX, |to| to.saturating_add(1)),
        };
        let address = self.address.as_deref().map(parse_address).transpose()?;
        Ok((address, self.topic0.as_deref().map(parse_hash).transpose()?, blocks))
    }
}

/// Lists logs that the viewer sees, the newest first: 100 unless `limit` says otherwise, at most 1000.
///
/// If the viewer sees some logs only by rules on their data or by constants, and more than a thousand logs of all
/// blocks would have to be evaluated, `total` is left out, and a page may be shorter than its limit although
/// `next_cursor` leads on.
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
    let (address, topic0, blocks) = filter.parse()?;
    let view = View::open(&state, &caller, &[Space::Logs]).await?;
    let emitter = address.map(|address| view.index(|postings| postings.rows_of_address(Space::Logs, address)));
    let query = LogQuery {
        emitter: emitter.transpose()?,
        blocks,
        topic0,
    };
    Ok(Json(view.log_page(&query, &list, page).await?))
}

/// Which logs a list contains, besides what the viewer may see.
#[derive(Debug)]
pub(super) struct LogQuery {
    /// The logs of the requested emitter; `None` for all emitters.
    pub(super) emitter: Option<RowSet>,
    pub(super) blocks: BlockRange,
    pub(super) topic0: Option<B256>,
}

/// The rows of a query. Neither their number nor their place may show the viewer more of hidden logs than the borders
/// of [`WINDOW`]s (docs/threat-model.md).
struct LogRows {
    /// The logs that are shown for certain.
    certain: RowSet,
    /// Logs that have to be evaluated.
    evaluated: RowSet,
    /// The logs that would have to be evaluated if the query had no blocks.
    of_all_blocks: RowSet,
}

impl View {
    /// A page of logs.
    ///
    /// # Errors
    /// 400 for an invalid cursor; any error of the store.
    pub(super) async fn log_page(
        &self,
        query: &LogQuery,
        list: &GrowingList,
        page: PageRequest,
    ) -> Result<ExplorerListResponse<Log>, ExplorerError> {
        let rows = self.log_rows(query)?;
        if rows.of_all_blocks.len() > EVALUATED {
            return self.scanned_page(query, &rows, list, page).await;
        }
        let evaluated = rows.evaluated.page_before(None, usize::MAX);
        let shown = self.shown_among(&evaluated, is_wanted(query)).await?;
        let all = rows.certain.union(&rows.evaluated.with_rows(shown));
        let page = self.page_ids(&all, list, page)?;
        let logs = self.logs(&page.ids).await?;
        let logs = logs.into_iter().map(|(_, log)| log).collect();
        self.answer(Space::Logs, list, page, logs)
    }

    fn log_rows(&self, query: &LogQuery) -> Result<LogRows, ExplorerError> {
        let (certain, possible) = (self.rows(Space::Logs)?, self.possible_rows(Space::Logs)?);
        let of_query = |rows: RowSet| -> Result<RowSet, ExplorerError> {
            let rows = match &query.emitter {
                Some(emitter) => rows.intersection(emitter),
                None => rows,
            };
            match query.topic0 {
                Some(topic0) => self.index(|postings| postings.with_first_topic(&rows, topic0)),
                None => Ok(rows),
            }
        };
        let (certain, possible) = (of_query(certain)?, of_query(possible)?);
        // A topic that is masked does not match, so whether it is masked has to be known.
        let may_be_masked = query
            .topic0
            .is_some_and(|topic0| self.scopes.masks_first_topics || possible_address(&topic0).is_some());
        let of_all_blocks = if may_be_masked {
            possible
        } else {
            possible.difference(&certain)
        };
        let certain = certain.difference(&of_all_blocks);
        let in_blocks = self.index(|postings| postings.rows_in_blocks(Space::Logs, query.blocks))?;
        Ok(LogRows {
            certain: certain.intersection(&in_blocks),
            evaluated: of_all_blocks.intersection(&in_blocks),
            of_all_blocks,
        })
    }

    /// A page without a total. It ends where it is full, or at the border of a window: which blocks the list contains
    /// does not move the borders, so no choice of blocks counts the hidden logs in them.
    async fn scanned_page(
        &self,
        query: &LogQuery,
        rows: &LogRows,
        list: &GrowingList,
        page: PageRequest,
    ) -> Result<ExplorerListResponse<Log>, ExplorerError> {
        let possible = rows.certain.union(&rows.evaluated);
        let cursor = self.cursor_row(Space::Logs, list)?;
        let start = match (cursor, page.before) {
            (Some(row), _) => Some(row),
            (None, Some(block)) => Some(self.first_row_of(Space::Logs, block)?),
            (None, None) => None,
        };
        let blocks_end = self.index(|postings| postings.ids_in_blocks(Space::Logs, query.blocks).end)?;
        let end = start.map_or(blocks_end, |start| start.0.min(blocks_end));
        let windows = rows.of_all_blocks.count_in(0..end).saturating_sub(1) / WINDOW;
        // The oldest log of the window; there is none in the oldest window, which ends with the list.
        let border = rows.of_all_blocks.nth(windows * WINDOW).filter(|_| windows > 0);
        let mut before = start;
        let (mut shown, mut skip) = (Vec::new(), page.offset);
        while shown.len() <= page.limit {
            let ids = possible.page_before(before, CHUNK);
            let ids: Vec<RowId> = ids
                .into_iter()
                .take_while(|id| border.is_none_or(|border| *id >= border))
                .collect();
            let Some(last) = ids.last().copied() else { break };
            before = Some(last);
            let to_evaluate: Vec<RowId> = ids.iter().copied().filter(|id| rows.evaluated.contains(*id)).collect();
            let evaluated = self.shown_among(&to_evaluate, is_wanted(query)).await?;
            for id in ids {
                if !rows.certain.contains(id) && !evaluated.contains(&id) {
                    continue;
                }
                if cursor.is_none() && skip > 0 {
                    skip -= 1;
                } else {
                    shown.push(id);
                }
            }
        }
        let has_more = shown.len() > page.limit;
        shown.truncate(page.limit);
        let logs = self.logs(&shown).await?;
        let count = logs.len();
        let (ids, logs): (Vec<RowId>, Vec<Log>) = logs.into_iter().unzip();
        let data = if logs.is_empty() { logs } else { fitting(logs) };
        let last_shown = data.len().checked_sub(1).and_then(|last| ids.get(last)).copied();
        let next = if has_more || data.len() < count {
            last_shown
        } else {
            // The list goes on below the border if its blocks do, whether they contain logs or not.
            let oldest = query.blocks.start.max(self.version.first);
            let goes_on = |position: Position| (position.block, position.index) > (oldest, 0);
            match border {
                Some(border) if goes_on(self.position_of(Space::Logs, border)?) => Some(border),
                Some(_) | None => None,
            }
        };
        let next_cursor = match next {
            Some(row) => self.cursor_after(Space::Logs, list, row)?,
            None => None,
        };
        Ok(ExplorerListResponse {
            data,
            total: None,
            next_cursor,
        })
    }
}

/// Whether a log as it is shown has the first topic of the query.
fn is_wanted(query: &LogQuery) -> impl Fn(&LogVisibility, &[B256]) -> bool {
    let criterion = query.topic0.map(|topic0| TopicFilter::OneOf(vec![topic0]));
    move |visibility, topics| {
        let criterion = criterion.as_ref();
        criterion.is_none_or(|criterion| visibility.matches(topics, std::slice::from_ref(criterion)))
    }
}
