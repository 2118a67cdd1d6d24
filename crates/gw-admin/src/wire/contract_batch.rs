use super::lower;
use gw_store::record;
use gw_types::{ContractId, GroupId, OrgId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Claims a contract that a member deployed without the gateway.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractClaimRequest {
    pub(crate) address: String,
    /// The transaction that created the contract.
    pub(crate) deployment_tx_hash: String,
    #[serde(default)]
    pub(crate) name: String,
}

/// The claimed contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractClaimResponse {
    #[schema(value_type = String, format = Uuid)]
    id: ContractId,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    address: String,
    name: String,
}

impl From<record::Contract> for ContractClaimResponse {
    fn from(row: record::Contract) -> Self {
        Self {
            id: row.id,
            org_id: row.org,
            address: lower(row.address),
            name: row.name,
        }
    }
}

/// The organization's contracts, grouped by whether they are on the chain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractSyncCheckResponse {
    pub(crate) total: usize,
    pub(crate) existing: Vec<ContractSyncStatus>,
    pub(crate) missing: Vec<ContractSyncStatus>,
    pub(crate) errors: Vec<ContractSyncStatus>,
}

/// Whether one contract is on the chain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractSyncStatus {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: ContractId,
    pub(crate) address: String,
    pub(crate) name: String,
    /// `exists`, `missing` or `error`.
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'static str>,
}

/// Deletes registrations of contracts that are not on the chain.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractSyncDeleteRequest {
    /// 1 to 200 ids.
    pub(crate) contract_ids: Vec<String>,
}

/// The result of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractSyncDeleteResponse {
    pub(crate) deleted_count: usize,
    pub(crate) deleted_addresses: Vec<String>,
    pub(crate) skipped: Vec<ContractSyncDeleteSkipped>,
}

/// A contract that was not deleted, and the reason.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractSyncDeleteSkipped {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: ContractId,
    pub(crate) reason: &'static str,
}

/// Moves contracts to one group, an existing or a new one.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractBatchMoveRequest {
    /// 1 to 200 ids.
    pub(crate) contract_ids: Vec<String>,
    #[serde(default)]
    pub(crate) target_group_id: Option<String>,
    #[serde(default)]
    pub(crate) new_group: Option<ContractBatchMoveNewGroup>,
    /// Whether to delete groups that the gateway created for deployers and that hold no grant any more.
    #[serde(default)]
    pub(crate) delete_empty_auto_groups: bool,
}

/// The group to create.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractBatchMoveNewGroup {
    pub(crate) name: String,
    pub(crate) slug: String,
    /// The access of the group; if absent, every grantable method and the claim `deploy`.
    #[serde(default)]
    pub(crate) access: Option<ContractBatchMoveAccess>,
}

/// The access of a new group.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ContractBatchMoveAccess {
    #[serde(default)]
    pub(crate) allowed_methods: Vec<String>,
    #[serde(default)]
    pub(crate) claims: Vec<String>,
}

/// Where the contracts are now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractBatchMoveResponse {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) target_group_id: GroupId,
    pub(crate) moved_count: usize,
    #[schema(value_type = Vec<String>)]
    pub(crate) deleted_group_ids: Vec<GroupId>,
    /// The access of the new group; absent for an existing group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) access: Option<ContractBatchMoveAccess>,
}
