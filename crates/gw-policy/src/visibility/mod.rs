//! Visibility of addresses, transactions, logs and call frames for a viewer (spec/30 section 2).
//!
//! A [`Viewer`] is a user, or an anonymous caller, at one moment on one pinned snapshot. Under impersonation it sees
//! what both the user and the administrator see, each by their own rights (HD7). All results are pure functions of
//! these inputs (R5).
//!
//! The functions take typed rows ([`TransactionRow`], [`LogRow`], [`TransferRow`], [`FrameRow`]). The JSON views
//! ([`crate::view`]) and every other interface that shows such rows use these functions, so that they cannot disagree.
//! The lists of the explorer have rules of their own for survival and masking, on the same facts about addresses
//! ([`explorer`]).
//! This module does not write JSON, and does not decide whether a call is allowed ([`crate::access`], which
//! imports this module).
//!
//! Invariant: an address is Full only by a basis that holds *now*; a basis that cannot be evaluated does not count
//! (R1).

mod basis;
mod events;
pub mod explorer;
mod frame;
mod grant_uses;
mod log;
mod log_query;
mod single_viewer;
mod transaction;
mod transfer;

pub use crate::principal::{is_precompile, owns};
pub(crate) use events::{AllowedEvents, EventRights};
pub use frame::{ExecutionRow, FrameContent, FrameRow, FrameViewer, FrameVisibility, TargetCode};
pub use grant_uses::{GrantUse, GrantUses};
pub(crate) use log::is_masked;
pub use log::{
    LogData, LogRow, LogViewer, LogVisibility, MalformedData, SimulatedLog, TransactionRole, TransactionRoles,
};
pub(crate) use log_query::PartySearch;
pub use log_query::{LogQuery, TransactionParties, TxParties, reaches_all, shows_nothing, upstream_filter};
pub(crate) use single_viewer::SingleViewer;
pub use transaction::{GasPricing, SeesAnyLog, TransactionAccess, TransactionRow, TransactionVisibility};
pub use transfer::{TokenAmount, TransferRow, TransferStandard, TransferVisibility};

use crate::{Snapshot, settings::PolicySettings, snapshot::Moment};
use gw_types::{Address, B256, Level, LevelReason, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// The row in which an address stands: a grant of disclosure may cover only some rows (R5, R7, spec/50 rule 23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowContext {
    /// When the row happened, by its block.
    pub moment: Moment,
    /// The time of its block; `None` if it is unknown. Then no grant with dates covers the row.
    pub time: Option<Timestamp>,
    /// The sender and the receiver of the row; `None` if the address stands in no row, or is no side of one. Then only
    /// unrestricted grants count (HD8).
    pub sides: Option<(Address, Option<Address>)>,
}

impl RowContext {
    /// The context of an address that is no side of a row.
    #[must_use]
    pub const fn without_sides(moment: Moment) -> Self {
        Self {
            moment,
            time: None,
            sides: None,
        }
    }
}

/// A user, or an anonymous caller, at a point in time; optionally restricted to what an impersonating administrator may
/// also see.
///
/// The constructor resolves the viewer's rights once. The visibility of an address is resolved on each query.
#[derive(Debug)]
pub struct Viewer<'s> {
    user: SingleViewer<'s>,
    impersonator: Option<Arc<SingleViewer<'s>>>,
}

impl<'s> Viewer<'s> {
    /// The viewer `user` (`None`: an anonymous caller) at `now`. An unknown or excluded user is an anonymous caller.
    #[must_use]
    pub fn new(
        snapshot: &'s Snapshot,
        user: Option<UserId>,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
    ) -> Self {
        Self {
            user: SingleViewer::new(snapshot, user, now, policy_settings),
            impersonator: None,
        }
    }

