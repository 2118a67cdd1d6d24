//! Users and their memberships (spec/20 A7-A10).

use super::Object;
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
    /// Whether the member agreed (HD32).
    pub state: MembershipState,
    /// When they did, if that was after the row was made.
    pub accepted_at: Option<Timestamp>,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Membership {
    /// Whether its end has come, for lists; decisions take the predicate of A8 from the snapshot.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// What an administrator is told of its state: the same of every membership that waits for the member, whether it
    /// gives the member anything meanwhile or not. The difference would tell that the member belongs elsewhere (HD40).
    pub const fn status(&self) -> &'static str {
        match self.state {
            MembershipState::Accepted => "active",
            MembershipState::Provisional | MembershipState::Invited => "pending",
        }
    }
}

/// What one organization noted and decided about a person (RT24). It binds in that organization only.
#[derive(Clone, Debug, PartialEq)]
pub struct OrgUserRecord {
    /// Row id.
    pub id: OrgUserRecordId,
    /// The organization.
    pub org: OrgId,
    /// The person, by name: the record outlives the account.
    pub external_id: ExternalId,
    /// The organization completed KYC of them.
    pub kyc: bool,
    /// The organization banned them.
    pub banned: bool,
    /// The organization's note.
    pub note: String,
    /// The organization's metadata.
    pub metadata: Object,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
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
