//! Organizations, groups and group access (spec/20 sections 1 and 3).

use super::JsonObject;
use gw_evm::CustomMethods;
use gw_types::{Claims, GroupId, OrgId, Secret, Timestamp};
use std::sync::Arc;

/// An organization (A1).
#[derive(Clone, Debug, PartialEq)]
pub struct Organization {
    /// Row id.
    pub id: OrgId,
    /// Unique slug.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// Free settings.
    pub settings: JsonObject,
    /// Whether this is the default or the anonymous organization (A2).
    pub is_system: bool,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Input for creating an organization.
#[derive(Clone, Debug, Default)]
pub struct NewOrganization {
    /// Unique slug.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// Free settings.
    pub settings: JsonObject,
}

/// A partial change of an organization.
#[derive(Clone, Debug, Default)]
pub struct OrganizationPatch {
    /// New slug.
    pub slug: Option<String>,
    /// New name.
    pub name: Option<String>,
    /// New settings, replacing the old ones.
    pub settings: Option<JsonObject>,
}

/// A group (A4, A5).
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Row id.
    pub id: GroupId,
    /// The owning organization.
    pub org: OrgId,
    /// Stored and ignored (A4).
    pub parent: Option<GroupId>,
    /// Slug, unique per organization.
    pub slug: String,
    /// Name, unique per organization ignoring case.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Whether members administer the organization.
    pub is_org_admin: bool,
    /// Whether members may read the administration of the organization.
    pub is_org_readonly_admin: bool,
    /// Whether this is the default or the anonymous group (A2).
    pub is_system: bool,
    /// Whether the gateway created it for a deployer (R3).
    pub auto_created: bool,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Input for creating a group.
#[derive(Clone, Debug)]
pub struct NewGroup {
    /// The owning organization.
    pub org: OrgId,
    /// Stored and ignored (A4).
    pub parent: Option<GroupId>,
    /// Slug, unique per organization.
    pub slug: String,
    /// Name, unique per organization ignoring case.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Whether members administer the organization.
    pub is_org_admin: bool,
    /// Whether members may read the administration of the organization.
    pub is_org_readonly_admin: bool,
    /// Whether the gateway creates it for a deployer (R3).
    pub auto_created: bool,
}

impl NewGroup {
    /// Creates an input for a group without flags.
    pub fn plain(org: OrgId, slug: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            org,
            parent: None,
            slug: slug.into(),
            name: name.into(),
            description: String::new(),
            is_org_admin: false,
            is_org_readonly_admin: false,
            auto_created: false,
        }
    }
}

/// A partial change of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupPatch {
    /// New name.
    pub name: Option<String>,
    /// New description.
    pub description: Option<String>,
    /// New value of the flag.
    pub is_org_admin: Option<bool>,
    /// New value of the flag.
    pub is_org_readonly_admin: Option<bool>,
}

/// What a group's members may do (G1). A group without a stored row has [`GroupAccess::none`].
#[derive(Clone, Debug, PartialEq)]
pub struct GroupAccess {
    /// The group; also the row's key.
    pub group: GroupId,
    /// Canonical method names, or `*`.
    pub allowed_methods: Vec<String>,
    /// Claims of the group, as given.
    pub claims: Claims,
    /// The upstream key as stored: encrypted by the caller, marked `encv1:`.
    pub rpc_api_key: Option<Secret>,
    /// Whether members get a reason with a denial (G5).
    pub verbose_errors: bool,
    /// Methods removed from the allowed ones before groups are combined (G1).
    pub denied_methods: Vec<String>,
    /// When the whole access ends; `None` is never.
    pub expires_at: Option<Timestamp>,
    /// When the row was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl GroupAccess {
    /// Returns the access of a group without a stored row.
    pub fn none(group: &Group) -> Self {
        Self {
            group: group.id,
            allowed_methods: Vec::new(),
            claims: Claims::NONE,
            rpc_api_key: None,
            verbose_errors: false,
            denied_methods: Vec::new(),
            expires_at: None,
            created_at: group.created_at,
            updated_at: group.created_at,
        }
    }
}

/// A full replacement of a group's access.
#[derive(Clone, Debug, Default)]
pub struct AccessInput {
    /// Method names, or `*`; the store canonicalizes them and rejects unknown names.
    pub allowed_methods: Vec<String>,
    /// Claims.
    pub claims: Claims,
    /// What happens to the upstream key.
    pub rpc_api_key: ApiKey,
    /// Whether members get a reason with a denial (G5).
    pub verbose_errors: bool,
    /// Methods removed from the allowed ones, canonicalized likewise.
    pub denied_methods: Vec<String>,
    /// Custom methods that may be named besides the registered ones.
    pub custom_methods: Arc<CustomMethods>,
    /// When the whole access ends.
    pub expires_at: Option<Timestamp>,
}

/// What a full replacement does to the upstream key.
#[derive(Clone, Debug, Default)]
pub enum ApiKey {
    /// Keeps the stored key.
    #[default]
    Keep,
    /// Removes the key.
    Clear,
    /// Stores this ciphertext.
    Set(Secret),
}
