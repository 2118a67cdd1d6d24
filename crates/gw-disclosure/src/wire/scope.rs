use gw_policy::{
    disclosure::{ScopeInput, scope::level_text},
    snapshot::DisclosureScope,
};
use gw_types::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a disclosure covers. An absent member restricts nothing; activity is covered only if `methods` names it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Scope {
    /// Classes of data and names of JSON-RPC methods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) methods: Option<Vec<String>>,
    /// Only transactions from or to one of these addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) addresses: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date_range: Option<DateRange>,
    /// `full`, `pseudonymous` or `redacted`.
    pub(crate) disclosure_level: &'static str,
}

/// A window of time; both ends belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct DateRange {
    #[schema(value_type = String, format = DateTime)]
    pub(crate) start: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) end: Timestamp,
}

impl From<&DisclosureScope> for Scope {
    fn from(scope: &DisclosureScope) -> Self {
        let addresses = scope.addresses.as_ref();
        Self {
            methods: scope.methods.clone(),
            addresses: addresses.map(|list| list.iter().map(|address| format!("{address:#x}")).collect()),
            date_range: scope.dates.map(|(start, end)| DateRange { start, end }),
            disclosure_level: level_text(scope.level),
        }
    }
}

/// What is requested or approved. In an approval, an absent member means what was requested.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct ScopeBody {
    /// Classes of data (`transaction_history`, `activity_logs`, `full_disclosure`) and names of JSON-RPC methods, which
    /// narrow the activity; at most 50.
    methods: Option<Vec<String>>,
    /// Only transactions from or to one of these addresses; at most 200.
    addresses: Option<Vec<String>>,
    date_range: Option<DateRangeBody>,
    /// `full`, `pseudonymous` or `redacted`; a request without it is for `redacted`.
    disclosure_level: Option<String>,
}

/// A window of time, RFC 3339; both ends belong to it, and both are needed.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default)]
pub(crate) struct DateRangeBody {
    start: Option<String>,
    end: Option<String>,
}

impl From<ScopeBody> for ScopeInput {
    fn from(body: ScopeBody) -> Self {
        Self {
            methods: body.methods,
            addresses: body.addresses,
            date_range: body.date_range.map(|range| (range.start, range.end)),
            level: body.disclosure_level,
        }
    }
}
