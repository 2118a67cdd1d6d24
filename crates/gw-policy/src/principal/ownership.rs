//! Ownership of addresses: the one predicate of HD13, used for senders, `self`, participation and visibility.

use super::disclosure::disclosed_level;
use crate::{Snapshot, snapshot::LinkKind};
use gw_types::{Address, Level, Timestamp, UserId};

/// Whether `user` knows the owner of the wallet `address` (HD7): as the owner, or because the owner disclosed the
/// address to the user.
pub(super) fn knows(snapshot: &Snapshot, user: UserId, address: Address, now: Timestamp) -> bool {
    let is_disclosed = || {
        let is_member = |org| snapshot.is_member(user, org, now);
        let level = snapshot
            .user(user)
            .filter(|user| !snapshot.is_excluded(user))
            .and_then(|user| disclosed_level(snapshot, user, is_member, address, now));
        level == Some(Level::Full)
    };
    owns(snapshot, user, address) || is_disclosed()
}

/// Whether `user` owns `address` (R6).
///
/// A proved (`user`) link always counts. An inferred (`system`) link counts only while no other user has proved the
/// address: forwarding another user's signed transaction must not make the forwarder its owner. A link that was proved
/// by a contract's own code ends with the contract's registration (HD27).
pub fn owns(snapshot: &Snapshot, user: UserId, address: Address) -> bool {
    let links = snapshot.links_at(address);
    if links.iter().any(|link| link.contract_wallet) && snapshot.retired(address).is_some() {
        return false;
    }
    let is_proved = |by_user: bool| {
        links
            .iter()
            .any(|link| link.kind == LinkKind::User && (link.user == user) == by_user)
    };
    let is_inferred = links
        .iter()
        .any(|link| link.kind == LinkKind::System && link.user == user);
    is_proved(true) || (is_inferred && !is_proved(false))
}
