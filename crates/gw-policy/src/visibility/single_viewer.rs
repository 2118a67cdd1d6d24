//! A viewer by the rights of one user, without impersonation.

use super::{GrantUses, RowContext, basis};
use crate::{
    Snapshot,
    disclosure::{DataClass, coverage::check_class},
    principal::{
        self, DisclosedRow, Principal, contract_access, disclosure, grants_on, reached_registrations, row_disclosure,
        target_status,
    },
    settings::{HiddenBalanceMode, KycGate, PolicySettings},
    snapshot::{DisclosureGrant, Moment, User},
};
use gw_types::{Address, B256, Claim, DisclosureGrantId, Level, LevelReason, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// A user, or an anonymous caller, by their own rights.
#[derive(Debug)]
pub(crate) struct SingleViewer<'s> {
    pub(crate) snapshot: &'s Snapshot,
    pub(super) user: Option<&'s Arc<User>>,
    pub(super) principal: Option<Principal>,
    pub(crate) policy_settings: &'s PolicySettings,
    pub(super) now: Timestamp,
    pub(super) own_transactions_only: bool,
    /// The impersonating administrator, for the impersonated user.
    pub(super) impersonator: Option<Arc<Self>>,
    /// Where the grants of disclosure are collected that the viewer needs; `None` for a viewer whose answers are not
    /// shown to this user.
    pub(super) grant_uses: Option<GrantUses>,
}

