//! The memberships that a filter or a connection depends on (HD35).

use gw_policy::{Snapshot, snapshot::Organization};
use gw_types::{MembershipId, OrgId, Timestamp, UserId};

/// Memberships that counted when a filter or a connection was created. Row ids identify them: a membership that is ended and
/// created anew does not revive what depended on the old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MembershipBasis(Vec<(OrgId, MembershipId)>);

impl MembershipBasis {
    /// The user's memberships that count now, in one organization or in all.
    pub(crate) fn of(snapshot: &Snapshot, user: UserId, org: Option<OrgId>, now: Timestamp) -> Self {
        let held = snapshot
            .active_memberships(user, now)
            .map(|(held, group)| (group.org, held.id));
        let is_wanted = |of: OrgId| org.is_none_or(|org| org == of);
        let known = |of: OrgId| of != Organization::ANONYMOUS && snapshot.organization(of).is_some();
        Self(held.filter(|(of, _)| is_wanted(*of) && known(*of)).collect())
    }

    /// Whether one of the memberships still counts in each organization.
    pub(crate) fn holds(&self, snapshot: &Snapshot, user: UserId, now: Timestamp) -> bool {
        let present = Self::of(snapshot, user, None, now).0;
        let holds_in = |org: OrgId| self.0.iter().any(|held| held.0 == org && present.contains(held));
        self.0.iter().all(|(org, _)| holds_in(*org))
    }
}
