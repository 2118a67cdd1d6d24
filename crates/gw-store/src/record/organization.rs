//! Organizations, groups and what groups may do (spec/20 sections 1 and 3).

use super::Object;
use gw_evm::Extras;
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
    pub settings: Object,
    /// The default and anonymous organizations (A2).
    pub is_system: bool,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What makes an organization.
#[derive(Clone, Debug, Default)]
pub struct NewOrganization {
    /// Unique slug.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// Free settings.
    pub settings: Object,
}

/// A partial change of an organization.
#[derive(Clone, Debug, Default)]
pub struct OrganizationPatch {
    /// New slug.
    pub slug: Option<String>,
    /// New name.
    pub name: Option<String>,
    /// New settings, replacing the old ones.
    pub settings: Option<Object>,
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
    /// Name, unique per organization whatever the case.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Members administer the organization.
    pub is_org_admin: bool,
    /// Members read the administration of the organization.
    pub is_org_readonly_admin: bool,
    /// The default and anonymous groups (A2).
    pub is_system: bool,
    /// Made by the gateway for a deployer (R3).
    pub auto_created: bool,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What makes a group.
#[derive(Clone, Debug)]
pub struct NewGroup {
    /// The owning organization.
    pub org: OrgId,
    /// Stored and ignored (A4).
    pub parent: Option<GroupId>,
    /// Slug, unique per organization.
    pub slug: String,
    /// Name, unique per organization whatever the case.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Members administer the organization.
    pub is_org_admin: bool,
    /// Members read the administration of the organization.
    pub is_org_readonly_admin: bool,
    /// Made by the gateway for a deployer (R3).
    pub auto_created: bool,
}

impl NewGroup {
    /// A plain group without flags.
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
    /// New flag.
    pub is_org_admin: Option<bool>,
    /// New flag.
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
    /// Methods taken out of the allowed ones before groups are united (G1).
    pub denied_methods: Vec<String>,
    /// When all of it ends; `None` is never.
    pub expires_at: Option<Timestamp>,
    /// When the row was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl GroupAccess {
    /// The access of a group that was never given any.
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
    /// Method names, or `*`; the store keeps them canonical and refuses names that mean nothing.
    pub allowed_methods: Vec<String>,
    /// Claims.
    pub claims: Claims,
    /// What happens to the upstream key.
    pub rpc_api_key: ApiKey,
    /// Whether members get a reason with a denial (G5).
    pub verbose_errors: bool,
    /// Methods taken out of the allowed ones, read likewise.
    pub denied_methods: Vec<String>,
    /// What may be named beside the registry.
    pub extras: Arc<Extras>,
    /// When all of it ends.
    pub expires_at: Option<Timestamp>,
}

/// What a full replacement does to the upstream key.
#[derive(Clone, Debug, Default)]
pub enum ApiKey {
    /// Leave it as it is.
    #[default]
    Keep,
    /// Remove it.
    Clear,
    /// Store this ciphertext.
    Set(Secret),
}
