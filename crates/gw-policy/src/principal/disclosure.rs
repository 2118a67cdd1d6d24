//! Grants of disclosure as a basis of visibility: basis 9 of spec/30 section 2.2 (R7, HD8; spec/50 rules 23 to 28).

use super::Principal;
use crate::{
    Snapshot,
    disclosure::coverage::{self, ClassCheck},
    snapshot::{AddressLink, DisclosureGrant, LinkKind, User},
};
use gw_types::{Address, DisclosureGrantId, Level, OrgId, Timestamp};
use std::{cmp::Reverse, sync::Arc};

/// The facts about a row of the chain by which a grant covers it or not (spec/50 rule 23).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisclosedRow<'a> {
    /// The block time; `None` if it is unknown.
    pub(crate) time: Option<Timestamp>,
    /// Sender and receiver.
    pub(crate) sides: &'a [Address],
    /// `DISCLOSURE_STRICT_SCOPE`.
    pub(crate) check: ClassCheck,
}

/// The highest level that grants of disclosure give `grantee` for the address ([`disclosure`]).
pub(crate) fn disclosed_level(
    snapshot: &Snapshot,
    grantee: &User,
    is_member: impl Fn(OrgId) -> bool,
    address: Address,
    now: Timestamp,
) -> Option<Level> {
    disclosure(snapshot, grantee, is_member, address, now).map(|(level, _)| level)
}

/// The highest level that grants of disclosure give `grantee` for the address, outside of a row, and the grant with the
/// lowest id that gives it; `None` without a grant. `is_member` tells in which organizations the grantee's rights count
/// (R7, HD39).
///
/// A grant with dates, counterparties or classes of data covers rows only ([`row_disclosure`]). Without a row it cannot
/// be evaluated, so it does not count (R1, HD8).
pub(crate) fn disclosure(
    snapshot: &Snapshot,
    grantee: &User,
    is_member: impl Fn(OrgId) -> bool,
    address: Address,
    now: Timestamp,
) -> Option<(Level, DisclosureGrantId)> {
    let grants = grants_on(snapshot, grantee, is_member, address, now);
    grants
        .into_iter()
        .filter(|grant| grant.scope.is_unrestricted())
        .map(|grant| (grant.scope.level, grant.id))
        .max_by_key(|(level, grant)| (*level, Reverse(*grant)))
}

/// The highest level that grants of disclosure give `grantee` for the address in a row, and the grant with the lowest
/// id that gives it (spec/50 rule 27).
pub(crate) fn row_disclosure(
    snapshot: &Snapshot,
    grantee: &User,
    is_member: impl Fn(OrgId) -> bool,
    address: Address,
    now: Timestamp,
    row: DisclosedRow<'_>,
) -> Option<(Level, DisclosureGrantId)> {
    let grants = grants_on(snapshot, grantee, is_member, address, now);
    let grants = grants.into_iter().map(Arc::as_ref);
    coverage::strongest_for_row(grants, |_| true, row.check, now, row.time, row.sides)
        .map(|grant| (grant.scope.level, grant.id))
}

/// The grants in force by which `grantee` sees rows of the address; each may cover only some rows.
pub(crate) fn grants_on<'s>(
    snapshot: &'s Snapshot,
    grantee: &User,
    is_member: impl Fn(OrgId) -> bool,
    address: Address,
    now: Timestamp,
) -> Vec<&'s Arc<DisclosureGrant>> {
    let mut grants = Vec::new();
    if snapshot.disclosures_to(&grantee.external_id).is_empty() {
        return grants;
    }
    let is_active =
        |grant: &DisclosureGrant| grant.grantee == grantee.external_id && grant.is_active(now) && is_member(grant.org);
    // Spec/50 rule 28, HD8: only links that the owner proved count, and only while the address is the owner's.
    let is_proved = |link: &&AddressLink| link.kind == LinkKind::User;
    for link in snapshot.links_at(address).iter().filter(is_proved) {
        let of_owner = snapshot.disclosures_by(link.user).iter();
        let mut covering = of_owner
            .filter(|grant| is_active(grant) && covers(grant, link))
            .peekable();
        if covering.peek().is_some() && Principal::new(snapshot, link.user, now).owns(snapshot, address) {
            grants.extend(covering);
        }
    }
    grants
}

/// HD8: whether the grant covers a link: it existed at the approval, or the owner disclosed future addresses, too.
pub(super) fn covers(grant: &DisclosureGrant, link: &AddressLink) -> bool {
    grant.include_future_addresses || link.verified_at <= grant.granted_at
}