    /// Collects the grants of disclosure that the viewer needs, if there is a collection. It comes before
    /// [`Self::restricted_to`]: then the grants of the administrator are collected.
    #[must_use]
    pub fn collecting(mut self, uses: Option<&GrantUses>) -> Self {
        self.user.grant_uses = uses.cloned();
        self
    }

    /// Restricts the viewer to what `impersonator` sees, too (HD7, I9). Anything hidden from either of them appears not
    /// to exist (HD40).
    #[must_use]
    pub fn restricted_to(mut self, impersonator: UserId) -> Self {
        let SingleViewer {
            snapshot,
            policy_settings,
            now,
            ..
        } = self.user;
        let impersonator = SingleViewer {
            // It is the administrator who looks.
            grant_uses: self.user.grant_uses.take(),
            ..SingleViewer::new(snapshot, Some(impersonator), now, policy_settings)
        };
        let impersonator = Arc::new(impersonator);
        self.user.impersonator = Some(Arc::clone(&impersonator));
        self.impersonator = Some(impersonator);
        self
    }

    /// Restricts the user's rights to those in this organization (HD39), as if it were the user's only one. Own
    /// addresses, and own and shared transactions, stay visible. `None` changes nothing.
    #[must_use]
    pub fn scoped_to_org(mut self, org: Option<OrgId>) -> Self {
        self.user.principal = self.user.principal.map(|principal| principal.restricted_to(org));
        self
    }

    /// Whether the user has rights in this organization: an active membership that the user accepted (HD32).
    #[must_use]
    pub fn is_member_of(&self, org: OrgId) -> bool {
        let principal = self.user.principal.as_ref();
        principal.is_some_and(|principal| principal.rights_in(org).is_some())
    }

    /// Restricts the viewer to own transactions, if the argument is `true` (HD17).
    #[must_use]
    pub fn own_transactions_only(mut self, own_transactions_only: bool) -> Self {
        self.user.own_transactions_only = own_transactions_only;
        self
    }

