//! All that somebody may do in one organization, as one record for administrators (spec/80 §7).

use super::{
    functions::Functions,
    permissions::Permissions,
    target::{Member, reach},
};
use crate::{
    knobs::Knobs,
    snapshot::{Contract, EventRule, FunctionRule, Snapshot},
    visibility::{Admitted, EventRights, Viewer},
};
use gw_types::{Claims, OrgId, Timestamp, UserId};

/// The union of somebody's live groups in an organization.
#[derive(Clone, Debug)]
pub struct Effective<'s> {
    /// Methods and claims.
    pub permissions: Permissions,
    /// What the groups' lists name beside the registry.
    pub extras: Vec<&'s str>,
    /// When the first of the memberships it stands on ends.
    pub expires_at: Option<Timestamp>,
    /// The contracts of the organization within reach, by address.
    pub contracts: Vec<ContractRights<'s>>,
}

/// Rights on one contract.
#[derive(Clone, Debug)]
pub struct ContractRights<'s> {
    /// The contract.
    pub contract: &'s Contract,
    /// Claims on it.
    pub claims: Claims,
    /// `None`: every function.
    pub functions: Option<Vec<&'s FunctionRule>>,
    /// `None`: every event.
    pub events: Option<Vec<&'s EventRule>>,
}

/// What `user` may do in `org` at `now`; nothing without an active membership, or for somebody shut out.
pub fn effective<'s>(
    snapshot: &'s Snapshot,
    user: UserId,
    org: OrgId,
    now: Timestamp,
    knobs: &'s Knobs,
) -> Effective<'s> {
    let mut found = Effective {
        permissions: Permissions::default(),
        extras: Vec::new(),
        expires_at: None,
        contracts: Vec::new(),
    };
    if snapshot.user(user).is_none_or(|user| snapshot.shuts_out(user)) {
        return found;
    }
    let member = Member::new(snapshot, user, now);
    let Some(rights) = member.rights_in(org) else {
        return found;
    };
    found.permissions = rights.permissions;
    let live = || {
        snapshot
            .active_memberships(user, now)
            .filter(|(_, group)| group.org == org)
    };
    found.expires_at = live().filter_map(|(held, _)| held.expires_at).min();
    let lists = live()
        .filter_map(|(_, group)| snapshot.access(group.id))
        .filter(|access| access.active(now));
    found.extras = lists.flat_map(|access| access.extras.entries()).collect();
    found.extras.sort_unstable();
    found.extras.dedup();
    let viewer = Viewer::new(snapshot, Some(user), now, knobs);
    for contract in snapshot.contracts().filter(|contract| contract.org == org) {
        let Some(reach) = reach(snapshot, &member, contract, knobs) else {
            continue;
        };
        let functions = match reach.functions {
            Functions::All => None,
            Functions::Only(rules) => Some(rules),
        };
        let events = match EventRights::of(viewer.person(), contract).events {
            Admitted::All => None,
            Admitted::Only(rules) => Some(rules),
        };
        found.contracts.push(ContractRights {
            contract,
            claims: reach.claims,
            functions,
            events,
        });
    }
    found.contracts.sort_unstable_by_key(|rights| rights.contract.address);
    found
}
