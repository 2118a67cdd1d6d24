use gw_store::{read::GroupImpact, record};
use gw_types::{GroupId, OrgId, Timestamp};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use utoipa::ToSchema;

/// A group of an organization. `parent_id`, `path` and `depth` exist for old clients and have no effect.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Group {
    #[schema(value_type = String, format = Uuid)]
    id: GroupId,
    #[schema(value_type = String, format = Uuid)]
    org_id: OrgId,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    parent_id: Option<GroupId>,
    name: String,
    slug: String,
    description: String,
    path: String,
    depth: u32,
    is_org_admin: bool,
    is_org_readonly_admin: bool,
    is_system: bool,
    auto_created: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<record::Group> for Group {
    fn from(row: record::Group) -> Self {
        Self {
            id: row.id,
            org_id: row.org,
            parent_id: row.parent,
            path: row.slug.clone(),
            depth: 0,
            name: row.name,
            slug: row.slug,
            description: row.description,
            is_org_admin: row.is_org_admin,
            is_org_readonly_admin: row.is_org_readonly_admin,
            is_system: row.is_system,
            auto_created: row.auto_created,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// The access of a group's members: methods and claims.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupAccess {
    /// The group's id: a group has exactly one access record.
    #[schema(value_type = String, format = Uuid)]
    id: GroupId,
    #[schema(value_type = String, format = Uuid)]
    group_id: GroupId,
    /// Canonical method names; `*` means every grantable method.
    allowed_methods: Vec<String>,
    claims: Vec<&'static str>,
    /// The claims and the claims that they imply (C1).
    effective_claims: Vec<&'static str>,
    narrowed_by_parent: bool,
    /// A mask if a key is stored; see `rpc_api_key_set`.
    rpc_api_key: String,
    rpc_api_key_set: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rpc_api_key_hint: Option<String>,
    verbose_errors: bool,
    /// Methods excluded from `allowed_methods`.
    denied_methods: Vec<String>,
    /// The time from which the methods and claims have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl GroupAccess {
    /// The mask shown for a stored key; sending it back keeps the key (spec/80 §6).
    pub(crate) const MASK: &'static str = "********";

    pub(crate) fn new(row: record::GroupAccess, hint: Option<String>) -> Self {
        let claims: Vec<_> = row.claims.iter().map(gw_types::Claim::as_str).collect();
        let is_key_set = row.rpc_api_key.is_some();
        Self {
            id: row.group,
            group_id: row.group,
            allowed_methods: row.allowed_methods,
            effective_claims: claims.clone(),
            claims,
            narrowed_by_parent: false,
            rpc_api_key: if is_key_set {
                Self::MASK.to_owned()
            } else {
                String::new()
            },
            rpc_api_key_set: is_key_set,
            rpc_api_key_hint: hint,
            verbose_errors: row.verbose_errors,
            denied_methods: row.denied_methods,
            expires_at: row.expires_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A group with its access.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupWithAccess {
    pub(crate) group: Group,
    pub(crate) access: GroupAccess,
}

/// Creates a group.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct GroupCreateRequest {
    pub(crate) name: String,
    pub(crate) slug: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) is_org_admin: bool,
    #[serde(default)]
    pub(crate) is_org_readonly_admin: bool,
    /// Accepted from old clients and ignored: groups are not nested.
    #[serde(default, rename = "parent_id")]
    #[schema(value_type = Option<String>)]
    pub(crate) _parent_id: Option<IgnoredAny>,
}

/// Changes a group; absent members keep their value.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct GroupUpdateRequest {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) is_org_admin: Option<bool>,
    #[serde(default)]
    pub(crate) is_org_readonly_admin: Option<bool>,
}

/// Replaces a group's whole access. Only the upstream key is kept when absent or masked.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct GroupAccessRequest {
    #[serde(default)]
    pub(crate) allowed_methods: Vec<String>,
    #[serde(default)]
    pub(crate) claims: Vec<String>,
    #[serde(default, deserialize_with = "super::deserialize_some")]
    #[schema(value_type = Option<String>)]
    pub(crate) rpc_api_key: Option<Option<String>>,
    #[serde(default)]
    pub(crate) verbose_errors: bool,
    /// Methods excluded from `allowed_methods`; other groups of a member may still allow them.
    #[serde(default)]
    pub(crate) denied_methods: Vec<String>,
    /// RFC 3339; from this time on the group's methods and claims have no effect.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

/// The groups to delete.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct GroupBatchDeleteRequest {
    /// 1 to 200 ids.
    #[schema(value_type = Vec<String>)]
    pub(crate) group_ids: Vec<String>,
}

/// The effects of a deletion of groups.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupBatchDeletePreviewResponse {
    pub(crate) groups: Vec<GroupBatchDeletePreviewEntry>,
}

/// The effects of the deletion of one group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupBatchDeletePreviewEntry {
    #[schema(value_type = String, format = Uuid)]
    id: GroupId,
    name: String,
    slug: String,
    member_count: u64,
    contract_count: usize,
    /// The addresses of the contracts that the group holds grants on.
    contracts: Vec<String>,
}

impl From<GroupImpact> for GroupBatchDeletePreviewEntry {
    fn from(impact: GroupImpact) -> Self {
        Self {
            id: impact.group.id,
            name: impact.group.name,
            slug: impact.group.slug,
            member_count: impact.members,
            contract_count: impact.contracts.len(),
            contracts: impact.contracts.into_iter().map(super::lower).collect(),
        }
    }
}

/// The number of deleted groups.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GroupBatchDeleteResponse {
    pub(crate) deleted_count: usize,
}
