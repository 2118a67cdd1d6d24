use gw_store::record;
use gw_types::{B256, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Creation code that sends may run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovedCode {
    /// keccak256 of the creation code without constructor arguments.
    #[schema(value_type = String)]
    hash: B256,
    /// Its length in bytes.
    size: u32,
    name: String,
    /// The DID of who approved it, or `super_admin`.
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

/// All approved creation code.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovedCodeListResponse {
    pub(crate) data: Vec<ApprovedCode>,
}

/// Creation code to approve.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ApprovedCodeInput {
    /// For people; a contract's name and version, say.
    pub(crate) name: String,
    /// What compilers call `bytecode`, in hex, without constructor arguments.
    pub(crate) creation_code: String,
}
