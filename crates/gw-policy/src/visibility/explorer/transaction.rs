//! A transaction of the explorer.

use super::{
    AddressText, AddressVisibility, TransferEntry,
    sides::{ShownSides, Sides},
};
use crate::{
    principal::owns,
    settings::HiddenTransferMode,
    visibility::{SingleViewer, TransactionRow, Viewer},
};
use gw_types::{Address, Level};

/// The facts about a transaction that its visibility depends on.
///
/// The addresses in its calldata and in its events are not among them: whoever deploys a contract can put any address
/// there, so only its sender and receiver make a viewer a participant (HD10).
#[derive(Clone, Copy, Debug)]
pub struct TransactionEntry<'a> {
    /// The transaction.
    pub row: TransactionRow,
    /// The contract that it deployed.
    pub created: Option<Address>,
    /// Its token transfers (K12).
    pub transfers: &'a [TransferEntry],
}

/// Why a transaction survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionSurvival {
    /// By a visible side, by the viewer's part in it, or by a grant of level Full.
    Visible,
    /// Only by a grant below Full. Its hash is not shown, and look-ups by hash do not find it (spec/50 rule 22).
    PartialGrant,
    /// Only because a member of an organization that the viewer administers is a side of it (K10). Each request that
    /// shows it is audited.
    MemberOfOrg,
    /// Only because one of its token transfers survives (K12). This reveals nothing of the transaction (R10).
    HiddenTransfer,
}

impl TransactionSurvival {
    /// Whether the hash is shown, and look-ups by hash find the transaction.
    #[must_use]
    pub const fn shows_hash(self) -> bool {
        match self {
            Self::Visible | Self::MemberOfOrg | Self::HiddenTransfer => true,
            Self::PartialGrant => false,
        }
    }
}

/// How a surviving transaction is shown. Members without a field here are shown in every surviving row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionEntryVisibility {
    /// Why it survives.
    pub survival: TransactionSurvival,
    /// The sender.
    pub from: AddressVisibility,
    /// The receiver; `None` for a deployment.
    pub to: Option<AddressVisibility>,
    /// The deployed contract, if there is one.
    pub created: Option<AddressVisibility>,
    /// Whether `value` is shown.
    pub value: bool,
    /// Whether `inputData`, `error` and `revertReason` are shown.
    pub payload: bool,
    /// Whether `nonce` is shown.
    pub nonce: bool,
    /// Whether a request that shows the row has to leave an audit entry (K10, spec/30 section 2.4).
    pub is_audited: bool,
}

impl Viewer<'_> {
    /// The visibility of a transaction in the explorer; `None` if it does not survive. Lists and the look-up by hash
    /// agree, except that the look-up finds no transaction whose hash is not shown (R18,
    /// [`TransactionSurvival::shows_hash`]).
    #[must_use]
    pub fn transaction_entry(&self, entry: &TransactionEntry<'_>) -> Option<TransactionEntryVisibility> {
        let survival = self.survival(entry)?;
        let (row, part) = (&entry.row, self.part_in(&entry.row));
        // A side of a transaction sees the other one.
        let known = self.shown_sides(Sides::from_row(row), |_, _| true);
        let shown = ShownSides {
            from: known.from.or_clear(part.reason()),
            to: known.to.map(|to| to.or_clear(part.reason())),
        };
        let strips_beside_alias = self.policy_settings().alias_strip;
        let is_masked = shown.is_masked(strips_beside_alias);
        let is_kept_for_admin = survival == TransactionSurvival::MemberOfOrg;
        let created = entry
            .created
            .map(|created| self.address_entry(created, row.moment).or_clear(part.reason()));
        Some(TransactionEntryVisibility {
            survival,
            from: shown.from,
            to: shown.to,
            created,
            value: !is_masked || is_kept_for_admin,
            payload: !is_masked,
            // The nonce tells the number of a sender's transactions. A participant who knows the sender from this row
            // only does not learn it.
            nonce: match known.from.text {
                AddressText::Clear => true,
                AddressText::Alias(_) => part.is_recipient || !strips_beside_alias,
                AddressText::Private => part.is_recipient,
            },
            is_audited: is_kept_for_admin || shown.is_audited(),
        })
    }

    /// Whether rows that belong to a transaction show its hash: the transaction survives with its hash (R18, K12).
    #[must_use]
    pub fn shows_hash_of(&self, transaction: &TransactionEntry<'_>) -> bool {
        self.survival(transaction).is_some_and(TransactionSurvival::shows_hash)
    }

    /// Why the transaction survives; `None` if it does not.
    pub(super) fn survival(&self, entry: &TransactionEntry<'_>) -> Option<TransactionSurvival> {
        let row = &entry.row;
        if self.withholds(row.hash) {
            return None;
        }
        let part = self.part_in(row);
        let survives = |least| self.survives_by_sides(Sides::from_row(row), least);
        if part.reason().is_some() || survives(Level::Full) {
            Some(TransactionSurvival::Visible)
        } else if survives(Level::Redacted) {
            Some(TransactionSurvival::PartialGrant)
        } else if Sides::from_row(row)
            .iter()
            .any(|side| self.is_of_administered_member(side))
        {
            Some(TransactionSurvival::MemberOfOrg)
        } else if self.hidden_transfer_mode() == HiddenTransferMode::Keep
            && entry
                .transfers
                .iter()
                .any(|transfer| self.transfer_survives(row, transfer))
        {
            Some(TransactionSurvival::HiddenTransfer)
        } else {
            None
        }
    }

    /// K12. Under impersonation no row with two hidden sides is shown (K10, K12): the user's own view may show less of
    /// it, and whether it does depends on the user's wallets and grants (I9, HD40).
    pub(super) fn hidden_transfer_mode(&self) -> HiddenTransferMode {
        match self.impersonator() {
            None => self.policy_settings().anchor,
            Some(_) => HiddenTransferMode::None,
        }
    }

    /// K10: whether the address is the wallet of a member of an organization that the viewer administers. Not under
    /// impersonation ([`Self::hidden_transfer_mode`]).
    pub(super) fn is_of_administered_member(&self, address: Address) -> bool {
        self.shows_transactions_of_members() && self.user().is_of_administered_member(address)
    }

    /// Whether K10 applies to this viewer.
    pub(super) fn shows_transactions_of_members(&self) -> bool {
        self.policy_settings().org_admin_view_user_txs && self.impersonator().is_none()
    }
}

impl SingleViewer<'_> {
    /// K10. Only a member who accepted the organization counts (HD32).
    fn is_of_administered_member(&self, address: Address) -> bool {
        let Some(principal) = &self.principal else {
            return false;
        };
        let (snapshot, now) = (self.snapshot, self.now);
        let is_member = |user| {
            principal.rights.iter().any(|rights| {
                let org = rights.org;
                self.administers(org) && snapshot.has_accepted(user, org, now) && snapshot.is_member(user, org, now)
            })
        };
        snapshot
            .links_at(address)
            .iter()
            .any(|link| owns(snapshot, link.user, address) && is_member(link.user))
    }
}

impl Sides {
    pub(super) const fn from_row(row: &TransactionRow) -> Self {
        Self {
            from: row.from,
            to: row.to,
            moment: row.moment,
            time: row.time,
        }
    }
}
