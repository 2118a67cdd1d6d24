use super::{ContractGrant, Group, GroupAccess, Organization};
use gw_store::record;
use gw_types::{Address, ContractId, OrgId, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A registered contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Contract {
    #[schema(value_type = String, format = Uuid)]
    id: ContractId,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    /// Lower-case hex.
    address: String,
    name: String,
    /// JSON ABI text, if one was uploaded.
    abi: Option<String>,
    #[schema(value_type = Object)]
    metadata: record::JsonObject,
    #[schema(value_type = Option<String>, format = DateTime)]
    deployed_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = Uuid)]
    deployed_by_user_id: Option<UserId>,
    allow_visibleto_unlock: bool,
    events_allow_dynamic_payload: bool,
    /// Function rules do not apply to calls that this contract forwards.
    trusted_router: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<record::Contract> for Contract {
    fn from(row: record::Contract) -> Self {
        Self {
            id: row.id,
            org_id: row.org,
            address: lower(row.address),
            name: row.name,
            abi: row.abi,
            metadata: row.metadata,
            deployed_at: row.deployed_at,
            deployed_by_user_id: row.deployer,
            allow_visibleto_unlock: row.allow_visibleto_unlock,
            events_allow_dynamic_payload: row.events_allow_dynamic_payload,
            trusted_router: row.trusted_router,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// The address in lower-case hex, the form of the admin API.
pub(crate) fn lower(address: Address) -> String {
    format!("{address:#x}")
}

/// Registers a contract.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractCreateRequest {
    pub(crate) address: String,
    #[serde(default)]
    pub(crate) name: String,
    /// At most 16 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<record::JsonObject>,
    /// The transaction that created the contract: the proof for callers without the super token (decision 48).
    #[serde(default)]
    pub(crate) deployment_tx_hash: Option<String>,
}

/// Changes a contract; absent members keep their value.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractUpdateRequest {
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// At most 16 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<record::JsonObject>,
}

/// Sets the ABI; `null` clears it.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractAbiUpdateRequest {
    /// The ABI as JSON text.
    pub(crate) abi: Option<String>,
}

/// Switches whether `visibleTo` unmasks the contract's events (R29).
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractVisibleToUnlockRequest {
    pub(crate) allow_visibleto_unlock: bool,
}

/// Attests that dynamic payloads of the contract's events contain no addresses.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractEventsAllowDynamicPayloadRequest {
    pub(crate) events_allow_dynamic_payload: bool,
}

/// Marks a router; its administrators vouch for the calls that it forwards.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ContractTrustedRouterRequest {
    pub(crate) trusted_router: bool,
}

/// The events of the contract's ABI.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractEventsResponse {
    pub(crate) events: Vec<EventSignature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<&'static str>,
}

/// One event of the ABI, in the form that event rules use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventSignature {
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) topic0: String,
    pub(crate) inputs: Vec<EventInput>,
    /// A `self` rule for each address parameter, as a starting point.
    #[schema(value_type = Vec<super::rules::ParamRule>)]
    pub(crate) default_param_rules: Vec<record::ParamRule>,
}

/// One parameter of an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventInput {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) indexed: bool,
}

/// The contract at an address, with its organization and grants.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractLookupFullResponse {
    pub(crate) contract: Contract,
    pub(crate) organization: Organization,
    pub(crate) grants: Vec<ContractLookupGrantInfo>,
}

/// A grant with its group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractLookupGrantInfo {
    pub(crate) grant: ContractGrant,
    pub(crate) group: Group,
    pub(crate) access: GroupAccess,
}
