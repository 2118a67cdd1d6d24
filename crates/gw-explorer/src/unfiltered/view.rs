//! One state of the chain, for one request, and pages on it.

use super::UnfilteredState;
use crate::{
    error::ExplorerError,
    index::IndexVersion,
    page::{ExplorerListResponse, PageRequest},
    places::RowPlaces,
    position::Position,
    view::{is_behind, open_reader},
};
use gw_chain_store::ChainReader;
use gw_http::{ApiError, fitting};
use gw_postings::{BlockRange, PostingIndex, RowId, RowSet, Space};
use gw_types::Address;
use serde::Serialize;
use std::{cmp::Reverse, ops::Range, sync::Arc, time::Duration};
use tokio::time::Instant;

/// The most blocks that a request for logs without an address may visit.
pub(super) const LOG_BLOCKS: u64 = 1000;
/// How long the order of the addresses by activity is used.
const ACCOUNTS_AGE: Duration = Duration::from_secs(60);

/// The addresses by activity, and when and for which rows they were sorted.
#[derive(Clone, Debug)]
pub(super) struct AccountList {
    sorted_at: Instant,
    version: IndexVersion,
    pub(super) addresses: Arc<Vec<Address>>,
}

/// One state of the chain.
#[derive(Debug)]
pub(super) struct ChainView {
    pub(super) state: UnfilteredState,
    pub(super) version: IndexVersion,
    pub(super) reader: ChainReader,
}

/// The rows of a list.
#[derive(Debug)]
pub(super) enum ListRows {
    /// Rows that follow each other.
    Range(Space, Range<u64>),
    /// Any rows.
    Set(RowSet),
}

impl ListRows {
    fn space(&self) -> Space {
        match self {
            Self::Range(space, _) => *space,
            Self::Set(rows) => rows.space(),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Range(_, ids) => ids.end.saturating_sub(ids.start),
            Self::Set(rows) => rows.len(),
        }
    }

    /// At most `limit` rows, the newest first: those below `before`, after `offset` rows.
    fn page(&self, before: Option<RowId>, offset: u64, limit: usize) -> Vec<RowId> {
        match (self, before) {
            (Self::Range(_, ids), before) => {
                let end = before
                    .map_or(ids.end, |before| before.0.min(ids.end))
                    .saturating_sub(offset);
                let ids = ids.start..end.max(ids.start);
                ids.rev().take(limit).map(RowId).collect()
            }
            (Self::Set(rows), Some(before)) => rows.page_before(Some(before), limit),
            (Self::Set(rows), None) => rows.page_at(offset, limit),
        }
    }
}

impl ChainView {
    /// # Errors
    /// 503 if the index is not loaded or behind; any error of the store.
    pub(super) async fn open(state: &UnfilteredState) -> Result<Self, ExplorerError> {
        let version = state.index.version().ok_or(ExplorerError::Behind)?;
        let reader = open_reader(&state.store, version).await?;
        if is_behind(&*state.validation, &reader, version) {
            return Err(ExplorerError::Behind);
        }
        Ok(Self {
            state: state.clone(),
            version,
            reader,
        })
    }

    /// The numbers of the blocks that are shown.
    pub(super) fn blocks(&self) -> Range<u64> {
        self.version.first..self.version.newest.saturating_add(1)
    }

    pub(super) const fn all_blocks(&self) -> BlockRange {
        BlockRange {
            start: self.version.first,
            end: self.version.newest.saturating_add(1),
        }
    }

    pub(super) fn index<T>(&self, read: impl FnOnce(&PostingIndex) -> T) -> Result<T, ExplorerError> {
        Ok(self.state.index.read_since(self.version, read)?)
    }

