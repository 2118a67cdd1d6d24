//! Places of rows on the chain, for cursors.

/// The place of a row on the chain, for cursors. It is encrypted there: indexes count hidden rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) block: u64,
    /// The number of rows of the space before it in its block.
    pub(crate) index: u64,
    /// The generation in which it was read.
    pub(crate) generation: u64,
}

impl Position {
    pub(crate) fn from_numbers(numbers: gw_http::Position<3>) -> Option<Self> {
        let [block, index, generation] = numbers.map(|number| u64::try_from(number?).ok());
        Some(Self {
            block: block?,
            index: index?,
            generation: generation?,
        })
    }

    pub(crate) fn numbers(self) -> gw_http::Position<3> {
        [self.block, self.index, self.generation].map(|number| i64::try_from(number).ok())
    }
}
