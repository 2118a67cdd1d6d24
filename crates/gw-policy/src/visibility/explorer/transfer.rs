//! A token transfer of the explorer.
//!
//! The list of transfers goes by the sides of the transfer ("sides as transaction", spec/30 section 9), not by the
//! right to the event that recorded it: a holder sees own transfers of a token whose events are closed to them, and an
//! administrator of the token sees no transfers between two hidden wallets here, but their masked logs in the list of
//! logs. What both show of one event agrees as far as I8 demands (docs/decisions/0013).

use super::{
    AddressReason, AddressVisibility, TransactionEntry,
    sides::{ShownSides, Sides, is_party},
};
use crate::{
    settings::{PartialRowMode, TransactionLogs},
    snapshot::Moment,
    visibility::{AllowedEvents, EventRights, SingleViewer, TransactionRow, Viewer},
};
use gw_types::{Address, Level};

/// The addresses of a token transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferEntry {
    /// The token contract.
    pub token: Address,
    /// The previous owner; the zero address for a mint.
    pub from: Address,
    /// The new owner; the zero address for a burn.
    pub to: Address,
}

/// How a surviving token transfer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferEntryVisibility {
    /// The token contract, by its own level.
    pub token: AddressVisibility,
    /// The previous owner.
    pub from: AddressVisibility,
    /// The new owner.
    pub to: AddressVisibility,
    /// Whether `value` and `tokenId` are shown.
    pub amounts: bool,
    /// Whether the hash of the transaction is shown: the transaction survives with its hash (R18, K12).
    pub tx_hash: bool,
    /// Whether a request that shows the row has to leave an audit entry (spec/30 section 2.4).
    pub is_audited: bool,
}

impl Viewer<'_> {
    /// The visibility of a token transfer of this transaction in the explorer; `None` if it does not survive.
    #[must_use]
    pub fn transfer_entry(
        &self,
        transaction: &TransactionEntry<'_>,
        transfer: &TransferEntry,
    ) -> Option<TransferEntryVisibility> {
        let row = &transaction.row;
        if !self.transfer_survives(row, transfer) {
            return None;
        }
        let TransferEntry { token, from, to } = *transfer;
        let part = self.part_in(row);
        // Like the log, which a participant sees whole (K2).
        let whole =
            (part.is_participant && self.sees_all_of_own_transactions()).then_some(AddressReason::ParticipantOverride);
        // HD10: one side shows the other one, only for registered tokens.
        let is_registered = self.user().snapshot.contract_at(token, row.moment).is_some();
        let by_other_side =
            |owns_other: bool| (is_registered && owns_other).then_some(AddressReason::ParticipantOverride);
        let sees_all = self.sees_all_of_own_transactions();
        // What a party of the transaction sees of it, and the owner of a side of the other side.
        let is_known = |owner: Address, side: Address| {
            is_registered || (is_party(row, owner) && (sees_all || is_party(row, side)))
        };
        let sides = Sides {
            from,
            to: Some(to),
            moment: row.moment,
            time: row.time,
        };
        let shown = self.shown_sides(sides, is_known);
        let from = shown
            .from
            .or_clear(whole)
            .or_clear(by_other_side(self.receives(to)))
            .or_clear(part.reason_in(row, from));
        let to = shown.to.unwrap_or(AddressVisibility::PRIVATE);
        let to = to
            .or_clear(whole)
            .or_clear(by_other_side(self.owns(transfer.from)))
            .or_clear(part.reason_in(row, transfer.to));
        let shown = ShownSides { from, to: Some(to) };
        Some(TransferEntryVisibility {
            token: self.address_entry(token, row.moment),
            from,
            to,
            amounts: !shown.is_masked(self.policy_settings().alias_strip),
            tx_hash: self.shows_hash_of(transaction),
            is_audited: shown.is_audited(),
        })
    }

    /// R12, R14, R15, R28, K1, K2, HD10, HD28: whether a token transfer of this transaction survives.
    pub(super) fn transfer_survives(&self, row: &TransactionRow, transfer: &TransferEntry) -> bool {
        let TransferEntry { token, from, to } = *transfer;
        if self.withholds(row.hash) || !self.is_open(token) {
            return false;
        }
        let part = self.part_in(row);
        let is_part_of_own = part.is_participant && self.sees_all_of_own_transactions();
        if part.is_recipient || is_part_of_own || self.owns(from) || self.receives(to) {
            return true;
        }
        let sides = Sides {
            from,
            to: Some(to),
            moment: row.moment,
            time: row.time,
        };
        let has_grant_or_admin = || {
            sides.iter().any(|side| {
                self.is_disclosed_side(side, &sides.context(), Level::Redacted)
                    || self.is_administered_side(side, row.moment)
            })
        };
        self.survives_by_sides(sides, Level::Redacted)
            && match self.policy_settings().one_sided {
                PartialRowMode::Mask => true,
                PartialRowMode::Drop => self.has_event_access(token, row.moment) || has_grant_or_admin(),
            }
    }

    /// Whether a participant of a transaction sees all its transfers and logs (K2).
    pub(super) fn sees_all_of_own_transactions(&self) -> bool {
        self.policy_settings().participant_logs == TransactionLogs::All
    }

    /// Whether the viewer owns the address, and so is a participant of what is sent to it (HD10).
    pub(super) fn receives(&self, to: Address) -> bool {
        self.all(|viewer| viewer.receives_at(to))
    }

    /// Whether the viewer may see any event of the contract as it was registered at this moment (K1 `drop`).
    pub(super) fn has_event_access(&self, token: Address, moment: Moment) -> bool {
        self.all(|viewer| viewer.has_event_access(token, moment))
    }
}

impl SingleViewer<'_> {
    fn has_event_access(&self, token: Address, moment: Moment) -> bool {
        if self.is_closed(token) {
            return false;
        }
        self.snapshot.contract_at(token, moment).is_some_and(|contract| {
            let rights = EventRights::for_viewer(self, contract);
            let sees_some = match &rights.events {
                AllowedEvents::All => true,
                AllowedEvents::Only(rules) => !rules.is_empty(),
            };
            rights.is_org_admin || (rights.is_granted && sees_some)
        })
    }
}
