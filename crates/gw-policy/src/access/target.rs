//! What an address is to one caller (spec/20 §10): public, owned, a contract within reach, a reservation, or nothing.

use super::{
    beside::Beside,
    functions::Functions,
    permissions::{OrgRights, rights_by},
};
use crate::{
    knobs::Knobs,
    snapshot::{Contract, ContractGrant, Group, RetiredContract, SharedInfra, Snapshot},
    visibility::{is_precompile, owns},
};
use gw_types::{Address, Claim, Claims, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// The caller as the rules see them: who, and with which rights where.
#[derive(Clone, Debug)]
pub struct Member {
    /// The user.
    pub user: UserId,
    /// Rights per organization, by id, the default one last ([`super::rights`]); of the named organization only, if the
    /// request names one (HD39).
    pub rights: Vec<OrgRights>,
    /// Organizations of the user that do not count, because the request names another one (HD39).
    elsewhere: Vec<OrgId>,
    /// Whether several organizations wait for the user's word, and none of them is named (HD32).
    pub(super) is_undecided: bool,
    /// The moment expiry is judged at.
    pub now: Timestamp,
    /// Who looks over their shoulder (HD7).
    beside: Option<Beside>,
}

impl Member {
    /// The user's standing at `now`.
    pub fn new(snapshot: &Snapshot, user: UserId, now: Timestamp) -> Self {
        Self::beside(snapshot, user, now, None)
    }

    /// The same, as far as it holds for who looks over their shoulder too (HD7).
    pub fn beside(snapshot: &Snapshot, user: UserId, now: Timestamp, beside: Option<Beside>) -> Self {
        let counts = |group: &Group| beside.is_none_or(|beside| beside.counts(snapshot, group, now));
        let is_undecided = snapshot.is_undecided(user, now);
        Self {
            user,
            rights: rights_by(snapshot, user, now, counts),
            elsewhere: Vec::new(),
            is_undecided,
            now,
            beside,
        }
    }

    /// The same user with the rights of the organization that the request names, and of no other one (HD39): as if it
    /// were the user's only organization. `None` names no organization and changes nothing. Own addresses stay own.
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

    /// Whether the user is in the organization, but the request names another one.
    pub(super) fn is_elsewhere(&self, org: OrgId) -> bool {
        self.elsewhere.contains(&org)
    }

    /// Whether the address is the user's own, and may be told to be (R6, HD7).
    pub fn owns(&self, snapshot: &Snapshot, address: Address) -> bool {
        match self.beside {
            None => owns(snapshot, self.user, address) && self.may_hold(snapshot, address),
            // Whose a sender is that was taken to be the user's is not looked up.
            Some(beside) if beside.sender() == Some(address) => true,
            Some(beside) => {
                owns(snapshot, self.user, address)
                    && self.may_hold(snapshot, address)
                    && beside.knows(snapshot, address)
            }
        }
    }

    /// An organization's contract that was linked by the word of its own code is the user's only while the user is an
    /// active member there (HD10).
    fn may_hold(&self, snapshot: &Snapshot, address: Address) -> bool {
        let by_key = || {
            snapshot
                .links_at(address)
                .iter()
                .any(|link| link.user == self.user && !link.contract_wallet)
        };
        snapshot
            .contract(address)
            .is_none_or(|contract| self.rights_in(contract.org).is_some() || by_key())
    }

    /// Whether it is the user's by assumption.
    pub(super) fn assumes(&self, sender: Address) -> bool {
        self.beside.is_some_and(|beside| beside.sender() == Some(sender))
    }

    /// Whether somebody looks over their shoulder.
    pub(super) fn is_watched(&self) -> bool {
        self.beside.is_some()
    }

    /// Whether a mined finding closed the address to them (HD28). It comes before every ground: own addresses, public ones
    /// and grants are no exception.
    pub fn is_closed(&self, snapshot: &Snapshot, address: Address) -> bool {
        snapshot.is_closed_to(address, Some(self.user), |org| self.rights_in(org).is_some())
    }

    /// Whether the user administers any organization.
    pub(super) fn administers_any(&self) -> bool {
        self.rights.iter().any(|rights| rights.permissions.is_org_admin)
    }

    /// Leaves the rights of those organizations where KYC counts as completed: of all of them if the platform completed it.
    pub(crate) fn retain_verified(&mut self, snapshot: &Snapshot) {
        let user = self.user;
        self.rights.retain(|rights| snapshot.is_verified_in(user, rights.org));
    }

    /// The rights in one organization; `None` without an active membership.
    pub fn rights_in(&self, org: OrgId) -> Option<&OrgRights> {
        self.rights.iter().find(|rights| rights.org == org)
    }
}

/// A contract within reach of a caller.
#[derive(Clone, Debug)]
pub struct Reach<'s> {
    /// The contract.
    pub contract: &'s Arc<Contract>,
    /// Which functions may be called.
    pub functions: Functions<'s>,
    /// Claims on this contract: of its grants, and of the groups that hold them (C3).
    pub claims: Claims,
}

