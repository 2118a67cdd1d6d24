//! Who administers what (spec/80 §2): one answer for `me/admin-status` and for the gate of the admin API.

use super::permissions::rights;
use crate::snapshot::Snapshot;
use gw_types::{OrgId, Timestamp, UserId};

/// The organizations a user administers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminStatus {
    /// In full: by the group flag or the `admin` claim.
    pub full: Vec<OrgId>,
    /// Read-only; an organization administered in full is not repeated here.
    pub readonly: Vec<OrgId>,
}

impl AdminStatus {
    /// Whether the user administers anything in full.
    pub fn is_admin(&self) -> bool {
        !self.full.is_empty()
    }

    /// Whether the user reads the administration of anything.
    pub fn is_readonly_admin(&self) -> bool {
        !self.readonly.is_empty()
    }
}

/// What makes somebody an administrator of an organization in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Qualifies {
    /// An administration group, or the claim `admin` of any group by the service specification.
    #[default]
    GroupOrClaim,
    /// An administration group only (`ADMIN_REQUIRE_ORG_ADMIN_GROUP`).
    Group,
}

/// What the user administers now: expiry, ban and the end of a directory tenant end it at once (spec/80 §2.3).
pub fn status(snapshot: &Snapshot, user: UserId, now: Timestamp) -> AdminStatus {
    status_by(snapshot, user, now, Qualifies::default())
}

/// The same, by who counts as an administrator.
pub fn status_by(snapshot: &Snapshot, user: UserId, now: Timestamp, qualifies: Qualifies) -> AdminStatus {
    let mut status = AdminStatus::default();
    if snapshot.user(user).is_none_or(|user| snapshot.shuts_out(user)) {
        return status;
    }
    for known in rights(snapshot, user, now) {
        let in_full = match qualifies {
            Qualifies::GroupOrClaim => known.permissions.is_org_admin,
            Qualifies::Group => known.permissions.in_admin_group,
        };
        if in_full {
            status.full.push(known.org);
        } else if known.permissions.is_readonly_admin {
            status.readonly.push(known.org);
        }
    }
    status
}
