//! The addresses that a grant of disclosure discloses (spec/50 rule 28).

use super::{Principal, disclosure::covers};
use crate::{
    Snapshot,
    snapshot::{DisclosureGrant, LinkKind},
};
use gw_types::{Address, Timestamp};
use std::collections::BTreeSet;

/// The addresses that the grant discloses at `now`, sorted: those that its owner proved and still owns, as far as the
/// grant covers them (HD8). The dates, counterparties and classes of its scope limit their rows, not the addresses.
pub fn disclosed_addresses(snapshot: &Snapshot, grant: &DisclosureGrant, now: Timestamp) -> Vec<Address> {
    let owner = Principal::new(snapshot, grant.owner, now);
    let links = snapshot.links_of(grant.owner).iter();
    let proved = links.filter(|link| link.kind == LinkKind::User && covers(grant, link));
    let owned = proved
        .map(|link| link.address)
        .filter(|address| owner.owns(snapshot, *address));
    owned.collect::<BTreeSet<_>>().into_iter().collect()
}
