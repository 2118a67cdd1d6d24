use super::{request::Request, scope::Scope};
use gw_policy::disclosure::scope::level_text;
use gw_store::record;
use gw_types::{DisclosureGrantId, DisclosureRequestId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// A grant of disclosure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Grant {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: DisclosureGrantId,
    #[schema(value_type = String, format = Uuid)]
    request_id: DisclosureRequestId,
    scope: Scope,
    /// Whether the grant covers addresses that the owner links after the approval.
    include_future_addresses: bool,
    #[schema(value_type = String, format = DateTime)]
    granted_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_reason: Option<String>,
}

impl From<record::DisclosureGrant> for Grant {
    fn from(row: record::DisclosureGrant) -> Self {
        Self {
            id: row.id,
            request_id: row.request,
            scope: (&row.scope).into(),
            include_future_addresses: row.include_future_addresses,
            granted_at: row.granted_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            revoked_reason: row.revoked_reason,
        }
    }
}

/// A grant with the request that it answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantWithRequest {
    grant: Grant,
    request: Request,
}

impl From<record::GrantWithRequest> for GrantWithRequest {
    fn from(row: record::GrantWithRequest) -> Self {
        Self {
            grant: row.grant.into(),
            request: row.request.into(),
        }
    }
}

/// A page of grants.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantListResult {
    pub(crate) grants: Vec<GrantWithRequest>,
    /// The number of grants of the whole list.
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
}

/// An approval.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DisclosureApproveResponse {
    pub(crate) grant: Grant,
    pub(crate) message: &'static str,
}

/// Whether somebody may see somebody's data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DisclosureCheckAccessResponse {
    has_access: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    grant_id: Option<DisclosureGrantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// `full`, `pseudonymous` or `redacted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    disclosure_level: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
}

impl DisclosureCheckAccessResponse {
    /// The same answer without a grant, and with one outside of the administrator's scope (rule 17).
    pub(crate) const NONE: Self = Self {
        has_access: false,
        grant_id: None,
        scope: None,
        expires_at: None,
        disclosure_level: None,
        message: Some("No active disclosure grant found"),
    };
}

impl From<&record::DisclosureGrant> for DisclosureCheckAccessResponse {
    fn from(grant: &record::DisclosureGrant) -> Self {
        Self {
            has_access: true,
            grant_id: Some(grant.id),
            scope: Some((&grant.scope).into()),
            expires_at: Some(grant.expires_at),
            disclosure_level: Some(level_text(grant.scope.level)),
            message: None,
        }
    }
}

/// What waits for a decision, and what ends soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct DisclosureCounters {
    /// Requests without a decision.
    pub(crate) pending_requests: u64,
    /// Grants in force.
    pub(crate) active_grants: u64,
    /// Grants in force that end within 7 days.
    pub(crate) grants_ending_soon: u64,
}
