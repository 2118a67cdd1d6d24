//! Shared infrastructure, approved code and system toggles (spec/80 sections 9 and 11).

use gw_policy::snapshot::SystemToggle;
use gw_types::{Address, ApprovedCodeId, B256, SharedInfraId, Timestamp};

/// A contract that every organization may call (X6).
#[derive(Clone, Debug, PartialEq)]
pub struct SharedInfra {
    /// Row id.
    pub id: SharedInfraId,
    /// Its address.
    pub address: Address,
    /// Display name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// keccak256 of the code it must have; `None` accepts any code.
    pub codehash: Option<B256>,
    /// For a proxy, keccak256 of the code it must delegate to (HD9).
    pub implementation_codehash: Option<B256>,
    /// keccak256 of different code found there: the tag has no effect until it is pinned again.
    pub broken_codehash: Option<B256>,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Input for tagging a contract as shared, or for replacing its tag.
#[derive(Clone, Debug)]
pub struct SharedInfraInput {
    /// Display name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// The pinned code hash.
    pub codehash: Option<B256>,
    /// The pinned code hash of its implementation.
    pub implementation_codehash: Option<B256>,
}

/// Creation code that a super admin approved, with any constructor arguments (HD2).
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovedCode {
    /// Row id.
    pub id: ApprovedCodeId,
    /// Its keccak256.
    pub hash: B256,
    /// Its length in bytes.
    pub size: u32,
    /// Display name.
    pub name: String,
    /// Who approved it.
    pub approved_by: String,
    /// When it was approved.
    pub created_at: Timestamp,
}

/// The last update of a toggle (X9).
#[derive(Clone, Debug, PartialEq)]
pub struct ToggleUpdate {
    /// The toggle.
    pub toggle: SystemToggle,
    /// Whether it is on.
    pub enabled: bool,
    /// The stated reason.
    pub reason: String,
    /// Who changed it.
    pub changed_by: String,
    /// When it was changed.
    pub changed_at: Timestamp,
    /// When the configuration decides again.
    pub expires_at: Timestamp,
}
