//! The permissions of a user in an organization: the union over active memberships (spec/20 A8, G6, C1).

use crate::snapshot::{Group, Organization, Snapshot};
use gw_evm::{Method, MethodSet};
use gw_types::{Claim, Claims, GroupId, OrgId, Secret, Timestamp, UserId};

/// The union of a user's active memberships in one organization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Methods that any of the groups lists. Organization administrators get no others (G6).
    pub methods: MethodSet,
    /// Claims of the groups; every claim for an organization administrator.
    pub claims: Claims,
    /// Whether the user administers the organization, by the group flag or by the `admin` claim (D2).
    pub is_org_admin: bool,
    /// Whether the user administers the organization by the group flag (K11 distinguishes the two).
    pub in_admin_group: bool,
    /// Whether the user has read-only access to the organization's administration.
    pub is_readonly_admin: bool,
}

impl Permissions {
    /// Whether the method is granted. A grant of `eth_sendTransaction` also permits `eth_sendRawTransaction` (§9).
    pub fn allows(&self, method: Method) -> bool {
        self.methods.has(method) || (method == Method::SendRawTransaction && self.methods.has(Method::SendTransaction))
    }
}

/// A user's rights in one organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgRights {
    /// The organization.
    pub org: OrgId,
    /// The rights there.
    pub permissions: Permissions,
}

/// The user's rights in every organization with an active membership, by organization id, the default one last.
///
/// A membership counts only while its group and organization exist. The anonymous organization never counts.
pub fn rights(snapshot: &Snapshot, user: UserId, now: Timestamp) -> Vec<OrgRights> {
    rights_by(snapshot, user, now, |_| true)
}

/// Like [`rights`], from those groups for which `counts` returns `true`.
pub(super) fn rights_by(
    snapshot: &Snapshot,
    user: UserId,
    now: Timestamp,
    counts: impl Fn(&Group) -> bool,
) -> Vec<OrgRights> {
    let mut rights: Vec<OrgRights> = Vec::new();
    for (_, group) in snapshot.active_memberships(user, now) {
        if group.org == Organization::ANONYMOUS || snapshot.organization(group.org).is_none() || !counts(group) {
            continue;
        }
        let access = snapshot.access(group.id).filter(|access| access.active(now));
        let claims = access.map_or(Claims::NONE, |access| access.claims);
        let is_org_admin = group.is_org_admin || claims.has(Claim::Admin);
        let permissions = Permissions {
            methods: access.map_or(MethodSet::EMPTY, |access| access.methods),
            claims: if is_org_admin { Claims::ALL } else { claims },
            is_org_admin,
            in_admin_group: group.is_org_admin,
            is_readonly_admin: group.is_org_readonly_admin,
        };
        match rights.iter_mut().find(|org_rights| org_rights.org == group.org) {
            Some(org_rights) => org_rights.permissions = org_rights.permissions.union(permissions),
            None => rights.push(OrgRights {
                org: group.org,
                permissions,
            }),
        }
    }
    rights.sort_unstable_by_key(|org_rights| (org_rights.org == Organization::DEFAULT, org_rights.org));
    rights
}

impl Permissions {
    fn union(self, other: Self) -> Self {
        Self {
            methods: self.methods.union(other.methods),
            claims: self.claims.union(other.claims),
            is_org_admin: self.is_org_admin || other.is_org_admin,
            in_admin_group: self.in_admin_group || other.in_admin_group,
            is_readonly_admin: self.is_readonly_admin || other.is_readonly_admin,
        }
    }
}

/// The user's permissions in one organization; none without an active membership.
pub fn permissions(snapshot: &Snapshot, user: UserId, org: OrgId, now: Timestamp) -> Permissions {
    rights(snapshot, user, now)
        .into_iter()
        .find(|org_rights| org_rights.org == org)
        .map_or_else(Permissions::default, |org_rights| org_rights.permissions)
}

/// The upstream API key for calls of this user in this organization, encrypted as it is stored, and the group that it
/// belongs to: the group with the lowest id among those whose access is active and that have a key.
pub fn upstream_key(snapshot: &Snapshot, user: UserId, org: OrgId, now: Timestamp) -> Option<(GroupId, &Secret)> {
    let key = |group: &Group| {
        let access = snapshot.access(group.id).filter(|access| access.active(now))?;
        access.upstream_key.as_ref().map(|key| (group.id, key))
    };
    let groups = snapshot
        .active_memberships(user, now)
        .map(|(_, group)| group)
        .filter(|group| group.org == org);
    groups.filter_map(|group| key(group)).min_by_key(|(group, _)| *group)
}

/// The organizations the user is an active member of, by id, the default one last.
pub fn active_orgs(snapshot: &Snapshot, user: UserId, now: Timestamp) -> Vec<OrgId> {
    rights(snapshot, user, now)
        .into_iter()
        .map(|org_rights| org_rights.org)
        .collect()
}