impl<'s> SingleViewer<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        user: Option<UserId>,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
    ) -> Self {
        let user = user
            .and_then(|id| snapshot.user(id))
            .filter(|user| !snapshot.is_excluded(user));
        let principal = user.map(|user| {
            let mut principal = Principal::new(snapshot, user.id, now);
            // If every call needs KYC, rights in an organization without completed KYC do not count, even if the call
            // is made through another organization (RT24).
            if policy_settings.kyc_gate == KycGate::All {
                principal.retain_verified(snapshot);
            }
            principal
        });
        Self {
            snapshot,
            user,
            principal,
            policy_settings,
            now,
            own_transactions_only: false,
            impersonator: None,
            grant_uses: None,
        }
    }

    pub(super) fn level(&self, address: Address) -> (Level, LevelReason) {
        basis::resolve(self, address)
    }

    /// Collects a grant of disclosure that the viewer needs for the address.
    pub(super) fn needs_grant(&self, grant: DisclosureGrantId, address: Address) {
        if let (Some(uses), Some(user)) = (&self.grant_uses, self.user)
            && let Some(grant) = self.snapshot.find_disclosure(grant)
        {
            uses.add(grant, user.id, address);
        }
    }

    /// The level that grants of disclosure give for the address, in a row or outside of rows, and the grant that gives
    /// it (basis 9).
    pub(super) fn disclosure(
        &self,
        address: Address,
        row: Option<DisclosedRow<'_>>,
    ) -> Option<(Level, DisclosureGrantId)> {
        let (user, principal) = (self.user?, self.principal.as_ref()?);
        let is_member = |org| principal.rights_in(org).is_some();
        match row {
            None => disclosure(self.snapshot, user, is_member, address, self.now),
            Some(row) => row_disclosure(self.snapshot, user, is_member, address, self.now, row),
        }
    }

    /// The disclosure of an address in a row, by the grants whose scope covers the row (spec/50 rules 23 and 27). A
    /// grant of level Hidden discloses nothing (R1).
    pub(super) fn disclosure_at(&self, address: Address, row: &RowContext) -> Option<(Level, DisclosureGrantId)> {
        let sides = row.sides.map(|(from, to)| [from, to.unwrap_or(from)]);
        let covered = sides.as_ref().map(|sides| DisclosedRow {
            time: row.time,
            sides,
            check: self.policy_settings.disclosure_classes,
        });
        let disclosure = self
            .disclosure(address, covered)
            .filter(|(level, _)| *level > Level::Hidden)?;
        self.is_registered_as_now(address, row.moment).then_some(disclosure)
    }

    /// The grants in force that disclose rows of the address, with those that cover some rows only.
    pub(super) fn grants_on(&self, address: Address) -> Vec<&'s Arc<DisclosureGrant>> {
        let (Some(user), Some(principal)) = (self.user, &self.principal) else {
            return Vec::new();
        };
        let is_member = |org| principal.rights_in(org).is_some();
        let mut grants = grants_on(self.snapshot, user, is_member, address, self.now);
        let check = self.policy_settings.disclosure_classes;
        grants.retain(|grant| {
            grant.scope.level > Level::Hidden && check_class(&grant.scope, DataClass::Transactions, check).is_ok()
        });
        grants
    }

    pub(crate) fn sees(&self, address: Address) -> bool {
        self.level(address).0 == Level::Full
    }

    pub(crate) fn owns(&self, address: Address) -> bool {
        self.principal
            .as_ref()
            .is_some_and(|principal| principal.owns(self.snapshot, address))
    }

    /// Whether the user owns the address and an impersonating administrator sees it. Under impersonation a row that
    /// only the owner sees would tell the administrator who the owner is (HD7).
    pub(super) fn owns_openly(&self, address: Address) -> bool {
        self.owns(address)
            && self
                .impersonator
                .as_ref()
                .is_none_or(|impersonator| impersonator.sees(address))
    }

    /// Whether the user owns any address, and so can be a participant of any transaction.
    pub(super) fn owns_any(&self) -> bool {
        let links = self.user.map_or(&[][..], |user| self.snapshot.links_of(user.id));
        links.iter().any(|link| self.owns(link.address))
    }

    /// Whether any transaction is shared with the user.
    pub(super) fn has_shares(&self) -> bool {
        self.user
            .is_some_and(|user| self.snapshot.shares_with(&user.external_id))
    }

    pub(super) fn own_addresses(&self) -> Vec<Address> {
        let links = self.user.map_or(&[][..], |user| self.snapshot.links_of(user.id));
        let mut links: Vec<_> = links.iter().filter(|link| self.owns(link.address)).collect();
        links.sort_by_key(|link| (link.verified_at, link.id));
        let mut own: Vec<Address> = Vec::with_capacity(links.len());
        for link in links {
            if !own.contains(&link.address) {
                own.push(link.address);
            }
        }
        own
    }

    pub(crate) fn administers(&self, org: OrgId) -> bool {
        self.principal
            .as_ref()
            .and_then(|principal| principal.rights_in(org))
            .is_some_and(|rights| {
                let is_admin_by_claim = rights.permissions.is_org_admin && self.policy_settings.admin_claim_sees_all;
                rights.permissions.in_admin_group || is_admin_by_claim
            })
    }

    pub(crate) fn reaches(&self, address: Address) -> bool {
        self.principal.as_ref().is_some_and(|principal| {
            let status = target_status(self.snapshot, principal, address, self.policy_settings);
            status.access.is_some() || !status.reserved_in.is_empty()
        })
    }

    /// Whether the user has access to the contract as it was registered at this moment (HD41).
    pub(super) fn reaches_at(&self, address: Address, moment: Moment) -> bool {
        let contract = self.snapshot.contract_at(address, moment);
        let access = |principal| contract_access(self.snapshot, principal, contract?, self.policy_settings);
        self.principal.as_ref().and_then(access).is_some()
    }

    /// Whether the user has access by any registration, current or ended, so that there are blocks of the contract that
    /// the user may see (HD41).
    pub(super) fn reaches_any_time(&self, address: Address) -> bool {
        let first = |principal| reached_registrations(self.snapshot, principal, address, self.policy_settings).next();
        self.principal.as_ref().and_then(first).is_some()
    }

    /// Whether the address had the same registration at this moment as now, or none at both.
    pub(super) fn is_registered_as_now(&self, address: Address, moment: Moment) -> bool {
        let then = self.snapshot.contract_at(address, moment);
        then.map(|contract| contract.id) == self.snapshot.contract(address).map(|contract| contract.id)
    }

    /// The level of an address in a row of this moment, and its reason: of a contract by the rights in the organization
    /// that owned it then (HD41), of any other address by the current bases.
    pub(super) fn level_at(&self, address: Address, moment: Moment) -> (Level, LevelReason) {
        if self.is_registered_as_now(address, moment) {
            return self.level(address);
        }
        if self.owns(address) {
            (Level::Full, LevelReason::OwnAddress)
        } else if basis::is_public(self, address) {
            (Level::Full, LevelReason::PublicAddress)
        } else if self.reaches_at(address, moment) {
            (Level::Full, LevelReason::RbacGroupMember)
        } else {
            // It has another registration now, or had one then.
            (basis::without_access(true), LevelReason::NoAccess)
        }
    }

    /// Whether the address is Full in events of this moment ([`Self::level_at`]).
    pub(crate) fn sees_at(&self, address: Address, moment: Moment) -> bool {
        self.level_at(address, moment).0 == Level::Full
    }

    /// Whether the address is Full in a row of this moment on a basis other than the public one, and so makes the row
    /// visible (HD9).
    pub(super) fn is_full_by_right_at(&self, address: Address, moment: Moment) -> bool {
        if self.is_registered_as_now(address, moment) {
            basis::is_full_by_right(self, address)
        } else {
            self.owns(address) || self.reaches_at(address, moment)
        }
    }

    /// Whether the user has access to the address by a reservation alone.
    pub(crate) fn only_reserves(&self, address: Address) -> bool {
        self.principal.as_ref().is_some_and(|principal| {
            let status = target_status(self.snapshot, principal, address, self.policy_settings);
            !status.is_full() && !status.reserved_in.is_empty()
        })
    }

    pub(super) fn reads_every_slot(&self, address: Address) -> bool {
        self.principal.as_ref().is_some_and(|principal| {
            let status = target_status(self.snapshot, principal, address, self.policy_settings);
            status.access.is_some_and(|access| access.claims.has(Claim::Admin))
        })
    }

    /// Whether the address belongs to the organization (F3). Always `false` for an anonymous caller.
    pub(crate) fn belongs(&self, org: OrgId, address: Address) -> bool {
        self.principal.is_some() && principal::belongs(self.snapshot, org, address, self.now)
    }

    /// Whether a post-execution violation closed the address to the user (HD28).
    pub(crate) fn is_closed(&self, address: Address) -> bool {
        match &self.principal {
            Some(principal) => principal.is_closed(self.snapshot, address),
            None => self.snapshot.is_quarantined(address),
        }
    }

    /// Whether a post-execution violation withholds the transaction (HD28). Then no method shows it to any user, not
    /// even to the users whose accounts it touched: they may cooperate with its sender.
    pub(crate) fn withholds(&self, tx_hash: B256) -> bool {
        !self.snapshot.convictions(tx_hash).is_empty()
    }

    pub(super) fn shows_account(&self, address: Address) -> bool {
        match self.policy_settings.address_query {
            _ if self.is_closed(address) => false,
            HiddenBalanceMode::Strict => self.sees(address),
            HiddenBalanceMode::Linked => self.sees(address) || !self.is_linked_elsewhere(address),
            HiddenBalanceMode::Off => true,
        }
    }

    /// Whether another user has a link to the address (K8 `linked`).
    fn is_linked_elsewhere(&self, address: Address) -> bool {
        let own = self.user.map(|user| user.id);
        self.snapshot
            .links_at(address)
            .iter()
            .any(|link| Some(link.user) != own)
    }
}
