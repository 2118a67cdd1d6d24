//! The visibility level of an address: the bases of spec/30 section 2.2, in the order of their reasons (R4): own,
//! public, rbac, disclosure.

use super::SingleViewer;
use crate::principal::{self, target_status};
use gw_types::{Address, Level, LevelReason};

/// The level and reason of the strongest basis. All bases are considered (R3) in the order of R4, so the first Full
/// basis also gives the reason. A weaker basis never lowers the level (R2).
pub(super) fn resolve(viewer: &SingleViewer<'_>, address: Address) -> (Level, LevelReason) {
    let base = match &viewer.principal {
        Some(principal) => {
            // Bases 4 to 8 also give access on RPC. One function computes both, so that they agree (I1).
            let status = target_status(viewer.snapshot, principal, address, viewer.policy_settings);
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
    let disclosure = viewer.disclosure(address, None);
    let (level, reason) = with_disclosure(base, disclosure.map(|(level, _)| level));
    // A lower level alone shows nothing; a row that survives by it collects the grant.
    if let (Level::Full, LevelReason::DisclosureGrant, Some((_, grant))) = (level, reason, disclosure) {
        viewer.needs_grant(grant, address);
    }
    (level, reason)
}

/// Whether the address is Full on a basis other than the public one, so that it makes the rows visible in which it
/// occurs (HD9). The reason does not tell: an address may be public and a contract that the viewer has access to (R4).
pub(super) fn is_full_by_right(viewer: &SingleViewer<'_>, address: Address) -> bool {
    match resolve(viewer, address) {
        (Level::Full, LevelReason::PublicAddress) => {
            viewer.reaches(address)
                || viewer.disclosure(address, None).is_some_and(|(level, grant)| {
                    let is_full = level == Level::Full;
                    if is_full {
                        viewer.needs_grant(grant, address);
                    }
                    is_full
                })
        }
        (level, _) => level == Level::Full,
    }
}

/// The level without a Full basis, raised by a grant of disclosure: a grant never lowers it (R2), and is the reason
/// only where it raises it (R4).
fn with_disclosure(base: Level, disclosed: Option<Level>) -> (Level, LevelReason) {
    match disclosed {
        Some(level) if level > base => (level, LevelReason::DisclosureGrant),
        Some(_) | None => (base, LevelReason::NoAccess),
    }
}

/// Bases 10 and 11: the level without access.
pub(super) const fn without_access(is_registered: bool) -> Level {
    if is_registered { Level::Redacted } else { Level::Hidden }
}

/// Bases 1 to 3. The address of shared infrastructure is public: it is shown in a row that is visible for another
/// reason, but it makes no row visible and has no list of its own (HD9). A tag whose pin is broken does not count.
pub(super) fn is_public(viewer: &SingleViewer<'_>, address: Address) -> bool {
    principal::is_public(address) || viewer.snapshot.shared(address).is_some()
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
