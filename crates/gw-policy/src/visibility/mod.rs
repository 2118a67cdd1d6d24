//! Who sees which address, and which transaction, how far (spec/30 section 2).
//!
//! A [`Viewer`] is one person (or nobody) at one moment on one pinned snapshot. Its answers are pure functions of
//! that (R5); nothing is remembered between viewers. Not here: what a view prints ([`crate::view`]), and whether a
//! call is allowed at all ([`crate::access`]).
//!
//! Invariant: an address is Full only through a ground that holds *now*; a ground that cannot be evaluated gives
//! nothing (R1).

mod admission;
mod events;
mod ground;
mod owns;

pub use admission::Admission;
pub(crate) use events::{Admitted, EventRights};
pub use ground::is_precompile;
pub use owns::owns;

use crate::{
    Snapshot,
    access::Member,
    knobs::{AddressQuery, Knobs},
    snapshot::User,
};
use gw_types::{Address, Claim, Level, LevelReason, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// One person, or nobody, looking at one moment.
///
/// The viewer's own rights are resolved once, here; whatever concerns an address is resolved when asked.
#[derive(Debug)]
pub struct Viewer<'s> {
    snapshot: &'s Snapshot,
    user: Option<&'s Arc<User>>,
    member: Option<Member>,
    knobs: &'s Knobs,
    own_only: bool,
}

impl<'s> Viewer<'s> {
    /// The viewer `user` (`None`: nobody is logged in) at `now`. An unknown or shut-out user sees what nobody sees.
    #[must_use]
    pub fn new(snapshot: &'s Snapshot, user: Option<UserId>, now: Timestamp, knobs: &'s Knobs) -> Self {
        let user = user.and_then(|id| snapshot.user(id)).filter(|user| !snapshot.shuts_out(user));
        let member = user.map(|user| Member::new(snapshot, user.id, now));
        Self { snapshot, user, member, knobs, own_only: false }
    }

    /// The same, who is shown no transactions but the own ones (HD17).
    #[must_use]
    pub fn own_only(self, own_only: bool) -> Self {
        Self { own_only, ..self }
    }

    /// Whether only own transactions show.
    pub(crate) fn is_own_only(&self) -> bool {
        self.own_only
    }

    /// The settings this viewer's views follow.
    pub fn knobs(&self) -> &'s Knobs {
        self.knobs
    }

    /// How much of an address this viewer sees, and why: the strongest ground wins, on equal rank the earlier reason
    /// (R2, R3, R4).
    pub fn level(&self, address: Address) -> (Level, LevelReason) {
        ground::resolve(self, address)
    }

    /// Whether the address is Full.
    pub fn sees(&self, address: Address) -> bool {
        self.level(address).0 == Level::Full
    }

    /// Whether the address is the viewer's own (R6).
    pub fn owns(&self, address: Address) -> bool {
        self.user.is_some_and(|user| owns(self.snapshot, user.id, address))
    }

    /// Whether the viewer owns any address, and so can be a participant at all.
    pub fn owns_any(&self) -> bool {
        let links = self.user.map_or(&[][..], |user| self.snapshot.links_of(user.id));
        links.iter().any(|link| self.owns(link.address))
    }

    /// The viewer's own addresses, in the order they were linked.
    pub fn own_addresses(&self) -> Vec<Address> {
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

    /// Whether the viewer administers the organization: an active `is_org_admin` group, or the claim `admin` (K11).
    pub fn administers(&self, org: OrgId) -> bool {
        self.member.as_ref().and_then(|member| member.rights_in(org)).is_some_and(|rights| {
            let by_claim = rights.permissions.is_org_admin && self.knobs.admin_claim_sees_all;
            rights.permissions.in_admin_group || by_claim
        })
    }

    /// Whether the viewer reaches this contract: administrator, grant, deployer, or reservation (spec/20 section 10,
    /// column code-touching). By the same grounds it is Full in the explorer (I1).
    pub fn reaches(&self, address: Address) -> bool {
        self.member.as_ref().is_some_and(|member| {
            let standing = crate::access::standing(self.snapshot, member, address, self.knobs);
            standing.reach.is_some() || !standing.reserved_in.is_empty()
        })
    }

    /// Whether the viewer may read any storage slot of the contract: holds `admin` on it (spec/20 section 9).
    pub fn reads_every_slot(&self, address: Address) -> bool {
        self.member.as_ref().is_some_and(|member| {
            let standing = crate::access::standing(self.snapshot, member, address, self.knobs);
            standing.reach.is_some_and(|reach| reach.claims.has(Claim::Admin))
        })
    }

    /// Whether a contract is registered at the address, whoever owns it.
    pub(crate) fn is_registered(&self, address: Address) -> bool {
        self.snapshot.contract(address).is_some()
    }

    /// Whether the address is the organization's own (F3).
    pub(crate) fn belongs(&self, org: OrgId, address: Address) -> bool {
        let now = self.member.as_ref().map(|member| member.now);
        now.is_some_and(|now| crate::access::belongs(self.snapshot, org, address, now))
    }

    /// Whether the address is a utility of everybody: a precompile or shared infrastructure. It is shown in rows that
    /// survive otherwise, and has no lists, counts or statistics of its own (HD9).
    pub fn is_utility(&self, address: Address) -> bool {
        is_precompile(address) || self.snapshot.shared(address).is_some()
    }

    /// Whether nobody may read the address (HD2).
    pub(crate) fn is_quarantined(&self, address: Address) -> bool {
        self.snapshot.is_quarantined(address)
    }

    /// Whether balance and nonce of the address may be told (K8).
    pub fn shows_account(&self, address: Address) -> bool {
        match self.knobs.address_query {
            AddressQuery::Strict => self.sees(address),
            AddressQuery::Linked => self.sees(address) || !self.is_linked_elsewhere(address),
            AddressQuery::Off => true,
        }
    }

    /// Whether somebody else holds a link to the address (K8 `linked`).
    fn is_linked_elsewhere(&self, address: Address) -> bool {
        let own = self.user.map(|user| user.id);
        self.snapshot.links_at(address).iter().any(|link| Some(link.user) != own)
    }
}