    const fn places(&self) -> RowPlaces<'_> {
        RowPlaces {
            index: &self.state.index,
            version: self.version,
        }
    }

    /// All rows of a space in these blocks.
    pub(super) fn rows_in(&self, space: Space, blocks: BlockRange) -> Result<ListRows, ExplorerError> {
        let shown = self.all_blocks();
        let blocks = BlockRange {
            start: blocks.start.max(shown.start),
            end: blocks.end.min(shown.end),
        };
        let ids = self.index(|postings| postings.ids_in_blocks(space, blocks))?;
        Ok(ListRows::Range(space, ids))
    }

    /// The rows with an address as a side, or the logs that it emitted.
    pub(super) fn rows_of(&self, space: Space, address: Address) -> Result<ListRows, ExplorerError> {
        self.index(|postings| ListRows::Set(postings.rows_of_address(space, address)))
    }

    /// The number of token transfers of a transaction.
    pub(super) fn transfer_count(&self, transaction: RowId) -> Result<u64, ExplorerError> {
        let ids = self.index(|postings| postings.rows_of_transaction(Space::Transfers, transaction))?;
        Ok(ids.end.saturating_sub(ids.start))
    }

    /// The ids of a page, and whether there are more.
    ///
    /// # Errors
    /// 400 for an invalid cursor; 503 if a reorganization changed the index.
    pub(super) fn page(
        &self,
        rows: &ListRows,
        page: PageRequest,
        cursor: Option<&str>,
    ) -> Result<(Vec<RowId>, bool), ExplorerError> {
        let before = match (cursor, page.before) {
            (Some(cursor), _) => Some(self.places().row_before(rows.space(), parse_cursor(cursor)?)?),
            (None, Some(block)) => Some(self.places().first_row_of(rows.space(), block)?),
            (None, None) => None,
        };
        let mut ids = rows.page(before, page.offset, page.limit.saturating_add(1));
        let has_more = ids.len() > page.limit;
        ids.truncate(page.limit);
        Ok((ids, has_more))
    }

    /// The answer of a page. A page of long rows has fewer of them, and its cursor leads on.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(super) fn answer<T: Serialize>(
        &self,
        rows: &ListRows,
        ids: &[RowId],
        has_more: bool,
        records: Vec<T>,
    ) -> Result<ExplorerListResponse<T>, ExplorerError> {
        let count = records.len();
        let data = if records.is_empty() { records } else { fitting(records) };
        let last = data.len().checked_sub(1).and_then(|last| ids.get(last));
        let next_cursor = match last.filter(|_| has_more || data.len() < count) {
            Some(last) => Some(cursor_text(self.places().position_of(rows.space(), *last)?)),
            None => None,
        };
        Ok(ExplorerListResponse {
            data,
            total: Some(rows.len()),
            next_cursor,
        })
    }

    /// The block that a page of blocks begins below, by a cursor.
    ///
    /// # Errors
    /// 400 for an invalid cursor.
    pub(super) fn block_before(&self, cursor: &str) -> Result<u64, ExplorerError> {
        let position = parse_cursor(cursor)?;
        Ok(position.block.min(self.places().fork_since(position)?))
    }

    pub(super) fn block_cursor(&self, block: u64) -> String {
        cursor_text(Position::of_block(block, self.version))
    }

    /// The addresses by activity, sorted at most a minute ago.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(super) async fn accounts(&self) -> Result<Arc<Vec<Address>>, ExplorerError> {
        let mut cached = self.state.accounts.0.lock().await;
        if let Some(list) = &*cached
            && list.version.has_ids_of(&self.version)
            && list.sorted_at.elapsed() < ACCOUNTS_AGE
        {
            return Ok(Arc::clone(&list.addresses));
        }
        let (index, version) = (self.state.index.clone(), self.version);
        let sort = move || {
            let mut accounts: Vec<(Address, u64)> = index.read_since(version, |postings| {
                let accounts = postings.addresses().filter(|(address, _)| !address.is_zero());
                accounts.collect()
            })?;
            accounts.sort_unstable_by_key(|(address, rows)| (Reverse(*rows), *address));
            Ok(accounts.into_iter().map(|(address, _)| address).collect::<Vec<_>>())
        };
        let sorted = tokio::task::spawn_blocking(sort).await;
        let sorted: Result<Vec<Address>, crate::index::IndexBehind> =
            sorted.map_err(|_| ExplorerError::Internal("the addresses could not be sorted"))?;
        let addresses = Arc::new(sorted?);
        *cached = Some(AccountList {
            sorted_at: Instant::now(),
            version: self.version,
            addresses: Arc::clone(&addresses),
        });
        Ok(addresses)
    }
}

/// Nothing is hidden from whoever reads this API, so positions are in clear.
fn cursor_text(position: Position) -> String {
    let Position {
        block,
        index,
        generation,
        load,
    } = position;
    format!("{block}-{index}-{generation}-{load}")
}

fn parse_cursor(text: &str) -> Result<Position, ExplorerError> {
    let parse = || {
        let mut numbers = text.split('-').map(|number| number.parse().ok());
        let position = Position {
            block: numbers.next()??,
            index: numbers.next()??,
            generation: numbers.next()??,
            load: numbers.next()??,
        };
        numbers.next().is_none().then_some(position)
    };
    parse().ok_or_else(|| ExplorerError::bad_request("invalid pagination cursor"))
}

/// X2: a list that would visit rows without a bound.
pub(super) fn refuse_scan() -> ExplorerError {
    ExplorerError::from(ApiError::bad_request(format!(
        "give an address, or `from` and `to` with at most {LOG_BLOCKS} blocks between them"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_a_cursor_is_read_back_and_anything_else_is_refused() {
        let position = Position {
            block: 7,
            index: 2,
            generation: 3,
            load: 4,
        };
        assert_eq!(parse_cursor(&cursor_text(position)).unwrap(), position);
        for text in [
            "",
            "7",
            "7-2",
            "7-2-3",
            "7-2-3-4-5",
            "7-2-3-x",
            "-1-2-3-4",
            "7-2-99999999999999999999999-4",
        ] {
            assert!(parse_cursor(text).is_err(), "{text}");
        }
    }

    #[test]
    fn x2_a_page_of_a_range_is_its_newest_rows_below_the_cursor() {
        let rows = ListRows::Range(Space::Transactions, 10..20);
        let ids = |before: Option<u64>, offset, limit| {
            let page = rows.page(before.map(RowId), offset, limit);
            page.into_iter().map(|id| id.0).collect::<Vec<_>>()
        };
        assert_eq!(ids(None, 0, 3), [19, 18, 17]);
        assert_eq!(ids(None, 8, 3), [11, 10]);
        assert_eq!(ids(Some(12), 0, 3), [11, 10]);
        assert_eq!(ids(Some(5), 0, 3), [0; 0]);
        assert_eq!(ids(None, 99, 3), [0; 0]);
        assert_eq!(ids(Some(99), 0, 1), [19]);
    }
}
