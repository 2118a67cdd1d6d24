use super::scope::{Scope, ScopeBody};
use crate::input::decision_reason;
use gw_http::ApiError;
use gw_store::record::{DisclosureApproval, DisclosureGrant, DisclosureRequest, DisclosureRequestDetails};
use gw_types::{DisclosureGrantId, DisclosureRequestId, ExternalId, OrgId, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request for a disclosure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Request {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: DisclosureRequestId,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    requester_user_id: Option<UserId>,
    /// The DID of the grantee. Nobody can use a grant without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    requester_did: Option<ExternalId>,
    /// The user whose data is requested.
    #[schema(value_type = String, format = Uuid)]
    target_user_id: UserId,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    scope: Scope,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    legal_basis: Option<String>,
    /// `pending`, `approved`, `rejected`, `expired` or `revoked`.
    status: &'static str,
    #[schema(value_type = String, format = DateTime)]
    requested_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    decided_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    decided_by_user_id: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_reason: Option<String>,
}

impl From<DisclosureRequest> for Request {
    fn from(row: DisclosureRequest) -> Self {
        Self {
            id: row.id,
            requester_user_id: row.requester,
            requester_did: row.requester_did,
            target_user_id: row.target,
            org_id: row.org,
            scope: (&row.scope).into(),
            reason: row.reason,
            legal_basis: row.legal_basis,
            status: row.status.as_str(),
            requested_at: row.requested_at,
            expires_at: row.expires_at,
            decided_at: row.decided_at,
            decided_by_user_id: row.decided_by,
            decision_reason: row.decision_reason,
        }
    }
}

/// A request with the people in it and its grant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestWithDetails {
    request: Request,
    /// The DID of the grantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    requester_did: Option<ExternalId>,
    /// The DID of the user whose data is requested; absent if the user was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    target_did: Option<ExternalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    decided_by_did: Option<ExternalId>,
    /// The grant, while it is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    active_grant_id: Option<DisclosureGrantId>,
}

impl From<DisclosureRequestDetails> for RequestWithDetails {
    fn from(row: DisclosureRequestDetails) -> Self {
        Self {
            requester_did: row.request.requester_did.clone(),
            request: row.request.into(),
            target_did: row.target_did,
            decided_by_did: row.decided_by_did,
            active_grant_id: row.active_grant,
        }
    }
}

/// A page of requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DisclosureListResult {
    pub(crate) requests: Vec<RequestWithDetails>,
    /// The number of requests of the whole list.
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
}

/// A request to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct CreateDisclosureRequestBody {
    /// The user whose data is requested; a member of the organization.
    #[schema(format = Uuid)]
    pub(crate) target_user_id: Option<String>,
    /// The user who shall be the grantee. Without one and without `requester_did`, the administrator who asks.
    #[schema(format = Uuid)]
    pub(crate) requester_user_id: Option<String>,
    /// The DID of the grantee.
    pub(crate) requester_did: Option<String>,
    /// The organization that asks; an administrator of exactly one may leave it out.
    #[schema(format = Uuid)]
    pub(crate) org_id: Option<String>,
    pub(crate) scope: Option<ScopeBody>,
    /// Why the data is needed, for its owner; 1 to 2000 characters.
    pub(crate) reason: String,
    /// An article of law, a court order or a statute; at most 255 characters.
    pub(crate) legal_basis: Option<String>,
    /// When the request ends if it is not decided; 0 or absent: never; at most 8760.
    pub(crate) expires_in_hours: Option<i64>,
}

/// What the owner approves.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct ApproveDisclosureRequestBody {
    /// Narrows the request: each member may only restrict more than was requested.
    pub(crate) scope: Option<ScopeBody>,
    /// How long the grant lasts; 0 or absent: 24 hours.
    pub(crate) grant_duration_hours: Option<i64>,
    /// A note on the decision.
    pub(crate) reason: Option<String>,
    /// Whether the grant covers addresses that the owner links later. By default it covers those of today only.
    pub(crate) include_future_addresses: bool,
}

impl ApproveDisclosureRequestBody {
    /// The approval.
    ///
    /// # Errors
    /// 400 for a reason that is too long.
    pub(crate) fn into_approval(self) -> Result<DisclosureApproval, ApiError> {
        Ok(DisclosureApproval {
            scope: self.scope.unwrap_or_default().into(),
            duration_hours: self.grant_duration_hours,
            include_future_addresses: self.include_future_addresses,
            reason: decision_reason(self.reason)?,
        })
    }
}

/// The reason of a decision.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct DisclosureReasonBody {
    pub(crate) reason: Option<String>,
}

/// What became of a request or grant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DisclosureStatusResponse {
    /// `deleted`, `revoked` or `rejected`.
    pub(crate) status: &'static str,
}

/// A request for the caller's data, and who else may see it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnedRequest {
    #[serde(flatten)]
    pub(crate) details: RequestWithDetails,
    /// The other grants of the caller's data that are in force; at most 1000.
    pub(crate) other_grants: Vec<OtherGrant>,
}

/// A grant of the caller's data to somebody.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OtherGrant {
    #[schema(value_type = String, format = Uuid)]
    grant_id: DisclosureGrantId,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    /// The DID of the grantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    requester_did: Option<ExternalId>,
    scope: Scope,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl From<DisclosureGrant> for OtherGrant {
    fn from(grant: DisclosureGrant) -> Self {
        Self {
            grant_id: grant.id,
            org_id: grant.org,
            requester_did: grant.grantee,
            scope: (&grant.scope).into(),
            expires_at: grant.expires_at,
        }
    }
}

/// A disclosure that nobody requested.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct GrantDisclosureBody {
    /// The DID that may see the caller's data.
    pub(crate) grantee_did: String,
    /// One of the caller's organizations; a member of only one may leave it out. The grantee sees the data in the
    /// explorer's lists only as a member of it; the pages of the grant need no membership.
    #[schema(format = Uuid)]
    pub(crate) org_id: Option<String>,
    pub(crate) scope: Option<ScopeBody>,
    /// Why the data is disclosed; 1 to 2000 characters.
    pub(crate) reason: String,
    /// How long the grant lasts; 0 or absent: 24 hours.
    pub(crate) grant_duration_hours: Option<i64>,
    /// Whether the grant covers addresses that the caller links later.
    pub(crate) include_future_addresses: bool,
}
