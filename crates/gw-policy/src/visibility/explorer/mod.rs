//! Visibility of the explorer's rows: transactions, token transfers, internal transactions (frames), and what is shown
//! of addresses, tokens, holders and contracts (spec/30 sections 2.4, 4 and 9).
//!
//! A list shows the rows of [`Viewer::row_scope`], which the explorer selects before it pages and counts (R17). Each of
//! them is then evaluated here: the functions of [`Viewer`] with `_entry` in their names return `None` for a row that
//! does not survive, else how it is shown. Both follow from the same facts about single addresses, so that a row is
//! selected exactly if it survives (property-tested in `tests/it/explorer`). Logs are shown by
//! [`LogViewer`](super::LogViewer), here as on RPC (R24).
//!
//! Under impersonation every fact has to hold for the user and for the administrator: the level of an address is the
//! lower of both, and a participation, a share or a grant of only one of them does not count (HD7). So the rows tell
//! the administrator nothing about the user's wallets.
//!
//! This module writes no JSON, and it does not decide which alias an address has. Addresses below Full never differ in
//! a result by whether they are Redacted or Hidden: that an organization registered an address is not for others to
//! know (HD40).

mod entity;
mod frame;
mod scope;
mod sides;
mod transaction;
mod transfer;

pub use entity::{BalanceVisibility, ContractVisibility, HolderVisibility};
pub use frame::{FrameEntry, FrameEntryVisibility};
pub use scope::{
    AddressBlocks, DisclosedRows, EventLogs, LogCandidates, LogScope, ParticipantRows, RowScope, ScopeFingerprint,
};
pub use transaction::{TransactionEntry, TransactionEntryVisibility, TransactionSurvival};
pub use transfer::{TransferEntry, TransferEntryVisibility};

use super::{RowContext, SingleViewer, Viewer};
use crate::snapshot::Moment;
use gw_types::{Address, DisclosureGrantId, Level, LevelReason};

/// How an address is printed in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressText {
    /// `[PRIVATE]`.
    Private,
    /// The alias of the address under this grant of disclosure (spec/30 section 3).
    Alias(DisclosureGrantId),
    /// The address.
    Clear,
}

/// Why an address is printed as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressReason {
    /// By its level, whatever the row.
    Level(LevelReason),
    /// In this row only: a grant of disclosure on the other side.
    DisclosureLens,
    /// In this row only: the viewer is a participant.
    ParticipantOverride,
    /// In this row only: the transaction was shared with the viewer.
    VisibleToGrant,
}

impl AddressReason {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Level(LevelReason::OwnAddress) => "own_address",
            Self::Level(LevelReason::PublicAddress) => "public_address",
            Self::Level(LevelReason::RbacGroupMember) => "rbac_group_member",
            Self::Level(LevelReason::DisclosureGrant) | Self::DisclosureLens => "disclosure_grant",
            Self::Level(LevelReason::NoAccess) => "no_access",
            Self::ParticipantOverride => "participant_override",
            Self::VisibleToGrant => "visible_to_grant",
        }
    }

    /// The label of an address with this reason (spec/30 section 3).
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Level(LevelReason::OwnAddress) => "Mine",
            Self::Level(LevelReason::PublicAddress) => "Public",
            Self::Level(LevelReason::RbacGroupMember) => "My Org",
            Self::Level(LevelReason::DisclosureGrant) | Self::DisclosureLens => "Disclosed",
            Self::Level(LevelReason::NoAccess) | Self::ParticipantOverride | Self::VisibleToGrant => "Private",
        }
    }
}

/// How an address is shown in a row, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressVisibility {
    /// How it is printed.
    pub text: AddressText,
    /// Why.
    pub reason: AddressReason,
}

impl AddressVisibility {
    const PRIVATE: Self = Self {
        text: AddressText::Private,
        reason: AddressReason::Level(LevelReason::NoAccess),
    };

    /// Whether the address is printed in clear.
    #[must_use]
    pub const fn is_clear(self) -> bool {
        matches!(self.text, AddressText::Clear)
    }

