//! An internal transaction of the explorer: a frame below the top frame of a transaction.
//!
//! The list goes by the two sides of a frame (spec/30 section 9). Call trees, which show a frame inside of its calls,
//! are evaluated by [`FrameViewer`](crate::visibility::FrameViewer). Both show the content of a frame by
//! [`FrameContent`].

use super::{
    AddressVisibility, TransactionEntry,
    sides::{ShownSides, Sides, is_party},
};
use crate::visibility::{FrameContent, Viewer};
use gw_types::{Address, Level};

/// The addresses of an internal transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEntry {
    /// The caller.
    pub from: Address,
    /// The called address, or the created contract; `None` for a failed creation.
    pub to: Option<Address>,
}

/// How a surviving internal transaction is shown. Gas is shown in every surviving row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEntryVisibility {
    /// The caller.
    pub from: AddressVisibility,
    /// The called address, or the created contract.
    pub to: Option<AddressVisibility>,
    /// What is shown of its content.
    pub content: FrameContent,
    /// Whether the hash of the transaction is shown.
    pub tx_hash: bool,
    /// Whether a request that shows the row has to leave an audit entry (spec/30 section 2.4).
    pub is_audited: bool,
}

impl Viewer<'_> {
    /// The visibility of an internal transaction of this transaction in the explorer; `None` if it does not survive.
    /// Frames of a transaction that does not survive do not survive either (\[S\] rule 2).
    #[must_use]
    pub fn frame_entry(&self, transaction: &TransactionEntry<'_>, frame: &FrameEntry) -> Option<FrameEntryVisibility> {
        let shown_transaction = self.transaction_entry(transaction)?;
        let row = &transaction.row;
        let part = self.part_in(row);
        let sides = Sides {
            from: frame.from,
            to: frame.to,
            moment: row.moment,
            time: row.time,
        };
        let is_of_party = sides.iter().any(|side| part.reason_in(row, side).is_some());
        if !is_of_party && !self.survives_by_sides(sides, Level::Redacted) {
            return None;
        }
        // A party of the transaction sees the other party, and no third address.
        let shown = self.shown_sides(sides, |owner, side| is_party(row, owner) && is_party(row, side));
        // A party of the transaction knows the other party, and so that party's side of a frame.
        let shown = ShownSides {
            from: shown.from.or_clear(part.reason_in(row, frame.from)),
            to: frame
                .to
                .zip(shown.to)
                .map(|(to, shown)| shown.or_clear(part.reason_in(row, to))),
        };
        Some(FrameEntryVisibility {
            from: shown.from,
            to: shown.to,
            content: FrameContent::evaluate(
                !shown.is_masked(self.policy_settings().alias_strip),
                shown_transaction.payload,
            ),
            tx_hash: shown_transaction.survival.shows_hash(),
            is_audited: shown.is_audited(),
        })
    }
}
