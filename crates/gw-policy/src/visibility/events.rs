//! Which events of a contract a viewer may see, before any single log is looked at (spec/30 section 6.1).

use super::Person;
use crate::{
    access,
    snapshot::{Contract, ContractGrant, EventRule, EventRules, Group},
};
use gw_types::Claim;
use std::sync::Arc;

/// A viewer's rights to the events of one contract under one registration, the present one or one that ended (HD41).
#[derive(Clone, Debug)]
pub(crate) struct EventRights<'s> {
    /// The contract.
    pub(crate) contract: &'s Arc<Contract>,
    /// Administrator of the owning organization: row 1.
    pub(crate) is_org_admin: bool,
    /// Reaches the contract at all: row 5 drops the rest.
    pub(crate) is_granted: bool,
    /// Holds a grant through a group of the owning organization that is no system group (R29).
    pub(crate) is_insider: bool,
    /// Which events the grants admit.
    pub(crate) events: Admitted<'s>,
}

/// The union of the event rules of all grants.
#[derive(Clone, Debug)]
pub(crate) enum Admitted<'s> {
    /// Every event: administrators of either kind (C2), the deployer, whose own right has no event rules, or a grant
    /// without event rules (decision 19).
    All,
    /// Only these.
    Only(Vec<&'s EventRule>),
}

impl<'s> EventRights<'s> {
    /// The viewer's rights to what the contract emitted under this registration.
    pub(crate) fn of(viewer: &Person<'s>, contract: &'s Arc<Contract>) -> Self {
        let mut rights = Self {
            contract,
            is_org_admin: viewer.administers(contract.org),
            is_granted: false,
            is_insider: false,
            events: Admitted::Only(Vec::new()),
        };
        let member = viewer.member.as_ref();
        let reach = member.and_then(|m| access::reach(viewer.snapshot, m, contract, viewer.knobs));
        let (Some(member), Some(reach)) = (member, reach) else {
            return rights;
        };
        rights.is_granted = true;
        let grants: Vec<(&Arc<ContractGrant>, &Arc<Group>)> =
            access::held_grants(viewer.snapshot, member, contract).collect();
        rights.is_insider = grants.iter().any(|(_, group)| !group.is_system);
        let sees_all = reach.claims.has(Claim::Admin)
            || contract.deployer == Some(member.user)
            || grants.iter().any(|(grant, _)| grant.events == EventRules::All);
        rights.events = if sees_all {
            Admitted::All
        } else {
            Admitted::Only(
                grants
                    .into_iter()
                    .flat_map(|(grant, _)| listed(&grant.events))
                    .collect(),
            )
        };
        rights
    }
}

fn listed(events: &EventRules) -> &[EventRule] {
    match events {
        EventRules::All => &[],
        EventRules::Only(rules) => rules,
    }
}
