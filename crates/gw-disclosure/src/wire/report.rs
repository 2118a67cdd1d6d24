use super::scope::DateRange;
use gw_types::{DisclosureGrantId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A call of the owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ActivityLogEntry {
    /// The JSON-RPC method.
    pub(crate) method: String,
    /// The status that the owner was told.
    pub(crate) status_code: u16,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
}

/// The owner's calls that the grant covers, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ActivitySummary {
    pub(crate) total_requests: u64,
    /// Calls with a status of 2xx.
    pub(crate) successful_count: u64,
    /// Calls with a status of 400 or above.
    pub(crate) failed_count: u64,
    pub(crate) unique_method_count: u64,
    /// The number of calls of each method.
    pub(crate) method_breakdown: BTreeMap<String, u64>,
    /// The window of the calls that the grant covers.
    pub(crate) date_range: DateRange,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) generated_at: Timestamp,
}

/// A report under a grant. `signature` is over the whole report in the canonical form of RFC 8785, without the member
/// `signature`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Report {
    pub(crate) id: String,
    #[schema(value_type = String, format = Uuid)]
    pub(crate) grant_id: DisclosureGrantId,
    /// `activity_summary`, `sanctions_check` or `compliance_report`.
    pub(crate) report_type: String,
    #[schema(value_type = Object)]
    pub(crate) report_data: serde_json::Value,
    pub(crate) generated_at: String,
    /// Until when the same report is returned.
    pub(crate) expires_at: String,
    /// The digest of the newest signed checkpoint of the access log at the time of the report: `sha256:` and the
    /// SHA-256 of the note in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<String>,
    #[schema(value_type = Object)]
    pub(crate) signature: serde_json::Value,
}

/// A token for the reports of a grant. It is shown once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DisclosureTokenResponse {
    /// For the header `X-Disclosure-Token`.
    pub(crate) token: String,
    #[schema(value_type = String, format = Uuid)]
    pub(crate) grant_id: DisclosureGrantId,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) expires_at: Timestamp,
}
