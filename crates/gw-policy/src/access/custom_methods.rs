//! Matching of custom methods, which are not in the method registry, against allow lists (spec/20 G3, G4).

use super::orgs::OrgScope;
use crate::{principal::Principal, snapshot::Snapshot};
use gw_evm::{AllowListMatch, CustomMethod};
use gw_types::OrgId;

/// The allow-list entry of any organization in scope that permits the method.
pub(super) fn allow_list_match(
    snapshot: &Snapshot,
    principal: &Principal,
    scope: &OrgScope<'_>,
    custom: &CustomMethod,
) -> Option<AllowListMatch> {
    scope.orgs().find_map(|org| match_in(snapshot, principal, org, custom))
}

/// The allow-list entry of the caller's groups in one organization that permits the method.
pub(super) fn match_in(
    snapshot: &Snapshot,
    principal: &Principal,
    org: OrgId,
    custom: &CustomMethod,
) -> Option<AllowListMatch> {
    let groups = snapshot
        .active_memberships(principal.user, principal.now)
        .map(|(_, group)| group);
    groups.filter(|group| group.org == org).find_map(|group| {
        snapshot
            .access(group.id)
            .filter(|access| access.active(principal.now))?
            .custom_methods
            .lists(custom)
    })
}
