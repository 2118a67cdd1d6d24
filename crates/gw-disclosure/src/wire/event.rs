use super::scope::DateRange;
use gw_types::{DisclosureGrantId, ExternalId, Timestamp, UserId};
use serde::Serialize;
use std::net::IpAddr;
use utoipa::ToSchema;

/// A row of the events of a grant.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EventRow {
    /// An event.
    Event(Box<Event>),
    /// A row that was changed in the audit database.
    Tampered(TamperedRow),
}

/// An event of a grant: a read under it, or a change of it or of its request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Event {
    /// The id of the event; ids have no order.
    pub(crate) id: u64,
    #[schema(value_type = String, format = Uuid)]
    pub(crate) grant_id: DisclosureGrantId,
    /// The user who read or decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    pub(crate) viewer_user_id: Option<UserId>,
    /// The DID of the user who read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) viewer_did: Option<ExternalId>,
    /// `view_logs`, `view_transactions`, `view_summary`, `export_report`, `view_addresses`, `resolve`, `feed_reveal`,
    /// `requested`, `approved`, `rejected`, `revoked`, `expired` or `deleted`.
    pub(crate) action: &'static str,
    /// What was read: `access_logs`, `transactions`, `summary`, `report` or `addresses`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_summary: Option<DataSummary>,
    /// The address from which it was read; only for the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) viewer_ip: Option<IpAddr>,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) accessed_at: Timestamp,
}

/// What a read returned.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct DataSummary {
    /// The number of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record_count: Option<u64>,
    /// The times of the oldest and of the newest row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date_range: Option<DateRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) methods: Option<Vec<String>>,
    /// The owner's addresses that were read; only for the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) addresses: Option<Vec<String>>,
}

/// An event that was changed in the audit database. `audit verify` reports the change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TamperedRow {
    pub(crate) id: u64,
    /// Always true.
    pub(crate) tampered: bool,
    /// When it happened, if the row's own bytes still prove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) accessed_at: Option<Timestamp>,
}
