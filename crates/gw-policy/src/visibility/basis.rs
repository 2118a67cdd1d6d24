//! The visibility level of an address: the grounds of spec/30 section 2.2, in the order of their reasons (R4): own,
//! public, rbac, disclosure.

use super::SingleViewer;
use crate::access;
use gw_types::{Address, Level, LevelReason};

/// The level and reason of the strongest ground. All grounds are considered (R3) in the order of R4, so the first Full
/// ground also gives the reason. A weaker ground never lowers the level (R2).
pub(super) fn resolve(viewer: &SingleViewer<'_>, address: Address) -> (Level, LevelReason) {
    let base = match &viewer.principal {
        Some(principal) => {
            // Grounds 4 to 8 also give access on RPC. One function computes both, so that they agree (I1).
            let status = access::target_status(viewer.snapshot, principal, address, viewer.knobs);
            if status.owned {
                return (Level::Full, LevelReason::OwnAddress);
            }
            if is_public(viewer, address) {
                return (Level::Full, LevelReason::PublicAddress);
            }
            if status.access.is_some() || !status.reserved_in.is_empty() {
                return (Level::Full, LevelReason::RbacGroupMember);
            }
            without_access(status.is_owned_by_org())
        }
        None if is_public(viewer, address) => return (Level::Full, LevelReason::PublicAddress),
        None => without_access(viewer.snapshot.owner(address).is_some()),
    };
    with_disclosure(base, disclosure(viewer, address))
}

/// The level without a Full basis, raised by a grant of disclosure: a grant never lowers it (R2), and is the reason
/// only where it raises it (R4).
fn with_disclosure(base: Level, disclosed: Option<Level>) -> (Level, LevelReason) {
    match disclosed {
        Some(level) if level > base => (level, LevelReason::DisclosureGrant),
        Some(_) | None => (base, LevelReason::NoAccess),
    }
}

/// Grounds 10 and 11: the level without access.
const fn without_access(is_registered: bool) -> Level {
    if is_registered { Level::Redacted } else { Level::Hidden }
}

/// Grounds 1 to 3. The address of shared infrastructure is public: it is shown in a row that is visible for another
/// reason, but it makes no row visible and has no list of its own (HD9). A tag whose pin is broken does not count.
pub(super) fn is_public(viewer: &SingleViewer<'_>, address: Address) -> bool {
    address.is_zero() || is_precompile(address) || viewer.snapshot.shared(address).is_some()
}

/// Whether the address is a precompile (ground 2): 0x01-0x09, and 0x0a-0x11 and 0x100 of later forks (spec/20 K2). On a
/// chain whose fork lacks one of them the address has no code and nobody can own it.
pub fn is_precompile(address: Address) -> bool {
    let [zeros @ .., high, low] = address.into_array();
    zeros == [0; 18] && matches!((high, low), (0, 0x01..=0x11) | (1, 0))
}

/// Ground 9. The snapshot has no rows for disclosure grants yet. Once it has, R7 and R7a (HD8) apply to them, and the
/// block time of the row becomes an argument of this function and of `level`.
const fn disclosure(_viewer: &SingleViewer<'_>, _address: Address) -> Option<Level> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r2_r4_a_grant_of_disclosure_raises_the_level_and_never_lowers_it() {
        let levels = [Level::Hidden, Level::Redacted, Level::Pseudonymous, Level::Full];
        for base in levels {
            assert_eq!(with_disclosure(base, None), (base, LevelReason::NoAccess));
            for disclosed in levels {
                let reason = if disclosed > base {
                    LevelReason::DisclosureGrant
                } else {
                    LevelReason::NoAccess
                };
                assert_eq!(with_disclosure(base, Some(disclosed)), (base.max(disclosed), reason));
            }
        }
    }
}
