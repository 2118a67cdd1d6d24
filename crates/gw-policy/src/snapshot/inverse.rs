//! Inverse indexes: from an organization, a group or a person to the rows that give it rights. With them, what a viewer
//! may see is found from the viewer's own groups, links and shares, without a look at the rows of others.

use super::{
    map::Map,
    record::{Contract, ContractGrant, Group, Membership, PastContract, Reservation, TxVisibility},
};
use gw_types::{ContractId, ExternalId, GrantId, GroupId, MembershipId, OrgId, ReservationId, UserId, VisibilityId};
use std::hash::Hash;

/// Sets of row ids by a key. The cost of a change does not grow with the set: an organization may own tens of thousands
/// of contracts.
#[derive(Clone, Debug)]
pub(super) struct IdSets<K, I> {
    sets: Map<K, Map<I, ()>>,
}

impl<K, I> Default for IdSets<K, I> {
    fn default() -> Self {
        Self { sets: Map::default() }
    }
}

impl<K: Eq + Hash, I: Eq + Hash> PartialEq for IdSets<K, I> {
    fn eq(&self, other: &Self) -> bool {
        self.sets == other.sets
    }
}

impl<K: Eq + Hash + Clone, I: Eq + Hash + Clone> IdSets<K, I> {
    /// The ids of a key, in no particular order.
    pub(super) fn get<'s>(&'s self, key: &K) -> impl Iterator<Item = &'s I> + use<'s, K, I> {
        self.sets
            .get(key)
            .into_iter()
            .flat_map(|set| set.iter().map(|(id, ())| id))
    }

    /// Whether the key has any id.
    pub(super) fn has(&self, key: &K) -> bool {
        self.sets.get(key).is_some()
    }

    /// Removes the id from the keys of its old row, and adds it to those of its new one.
    fn replace(&mut self, id: &I, old: impl IntoIterator<Item = K>, new: impl IntoIterator<Item = K>) {
        for key in old {
            if let Some(set) = self.sets.get_mut(&key) {
                set.remove(id);
                if set.is_empty() {
                    self.sets.remove(&key);
                }
            }
        }
        for key in new {
            match self.sets.get_mut(&key) {
                Some(set) => set.insert(id.clone(), ()),
                None => {
                    let mut set = Map::default();
                    set.insert(id.clone(), ());
                    self.sets.insert(key, set);
                }
            }
        }
    }
}

/// All inverse indexes of a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InverseIndexes {
    pub(super) groups_by_org: IdSets<OrgId, GroupId>,
    pub(super) members_by_group: IdSets<GroupId, MembershipId>,
    pub(super) contracts_by_org: IdSets<OrgId, ContractId>,
    pub(super) contracts_by_deployer: IdSets<UserId, ContractId>,
    pub(super) grants_by_group: IdSets<GroupId, GrantId>,
    pub(super) past_by_org: IdSets<OrgId, ContractId>,
    pub(super) past_by_deployer: IdSets<UserId, ContractId>,
    pub(super) past_by_group: IdSets<GroupId, ContractId>,
    pub(super) reservations_by_org: IdSets<OrgId, ReservationId>,
    /// Accepted transactions by the persons that they are shared with.
    pub(super) shares_by_recipient: IdSets<ExternalId, VisibilityId>,
}

impl InverseIndexes {
    pub(super) fn put_group(&mut self, id: GroupId, old: Option<&Group>, new: Option<&Group>) {
        self.groups_by_org
            .replace(&id, old.map(|group| group.org), new.map(|group| group.org));
    }

    pub(super) fn put_membership(&mut self, id: MembershipId, old: Option<&Membership>, new: Option<&Membership>) {
        self.members_by_group
            .replace(&id, old.map(|row| row.group), new.map(|row| row.group));
    }

    pub(super) fn put_contract(&mut self, id: ContractId, old: Option<&Contract>, new: Option<&Contract>) {
        self.contracts_by_org
            .replace(&id, old.map(|row| row.org), new.map(|row| row.org));
        self.contracts_by_deployer
            .replace(&id, old.and_then(|row| row.deployer), new.and_then(|row| row.deployer));
    }

    pub(super) fn put_grant(&mut self, id: GrantId, old: Option<&ContractGrant>, new: Option<&ContractGrant>) {
        self.grants_by_group
            .replace(&id, old.map(|row| row.group), new.map(|row| row.group));
    }

    pub(super) fn put_past_contract(&mut self, id: ContractId, old: Option<&PastContract>, new: Option<&PastContract>) {
        let org = |past: &PastContract| past.contract.org;
        let deployer = |past: &PastContract| past.contract.deployer;
        let groups = |past: Option<&PastContract>| {
            past.into_iter()
                .flat_map(|past| &past.grants)
                .map(|grant| grant.group)
                .collect::<Vec<_>>()
        };
        self.past_by_org.replace(&id, old.map(org), new.map(org));
        self.past_by_deployer
            .replace(&id, old.and_then(deployer), new.and_then(deployer));
        self.past_by_group.replace(&id, groups(old), groups(new));
    }

    pub(super) fn put_reservation(&mut self, id: ReservationId, old: Option<&Reservation>, new: Option<&Reservation>) {
        self.reservations_by_org
            .replace(&id, old.map(|row| row.org), new.map(|row| row.org));
    }

    pub(super) fn put_visibility(&mut self, id: VisibilityId, old: Option<&TxVisibility>, new: Option<&TxVisibility>) {
        let recipients = |row: Option<&TxVisibility>| {
            row.filter(|row| row.active)
                .map_or_else(Vec::new, |row| row.recipients.clone())
        };
        self.shares_by_recipient.replace(&id, recipients(old), recipients(new));
    }
}
