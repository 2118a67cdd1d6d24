use gw_types::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a system toggle stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SystemToggleResponse {
    pub(crate) enabled: bool,
    /// What the configuration says.
    pub(crate) env_default: bool,
    /// `env` or `runtime`.
    pub(crate) source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) changed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// When the configuration decides again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
}

/// Turns a system toggle for a while.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct SystemToggleRequest {
    pub(crate) enabled: bool,
    /// 1 to 500 characters.
    #[serde(default)]
    pub(crate) reason: String,
    /// RFC 3339, at most 24 hours ahead, which is also the default.
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}
