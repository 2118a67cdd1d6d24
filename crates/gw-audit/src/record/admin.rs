//! The audit-log entry of a mutation (spec/70 section 2).

use crate::code::codes;
use crate::ids::StoreId;
use gw_types::{OrgId, UserId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;

/// The `actor_external_id` of the platform administrator, who holds the admin token.
pub const SUPER_ADMIN: &str = "__super_admin__";

/// The `actor_external_id` of retention sweeps.
pub const SYSTEM_RETENTION: &str = "system:retention";

/// The `actor_external_id` of the sweeper of requests and grants of disclosure.
pub const SYSTEM_DISCLOSURE: &str = "system:disclosure";

codes! {
    /// The kind of mutation.
    Action {
        /// A resource was created.
        Create = "create",
        /// A resource was changed.
        Update = "update",
        /// A resource was removed.
        Delete = "delete",
        /// A right or a role was granted.
        Assign = "assign",
        /// A right or a role was revoked.
        Revoke = "revoke",
        /// An elevated read.
        Access = "access",
        /// Entries of the admin stream were pruned.
        PruneAdmin = "audit.admin.prune",
        /// Entries of the access stream were pruned.
        PruneAccess = "audit.access.prune",
        /// Entries of the compliance stream were pruned.
        PruneCompliance = "audit.compliance.prune",
        /// Entries of the disclosure stream were pruned.
        PruneDisclosure = "audit.disclosure.prune",
        /// Entries of the security stream were pruned.
        PruneSecurity = "audit.security.prune",
    }
}

codes! {
    /// The type of the mutated resource.
    ResourceType {
        /// An organization.
        Organization = "organization",
        /// A group.
        Group = "group",
        /// A user.
        User = "user",
        /// A membership.
        Membership = "membership",
        /// A contract.
        Contract = "contract",
        /// A grant on a contract.
        Grant = "grant",
        /// A group's access.
        Access = "access",
        /// A pre-registered address.
        PreregisteredAddress = "preregistered_address",
        /// Compliance configuration.
        Compliance = "compliance",
        /// A token price.
        TokenPrice = "token_price",
        /// A sanction.
        Sanction = "sanction",
        /// A travel-rule record.
        TravelRuleRecord = "travel_rule_record",
        /// An address's threshold.
        AddressThreshold = "address_threshold",
        /// The base currency.
        BaseCurrency = "base_currency",
        /// A directory tenant.
        DirectoryTenant = "directory_tenant",
        /// A personal RPC URL.
        RpcUrl = "rpc_url",
        /// Shared infrastructure.
        SharedInfrastructure = "shared_infrastructure",
        /// Approved creation code.
        ApprovedCode = "approved_code",
        /// A disclosure request.
        DisclosureRequest = "disclosure_request",
        /// A disclosure grant.
        DisclosureGrant = "disclosure_grant",
        /// The webhook of an organization.
        Webhook = "webhook",
        /// A session.
        Session = "session",
        /// A user's transactions in the explorer.
        ExplorerUserTxs = "explorer_user_txs",
        /// A personal RPC URL.
        PersonalRpcUrl = "personal_rpc_url",
        /// The suspension of a user's right to send.
        Suspension = "suspension",
        /// An address whose state is hidden from all readers.
        Quarantine = "quarantine",
        /// A transaction withheld because of its effects once mined.
        Conviction = "conviction",
        /// The service's own settings and keys.
        Setting = "setting",
        /// The audit log itself.
        Audit = "audit",
    }
}

codes! {
    /// Why the outbox row of an entry is not the row that the mutation wrote.
    OutboxFault {
        /// The row's message authentication code does not match its content.
        Unauthenticated = "unauthenticated",
        /// Another entry was sealed under the row's id earlier: the policy database was restored from a backup, or
        /// changed.
        IdReused = "id_reused",
        /// The row's authentication code is valid, but it is not the code of the mutation that was committed under this
        /// id: a row that was rolled back has replaced the committed one.
        Replaced = "replaced",
        /// There is no row: the gateway made the entry for ids that were issued and whose rows are gone.
        Missing = "missing",
    }
}

/// One mutation of one resource. The policy store holds it as an outbox row until it is appended to the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminEntry {
    /// The kind of mutation.
    pub action: Action,
    /// The user id of the actor, if the actor is a user.
    pub actor_id: Option<UserId>,
    /// The DID of the actor, [`SUPER_ADMIN`] or a `system:` name. Personal.
    pub actor_external_id: Option<Cow<'static, str>>,
    /// The IP address of the call. Personal.
    pub ip_address: Option<IpAddr>,
    /// The correlation id of the call.
    pub correlation_id: Option<Cow<'static, str>>,
    /// The organization the resource belongs to.
    pub org_id: Option<OrgId>,
    /// The type of the mutated resource.
    pub resource_type: ResourceType,
    /// The resource's id; never an address or a DID, which are personal.
    pub resource_id: Option<String>,
    /// The resource's name. Personal: a user's name is a DID.
    pub resource_name: Option<String>,
    /// The value before the mutation as JSON text, with only the fields on the resource's allowlist. Personal.
    pub old_value: Option<String>,
    /// The value after the mutation as JSON text, with only the fields on the resource's allowlist. Personal.
    pub new_value: Option<String>,
    /// The policy store whose outbox held the entry; absent in entries that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_id: Option<StoreId>,
    /// The id of the outbox row, without gaps within one store; absent in entries that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox_id: Option<u64>,
    /// The fault of the entry's outbox row; absent if the row has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox_fault: Option<OutboxFault>,
}

impl AdminEntry {
    /// An entry of this action on this type of resource; all other fields are absent.
    pub const fn new(action: Action, resource_type: ResourceType) -> Self {
        Self {
            action,
            actor_id: None,
            actor_external_id: None,
            ip_address: None,
            correlation_id: None,
            org_id: None,
            resource_type,
            resource_id: None,
            resource_name: None,
            old_value: None,
            new_value: None,
            store_id: None,
            outbox_id: None,
            outbox_fault: None,
        }
    }
}
