//! How much of an address a viewer sees (spec/30 section 2.1).

use serde::Serialize;

/// The visibility lattice; variants are ordered by rank, so `max` picks the stronger basis (R2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// `[PRIVATE]` if the other side of the row is visible, else the row is dropped.
    Hidden,
    /// `[PRIVATE]`; known to be some organization's contract.
    Redacted,
    /// A stable alias.
    Pseudonymous,
    /// The address itself.
    Full,
}

/// Why an address has its level; on equal rank the earlier variant wins (R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelReason {
    /// Linked to the viewer.
    OwnAddress,
    /// Zero address, precompile, shared infrastructure.
    PublicAddress,
    /// Contract grant, org admin, deployer, own reservation.
    RbacGroupMember,
    /// An active disclosure grant.
    DisclosureGrant,
    /// No basis for access.
    NoAccess,
}
