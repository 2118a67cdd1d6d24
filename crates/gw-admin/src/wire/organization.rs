use gw_store::record;
use gw_types::{OrgId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An organization.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Organization {
    #[schema(value_type = String, format = Uuid)]
    id: OrgId,
    name: String,
    slug: String,
    #[schema(value_type = Object)]
    settings: record::JsonObject,
    is_system: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<record::Organization> for Organization {
    fn from(row: record::Organization) -> Self {
        Self {
            id: row.id,
            name: row.name,
            slug: row.slug,
            settings: row.settings,
            is_system: row.is_system,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Creates an organization.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct OrgCreateRequest {
    pub(crate) name: String,
    pub(crate) slug: String,
    /// At most 16 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) settings: Option<record::JsonObject>,
}

/// Changes an organization; absent members keep their value.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct OrgUpdateRequest {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) slug: Option<String>,
    /// At most 16 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) settings: Option<record::JsonObject>,
}