/// How a caller reaches a registered contract: as org admin, by grants, as its deployer (K7); `None` is no way.
///
/// Only memberships in the owning organization count; ownership by the organization alone is no ground (T1).
pub fn reach<'s>(
    snapshot: &'s Snapshot,
    member: &Member,
    contract: &'s Arc<Contract>,
    knobs: &Knobs,
) -> Option<Reach<'s>> {
    // HD2: what may hold loot is read by nobody, its administrators included.
    if member.is_closed(snapshot, contract.address) {
        return None;
    }
    let permissions = member.rights_in(contract.org)?.permissions;
    if permissions.in_admin_group || (permissions.is_org_admin && knobs.admin_claim_sees_all) {
        return Some(Reach {
            contract,
            functions: Functions::All,
            claims: Claims::ALL,
        });
    }
    let mut found: Option<Reach<'s>> = None;
    for (grant, group) in held_grants(snapshot, member, contract) {
        let access = snapshot.access(group.id).filter(|access| access.active(member.now));
        let of_group = access.map_or(Claims::NONE, |access| access.claims);
        let claims = grant.claims.union(of_group);
        // Who holds `admin` on the contract is beyond its function rules (C2).
        let functions = if claims.has(Claim::Admin) {
            Functions::All
        } else {
            Functions::of_grant(grant.functions.as_deref())
        };
        found = Some(match found.take() {
            Some(known) => Reach {
                contract,
                functions: known.functions.union(functions),
                claims: known.claims.union(claims),
            },
            None => Reach {
                contract,
                functions,
                claims,
            },
        });
    }
    if contract.deployer == Some(member.user) {
        let claims = found.as_ref().map_or(Claims::NONE, |known| known.claims);
        return Some(Reach {
            contract,
            functions: Functions::All,
            claims,
        });
    }
    found
}

/// The registrations of an address within the caller's reach, the present one first: those that ended still show what was
/// theirs (HD41), and open nothing else.
pub(crate) fn reached_registrations<'s>(
    snapshot: &'s Snapshot,
    member: &Member,
    address: Address,
    knobs: &Knobs,
) -> impl Iterator<Item = &'s Arc<Contract>> {
    let is_reached = move |contract: &&'s Arc<Contract>| reach(snapshot, member, contract, knobs).is_some();
    snapshot.registrations(address).filter(is_reached)
}

/// The grants on a contract held through active memberships in the owning organization. A row that grants to another
/// organization's group gives nothing (spec/80 section 8, spec/20 O4).
pub(crate) fn held_grants<'s>(
    snapshot: &'s Snapshot,
    member: &Member,
    contract: &Contract,
) -> impl Iterator<Item = (&'s Arc<ContractGrant>, &'s Arc<Group>)> {
    let (now, org) = (member.now, contract.org);
    let counts_here = member.rights_in(org).is_some();
    snapshot
        .grants(contract.id)
        .iter()
        .filter(move |_| counts_here)
        .filter_map(move |grant| {
            let (_, group) = snapshot
                .active_memberships(member.user, now)
                .find(|(held, _)| held.group == grant.group)?;
            let counts = |group: &Arc<Group>| member.beside.is_none_or(|beside| beside.counts(snapshot, group, now));
            (group.org == org && counts(group)).then_some((grant, group))
        })
}

/// What an address is to one caller. Every ground is looked at (spec/30 R3).
#[derive(Clone, Debug)]
pub struct Standing<'s> {
    /// Whether a mined finding closed it (HD28): then no ground below opens its state.
    pub closed: bool,
    /// Zero address or precompile, not closed.
    pub public: bool,
    /// [`owns`]. It says whose the address is, also of a closed one, whose state its owner does not read.
    pub owned: bool,
    /// Shared infrastructure: within everybody's reach, logs excepted, while its code is the pinned one. Whoever uses
    /// this must check that ([`super::check_pin`], [`super::judge_trace`]).
    pub shared: Option<&'s SharedInfra>,
    /// The registered contract there, whoever owns it.
    pub contract: Option<&'s Arc<Contract>>,
    /// The contract there whose registration was deleted: nobody's to reach (HD27).
    pub retired: Option<&'s RetiredContract>,
    /// How the caller reaches that contract.
    pub reach: Option<Reach<'s>>,
    /// The caller's organizations with a live reservation of it, in which the caller may deploy (R1). It gives
    /// reach only while the address has no code at the pinned block (HD14): whoever uses this must check that.
    pub reserved_in: Vec<OrgId>,
}

impl Standing<'_> {
    /// Whether an organization owns the address: a contract is registered there, or was (HD27).
    pub fn is_owned_by_org(&self) -> bool {
        self.contract.is_some() || self.retired.is_some()
    }

    /// Whether balance and nonce show (K8): the ground of a reservation is left out, for it would need a look at
    /// the code first, and what is not deployed yet has nothing but zero to show.
    pub fn is_full(&self) -> bool {
        !self.closed && (self.public || self.owned || self.reach.is_some() || self.shared.is_some())
    }
}

/// What `address` is to `member`.
pub fn standing<'s>(snapshot: &'s Snapshot, member: &Member, address: Address, knobs: &Knobs) -> Standing<'s> {
    let contract = snapshot.contract(address);
    let closed = member.is_closed(snapshot, address);
    let retired = snapshot.retired(address);
    let mut reserved_in: Vec<OrgId> = Vec::new();
    if contract.is_none() && !closed {
        for reservation in snapshot.reservations(address) {
            let live = reservation.expires_at > member.now;
            let deploys = member
                .rights_in(reservation.org)
                .is_some_and(|r| r.permissions.claims.has(Claim::Deploy));
            // Who owned what was there may build there again.
            let free = retired.is_none_or(|retired| retired.org == reservation.org);
            if live && deploys && free && !reserved_in.contains(&reservation.org) {
                reserved_in.push(reservation.org);
            }
        }
        reserved_in.sort_unstable();
    }
    Standing {
        closed,
        public: !closed && is_public(address),
        owned: member.owns(snapshot, address),
        shared: snapshot.shared(address).filter(|_| !closed),
        contract,
        retired,
        reach: contract.and_then(|contract| reach(snapshot, member, contract, knobs)),
        reserved_in,
    }
}

/// The zero address and the precompiles: public to everybody ([S], K2, spec/30 §2.2 grounds 1 and 2).
pub(super) fn is_public(address: Address) -> bool {
    address.is_zero() || is_precompile(address)
}
