//! Whose address it is: the one predicate of HD13, used for senders, `self`, participation and visibility.

use crate::{Snapshot, snapshot::LinkKind};
use gw_types::{Address, UserId};

/// Whether `user` knows what the wallet `address` is: its owner, or who it was disclosed to in full (HD7).
pub(crate) fn knows(snapshot: &Snapshot, user: UserId, address: Address) -> bool {
    owns(snapshot, user, address)
}

/// Whether `user` owns `address` (R6).
///
/// A proved (`user`) link always counts. An inferred (`system`) link counts only while nobody else has proved the
/// address: forwarding somebody's signed transaction must not make the forwarder its owner. A link by the word of a
/// contract's own code ends with the contract's registration (HD27).
pub fn owns(snapshot: &Snapshot, user: UserId, address: Address) -> bool {
    let links = snapshot.links_at(address);
    if links.iter().any(|link| link.contract_wallet) && snapshot.retired(address).is_some() {
        return false;
    }
    let proved = |by_viewer: bool| {
        links
            .iter()
            .any(|l| l.kind == LinkKind::User && (l.user == user) == by_viewer)
    };
    let inferred = links.iter().any(|l| l.kind == LinkKind::System && l.user == user);
    proved(true) || (inferred && !proved(false))
}
