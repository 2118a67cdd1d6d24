//! Rights of a viewer to the events of a contract, before a single log is evaluated (spec/30 section 6.1).

use super::SingleViewer;
use crate::{
    principal::{contract_access, held_grants},
    snapshot::{Contract, ContractGrant, EventRule, EventRules, Group},
};
use gw_types::Claim;
use std::sync::Arc;

/// A viewer's rights to the events of one contract under one registration, the current one or one that ended (HD41).
#[derive(Clone, Debug)]
pub(crate) struct EventRights<'s> {
    /// The contract.
    pub(crate) contract: &'s Arc<Contract>,
    /// Whether the viewer administers the owning organization (row 1).
    pub(crate) is_org_admin: bool,
    /// Whether the viewer has access to the contract. Row 5 drops the logs of other contracts.
    pub(crate) is_granted: bool,
    /// Whether the viewer holds a grant through a non-system group of the owning organization (R29).
    pub(crate) is_insider: bool,
    /// The events that the grants permit.
    pub(crate) events: AllowedEvents<'s>,
}

/// The union of the event rules of all grants.
#[derive(Clone, Debug)]
pub(crate) enum AllowedEvents<'s> {
    /// Every event: for administrators of the organization or the contract (C2), for the deployer, whose access has no
    /// event rules, or by a grant without event rules (decision 19).
    All,
    /// Only events that one of these rules permits.
    Only(Vec<&'s EventRule>),
}

impl<'s> EventRights<'s> {
    /// The viewer's rights to the events that the contract emitted under this registration.
    pub(crate) fn for_viewer(viewer: &SingleViewer<'s>, contract: &'s Arc<Contract>) -> Self {
        let mut rights = Self {
            contract,
            is_org_admin: viewer.administers(contract.org),
            is_granted: false,
            is_insider: false,
            events: AllowedEvents::Only(Vec::new()),
        };
        let principal = viewer.principal.as_ref();
        let access = principal
            .and_then(|principal| contract_access(viewer.snapshot, principal, contract, viewer.policy_settings));
        let (Some(principal), Some(access)) = (principal, access) else {
            return rights;
        };
        rights.is_granted = true;
        let grants: Vec<(&Arc<ContractGrant>, &Arc<Group>)> =
            held_grants(viewer.snapshot, principal, contract).collect();
        rights.is_insider = grants.iter().any(|(_, group)| !group.is_system);
        let sees_all = access.claims.has(Claim::Admin)
            || contract.deployer == Some(principal.user)
            || grants.iter().any(|(grant, _)| grant.events == EventRules::All);
        rights.events = if sees_all {
            AllowedEvents::All
        } else {
            AllowedEvents::Only(
                grants
                    .into_iter()
                    .flat_map(|(grant, _)| event_rules(&grant.events))
                    .collect(),
            )
        };
        rights
    }
}

fn event_rules(events: &EventRules) -> &[EventRule] {
    match events {
        EventRules::All => &[],
        EventRules::Only(rules) => rules,
    }
}
