//! Users and their memberships (spec/20 A7-A10).

use super::JsonObject;
use gw_policy::snapshot::MembershipState;
use gw_types::{ExternalId, GroupId, MembershipId, OrgId, OrgUserRecordId, TenantId, Timestamp, UserId};

/// A person or machine (A9).
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// Row id.
    pub id: UserId,
    /// DID or directory identity.
    pub external_id: ExternalId,
    /// Whether KYC is completed.
    pub kyc: bool,
    /// Whether the account is banned.
    pub banned: bool,
    /// Operator's note.
    pub note: String,
    /// Free metadata.
    pub metadata: JsonObject,
    /// The directory tenant of the first login; write-once.
    pub auth_tenant_id: Option<TenantId>,
    /// Access tokens issued before this time are invalid.
    pub tokens_valid_from: Option<Timestamp>,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Input for creating a user. A ban that outlived a deleted row of the same name is kept (spec/80 section 7).
#[derive(Clone, Debug)]
pub struct NewUser {
    /// DID or directory identity.
    pub external_id: ExternalId,
    /// KYC at creation (A9).
    pub kyc: bool,
    /// The directory tenant, if one vouched.
    pub auth_tenant_id: Option<TenantId>,
    /// Groups joined at once: the default group for self-registration, none for onboarding by DID (A6).
    pub groups: Vec<GroupId>,
}

/// A partial change of a user.
#[derive(Clone, Debug, Default)]
pub struct UserPatch {
    /// New KYC state.
    pub kyc: Option<bool>,
    /// New ban state; banning revokes every token of the user (A10).
    pub banned: Option<bool>,
    /// New note.
    pub note: Option<String>,
    /// New metadata, replacing the old.
    pub metadata: Option<JsonObject>,
}

/// A user's membership in a group (A7).
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// Row id.
    pub id: MembershipId,
    /// The member.
    pub user: UserId,
    /// The group.
    pub group: GroupId,
    /// Its origin.
    pub source: MembershipSource,
    /// The credential behind a `zk_attested` membership.
    pub zk_credential_ref: Option<String>,
    /// When it ends; `None` is permanent.
    pub expires_at: Option<Timestamp>,
    /// Whether the member agreed (HD32).
    pub state: MembershipState,
    /// When the member agreed, if after the row was created.
    pub accepted_at: Option<Timestamp>,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Membership {
    /// Whether it has ended, for lists; authorization uses the predicate of A8 from the snapshot.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Returns the state that administrators see: the same for every membership that waits for the member, whether or
    /// not it already has effects. The difference would reveal that the member belongs to another organization (HD40).
    pub const fn status(&self) -> &'static str {
        match self.state {
            MembershipState::Accepted => "active",
            MembershipState::Provisional | MembershipState::Invited => "pending",
        }
    }
}

/// An organization's record about a person (RT24). It applies in that organization only.
#[derive(Clone, Debug, PartialEq)]
pub struct OrgUserRecord {
    /// Row id.
    pub id: OrgUserRecordId,
    /// The organization.
    pub org: OrgId,
    /// The person's external id: the record outlives the account.
    pub external_id: ExternalId,
    /// Whether the organization completed the person's KYC.
    pub kyc: bool,
    /// Whether the organization banned the person.
    pub banned: bool,
    /// The organization's note.
    pub note: String,
    /// The organization's metadata.
    pub metadata: JsonObject,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Origin of a membership; `zk_attested` is read, never written (decision 54).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipSource {
    /// Created by an administrator or by the gateway.
    Admin,
    /// Attested by a credential.
    ZkAttested,
}

impl MembershipSource {
    /// Returns the wire and column text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ZkAttested => "zk_attested",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "admin" => Some(Self::Admin),
            "zk_attested" => Some(Self::ZkAttested),
            _ => None,
        }
    }
}

/// Input for creating a membership.
#[derive(Clone, Copy, Debug)]
pub struct NewMembership {
    /// The member.
    pub user: UserId,
    /// The group.
    pub group: GroupId,
    /// When it ends; `None` is permanent.
    pub expires_at: Option<Timestamp>,
}
