//! The blocks of the index: which rows belong to which block.

use crate::rows::{RowId, Space};
use gw_types::Timestamp;
use std::ops::Range;

/// A range of block numbers; the end is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRange {
    /// The first block.
    pub start: u64,
    /// The first block after the range.
    pub end: u64,
}

impl BlockRange {
    /// All blocks.
    pub const ALL: Self = Self {
        start: 0,
        end: u64::MAX,
    };
}

/// The number of rows of each space before a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) transactions: u64,
    pub(crate) transfers: u64,
    pub(crate) frames: u64,
    pub(crate) logs: u64,
}

impl RowCounts {
    pub(crate) fn of(self, space: Space) -> u64 {
        match space {
            Space::Transactions => self.transactions,
            Space::Transfers => self.transfers,
            Space::Frames => self.frames,
            Space::Logs => self.logs,
        }
    }
}

/// The block of a row: its number, its time and the ids of all its rows of the same space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockBounds {
    /// The number of the block.
    pub number: u64,
    /// The time of the block.
    pub time: Timestamp,
    /// The ids of the block's rows.
    pub ids: Range<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    number: u64,
    time: Timestamp,
    first: RowCounts,
}

/// The blocks in order, without gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockTable {
    blocks: Vec<Block>,
    /// The number of all rows.
    end: RowCounts,
}

impl BlockTable {
    /// The number of the newest block; `None` while there is none.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.blocks.last().map(|block| block.number)
    }

    /// The bytes of memory that it takes besides itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.blocks.capacity().saturating_mul(size_of::<Block>())
    }

    pub(crate) fn newest_time(&self) -> Option<Timestamp> {
        self.blocks.last().map(|block| block.time)
    }

    /// The number of all rows of each space.
    pub(crate) fn end(&self) -> RowCounts {
        self.end
    }

    /// Appends a block with this many rows.
    pub(crate) fn push(&mut self, number: u64, time: Timestamp, rows: RowCounts) {
        self.blocks.push(Block {
            number,
            time,
            first: self.end,
        });
        self.end = RowCounts {
            transactions: self.end.transactions + rows.transactions,
            transfers: self.end.transfers + rows.transfers,
            frames: self.end.frames + rows.frames,
            logs: self.end.logs + rows.logs,
        };
    }

    /// Removes this block and all later ones. Returns the number of rows that are left; `None` if nothing was removed.
    pub(crate) fn truncate(&mut self, number: u64) -> Option<RowCounts> {
        let position = self.blocks.partition_point(|block| block.number < number);
        let first = self.blocks.get(position)?.first;
        self.blocks.truncate(position);
        self.end = first;
        Some(first)
    }

    /// The ids of the rows in a range of blocks.
    pub(crate) fn ids(&self, space: Space, range: BlockRange) -> Range<u64> {
        let first_from = |number: u64| {
            let position = self.blocks.partition_point(|block| block.number < number);
            self.blocks
                .get(position)
                .map_or(self.end, |block| block.first)
                .of(space)
        };
        let start = first_from(range.start);
        start..first_from(range.end).max(start)
    }

    /// The ids of the rows in blocks from `start` on and before `end`.
    pub(crate) fn ids_between(&self, space: Space, start: Timestamp, end: Timestamp) -> Range<u64> {
        let first_from = |time: Timestamp| {
            let position = self.blocks.partition_point(|block| block.time < time);
            self.blocks
                .get(position)
                .map_or(self.end, |block| block.first)
                .of(space)
        };
        let start = first_from(start);
        start..first_from(end).max(start)
    }

    /// The block of a row; `None` if there is no such row.
    pub(crate) fn block_of(&self, space: Space, row: RowId) -> Option<BlockBounds> {
        if row.0 >= self.end.of(space) {
            return None;
        }
        let next = self.blocks.partition_point(|block| block.first.of(space) <= row.0);
        let block = self.blocks.get(next.checked_sub(1)?)?;
        let end = self.blocks.get(next).map_or(self.end, |block| block.first).of(space);
        Some(BlockBounds {
            number: block.number,
            time: block.time,
            ids: block.first.of(space)..end,
        })
    }
}
