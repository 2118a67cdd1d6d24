//! Where rows stand on the chain: what pages begin at.

use crate::{
    error::ExplorerError,
    index::{IndexBehind, IndexVersion, SharedIndex},
    position::Position,
};
use gw_postings::{BlockRange, PostingIndex, RowId, Space};

/// Places of the rows of one state of the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowPlaces<'a> {
    pub(crate) index: &'a SharedIndex,
    pub(crate) version: IndexVersion,
}

impl RowPlaces<'_> {
    fn index<T>(&self, read: impl FnOnce(&PostingIndex) -> T) -> Result<T, IndexBehind> {
        self.index.read_since(self.version, read)
    }

    /// Where a row stands.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn position_of(&self, space: Space, row: RowId) -> Result<Position, ExplorerError> {
        let block = self.index(|postings| postings.block_of(space, row))?;
        let block = block.ok_or(ExplorerError::Internal("a selected row has no block"))?;
        Ok(Position {
            block: block.number,
            index: row.0.saturating_sub(block.ids.start),
            generation: self.version.generation,
            load: self.version.load,
        })
    }

    /// The first block that reorganizations removed since this position was read.
    ///
    /// # Errors
    /// 400 for a position of unknown age, or of another load of the index.
    pub(crate) fn fork_since(&self, position: Position) -> Result<u64, ExplorerError> {
        let fork = self.index.fork_since(position.load, position.generation);
        fork.ok_or_else(|| ExplorerError::bad_request("invalid pagination cursor"))
    }

    /// The row that a page before this position begins below. If a reorganization removed the position, the page
    /// begins below the fork.
    ///
    /// # Errors
    /// 400 for a cursor of unknown age; 503 if a reorganization changed the index.
    pub(crate) fn row_before(&self, space: Space, position: Position) -> Result<RowId, ExplorerError> {
        let fork = self.fork_since(position)?;
        if position.block >= fork {
            return self.first_row_of(space, fork);
        }
        let ids = self.index(|postings| postings.ids_in_blocks(space, block_range(position.block)))?;
        Ok(RowId(ids.start.saturating_add(position.index).min(ids.end)))
    }

    /// The first row of this block, or of the next one with rows.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn first_row_of(&self, space: Space, block: u64) -> Result<RowId, ExplorerError> {
        let all_from = BlockRange {
            start: block,
            end: u64::MAX,
        };
        Ok(RowId(
            self.index(|postings| postings.ids_in_blocks(space, all_from))?.start,
        ))
    }
}

/// The range of one block.
pub(crate) const fn block_range(number: u64) -> BlockRange {
    BlockRange {
        start: number,
        end: number.saturating_add(1),
    }
}
