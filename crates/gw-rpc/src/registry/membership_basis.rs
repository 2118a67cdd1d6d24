//! The memberships that a filter or a connection depends on (HD35).

use gw_policy::{Snapshot, snapshot::Organization};
use gw_types::{MembershipId, OrgId, Timestamp, UserId};

/// The memberships that were active when a filter or a connection was created, identified by row id: a membership that
/// ends and is created anew does not revive what depended on the old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MembershipBasis(Vec<(OrgId, MembershipId)>);

impl MembershipBasis {
    /// The user's memberships that are active now, in one organization or in all.
    pub(crate) fn current(snapshot: &Snapshot, user: UserId, org: Option<OrgId>, now: Timestamp) -> Self {
        let memberships = snapshot
            .active_memberships(user, now)
            .map(|(membership, group)| (group.org, membership.id));
        let is_wanted = |org_id: OrgId| org.is_none_or(|org| org == org_id);
        let exists = |org_id: OrgId| org_id != Organization::ANONYMOUS && snapshot.organization(org_id).is_some();
        Self(
            memberships
                .filter(|(org_id, _)| is_wanted(*org_id) && exists(*org_id))
                .collect(),
        )
    }

    /// Whether at least one of these memberships is still active in each of their organizations.
    pub(crate) fn holds(&self, snapshot: &Snapshot, user: UserId, now: Timestamp) -> bool {
        let present = Self::current(snapshot, user, None, now).0;
        let holds_in = |org: OrgId| {
            self.0
                .iter()
                .any(|membership| membership.0 == org && present.contains(membership))
        };
        self.0.iter().all(|(org, _)| holds_in(*org))
    }
}
