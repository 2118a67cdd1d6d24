//! Users and their memberships (spec/20 A7-A10).

use super::Object;
use gw_types::{ExternalId, GroupId, MembershipId, TenantId, Timestamp, UserId};

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
    pub metadata: Object,
    /// The directory tenant of the first login; write-once.
    pub auth_tenant_id: Option<TenantId>,
    /// Access tokens issued before this moment are dead.
    pub tokens_valid_from: Option<Timestamp>,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What makes a user. A ban that outlived a deleted row of the same name is kept (spec/80 section 7).
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
    /// New ban state; banning ends every token of the user (A10).
    pub banned: Option<bool>,
    /// New note.
    pub note: Option<String>,
    /// New metadata, replacing the old.
    pub metadata: Option<Object>,
}

/// A user's place in a group (A7).
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// Row id.
    pub id: MembershipId,
    /// The member.
    pub user: UserId,
    /// The group.
    pub group: GroupId,
    /// Where it came from.
    pub source: MembershipSource,
    /// The credential behind a `zk_attested` membership.
    pub zk_credential_ref: Option<String>,
    /// End; `None` is permanent.
    pub expires_at: Option<Timestamp>,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Membership {
    /// The predicate of A8, for lists; decisions take it from the snapshot.
    pub fn active(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }
}

/// Where a membership came from; `zk_attested` is read, never written (decision 54).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipSource {
    /// Given by an administrator or by the gateway.
    Admin,
    /// Attested by a credential.
    ZkAttested,
}

impl MembershipSource {
    /// The wire and column text.
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

/// What makes a membership.
#[derive(Clone, Copy, Debug)]
pub struct NewMembership {
    /// The member.
    pub user: UserId,
    /// The group.
    pub group: GroupId,
    /// End; `None` is permanent.
    pub expires_at: Option<Timestamp>,
}
