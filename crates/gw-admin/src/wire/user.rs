use super::Group;
use gw_policy::snapshot::MembershipState;
use gw_store::record;
use gw_types::{ExternalId, GroupId, LinkId, MembershipId, OrgId, TenantId, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct User {
    #[schema(value_type = String, format = Uuid)]
    id: UserId,
    #[schema(value_type = String)]
    external_id: ExternalId,
    kyc: bool,
    banned: bool,
    note: String,
    #[schema(value_type = Object)]
    metadata: record::JsonObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    auth_tenant_id: Option<TenantId>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl User {
    /// The user as organizations with these memberships and records know them: their own notes, their KYC mark and ban.
    /// What the platform knows about the user is included only if the user accepted one of the memberships. Otherwise
    /// the answer about a user of another organization must equal the answer about a new user (HD40).
    pub(crate) fn in_orgs(
        row: record::User,
        memberships: &[record::Membership],
        records: &[record::OrgUserRecord],
    ) -> Self {
        let has_accepted = memberships
            .iter()
            .any(|membership| membership.state == MembershipState::Accepted);
        let note = records.iter().map(|record| &record.note).find(|note| !note.is_empty());
        let metadata = records
            .iter()
            .map(|record| &record.metadata)
            .find(|object| !object.is_empty());
        let created_at = memberships
            .iter()
            .map(|membership| membership.created_at)
            .min()
            .unwrap_or(row.created_at);
        let updated_at = records
            .iter()
            .map(|record| record.updated_at)
            .max()
            .unwrap_or(created_at);
        Self {
            id: row.id,
            external_id: row.external_id,
            kyc: (has_accepted && row.kyc) || records.iter().any(|record| record.kyc),
            banned: (has_accepted && row.banned) || records.iter().any(|record| record.banned),
            note: note.cloned().unwrap_or_default(),
            metadata: metadata.cloned().unwrap_or_default(),
            auth_tenant_id: row.auth_tenant_id.filter(|_| has_accepted),
            created_at,
            updated_at,
        }
    }
}

impl From<record::User> for User {
    fn from(row: record::User) -> Self {
        Self {
            id: row.id,
            external_id: row.external_id,
            kyc: row.kyc,
            banned: row.banned,
            note: row.note,
            metadata: row.metadata,
            auth_tenant_id: row.auth_tenant_id,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A user in a list, with the groups that the caller sees.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserListItem {
    #[serde(flatten)]
    pub(crate) user: User,
    pub(crate) groups: Vec<UserGroupMembership>,
}

/// A group of a listed user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserGroupMembership {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) group_id: GroupId,
    #[schema(value_type = String, format = Uuid)]
    pub(crate) org_id: OrgId,
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) is_org_admin: bool,
}

/// Changes a user; absent members keep their value.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct RbacUserUpdateRequest {
    #[serde(default)]
    pub(crate) kyc: Option<bool>,
    #[serde(default)]
    pub(crate) banned: Option<bool>,
    #[serde(default)]
    pub(crate) note: Option<String>,
    /// At most 16 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) metadata: Option<record::JsonObject>,
}

/// A membership.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserMembership {
    #[schema(value_type = String, format = Uuid)]
    id: MembershipId,
    #[schema(value_type = String, format = Uuid)]
    user_id: UserId,
    #[schema(value_type = String, format = Uuid)]
    group_id: GroupId,
    /// `admin` or `zk_attested`.
    source: &'static str,
    /// `active`, or `pending` until the member accepts it. It does not tell whether a pending membership is effective.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    zk_credential_ref: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<record::Membership> for UserMembership {
    fn from(row: record::Membership) -> Self {
        Self {
            id: row.id,
            user_id: row.user,
            group_id: row.group,
            source: row.source.as_str(),
            status: row.status(),
            zk_credential_ref: row.zk_credential_ref,
            expires_at: row.expires_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A membership with its group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipListItem {
    pub(crate) membership: UserMembership,
    pub(crate) group: Group,
    /// Whether it has ended; an ended membership gives nothing (A8).
    pub(crate) expired: bool,
}

/// Adds a user to a group.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct MembershipCreateRequest {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) group_id: String,
    /// RFC 3339, in the future; absent or null is permanent.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

/// Adds the user with this DID to a group, and creates the user if needed.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct MembershipByDidRequest {
    pub(crate) did: String,
    #[schema(value_type = String, format = Uuid)]
    pub(crate) group_id: String,
    /// RFC 3339, in the future; absent or null is permanent.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

/// Removes the user with this DID from a group.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct MembershipByDidRemovalRequest {
    pub(crate) did: String,
    #[schema(value_type = String, format = Uuid)]
    pub(crate) group_id: String,
}

/// The new membership. It does not tell whether the user existed before.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipByDidResponse {
    #[schema(value_type = String, format = Uuid)]
    pub(crate) user_id: UserId,
    pub(crate) membership: UserMembership,
}

/// The active links of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserLinkedAddressesResponse {
    pub(crate) addresses: Vec<LinkedAddressEntry>,
}

/// A linked address; `[PRIVATE]` for administrators without the right to see wallets (HD12).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkedAddressEntry {
    /// The id of the link, shown even if the address is hidden.
    #[schema(value_type = String, format = Uuid)]
    pub(crate) id: LinkId,
    pub(crate) address: String,
    /// `user` or `system`.
    pub(crate) link_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ens_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) ens_resolved_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) verified_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) revoked_at: Option<Timestamp>,
}

/// The reason why an administrator ends a link.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct RevokeLinkRequest {
    /// 1 to 500 characters.
    pub(crate) reason: String,
}

/// Addresses that several users hold.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EthAddressCollisionsResponse {
    pub(crate) collisions: Vec<AddressLinkCollision>,
    pub(crate) count: usize,
}

/// An address that several users hold. An address that is not Full for the caller, and names outside of the caller's
/// scope, read `[PRIVATE]`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddressLinkCollision {
    pub(crate) eth_address: String,
    pub(crate) dids: Vec<String>,
    pub(crate) link_types: Vec<&'static str>,
}
