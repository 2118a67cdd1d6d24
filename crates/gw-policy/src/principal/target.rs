//! The status of a target address for one caller (spec/20 §10): public, owned, a contract that the caller has access
//! to, a reservation, or none of these.

use super::{Functions, Principal, is_public};
use crate::{
    settings::PolicySettings,
    snapshot::{Contract, ContractGrant, Group, RetiredContract, SharedInfra, Snapshot},
};
use gw_types::{Address, Claim, Claims, OrgId};
use std::sync::Arc;

/// The access of a caller to a contract.
#[derive(Clone, Debug)]
pub struct ContractAccess<'s> {
    /// The contract.
    pub contract: &'s Arc<Contract>,
    /// The functions that the caller may call.
    pub functions: Functions<'s>,
    /// The claims on this contract: those of its grants, and of the groups that hold them (C3).
    pub claims: Claims,
}

/// The access of a caller to a registered contract: as an administrator of its organization, by grants, or as its
/// deployer (K7). `None` is no access.
///
/// Only memberships in the owning organization count, and a membership alone gives no access (T1).
pub fn contract_access<'s>(
    snapshot: &'s Snapshot,
    principal: &Principal,
    contract: &'s Arc<Contract>,
    policy_settings: &PolicySettings,
) -> Option<ContractAccess<'s>> {
    // HD2: tainted state is closed to all users, administrators included.
    if principal.is_closed(snapshot, contract.address) {
        return None;
    }
    let permissions = principal.rights_in(contract.org)?.permissions;
    if permissions.in_admin_group || (permissions.is_org_admin && policy_settings.admin_claim_sees_all) {
        return Some(ContractAccess {
            contract,
            functions: Functions::All,
            claims: Claims::ALL,
        });
    }
    let mut access: Option<ContractAccess<'s>> = None;
    for (grant, group) in held_grants(snapshot, principal, contract) {
        let group_access = snapshot.access(group.id).filter(|access| access.active(principal.now));
        let group_claims = group_access.map_or(Claims::NONE, |access| access.claims);
        let claims = grant.claims.union(group_claims);
        // The claim `admin` on the contract lifts its function rules (C2).
        let functions = if claims.has(Claim::Admin) {
            Functions::All
        } else {
            Functions::of_grant(grant.functions.as_deref())
        };
        access = Some(match access.take() {
            Some(previous) => ContractAccess {
                contract,
                functions: previous.functions.union(functions),
                claims: previous.claims.union(claims),
            },
            None => ContractAccess {
                contract,
                functions,
                claims,
            },
        });
    }
    if contract.deployer == Some(principal.user) {
        let claims = access.as_ref().map_or(Claims::NONE, |access| access.claims);
        return Some(ContractAccess {
            contract,
            functions: Functions::All,
            claims,
        });
    }
    access
}

/// The registrations of an address that the caller has access to, the current one first. A registration that ended
/// gives access only to what happened while it lasted (HD41).
pub(crate) fn reached_registrations<'s>(
    snapshot: &'s Snapshot,
    principal: &Principal,
    address: Address,
    policy_settings: &PolicySettings,
) -> impl Iterator<Item = &'s Arc<Contract>> {
    let is_reached =
        move |contract: &&'s Arc<Contract>| contract_access(snapshot, principal, contract, policy_settings).is_some();
    snapshot.registrations(address).filter(is_reached)
}

/// The grants on a contract that the caller holds through active memberships in the owning organization. A grant to a
/// group of another organization gives no access (spec/80 section 8, spec/20 O4).
pub(crate) fn held_grants<'s>(
    snapshot: &'s Snapshot,
    principal: &Principal,
    contract: &Contract,
) -> impl Iterator<Item = (&'s Arc<ContractGrant>, &'s Arc<Group>)> {
    let (now, org) = (principal.now, contract.org);
    let has_rights = principal.rights_in(org).is_some();
    snapshot
        .grants(contract.id)
        .iter()
        .filter(move |_| has_rights)
        .filter_map(move |grant| {
            let (_, group) = snapshot
                .active_memberships(principal.user, now)
                .find(|(membership, _)| membership.group == grant.group)?;
            (group.org == org && principal.counts(snapshot, group)).then_some((grant, group))
        })
}

/// The status of an address for one caller, by every basis of spec/30 R3.
#[derive(Clone, Debug)]
pub struct TargetStatus<'s> {
    /// Whether a post-execution violation closed the address (HD28). Then no basis below gives access to its state.
    pub closed: bool,
    /// Whether the address is the zero address or a precompile, and not closed.
    pub public: bool,
    /// Whether the caller owns the address ([`owns`](super::owns)). The owner of a closed address does not read its
    /// state.
    pub owned: bool,
    /// The shared infrastructure at the address. All users have access to it, except to its logs, while its code is the
    /// pinned one. The user of this field has to check the code (`access::check_pin`, `access::evaluate_trace`).
    pub shared: Option<&'s SharedInfra>,
    /// The contract that is registered at the address, by any organization.
    pub contract: Option<&'s Arc<Contract>>,
    /// The contract at the address whose registration was deleted; no user has access to it (HD27).
    pub retired: Option<&'s RetiredContract>,
    /// The access of the caller to the contract.
    pub access: Option<ContractAccess<'s>>,
    /// The caller's organizations that have an unexpired reservation of the address and in which the caller may deploy
    /// (R1). A reservation gives access only while the address has no code at the pinned block, which the user of this
    /// field has to check (HD14).
    pub reserved_in: Vec<OrgId>,
}

impl TargetStatus<'_> {
    /// Whether an organization owns the address: a contract is registered at it, or was (HD27).
    pub fn is_owned_by_org(&self) -> bool {
        self.contract.is_some() || self.retired.is_some()
    }

    /// Whether balance and nonce are shown (K8). A reservation does not count: to use it the code would have to be read
    /// first, and a reserved address without code shows only zero anyway.
    pub fn is_full(&self) -> bool {
        !self.closed && (self.public || self.owned || self.access.is_some() || self.shared.is_some())
    }
}

/// The status of `address` for `principal`.
pub fn target_status<'s>(
    snapshot: &'s Snapshot,
    principal: &Principal,
    address: Address,
    policy_settings: &PolicySettings,
) -> TargetStatus<'s> {
    let contract = snapshot.contract(address);
    let closed = principal.is_closed(snapshot, address);
    let retired = snapshot.retired(address);
    let mut reserved_in: Vec<OrgId> = Vec::new();
    if contract.is_none() && !closed {
        for reservation in snapshot.reservations(address) {
            let is_live = reservation.expires_at > principal.now;
            let may_deploy = principal
                .rights_in(reservation.org)
                .is_some_and(|r| r.permissions.claims.has(Claim::Deploy));
            // The former owner of a deleted registration may deploy at the address again.
            let is_free = retired.is_none_or(|retired| retired.org == reservation.org);
            if is_live && may_deploy && is_free && !reserved_in.contains(&reservation.org) {
                reserved_in.push(reservation.org);
            }
        }
        reserved_in.sort_unstable();
    }
    TargetStatus {
        closed,
        public: !closed && is_public(address),
        owned: principal.owns(snapshot, address),
        shared: snapshot.shared(address).filter(|_| !closed),
        contract,
        retired,
        access: contract.and_then(|contract| contract_access(snapshot, principal, contract, policy_settings)),
        reserved_in,
    }
}
