//! The grounds of spec/30 section 2.2, in the order of their reasons (R4): own, public, rbac, disclosure.

use super::Person;
use crate::access;
use gw_types::{Address, Level, LevelReason};

/// The strongest ground. Every ground is looked at (R3); reasons are compared in the order of R4, so the first Full
/// one is also the one to name; weaker levels never lower a stronger ground (R2).
pub(super) fn resolve(viewer: &Person<'_>, address: Address) -> (Level, LevelReason) {
    let base = match &viewer.member {
        Some(member) => {
            // Grounds 4 to 8 are what gives reach on RPC: one function, so that both layers agree (I1).
            let standing = access::standing(viewer.snapshot, member, address, viewer.knobs);
            if standing.owned {
                return (Level::Full, LevelReason::OwnAddress);
            }
            if is_public(viewer, address) {
                return (Level::Full, LevelReason::PublicAddress);
            }
            if standing.reach.is_some() || !standing.reserved_in.is_empty() {
                return (Level::Full, LevelReason::RbacGroupMember);
            }
            unreached(standing.is_owned_by_org())
        }
        None if is_public(viewer, address) => return (Level::Full, LevelReason::PublicAddress),
        None => unreached(viewer.snapshot.owner(address).is_some()),
    };
    match disclosed(viewer, address) {
        Some(level) if level > base => (level, LevelReason::DisclosureGrant),
        Some(_) | None => (base, LevelReason::NoAccess),
    }
}

/// Grounds 10 and 11.
const fn unreached(is_registered: bool) -> Level {
    if is_registered { Level::Redacted } else { Level::Hidden }
}

/// Grounds 1 to 3. The address of shared infrastructure is public knowledge: in a row that survives otherwise it is
/// shown, but it makes no row survive and owns no list (HD9). A tag whose code was found changed counts no more.
pub(super) fn is_public(viewer: &Person<'_>, address: Address) -> bool {
    address.is_zero() || is_precompile(address) || viewer.snapshot.shared(address).is_some()
}

/// Ground 2: 0x01-0x09 and the later forks' 0x0a-0x11 and 0x100 (spec/20 K2). On a chain whose fork lacks one of
/// them the address holds nothing and nobody can own it.
pub fn is_precompile(address: Address) -> bool {
    let [zeros @ .., high, low] = address.into_array();
    zeros == [0; 18] && matches!((high, low), (0, 0x01..=0x11) | (1, 0))
}

/// Ground 9. Disclosure grants have no rows in the snapshot yet; when they have, R7 and R7a (HD8) bound them, and the
/// row's block time becomes an argument here and of `level`.
const fn disclosed(_viewer: &Person<'_>, _address: Address) -> Option<Level> {
    None
}
