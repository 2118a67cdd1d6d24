//! Places of rows on the chain, for cursors.

use crate::index::IndexVersion;

/// The place of a row on the chain, for cursors. It is encrypted there: indexes count hidden rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) block: u64,
    /// The number of rows of the space before it in its block.
    pub(crate) index: u64,
    /// The generation in which it was read.
    pub(crate) generation: u64,
    /// The load of the index in which it was read: generations of another load may mean other rows (X5).
    pub(crate) load: u64,
}

impl Position {
    /// The place before all rows of a block.
    pub(crate) const fn of_block(block: u64, version: IndexVersion) -> Self {
        Self {
            block,
            index: 0,
            generation: version.generation,
            load: version.load,
        }
    }

    pub(crate) fn from_numbers(numbers: gw_http::Position<4>) -> Option<Self> {
        let [block, index, generation, load] = numbers.map(|number| u64::try_from(number?).ok());
        Some(Self {
            block: block?,
            index: index?,
            generation: generation?,
            load: load?,
        })
    }

    pub(crate) fn numbers(self) -> gw_http::Position<4> {
        [self.block, self.index, self.generation, self.load].map(|number| i64::try_from(number).ok())
    }
}