    /// The user, without the restriction by an impersonating administrator.
    pub(crate) fn user(&self) -> &SingleViewer<'s> {
        &self.user
    }

    /// The impersonating administrator, if any.
    pub(crate) fn impersonator(&self) -> Option<&SingleViewer<'s>> {
        self.impersonator.as_deref()
    }

    /// Whether the predicate holds for the user and, under impersonation, for the administrator.
    pub(crate) fn all(&self, holds: impl Fn(&SingleViewer<'s>) -> bool) -> bool {
        holds(&self.user) && self.impersonator().is_none_or(holds)
    }

    /// Whether only own transactions are shown.
    pub(crate) fn is_own_transactions_only(&self) -> bool {
        self.user.own_transactions_only
    }

    /// The policy settings.
    pub fn policy_settings(&self) -> &'s PolicySettings {
        self.user.policy_settings
    }

    /// The visibility level of an address, and its reason: the strongest basis applies, with equal levels the earlier
    /// reason (R2, R3, R4). Under impersonation, the lower of both levels (HD7).
    pub fn level(&self, address: Address) -> (Level, LevelReason) {
        let own = self.user.level(address);
        match self
            .impersonator
            .as_ref()
            .map(|impersonator| impersonator.level(address))
        {
            Some(restricted) if restricted.0 < own.0 => restricted,
            Some(_) | None => own,
        }
    }

    /// Whether the address is Full.
    pub fn sees(&self, address: Address) -> bool {
        self.all(|viewer| viewer.sees(address))
    }

    /// Whether the address is the viewer's own (R6).
    pub fn owns(&self, address: Address) -> bool {
        self.all(|viewer| viewer.owns(address))
    }

    /// Whether the user or the impersonating administrator owns any address, and so can be a participant of any
    /// transaction.
    pub fn owns_any(&self) -> bool {
        self.user.owns_any() || self.impersonator().is_some_and(SingleViewer::owns_any)
    }

    /// Whether anything may be visible without access to a contract: the user or the impersonating administrator owns
    /// an address, or a transaction is shared with one of them.
    pub fn owns_or_was_shared_any(&self) -> bool {
        self.owns_any() || self.user.has_shares() || self.impersonator().is_some_and(SingleViewer::has_shares)
    }

    /// The viewer's own addresses, in the order they were linked.
    pub fn own_addresses(&self) -> Vec<Address> {
        let mut own = self.user.own_addresses();
        own.retain(|address| self.sees(*address));
        own
    }

    /// Whether a post-execution violation withholds the transaction, so that it does not exist for this viewer by any
    /// method (HD28).
    pub fn withholds(&self, tx_hash: B256) -> bool {
        !self.all(|viewer| !viewer.withholds(tx_hash))
    }

    /// Number of logs in the block before the transaction at this index that are withheld from the viewer. The index of
    /// a log in its block is shown lower by this number, as if the withheld logs did not exist (HD28).
    #[must_use]
    pub fn logs_withheld_before(&self, block_hash: B256, transaction_index: u64) -> u64 {
        self.user.snapshot.logs_withheld_before(block_hash, transaction_index)
    }

    /// Whether the viewer owns the transaction's sender or receiver (HD10).
    pub fn is_participant(&self, from: Address, to: Option<Address>) -> bool {
        self.all(|viewer| viewer.is_participant(from, to))
    }

    /// Whether the transaction was shared with the viewer and the node accepted it (R27, W5).
    pub fn is_recipient(&self, tx_hash: B256) -> bool {
        self.all(|viewer| viewer.is_recipient(tx_hash))
    }

    /// Whether the viewer administers the organization: an active `is_org_admin` group, or the claim `admin` (K11).
    pub fn administers(&self, org: OrgId) -> bool {
        self.all(|viewer| viewer.administers(org))
    }

    /// Whether the viewer has access to this contract: as administrator, by a grant, as deployer, or by a reservation
    /// (spec/20 section 10, column code-touching). These bases also make it Full in the explorer (I1).
    pub fn reaches(&self, address: Address) -> bool {
        self.all(|viewer| viewer.reaches(address))
    }

    /// Whether the viewer has access to the contract as it was registered at this moment, and so sees what it did then
    /// (HD41).
    pub fn reaches_at(&self, address: Address, moment: Moment) -> bool {
        self.all(|viewer| viewer.reaches_at(address, moment))
    }

    /// Whether the viewer has access to the contract, or to blocks of it by a registration that ended (HD41).
    pub(crate) fn reaches_ever(&self, address: Address) -> bool {
        self.all(|viewer| viewer.reaches(address) || viewer.reaches_any_time(address))
    }

    /// Whether the viewer has access to the code at the address: as [`Self::reaches`], without reservations, which end
    /// with the first code at the address (HD14).
    pub fn reaches_code(&self, address: Address) -> bool {
        self.all(|viewer| viewer.reaches(address) && !viewer.only_reserves(address))
    }

    /// Whether the viewer may read every storage slot of the contract, by the claim `admin` on it (spec/20 section 9).
    pub fn reads_every_slot(&self, address: Address) -> bool {
        self.all(|viewer| viewer.reads_every_slot(address))
    }

    /// Whether the address is a precompile or shared infrastructure. It is shown in rows that are visible for another
    /// reason, and has no lists, counts or statistics of its own (HD9).
    pub fn is_utility(&self, address: Address) -> bool {
        is_precompile(address) || self.user.snapshot.shared(address).is_some()
    }

    /// Whether the address is a precompile or shared infrastructure, and no post-execution violation closed it to this
    /// viewer (HD28).
    pub(crate) fn is_open_utility(&self, address: Address) -> bool {
        self.is_utility(address) && self.all(|viewer| !viewer.is_closed(address))
    }

    /// Whether balance and nonce of the address are shown (K8).
    pub fn shows_account(&self, address: Address) -> bool {
        self.all(|viewer| viewer.shows_account(address))
    }
}
