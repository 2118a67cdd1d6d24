//! Grants of disclosure as a basis of visibility: basis 9 of spec/30 section 2.2 (R7, HD8; spec/50 rules 27 and 28).

use super::Principal;
use crate::{
    Snapshot,
    snapshot::{AddressLink, DisclosureGrant, LinkKind, User},
};
use gw_types::{Address, DisclosureGrantId, Level, OrgId, Timestamp};
use std::cmp::Reverse;

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
/// A grant with dates, counterparties or classes of data covers rows only. Without a row it cannot be evaluated, so it
/// does not count (R1, HD8). Views of single rows with such grants need the block time and the sides of the row as
/// further arguments.
pub(crate) fn disclosure(
    snapshot: &Snapshot,
    grantee: &User,
    is_member: impl Fn(OrgId) -> bool,
    address: Address,
    now: Timestamp,
) -> Option<(Level, DisclosureGrantId)> {
    let strength = |(level, grant): &(Level, DisclosureGrantId)| (*level, Reverse(*grant));
    let is_active = |grant: &DisclosureGrant| {
        grant.grantee == grantee.external_id
            && now < grant.expires_at
            && grant.scope.is_unrestricted()
            && is_member(grant.org)
    };
    // Spec/50 rule 28, HD8: only links that the owner proved count, and only while the address is the owner's.
    let is_proved = |link: &&AddressLink| link.kind == LinkKind::User;
    let covering = |link: &AddressLink| {
        let grants = snapshot.disclosures_by(link.user).iter();
        let levels = grants
            .filter(|grant| is_active(grant) && covers(grant, link))
            .map(|grant| (grant.scope.level, grant.id));
        levels
            .max_by_key(strength)
            .filter(|_| Principal::new(snapshot, link.user, now).owns(snapshot, address))
    };
    snapshot
        .links_at(address)
        .iter()
        .filter(is_proved)
        .filter_map(covering)
        .max_by_key(strength)
}

/// HD8: whether the grant covers a link: it existed at the approval, or the owner disclosed future addresses, too.
pub(super) fn covers(grant: &DisclosureGrant, link: &AddressLink) -> bool {
    grant.include_future_addresses || link.verified_at <= grant.granted_at
}
