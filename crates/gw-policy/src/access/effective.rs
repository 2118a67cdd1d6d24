//! The effective rights of a user in one organization, as one record for administrators (spec/80 §7).

use crate::{
    principal::{Functions, Permissions, Principal, contract_access},
    settings::PolicySettings,
    snapshot::{Contract, EventRule, FunctionRule, Snapshot},
    visibility::{AllowedEvents, EventRights, Viewer},
};
use gw_types::{Claims, OrgId, Timestamp, UserId};

/// The union of the rights of a user's active groups in an organization.
#[derive(Clone, Debug)]
pub struct Effective<'s> {
    /// Methods and claims.
    pub permissions: Permissions,
    /// Custom methods of the groups' allow lists, which are not in the method registry.
    pub custom_methods: Vec<&'s str>,
    /// When the first of the contributing memberships expires; `None` if none expires.
    pub expires_at: Option<Timestamp>,
    /// The organization's contracts that the user has access to, by address.
    pub contracts: Vec<ContractRights<'s>>,
}

/// Rights on one contract.
#[derive(Clone, Debug)]
pub struct ContractRights<'s> {
    /// The contract.
    pub contract: &'s Contract,
    /// Claims on it.
    pub claims: Claims,
    /// The permitted functions; `None`: every function.
    pub functions: Option<Vec<&'s FunctionRule>>,
    /// The visible events; `None`: every event.
    pub events: Option<Vec<&'s EventRule>>,
}

/// The rights of `user` in `org` at `now`; empty without an active membership, or for an excluded user.
pub fn effective<'s>(
    snapshot: &'s Snapshot,
    user: UserId,
    org: OrgId,
    now: Timestamp,
    policy_settings: &'s PolicySettings,
) -> Effective<'s> {
    let mut effective = Effective {
        permissions: Permissions::default(),
        custom_methods: Vec::new(),
        expires_at: None,
        contracts: Vec::new(),
    };
    if snapshot.user(user).is_none_or(|user| snapshot.is_excluded(user)) {
        return effective;
    }
    let principal = Principal::new(snapshot, user, now);
    let Some(rights) = principal.rights_in(org) else {
        return effective;
    };
    effective.permissions = rights.permissions;
    let memberships = || {
        snapshot
            .active_memberships(user, now)
            .filter(|(_, group)| group.org == org)
    };
    effective.expires_at = memberships().filter_map(|(membership, _)| membership.expires_at).min();
    let lists = memberships()
        .filter_map(|(_, group)| snapshot.access(group.id))
        .filter(|access| access.active(now));
    effective.custom_methods = lists.flat_map(|access| access.custom_methods.entries()).collect();
    effective.custom_methods.sort_unstable();
    effective.custom_methods.dedup();
    let viewer = Viewer::new(snapshot, Some(user), now, policy_settings);
    for contract in snapshot.contracts().filter(|contract| contract.org == org) {
        let Some(access) = contract_access(snapshot, &principal, contract, policy_settings) else {
            continue;
        };
        let functions = match access.functions {
            Functions::All => None,
            Functions::Only(rules) => Some(rules),
        };
        let events = match EventRights::for_viewer(viewer.user(), contract).events {
            AllowedEvents::All => None,
            AllowedEvents::Only(rules) => Some(rules),
        };
        effective.contracts.push(ContractRights {
            contract,
            claims: access.claims,
            functions,
            events,
        });
    }
    effective
        .contracts
        .sort_unstable_by_key(|rights| rights.contract.address);
    effective
}
