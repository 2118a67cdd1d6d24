//! Rows that a viewer may see.

use crate::rows::{RowId, Space};
use roaring::RoaringTreemap;
use std::ops::Range;

/// The rows of one space that a scope selects, as of one state of the index.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSet {
    pub(crate) space: Space,
    pub(crate) ids: RoaringTreemap,
    /// The number of rows of the space when the set was selected.
    pub(crate) end: u64,
    /// The generation of the index when the set was selected.
    pub(crate) generation: u64,
}

impl RowSet {
    /// The space of the rows.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.ids.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The oldest row.
    pub fn oldest(&self) -> Option<RowId> {
        self.ids.min().map(RowId)
    }

    /// The newest row.
    pub fn newest(&self) -> Option<RowId> {
        self.ids.max().map(RowId)
    }

    /// About how many bytes of memory the set takes.
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.ids.serialized_size()
    }

    /// Whether the row is in the set.
    pub fn contains(&self, row: RowId) -> bool {
        self.ids.contains(row.0)
    }

    /// The rows with ids in a range, the oldest first.
    pub fn rows_in(&self, ids: Range<u64>) -> Vec<RowId> {
        let mut rows = self.ids.iter();
        rows.advance_to(ids.start);
        rows.take_while(|id| *id < ids.end).map(RowId).collect()
    }

    /// The number of rows with ids in a range: in a block, in a transaction, or in a bucket of a chart.
    pub fn count_in(&self, ids: Range<u64>) -> u64 {
        self.ids.range_cardinality(ids)
    }

    /// At most `limit` rows, the newest first, beginning below `before`; with the newest row if that is `None`.
    pub fn page_before(&self, before: Option<RowId>, limit: usize) -> Vec<RowId> {
        let mut ids = self.ids.iter();
        if let Some(before) = before {
            let Some(last) = before.0.checked_sub(1) else {
                return Vec::new();
            };
            ids.advance_back_to(last);
        }
        ids.rev().take(limit).map(RowId).collect()
    }

    /// At most `limit` rows, the newest first, after skipping the `offset` newest ones.
    pub fn page_at(&self, offset: u64, limit: usize) -> Vec<RowId> {
        let position = self.len().checked_sub(offset).and_then(|rest| rest.checked_sub(1));
        let newest = position.and_then(|position| self.ids.select(position));
        match newest.and_then(|newest| newest.checked_add(1)) {
            Some(before) => self.page_before(Some(RowId(before)), limit),
            None => Vec::new(),
        }
    }

    /// The rows of this set before this one.
    pub fn before(&self, row: RowId) -> Self {
        let mut ids = self.ids.clone();
        ids.remove_range(row.0..);
        self.with_ids(ids)
    }

    /// The row with this many older rows in the set.
    pub fn nth(&self, position: u64) -> Option<RowId> {
        self.ids.select(position).map(RowId)
    }

    /// A set of these rows.
    pub fn with_rows(&self, rows: impl IntoIterator<Item = RowId>) -> Self {
        self.with_ids(rows.into_iter().map(|row| row.0).collect())
    }

    /// The rows of this set that are also in `other`: for example those of one address.
    pub fn intersection(&self, other: &Self) -> Self {
        self.with_ids(&self.ids & &other.ids)
    }

    /// The rows of this set that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        self.with_ids(&self.ids - &other.ids)
    }

    /// The rows of both sets: for example certain logs and evaluated candidates.
    pub fn union(&self, other: &Self) -> Self {
        self.with_ids(&self.ids | &other.ids)
    }

    pub(crate) fn with_ids(&self, ids: RoaringTreemap) -> Self {
        Self {
            space: self.space,
            ids,
            end: self.end,
            generation: self.generation,
        }
    }
}
