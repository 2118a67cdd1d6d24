use gw_store::record;
use gw_types::{B256, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Approved creation code, which sends may run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovedCode {
    /// keccak256 of the creation code without constructor arguments.
    #[schema(value_type = String)]
    hash: B256,
    /// Length of the creation code in bytes.
    size: u32,
    name: String,
    /// The DID of the administrator who approved it, or `super_admin`.
    approved_by: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<record::ApprovedCode> for ApprovedCode {
    fn from(row: record::ApprovedCode) -> Self {
        let record::ApprovedCode {
            id: _,
            hash,
            size,
            name,
            approved_by,
            created_at,
        } = row;
        Self {
            hash,
            size,
            name,
            approved_by,
            created_at,
        }
    }
}

/// Creation code to approve.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ApprovedCodeInput {
    /// A display name, for example a contract's name and version.
    pub(crate) name: String,
    /// The `bytecode` of a compiler's output in hex, without constructor arguments.
    pub(crate) creation_code: String,
}
