//! Whether a method list lets a method through that is beside the registry (spec/20 G3, G4).

use super::{orgs::Scope, target::Member};
use crate::snapshot::Snapshot;
use gw_evm::{Extra, Listed};
use gw_types::OrgId;

/// By which entry any of the organizations lists the method.
pub(super) fn listed(snapshot: &Snapshot, member: &Member, scope: &Scope<'_>, extra: &Extra) -> Option<Listed> {
    scope.orgs().find_map(|org| listed_in(snapshot, member, org, extra))
}

/// By which entry the caller's groups in one organization list the method.
pub(super) fn listed_in(snapshot: &Snapshot, member: &Member, org: OrgId, extra: &Extra) -> Option<Listed> {
    let groups = snapshot
        .active_memberships(member.user, member.now)
        .map(|(_, group)| group);
    groups.filter(|group| group.org == org).find_map(|group| {
        snapshot
            .access(group.id)
            .filter(|access| access.active(member.now))?
            .extras
            .lists(extra)
    })
}
