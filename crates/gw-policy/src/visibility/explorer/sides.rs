//! Survival and rendering of a row with two sides (spec/30 section 4), from facts about single addresses.

use super::{AddressReason, AddressText, AddressVisibility};
use crate::{
    settings::PartialRowMode,
    snapshot::Moment,
    visibility::{RowContext, SingleViewer, TransactionRow, Viewer},
};
use gw_types::{Address, Level, Timestamp};

/// The two sides of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    pub(super) from: Address,
    /// `None` for a deployment.
    pub(super) to: Option<Address>,
    pub(super) moment: Moment,
    /// The time of the block.
    pub(super) time: Option<Timestamp>,
}

/// How the two sides are printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShownSides {
    pub(super) from: AddressVisibility,
    pub(super) to: Option<AddressVisibility>,
}

/// The viewer's part in a transaction (HD10): it reveals both sides of the transaction, in the transaction and in the
/// rows that belong to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) is_participant: bool,
    pub(super) is_recipient: bool,
}

/// Whether the address is a side of the transaction.
pub(super) fn is_party(row: &TransactionRow, side: Address) -> bool {
    side == row.from || Some(side) == row.to
}

impl Part {
    /// The override by which the sides of the transaction are printed in clear.
    pub(super) const fn reason(self) -> Option<AddressReason> {
        if self.is_participant {
            Some(AddressReason::ParticipantOverride)
        } else if self.is_recipient {
            Some(AddressReason::VisibleToGrant)
        } else {
            None
        }
    }

    /// The override by which a side of a row that belongs to the transaction is printed in clear: it is a side of the
    /// transaction, too.
    pub(super) fn reason_in(self, row: &TransactionRow, side: Address) -> Option<AddressReason> {
        self.reason().filter(|_| is_party(row, side))
    }
}

impl Sides {
    pub(super) fn iter(self) -> impl Iterator<Item = Address> {
        std::iter::once(self.from).chain(self.to)
    }

    pub(super) const fn context(self) -> RowContext {
        RowContext {
            moment: self.moment,
            time: self.time,
            sides: Some((self.from, self.to)),
        }
    }
}

impl ShownSides {
    fn iter(self) -> impl Iterator<Item = AddressVisibility> {
        std::iter::once(self.from).chain(self.to)
    }

    /// Whether a side is masked, so that payload and amounts are left out (K6).
    pub(super) fn is_masked(self, strips_beside_alias: bool) -> bool {
        self.iter().any(|side| match side.text {
            AddressText::Private => true,
            AddressText::Alias(_) => strips_beside_alias,
            AddressText::Clear => false,
        })
    }

    /// Whether a grant on the other side alone prints an address in clear, which is audited (spec/30 section 2.4).
    pub(super) fn is_audited(self) -> bool {
        self.iter()
            .any(|side| side.is_clear() && side.reason == AddressReason::DisclosureLens)
    }
}

impl SingleViewer<'_> {
    /// Whether the address makes every row of this moment visible by a right of this viewer
    /// ([`Viewer::is_visible_address`]).
    fn is_visible_address(&self, address: Address, moment: Moment, least: Level) -> bool {
        let row = RowContext::without_sides(moment);
        self.is_full_by_right_at(address, moment)
            || self.is_disclosed_side(address, &row, least.max(Level::Pseudonymous))
    }

    fn is_disclosed_side(&self, address: Address, row: &RowContext, least: Level) -> bool {
        let disclosure = self.disclosure_at(address, row).filter(|(level, _)| *level >= least);
        if let Some((_, grant)) = disclosure {
            self.needs_grant(grant, address);
        }
        disclosure.is_some()
    }
}

impl Viewer<'_> {
    /// The viewer's part in a transaction.
    pub(super) fn part_in(&self, row: &TransactionRow) -> Part {
        Part {
            // Not a participant each by another side: that would tell the administrator the user's side (HD7).
            is_participant: self.owns(row.from) || row.to.is_some_and(|to| self.receives(to)),
            is_recipient: self.is_recipient(row.hash),
        }
    }

    /// How the sides are printed by their own levels, and by grants on the other side (spec/30 section 2.4) as far as
    /// the owner of that side sees this one: `is_known(owner's side, side)`. Nobody discloses more than they see
    /// (HD10).
    pub(super) fn shown_sides(&self, sides: Sides, is_known: impl Fn(Address, Address) -> bool) -> ShownSides {
        let Sides { from, to, .. } = sides;
        let row = sides.context();
        let shown = |side: Address, other: Option<Address>| {
            let own = self.side_entry(side, &row);
            other.filter(|other| is_known(*other, side)).map_or(own, |other| {
                own.higher(self.lower_of(|viewer| viewer.lens(other, &row)))
            })
        };
        ShownSides {
            from: shown(from, to),
            to: to.map(|to| shown(to, Some(from))),
        }
    }

    /// Whether the address makes every row of this moment visible: the zero address (HD9, R14), an address that is Full
    /// on another basis than the public one, and one under an unrestricted grant of disclosure. Grants below `least` do
    /// not count.
    pub(super) fn is_visible_address(&self, address: Address, moment: Moment, least: Level) -> bool {
        address.is_zero() || self.all(|viewer| viewer.is_visible_address(address, moment, least))
    }

    /// R15: whether grants of disclosure of at least this level cover the address in the row, so that the row survives
    /// whatever the other side is.
    pub(super) fn is_disclosed_side(&self, address: Address, row: &RowContext, least: Level) -> bool {
        self.all(|viewer| viewer.is_disclosed_side(address, row, least))
    }

    /// K1: whether the viewer administers the address, so that its rows survive with one visible side.
    pub(super) fn is_administered_side(&self, address: Address, moment: Moment) -> bool {
        self.all(|viewer| viewer.administers_contract(address, moment) && viewer.is_full_by_right_at(address, moment))
    }

    /// R12, R13, R15, K1: whether a row survives by its sides, without a part of the viewer in its transaction.
    pub(super) fn survives_by_sides(&self, sides: Sides, least: Level) -> bool {
        let row = sides.context();
        let is_visible = |address| self.is_visible_address(address, sides.moment, least);
        let survives = match self.policy_settings().one_sided {
            PartialRowMode::Mask => sides.iter().any(is_visible),
            PartialRowMode::Drop => {
                sides.iter().all(is_visible)
                    || sides
                        .iter()
                        .any(|address| self.is_administered_side(address, sides.moment))
            }
        };
        survives || sides.iter().any(|address| self.is_disclosed_side(address, &row, least))
    }
}
