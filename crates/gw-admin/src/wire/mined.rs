use gw_store::record;
use gw_types::{Address, B256, OrgId, QuarantineId, SuspensionId, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user who lost the right to send: a transaction of theirs did, once mined, what its trace had not shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedSuspension {
    #[schema(value_type = String, format = Uuid)]
    id: SuspensionId,
    #[schema(value_type = String, format = Uuid)]
    user_id: UserId,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    org_id: Option<OrgId>,
    #[schema(value_type = String)]
    tx_hash: B256,
    #[schema(value_type = String)]
    block_hash: B256,
    /// Why the transaction would have been denied.
    reason: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// An address that nobody reads: such a transaction changed its state, made it, or had it speak.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedQuarantine {
    #[schema(value_type = String, format = Uuid)]
    id: QuarantineId,
    #[schema(value_type = String)]
    address: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    org_id: Option<OrgId>,
    #[schema(value_type = String)]
    tx_hash: B256,
    #[schema(value_type = String)]
    block_hash: B256,
    /// Why the transaction would have been denied.
    reason: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<record::Suspension> for MinedSuspension {
    fn from(row: record::Suspension) -> Self {
        let record::Suspension { id, user, org, tx_hash, block_hash, reason, created_at } = row;
        Self { id, user_id: user, org_id: org, tx_hash, block_hash, reason, created_at }
    }
}

impl From<record::Quarantine> for MinedQuarantine {
    fn from(row: record::Quarantine) -> Self {
        let record::Quarantine { id, address, org, tx_hash, block_hash, reason, created_at } = row;
        Self { id, address, org_id: org, tx_hash, block_hash, reason, created_at }
    }
}

/// Everybody who lost the right to send.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedSuspensionListResponse {
    pub(crate) data: Vec<MinedSuspension>,
}

/// Everything that nobody reads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MinedQuarantineListResponse {
    pub(crate) data: Vec<MinedQuarantine>,
}

/// Clears a finding.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ClearMinedRequest {
    /// Why, for the audit log; up to 500 characters.
    pub(crate) reason: String,
}