    /// The reason to print as the address's entry in `addressMetadata`; `None` if there is none, because the address is
    /// not printed in clear (R11).
    #[must_use]
    pub const fn metadata(self) -> Option<AddressReason> {
        if self.is_clear() { Some(self.reason) } else { None }
    }

    /// The address as shown by an override, unless it is printed in clear anyway.
    fn or_clear(self, reason: Option<AddressReason>) -> Self {
        match reason {
            Some(reason) if !self.is_clear() => Self {
                text: AddressText::Clear,
                reason,
            },
            Some(_) | None => self,
        }
    }

    const fn rank(self) -> u8 {
        match self.text {
            AddressText::Private => 0,
            AddressText::Alias(_) => 1,
            AddressText::Clear => 2,
        }
    }

    /// The higher of two visibilities (R2); `self` on equal rank.
    fn higher(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    /// The lower of two visibilities; `self` on equal rank. Two aliases under different grants do not combine: each is
    /// known to one viewer only (HD7).
    fn lower(self, other: Self) -> Self {
        match (self.text, other.text) {
            (AddressText::Alias(one), AddressText::Alias(another)) if one != another => Self::PRIVATE,
            _ if other.rank() < self.rank() => other,
            _ => self,
        }
    }
}

impl SingleViewer<'_> {
    /// How the address is printed in a row by its own level.
    fn address_at(&self, address: Address, row: &RowContext) -> AddressVisibility {
        let (mut level, mut reason) = self.level_at(address, row.moment);
        let disclosure = self.disclosure_at(address, row);
        // A grant that covers the row raises the level and never lowers it (R2, R4).
        if let Some((disclosed, _)) = disclosure
            && disclosed > level
        {
            (level, reason) = (disclosed, LevelReason::DisclosureGrant);
        }
        if let (LevelReason::DisclosureGrant, Some((_, grant))) = (reason, disclosure)
            && level >= Level::Pseudonymous
        {
            self.needs_grant(grant, address);
        }
        let text = match (level, disclosure) {
            (Level::Full, _) => AddressText::Clear,
            (Level::Pseudonymous, Some((_, grant))) => AddressText::Alias(grant),
            // Redacted and Hidden do not differ in a result (HD40).
            (Level::Pseudonymous, None) | (Level::Redacted | Level::Hidden, _) => return AddressVisibility::PRIVATE,
        };
        AddressVisibility {
            text,
            reason: AddressReason::Level(reason),
        }
    }

    /// What a grant of disclosure on an address gives to the other side of a row (spec/30 section 2.4, lens).
    fn lens(&self, disclosed: Address, row: &RowContext) -> AddressVisibility {
        let (text, grant) = match self.disclosure_at(disclosed, row) {
            Some((Level::Full, grant)) => (AddressText::Clear, grant),
            Some((Level::Pseudonymous, grant)) => (AddressText::Alias(grant), grant),
            Some((Level::Redacted | Level::Hidden, _)) | None => return AddressVisibility::PRIVATE,
        };
        self.needs_grant(grant, disclosed);
        AddressVisibility {
            text,
            reason: AddressReason::DisclosureLens,
        }
    }
}

impl Viewer<'_> {
    /// How an address is printed that is no side of a row of this moment (HD41): a token, a creator, a holder.
    #[must_use]
    pub fn address_entry(&self, address: Address, moment: Moment) -> AddressVisibility {
        self.side_entry(address, &RowContext::without_sides(moment))
    }

    /// How a side of a row is printed by its own level, whatever the other side is.
    fn side_entry(&self, address: Address, row: &RowContext) -> AddressVisibility {
        self.lower_of(|viewer| viewer.address_at(address, row))
    }

    /// The lower of what the user and, under impersonation, the administrator see (HD7).
    fn lower_of(&self, see: impl Fn(&SingleViewer<'_>) -> AddressVisibility) -> AddressVisibility {
        let own = see(self.user());
        self.impersonator()
            .map_or(own, |impersonator| own.lower(see(impersonator)))
    }
}
