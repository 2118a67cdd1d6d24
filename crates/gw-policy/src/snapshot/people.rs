//! Users, organizations and groups of a snapshot, and which memberships give rights (A8, HD32).

use super::{Group, GroupAccess, Membership, MembershipState, OrgUserRecord, Organization, Snapshot, User};
use gw_types::{ExternalId, GroupId, OrgId, TenantId, Timestamp, UserId};
use std::sync::Arc;

impl Snapshot {
    /// The user with this id.
    pub fn user(&self, id: UserId) -> Option<&Arc<User>> {
        self.users.get(&id)
    }

    /// The user with this external id.
    pub fn user_by_external(&self, external: &ExternalId) -> Option<&Arc<User>> {
        self.users_by_external.get(external)
    }

    /// Whether a user has no access at all: the user is banned (A10), or the directory tenant that vouched for the user
    /// is no longer allowed (TK-8).
    pub fn is_excluded(&self, user: &User) -> bool {
        user.banned || user.tenant.is_some_and(|tenant| !self.allows_tenant(tenant))
    }

    /// Whether users of a directory tenant have access (DS-7).
    pub fn allows_tenant(&self, tenant: TenantId) -> bool {
        self.tenants_by_name.get(&tenant).is_some_and(|tenant| !tenant.disabled)
    }

    /// The organization with this id.
    pub fn organization(&self, id: OrgId) -> Option<&Arc<Organization>> {
        self.orgs.get(&id)
    }

    /// All organizations, in no particular order.
    pub fn organizations(&self) -> impl Iterator<Item = &Arc<Organization>> {
        self.orgs.values()
    }

    /// The group with this id.
    pub fn group(&self, id: GroupId) -> Option<&Arc<Group>> {
        self.groups.get(&id)
    }

    /// The access of a group.
    pub fn access(&self, group: GroupId) -> Option<&Arc<GroupAccess>> {
        self.access.get(&group)
    }

    /// The access of all groups, in no particular order.
    pub fn accesses(&self) -> impl Iterator<Item = &Arc<GroupAccess>> {
        self.access.values()
    }

    /// All memberships of a user, including ended ones and invitations. [`Snapshot::active_memberships`] gives those
    /// that grant rights.
    pub fn memberships(&self, user: UserId) -> &[Membership] {
        self.memberships.get(user)
    }

    /// The memberships that give rights, with their groups (A8, HD32): not ended, accepted or provisional, and in an
    /// organization that did not ban the person. Provisional memberships count only while the person has accepted no
    /// other organization, and only those of the organization that created one first.
    pub fn active_memberships(&self, user: UserId, now: Timestamp) -> impl Iterator<Item = (&Membership, &Arc<Group>)> {
        let (memberships, first) = (self.memberships(user), self.first_provisional(user, now));
        memberships.iter().filter_map(move |membership| {
            let group = self.groups.get(&membership.group).filter(|_| membership.active(now))?;
            let is_banned = self.is_banned_in(user, group.org);
            let is_outranked = membership.state == MembershipState::Provisional
                && (self.has_accepted_another(memberships, group.org, now)
                    || (self.is_non_system(group.org) && first != Some(group.org)));
            (!is_banned && !is_outranked).then_some((membership, group))
        })
    }

    /// The users with a membership in a group of the organization, including ended ones and invitations, in no
    /// particular order. A user may occur several times.
    pub fn users_of(&self, org: OrgId) -> impl Iterator<Item = UserId> {
        let groups = self.inverse.groups_by_org.get(&org);
        let memberships = groups.flat_map(|group| self.inverse.members_by_group.get(group));
        memberships.filter_map(|id| Some(self.memberships.find(*id)?.user))
    }

    /// Whether the user has an active membership in the organization.
    pub fn is_member(&self, user: UserId, org: OrgId, now: Timestamp) -> bool {
        self.active_memberships(user, now).any(|(_, group)| group.org == org)
    }

    /// The organization whose provisional memberships may count (HD32): the one that created one first. A later
    /// organization therefore neither takes a person over nor blocks the person's rights in the first one. An
    /// organization that bans the person, or whose membership ends, is no longer the first. System organizations are
    /// not considered.
    fn first_provisional(&self, user: UserId, now: Timestamp) -> Option<OrgId> {
        self.provisional(user, now).min().map(|(_, org)| org)
    }

    /// The non-system organizations that wait for the user's acceptance, each with the time since when.
    fn provisional(&self, user: UserId, now: Timestamp) -> impl Iterator<Item = (Timestamp, OrgId)> {
        self.memberships(user).iter().filter_map(move |membership| {
            let is_pending = membership.state == MembershipState::Provisional && !membership.has_ended(now);
            let group = self.groups.get(&membership.group).filter(|_| is_pending)?;
            let counts = self.is_non_system(group.org) && !self.is_banned_in(user, group.org);
            counts.then_some((membership.since, group.org))
        })
    }

    /// Whether several organizations wait for the acceptance of a user who has accepted none (HD32). A call that names
    /// none of them then belongs to no organization: it is not sent in the name of one, nor recorded for one.
    pub fn is_undecided(&self, user: UserId, now: Timestamp) -> bool {
        let Some((_, first)) = self.provisional(user, now).next() else {
            return false;
        };
        let org_of = |membership: &Membership| self.groups.get(&membership.group).map(|group| group.org);
        let mut accepted = self
            .memberships(user)
            .iter()
            .filter(|membership| membership.is_accepted(now));
        !accepted.any(|membership| org_of(membership).is_some_and(|org| self.is_non_system(org)))
            && self.provisional(user, now).any(|(_, org)| org != first)
    }

    /// Whether the organization exists and is not a system organization.
    fn is_non_system(&self, org: OrgId) -> bool {
        self.orgs.get(&org).is_some_and(|org| !org.is_system)
    }

    /// Whether one of the memberships is accepted in an organization other than `org`; system organizations do not
    /// count.
    fn has_accepted_another(&self, memberships: &[Membership], org: OrgId, now: Timestamp) -> bool {
        let org_of = |membership: &Membership| self.groups.get(&membership.group).map(|group| group.org);
        let accepted = memberships.iter().filter(|membership| membership.is_accepted(now));
        accepted
            .filter_map(org_of)
            .any(|other| other != org && self.is_non_system(other))
    }

    /// Whether the user accepted a membership of the organization that has not ended. It gives the organization's
    /// administrators rights over the user, even if the organization banned the user.
    pub fn has_accepted(&self, user: UserId, org: OrgId, now: Timestamp) -> bool {
        let mut accepted = self
            .memberships(user)
            .iter()
            .filter(|membership| membership.is_accepted(now));
        accepted.any(|membership| self.groups.get(&membership.group).is_some_and(|group| group.org == org))
    }

    fn org_users(&self, user: UserId) -> &[OrgUserRecord] {
        self.users
            .get(&user)
            .map_or(&[], |user| self.org_users.get(&user.external_id))
    }

    /// Whether the organization banned the user. Bans by the platform are in the user's row.
    pub fn is_banned_in(&self, user: UserId, org: OrgId) -> bool {
        self.org_users(user)
            .iter()
            .any(|record| record.org == org && record.banned)
    }

    /// Whether KYC of the user is completed, by the platform or by this organization.
    pub fn is_verified_in(&self, user: UserId, org: OrgId) -> bool {
        self.users.get(&user).is_some_and(|user| user.kyc)
            || self
                .org_users(user)
                .iter()
                .any(|record| record.org == org && record.kyc)
    }
}
