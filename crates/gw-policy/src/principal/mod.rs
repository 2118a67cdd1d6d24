//! The caller of a decision: which addresses are the caller's own, and which rights the caller has on which target.
//!
//! [`access`](crate::access) decides by it what a caller may do, [`visibility`](crate::visibility) what a caller sees.
//! This module does neither, so that both agree on the rights (I1).

mod disclosed_addresses;
mod disclosure;
mod functions;
mod impersonation;
mod ownership;
mod permissions;
mod public;
mod target;

pub use disclosed_addresses::disclosed_addresses;
pub(crate) use disclosure::{DisclosedRow, disclosure, grants_on, row_disclosure};
pub use functions::{Functions, belongs};
pub use impersonation::Impersonation;
pub use ownership::owns;
pub use permissions::{OrgRights, Permissions, active_orgs, permissions, rights, upstream_key};
pub use public::is_precompile;
pub(crate) use public::is_public;
pub use target::{ContractAccess, TargetStatus, contract_access, target_status};
pub(crate) use target::{held_grants, reached_registrations};

use crate::snapshot::{Group, Snapshot};
use gw_types::{Address, Level, OrgId, Timestamp, UserId};
use permissions::rights_by;

/// The caller of a decision: the user, and the rights in each organization.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The user.
    pub user: UserId,
    /// The rights in each organization, ordered by id with the default one last ([`rights`]); only those of the
    /// named organization, if the request names one (HD39).
    pub rights: Vec<OrgRights>,
    /// The user's other organizations, whose rights do not count because the request names one (HD39).
    elsewhere: Vec<OrgId>,
    /// Whether several organizations have invited the user and the request names none of them (HD32).
    pub(crate) is_undecided: bool,
    /// The time at which expiry is checked.
    pub now: Timestamp,
    /// The impersonation that the call is part of (HD7).
    impersonation: Option<Impersonation>,
}

impl Principal {
    /// The user with all rights at `now`.
    pub fn new(snapshot: &Snapshot, user: UserId, now: Timestamp) -> Self {
        Self::impersonated(snapshot, user, now, None)
    }

    /// The user with the rights that count for an impersonating administrator, too (HD7).
    pub fn impersonated(
        snapshot: &Snapshot,
        user: UserId,
        now: Timestamp,
        impersonation: Option<Impersonation>,
    ) -> Self {
        let counts =
            |group: &Group| impersonation.is_none_or(|impersonation| impersonation.counts(snapshot, group, now));
        let is_undecided = snapshot.is_undecided(user, now);
        Self {
            user,
            rights: rights_by(snapshot, user, now, counts),
            elsewhere: Vec::new(),
            is_undecided,
            now,
            impersonation,
        }
    }

    /// The principal with the rights in the named organization alone (HD39), as if it were the user's only one. `None`
    /// changes nothing. Own addresses stay own.
    #[must_use]
    pub fn restricted_to(mut self, named: Option<OrgId>) -> Self {
        if let Some(named) = named {
            let others = self.rights.iter().map(|rights| rights.org).filter(|org| *org != named);
            self.elsewhere.extend(others);
            self.rights.retain(|rights| rights.org == named);
            self.is_undecided = false;
        }
        self
    }

    /// Whether the user is in this organization while the request names another one.
    pub(crate) fn is_elsewhere(&self, org: OrgId) -> bool {
        self.elsewhere.contains(&org)
    }

    /// Whether the address is the user's own, as far as an impersonating administrator may know (R6, HD7).
    pub fn owns(&self, snapshot: &Snapshot, address: Address) -> bool {
        match self.impersonation {
            None => owns(snapshot, self.user, address) && self.may_hold(snapshot, address),
            // The assumed sender counts as the user's own, regardless of its owner.
            Some(impersonation) if impersonation.sender() == Some(address) => true,
            Some(impersonation) => {
                owns(snapshot, self.user, address)
                    && self.may_hold(snapshot, address)
                    && impersonation.knows(snapshot, address, self.now)
            }
        }
    }

    /// Whether the user may own the address: a contract of an organization that was linked by its own code (ERC-1271)
    /// belongs to the user only while the user is an active member of that organization (HD10).
    fn may_hold(&self, snapshot: &Snapshot, address: Address) -> bool {
        let is_linked_by_key = || {
            snapshot
                .links_at(address)
                .iter()
                .any(|link| link.user == self.user && !link.contract_wallet)
        };
        snapshot
            .contract(address)
            .is_none_or(|contract| self.rights_in(contract.org).is_some() || is_linked_by_key())
    }

    /// Whether the address is the assumed sender of an impersonated send.
    pub(crate) fn assumes(&self, sender: Address) -> bool {
        self.impersonation
            .is_some_and(|impersonation| impersonation.sender() == Some(sender))
    }

    /// Whether an administrator impersonates the user.
    pub(crate) fn is_impersonated(&self) -> bool {
        self.impersonation.is_some()
    }

    /// Whether a post-execution violation closed the address to the user (HD28). Own addresses, public ones and grants
    /// are no exception.
    pub fn is_closed(&self, snapshot: &Snapshot, address: Address) -> bool {
        snapshot.is_closed_to(address, Some(self.user), |org| self.rights_in(org).is_some())
    }

    /// Whether a group of the user counts for an impersonating administrator, too.
    fn counts(&self, snapshot: &Snapshot, group: &Group) -> bool {
        self.impersonation
            .is_none_or(|impersonation| impersonation.counts(snapshot, group, self.now))
    }

    /// Whether the user administers any organization.
    pub(crate) fn administers_any(&self) -> bool {
        self.rights.iter().any(|rights| rights.permissions.is_org_admin)
    }

    /// Keeps the rights in organizations where KYC is completed, which are all of them if the platform completed it.
    pub(crate) fn retain_verified(&mut self, snapshot: &Snapshot) {
        let user = self.user;
        self.rights.retain(|rights| snapshot.is_verified_in(user, rights.org));
    }

    /// The level that grants of disclosure give the user for the address, outside of rows (basis 9).
    pub(crate) fn disclosed_level(&self, snapshot: &Snapshot, address: Address) -> Option<Level> {
        let is_member = |org| self.rights_in(org).is_some();
        disclosure::disclosed_level(snapshot, snapshot.user(self.user)?, is_member, address, self.now)
    }

    /// The rights in one organization; `None` without an active membership.
    pub fn rights_in(&self, org: OrgId) -> Option<&OrgRights> {
        self.rights.iter().find(|rights| rights.org == org)
    }
}
