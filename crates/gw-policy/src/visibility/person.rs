//! One person's own rights.

use super::ground;
use crate::{
    Snapshot,
    access::{self, Member},
    knobs::{AddressQuery, Knobs, KycGate},
    snapshot::{Moment, User},
};
use gw_types::{Address, B256, Claim, Level, LevelReason, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// One person, or nobody, by their own rights.
#[derive(Debug)]
pub(crate) struct Person<'s> {
    pub(crate) snapshot: &'s Snapshot,
    pub(super) user: Option<&'s Arc<User>>,
    pub(super) member: Option<Member>,
    pub(crate) knobs: &'s Knobs,
    pub(super) now: Timestamp,
    pub(super) own_only: bool,
}

impl<'s> Person<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, user: Option<UserId>, now: Timestamp, knobs: &'s Knobs) -> Self {
        let user = user
            .and_then(|id| snapshot.user(id))
            .filter(|user| !snapshot.shuts_out(user));
        let member = user.map(|user| {
            let mut member = Member::new(snapshot, user.id, now);
            // Where every call needs KYC, an organization without it shows nothing through another one (RT24).
            if knobs.kyc_gate == KycGate::All {
                member.retain_verified(snapshot);
            }
            member
        });
        Self {
            snapshot,
            user,
            member,
            knobs,
            now,
            own_only: false,
        }
    }

    pub(super) fn level(&self, address: Address) -> (Level, LevelReason) {
        ground::resolve(self, address)
    }

    pub(crate) fn sees(&self, address: Address) -> bool {
        self.level(address).0 == Level::Full
    }

    pub(crate) fn owns(&self, address: Address) -> bool {
        self.member
            .as_ref()
            .is_some_and(|member| member.owns(self.snapshot, address))
    }

    /// Whether they own any address, and so can be a participant at all.
    pub(super) fn owns_any(&self) -> bool {
        let links = self.user.map_or(&[][..], |user| self.snapshot.links_of(user.id));
        links.iter().any(|link| self.owns(link.address))
    }

    /// Whether any transaction is shared with them.
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
        self.member
            .as_ref()
            .and_then(|member| member.rights_in(org))
            .is_some_and(|rights| {
                let by_claim = rights.permissions.is_org_admin && self.knobs.admin_claim_sees_all;
                rights.permissions.in_admin_group || by_claim
            })
    }

    pub(crate) fn reaches(&self, address: Address) -> bool {
        self.member.as_ref().is_some_and(|member| {
            let standing = access::standing(self.snapshot, member, address, self.knobs);
            standing.reach.is_some() || !standing.reserved_in.is_empty()
        })
    }

    /// Whether they reach the contract as it was registered then (HD41).
    pub(super) fn reaches_at(&self, address: Address, moment: Moment) -> bool {
        let contract = self.snapshot.contract_at(address, moment);
        let reach = |member| access::reach(self.snapshot, member, contract?, self.knobs);
        self.member.as_ref().and_then(reach).is_some()
    }

    /// Whether they reach it by any registration, present or past: there are blocks of it they may see (HD41).
    pub(super) fn reaches_any_time(&self, address: Address) -> bool {
        let reached = |member| access::reached_registrations(self.snapshot, member, address, self.knobs).next();
        self.member.as_ref().and_then(reached).is_some()
    }

    /// Whether the address is Full in what happened then: a contract by the rights in whose it was (HD41), anything else by
    /// the grounds of today.
    pub(crate) fn sees_at(&self, address: Address, moment: Moment) -> bool {
        let (then, now) = (
            self.snapshot.contract_at(address, moment),
            self.snapshot.contract(address),
        );
        if then.map(|contract| contract.id) == now.map(|contract| contract.id) {
            return self.sees(address);
        }
        let owned_or_public = || self.owns(address) || ground::is_public(self, address);
        self.reaches_at(address, moment) || owned_or_public()
    }

    /// Whether they reach the address by a reservation alone.
    pub(crate) fn only_reserves(&self, address: Address) -> bool {
        self.member.as_ref().is_some_and(|member| {
            let standing = access::standing(self.snapshot, member, address, self.knobs);
            !standing.is_full() && !standing.reserved_in.is_empty()
        })
    }

    pub(super) fn reads_every_slot(&self, address: Address) -> bool {
        self.member.as_ref().is_some_and(|member| {
            let standing = access::standing(self.snapshot, member, address, self.knobs);
            standing.reach.is_some_and(|reach| reach.claims.has(Claim::Admin))
        })
    }

    /// Whether the address is the organization's own (F3).
    pub(crate) fn belongs(&self, org: OrgId, address: Address) -> bool {
        self.member.is_some() && access::belongs(self.snapshot, org, address, self.now)
    }

    /// Whether a mined finding closed the address to them (HD28).
    pub(crate) fn is_closed(&self, address: Address) -> bool {
        match &self.member {
            Some(member) => member.is_closed(self.snapshot, address),
            None => self.snapshot.is_quarantined(address),
        }
    }

    /// Whether a mined finding withholds the transaction (HD28): then it is not there, by whatever method, for nobody. Whoever
    /// it touched may be its sender's accomplice.
    pub(crate) fn withholds(&self, tx_hash: B256) -> bool {
        !self.snapshot.convictions(tx_hash).is_empty()
    }

    pub(super) fn shows_account(&self, address: Address) -> bool {
        match self.knobs.address_query {
            _ if self.is_closed(address) => false,
            AddressQuery::Strict => self.sees(address),
            AddressQuery::Linked => self.sees(address) || !self.is_linked_elsewhere(address),
            AddressQuery::Off => true,
        }
    }

    /// Whether somebody else holds a link to the address (K8 `linked`).
    fn is_linked_elsewhere(&self, address: Address) -> bool {
        let own = self.user.map(|user| user.id);
        self.snapshot
            .links_at(address)
            .iter()
            .any(|link| Some(link.user) != own)
    }
}
