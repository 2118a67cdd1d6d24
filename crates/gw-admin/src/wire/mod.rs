//! The JSON types of the admin API, with the names and shapes of `spec/95`. Conversions to and from store records are
//! only here.

mod approved_code;
mod contract;
mod contract_batch;
mod dev;
mod diagnostics;
mod grant;
mod group;
mod hold;
mod log;
mod mined;
mod organization;
mod rules;
mod session;
mod shared;
mod system;
mod tenant;
mod url;
mod user;
mod webhook;

pub(crate) use approved_code::{ApprovedCode, ApprovedCodeInput};
pub(crate) use contract::{
    Contract, ContractAbiUpdateRequest, ContractCreateRequest, ContractEventsAllowDynamicPayloadRequest,
    ContractEventsResponse, ContractLookupFullResponse, ContractLookupGrantInfo, ContractTrustedRouterRequest,
    ContractUpdateRequest, ContractVisibleToUnlockRequest, EventInput, EventSignature, lower,
};
pub(crate) use contract_batch::{
    ContractBatchMoveAccess, ContractBatchMoveNewGroup, ContractBatchMoveRequest, ContractBatchMoveResponse,
    ContractClaimRequest, ContractClaimResponse, ContractSyncCheckResponse, ContractSyncDeleteRequest,
    ContractSyncDeleteResponse, ContractSyncDeleteSkipped, ContractSyncStatus,
};
pub(crate) use dev::{DeployDemoErc20Request, DeployDemoErc20Response};
pub(crate) use diagnostics::{
    AccessCheckRequest, AccessCheckResult, DryRunRequest, DryRunResponseDoc, EffectivePermissions, Explanation,
    StoppedFrame, TestRequestInput, TestRequestResponse, ViewAsAnswer, ViewAsRequest, words,
};
pub(crate) use grant::{ContractGrant, ContractGrantCreateRequest, ContractGrantUpdateRequest, EventRulesField};
pub(crate) use group::{
    Group, GroupAccess, GroupAccessRequest, GroupBatchDeletePreviewEntry, GroupBatchDeletePreviewResponse,
    GroupBatchDeleteRequest, GroupBatchDeleteResponse, GroupCreateRequest, GroupUpdateRequest, GroupWithAccess,
};
pub(crate) use hold::{LegalHold, LegalHoldRequest, LiftHoldRequest};
pub(crate) use log::{AccessLogRow, AdminLogsResponse, AuditLogRow, AuditLogs, AuditLogsResponse};
pub(crate) use mined::{ClearMinedRequest, MinedConviction, MinedQuarantine, MinedSuspension};
pub(crate) use organization::{OrgCreateRequest, OrgUpdateRequest, Organization};
pub(crate) use session::{SessionInfoResponse, SessionListResponse, UserSession};
pub(crate) use shared::{SharedInfraInput, SharedInfrastructure};
pub(crate) use system::{
    MethodsStatus, NodeStatus, ProxyStatus, SecurityStatus, StatusResponse, SystemToggleRequest, SystemToggleResponse,
};
pub(crate) use tenant::{AllowedDirectoryTenant, DirectoryTenantCreateRequest, DirectoryTenantUpdateRequest};
pub(crate) use url::RpcUrlEntry;
pub(crate) use user::{
    AddressLinkCollision, EthAddressCollisionsResponse, LinkedAddressEntry, MembershipByDidRemovalRequest,
    MembershipByDidRequest, MembershipByDidResponse, MembershipCreateRequest, MembershipListItem,
    RbacUserUpdateRequest, RevokeLinkRequest, User, UserGroupMembership, UserLinkedAddressesResponse, UserListItem,
    UserMembership,
};
pub(crate) use webhook::{Webhook, WebhookInput, WebhookTest};

/// Reads a member of a partial update: `None` if it is absent, `Some(None)` if it is `null`.
pub(crate) fn deserialize_some<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    serde::Deserialize::deserialize(deserializer).map(Some)
}
