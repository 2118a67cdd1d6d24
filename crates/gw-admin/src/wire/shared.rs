use super::lower;
use gw_store::record;
use gw_types::{B256, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A contract that every organization may call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SharedInfrastructure {
    /// Lower-case hex.
    address: String,
    name: String,
    description: String,
    /// keccak256 of the required code; empty means any code.
    codehash: String,
    /// For a proxy, keccak256 of the required implementation code.
    implementation_codehash: String,
    /// Whether the address was found with other code. If so, the contract cannot be called as shared infrastructure
    /// until it is pinned again.
    codehash_mismatch: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<record::SharedInfra> for SharedInfrastructure {
    fn from(row: record::SharedInfra) -> Self {
        let text = |hash: Option<B256>| hash.map(|hash| format!("{hash:#x}")).unwrap_or_default();
        Self {
            address: lower(row.address),
            name: row.name,
            description: row.description,
            codehash: text(row.codehash),
            implementation_codehash: text(row.implementation_codehash),
            codehash_mismatch: row.broken_codehash.is_some(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Adds a contract to the shared infrastructure, or replaces its properties.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct SharedInfraInput {
    #[serde(default)]
    pub(crate) address: Option<String>,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// The pin, 32 bytes in hex; empty or absent means no pin.
    #[serde(default)]
    pub(crate) codehash: Option<String>,
    /// The pin of a proxy's implementation, in the same form.
    #[serde(default)]
    pub(crate) implementation_codehash: Option<String>,
}
