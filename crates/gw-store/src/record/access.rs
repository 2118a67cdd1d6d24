//! Shared infrastructure and system toggles (spec/80 sections 9 and 11).

use gw_policy::snapshot::SystemToggle;
use gw_types::{Address, ApprovedCodeId, B256, SharedInfraId, Timestamp};

/// A contract that every organization may call (X6).
#[derive(Clone, Debug, PartialEq)]
pub struct SharedInfra {
    /// Row id.
    pub id: SharedInfraId,
    /// Its address.
    pub address: Address,
    /// For people.
    pub name: String,
    /// For people.
    pub description: String,
    /// keccak256 of the code it must hold; without it any code will do.
    pub codehash: Option<B256>,
    /// For a proxy, keccak256 of the code it must delegate to (HD9).
    pub implementation_codehash: Option<B256>,
    /// Other code that was found there: the tag counts for nothing until pinned anew.
    pub broken_codehash: Option<B256>,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What tags a contract as shared, or replaces what is said of one.
#[derive(Clone, Debug)]
pub struct SharedInfraInput {
    /// For people.
    pub name: String,
    /// For people.
    pub description: String,
    /// The pin of its code.
    pub codehash: Option<B256>,
    /// The pin of its implementation's code.
    pub implementation_codehash: Option<B256>,
}

/// Creation code that a super admin approved, whatever constructor arguments follow it (HD2).
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovedCode {
    /// Row id.
    pub id: ApprovedCodeId,
    /// Its keccak256.
    pub hash: B256,
    /// Its length in bytes.
    pub size: u32,
    /// For people.
    pub name: String,
    /// By whom.
    pub approved_by: String,
    /// When.
    pub created_at: Timestamp,
}

/// How a toggle was last turned (X9).
#[derive(Clone, Debug, PartialEq)]
pub struct ToggleChange {
    /// Which.
    pub toggle: SystemToggle,
    /// On or off.
    pub enabled: bool,
    /// Why.
    pub reason: String,
    /// By whom.
    pub changed_by: String,
    /// When.
    pub changed_at: Timestamp,
    /// When the configuration decides again.
    pub expires_at: Timestamp,
}
