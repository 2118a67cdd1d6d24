//! Requests and grants of disclosure (spec/50 section 2).

use gw_policy::{
    disclosure::{GrantState, GrantStatus, RequestState, RequestStatus, ScopeInput},
    snapshot::DisclosureScope,
};
use gw_types::{DisclosureGrantId, DisclosureRequestId, ExternalId, OrgId, Timestamp, UserId};

/// Maximum characters of the reason of a request (rule 7).
pub const MAX_REASON: usize = 2000;
/// Maximum characters of the legal basis of a request (rule 7).
pub const MAX_LEGAL_BASIS: usize = 255;
/// Maximum active grants of one organization to one grantee (spec/50 section 8). Those of other organizations do not
/// count: one must not use up the room of another, nor learn how much is left.
pub const MAX_ORG_GRANTS: u64 = 500;
/// Maximum active grants of one owner to one grantee, so that one member does not use up the room of the organization.
pub const MAX_OWNER_GRANTS: u64 = 50;
/// Maximum grants of one owner whose secrets are kept: those that are active, and those that ended lately. Every
/// instance holds them in memory.
pub const MAX_KEPT_GRANTS: u64 = 500;

/// A request for a grant of disclosure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureRequest {
    /// Row id.
    pub id: DisclosureRequestId,
    /// The user row of the grantee, if the request named one.
    pub requester: Option<UserId>,
    /// The grantee; `None`: nobody can use the grant (rule 8).
    pub requester_did: Option<ExternalId>,
    /// The owner: the user whose data is requested. The user may have been deleted.
    pub target: UserId,
    /// The organization that requests. It may have been deleted.
    pub org: OrgId,
    /// What is requested. A stored scope that cannot be parsed covers nothing.
    pub scope: DisclosureScope,
    /// Why it is requested.
    pub reason: String,
    /// The legal basis.
    pub legal_basis: Option<String>,
    /// The status. In answers of queries, a pending request whose end has passed is expired, whether the sweeper has
    /// written so or not.
    pub status: RequestStatus,
    /// When it was created.
    pub requested_at: Timestamp,
    /// When it ends if it is not decided; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// When the owner approved or rejected it. A revocation does not change it.
    pub decided_at: Option<Timestamp>,
    /// The user who approved or rejected it.
    pub decided_by: Option<UserId>,
    /// The reason of the decision.
    pub decision_reason: Option<String>,
}

impl DisclosureRequest {
    /// Returns the state for the state machine of `gw_policy::disclosure`.
    pub const fn state(&self) -> RequestState {
        RequestState {
            status: self.status,
            expires_at: self.expires_at,
        }
    }
}

/// A request with what its readers are shown of people and of its grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureRequestDetails {
    /// The request.
    pub request: DisclosureRequest,
    /// The DID of the owner; `None` if the user was deleted.
    pub target_did: Option<ExternalId>,
    /// The DID of the user who decided; `None` if nobody has, or the user was deleted.
    pub decided_by_did: Option<ExternalId>,
    /// The grant, if it is active.
    pub active_grant: Option<DisclosureGrantId>,
}

/// A grant of disclosure, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureGrant {
    /// Row id.
    pub id: DisclosureGrantId,
    /// The approved request. A request has at most one grant.
    pub request: DisclosureRequestId,
    /// The owner.
    pub owner: UserId,
    /// The grantee; `None`: nobody can use it.
    pub grantee: Option<ExternalId>,
    /// The organization of the request.
    pub org: OrgId,
    /// What is disclosed. A stored scope that cannot be parsed covers nothing.
    pub scope: DisclosureScope,
    /// Whether it covers addresses that the owner proves after the approval (HD8).
    pub include_future_addresses: bool,
    /// When it was approved.
    pub granted_at: Timestamp,
    /// When it ends unless it is revoked.
    pub expires_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Why it was revoked.
    pub revoked_reason: Option<String>,
    /// Whether its secret still exists: without it, no name of an address under the grant can be computed.
    pub has_secret: bool,
}

impl DisclosureGrant {
    /// Returns the status at `now`.
    pub fn status_at(&self, now: Timestamp) -> GrantStatus {
        self.state().status_at(now)
    }

    /// Returns the state for the state machine of `gw_policy::disclosure`.
    pub const fn state(&self) -> GrantState {
        GrantState {
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
        }
    }
}

/// A grant with its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantWithRequest {
    /// The grant.
    pub grant: DisclosureGrant,
    /// The request.
    pub request: DisclosureRequest,
}

/// Input for creating a request.
#[derive(Clone, Debug)]
pub struct NewDisclosureRequest {
    /// The user row of the grantee.
    pub requester: Option<UserId>,
    /// The grantee. If `requester` is set and this is not, the user's DID is taken; if both are set, they must agree.
    pub requester_did: Option<ExternalId>,
    /// The owner. The user must be a member of `org`.
    pub target: UserId,
    /// The organization that requests.
    pub org: OrgId,
    /// What is requested.
    pub scope: ScopeInput,
    /// Why it is requested.
    pub reason: String,
    /// The legal basis.
    pub legal_basis: Option<String>,
    /// `expires_in_hours` (rule 13).
    pub expires_in_hours: Option<i64>,
    /// `DISCLOSURE_REQUIRE_LEGAL_BASIS_FULL` (rule 7).
    pub requires_legal_basis_for_full: bool,
}

/// Input for approving a request. Its default approves what was requested, for 24 hours.
#[derive(Clone, Debug, Default)]
pub struct DisclosureApproval {
    /// The narrowing (rule 14).
    pub scope: ScopeInput,
    /// `grant_duration_hours` (rule 12).
    pub duration_hours: Option<i64>,
    /// Whether the grant covers addresses that the owner proves later (HD8).
    pub include_future_addresses: bool,
    /// The reason of the decision.
    pub reason: Option<String>,
}

/// What a sweep ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisclosureSweep {
    /// Number of pending requests that became expired.
    pub requests: u64,
    /// Number of grants whose end was recorded.
    pub grants: u64,
    /// Number of destroyed secrets.
    pub destroyed_secrets: u64,
}
