//! Which organizations a user administers (spec/80 §2), for `me/admin-status` and the authorization of the admin API.

use crate::{principal::rights, snapshot::Snapshot};
use gw_types::{OrgId, Timestamp, UserId};

/// The organizations a user administers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminStatus {
    /// Organizations with full rights, by the group flag or the `admin` claim.
    pub full: Vec<OrgId>,
    /// Organizations with read-only rights, without those in `full`.
    pub readonly: Vec<OrgId>,
}

impl AdminStatus {
    /// Whether the user has full rights in any organization.
    pub fn is_admin(&self) -> bool {
        !self.full.is_empty()
    }

    /// Whether the user has read-only rights in any organization.
    pub fn is_readonly_admin(&self) -> bool {
        !self.readonly.is_empty()
    }
}

/// What gives a user full administrative rights in an organization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminCriteria {
    /// Membership of an administration group, or the claim `admin` of any group (service specification).
    #[default]
    GroupOrClaim,
    /// Membership of an administration group only (`ADMIN_REQUIRE_ORG_ADMIN_GROUP`).
    Group,
}

/// The user's current administrative rights, by the default criteria. Expiry, a ban and the removal of the directory
/// tenant end them at once (spec/80 §2.3).
pub fn status(snapshot: &Snapshot, user: UserId, now: Timestamp) -> AdminStatus {
    status_by(snapshot, user, now, AdminCriteria::default())
}

/// The user's current administrative rights, by these criteria.
pub fn status_by(snapshot: &Snapshot, user: UserId, now: Timestamp, criteria: AdminCriteria) -> AdminStatus {
    let mut status = AdminStatus::default();
    if snapshot.user(user).is_none_or(|user| snapshot.is_excluded(user)) {
        return status;
    }
    for org_rights in rights(snapshot, user, now) {
        let in_full = match criteria {
            AdminCriteria::GroupOrClaim => org_rights.permissions.is_org_admin,
            AdminCriteria::Group => org_rights.permissions.in_admin_group,
        };
        if in_full {
            status.full.push(org_rights.org);
        } else if org_rights.permissions.is_readonly_admin {
            status.readonly.push(org_rights.org);
        }
    }
    status
}
