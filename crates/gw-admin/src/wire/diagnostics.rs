use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A call to try.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct TestRequestInput {
    /// An access token of whom the call is tried as; without one it is an anonymous caller's.
    pub(crate) jwt_token: Option<String>,
    pub(crate) method: String,
    /// The organization the call names; required for administrators of organizations.
    pub(crate) org_id: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(crate) params: Vec<Value>,
    /// Sends take effect: they run only with this, and for super administrators.
    #[serde(default)]
    pub(crate) allow_write: bool,
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestRequestResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) result: Option<Value>,
    /// What the caller is told, and in parentheses why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Who the call was tried as.
    pub(crate) identity: String,
    pub(crate) latency_ms: i64,
}
