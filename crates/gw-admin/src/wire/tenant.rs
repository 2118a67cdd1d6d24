use gw_store::record;
use gw_types::{AllowedTenantId, GroupId, OrgId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A directory tenant whose users may log in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AllowedDirectoryTenant {
    #[schema(value_type = String, format = Uuid)]
    id: AllowedTenantId,
    #[schema(value_type = String, format = Uuid)]
    tenant_id: TenantId,
    label: String,
    auto_provision: bool,
    /// Whether the tenant's users are locked out for now.
    disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    default_org_id: Option<OrgId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    default_group_id: Option<GroupId>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<record::AllowedTenant> for AllowedDirectoryTenant {
    fn from(row: record::AllowedTenant) -> Self {
        Self {
            id: row.id,
            tenant_id: row.tenant,
            label: row.label,
            auto_provision: row.auto_provision,
            disabled: row.disabled,
            default_org_id: row.default_org,
            default_group_id: row.default_group,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Adds a tenant to the list.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct DirectoryTenantCreateRequest {
    #[schema(format = Uuid)]
    pub(crate) tenant_id: String,
    #[serde(default)]
    pub(crate) label: Option<String>,
    /// Whether unknown users of the tenant get an account at their first login; by default they do.
    #[serde(default)]
    pub(crate) auto_provision: Option<bool>,
    #[serde(default)]
    pub(crate) disabled: Option<bool>,
    /// The organization of the group that new users join.
    #[serde(default)]
    pub(crate) default_org_id: Option<String>,
    /// The group that new users join; without it the default group.
    #[serde(default)]
    pub(crate) default_group_id: Option<String>,
}

/// Changes a tenant; absent members keep their value, an empty id is cleared.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct DirectoryTenantUpdateRequest {
    #[serde(default)]
    pub(crate) tenant_id: Option<String>,
    #[serde(default)]
    pub(crate) label: Option<String>,
    #[serde(default)]
    pub(crate) auto_provision: Option<bool>,
    #[serde(default)]
    pub(crate) disabled: Option<bool>,
    #[serde(default)]
    pub(crate) default_org_id: Option<String>,
    #[serde(default)]
    pub(crate) default_group_id: Option<String>,
}
