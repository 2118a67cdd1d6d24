use crate::scope::Admin;
use gw_audit::{Action, AuthMethod, MatchedVia, OutboxFault, ResourceType, TraceKind};
use gw_store::audit;
use gw_types::{DenyReason, OrgId, PersonalUrlId, Timestamp, UserId};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, net::IpAddr};
use utoipa::ToSchema;

/// A page of the access log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AdminLogsResponse {
    pub(crate) data: Vec<AccessLogRow>,
    /// The number of rows of the whole list.
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    /// For the query parameter `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// A page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditLogsResponse {
    pub(crate) data: Vec<AuditLogRow>,
    /// The number of rows of the whole list.
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    /// For the query parameter `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// The audit log: the rows alone, or with `envelope=true` a page.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AuditLogs {
    /// The rows; their number is in `X-Total-Count`.
    Rows(Vec<AuditLogRow>),
    /// A page.
    Page(AuditLogsResponse),
}

/// A row of the access log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AccessLogRow {
    /// An unchanged row.
    Sealed(Box<AccessLog>),
    /// A row that was changed after sealing.
    Tampered(TamperedRow),
}

impl AccessLogRow {
    /// The row as this administrator may read it.
    pub(crate) fn new(row: audit::LogRow<audit::AccessLog>, admin: &Admin) -> Self {
        match row {
            audit::LogRow::Entry(row) => Self::Sealed(Box::new(AccessLog::new(row, admin))),
            audit::LogRow::Tampered(row) => Self::Tampered(TamperedRow::new(row, admin)),
        }
    }
}

/// A row of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AuditLogRow {
    /// An unchanged row, sealed or waiting to be sealed.
    Entry(Box<AuditLogEntry>),
    /// A row that was changed after sealing.
    Tampered(TamperedRow),
}

impl AuditLogRow {
    /// The row as this administrator may read it.
    pub(crate) fn new(row: audit::LogRow<audit::AuditLog>, admin: &Admin) -> Self {
        match row {
            audit::LogRow::Entry(row) => Self::Entry(Box::new(AuditLogEntry::new(row, admin))),
            audit::LogRow::Tampered(row) => Self::Tampered(TamperedRow::new(row, admin)),
        }
    }
}

/// A row that was changed in the audit database: its bytes do not match the stored hash, it is not in its place in the
/// chain, or its columns differ from its bytes. `audit verify` reports the change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TamperedRow {
    /// The row's id, which may have been changed, too.
    id: i64,
    /// Always true.
    tampered: bool,
    /// The time, present only if the entry's own bytes still prove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Timestamp>,
}

impl TamperedRow {
    /// Administrators other than super get an id without an order, because row numbers reveal how many rows there are
    /// (HD40).
    fn new(row: audit::TamperedRow, admin: &Admin) -> Self {
        let unordered_id = || row.hash.map_or(0, |hash| opaque_id(hash.as_ref()));
        let id = if admin.is_super() { row.id } else { unordered_id() };
        Self {
            id,
            tampered: true,
            created_at: row.created_at,
        }
    }
}

/// A call or retrieval, as sealed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccessLog {
    /// The id of the record. For super, ids follow the order of sealing. For others, ids have no order, so that they do
    /// not reveal how many calls the platform had.
    id: i64,
    /// Empty for anonymous callers and for administrative tokens.
    external_id: String,
    method: Cow<'static, str>,
    /// The true HTTP status of the outcome.
    status_code: u16,
    /// The HTTP status sent to the caller, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<u16>,
    #[schema(value_type = Option<String>)]
    ip_address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<Cow<'static, str>>,
    /// The redacted parameters; super only (HD12).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    request_params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    org_id: Option<OrgId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    denial_reason: Option<DenyReason>,
    #[schema(value_type = String)]
    auth_method: AuthMethod,
    /// The personal RPC URL that the caller used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    rpc_url_id: Option<PersonalUrlId>,
    duration_us: u64,
    node_called: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_ms: Option<u32>,
    /// The policy epoch of the decision, a platform-wide counter; super only.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    matched_via: Option<MatchedVia>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    trace_kind: Option<TraceKind>,
    /// SHA-256 of the entry's bytes.
    entry_hash: String,
    hash_format_version: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl AccessLog {
    /// The record as this administrator may read it: only super learns about other organizations (HD12, HD18, HD40).
    pub(crate) fn new(row: audit::AccessLog, admin: &Admin) -> Self {
        if admin.is_super() {
            return Self::unredacted(row);
        }
        let id = opaque_id(row.hash.as_ref());
        let mut shown = Self {
            id,
            request_params: None,
            policy_epoch: None,
            ..Self::unredacted(row)
        };
        if let Some(reason) = shown.denial_reason.map(|reason| admin.visible_reason(reason)) {
            shown.denial_reason = Some(reason);
            // For some contracts of other organizations the gateway queries the node, for unregistered addresses never:
            // these members would tell the two apart.
            if reason == DenyReason::Unregistered {
                (
                    shown.node_called,
                    shown.upstream_ms,
                    shown.trace_kind,
                    shown.matched_via,
                ) = (false, None, None, None);
            }
        }
        shown
    }

    /// The whole record, for super.
    fn unredacted(row: audit::AccessLog) -> Self {
        let record = row.record;
        Self {
            id: row.id,
            external_id: record.external_id.map_or_else(String::new, String::from),
            method: record.method,
            status_code: record.status_code,
            response_status: record.response_status,
            ip_address: record.ip_address,
            correlation_id: record.correlation_id,
            request_params: record
                .request_params
                .and_then(|params| RawValue::from_string(params).ok()),
            org_id: record.org_id,
            denial_reason: record.denial_reason,
            auth_method: record.auth_method,
            rpc_url_id: record.rpc_url_id,
            duration_us: record.duration_us,
            node_called: record.node_called,
            upstream_ms: record.upstream_ms,
            policy_epoch: record.policy_epoch.map(|epoch| epoch.0),
            matched_via: record.matched_via,
            trace_kind: record.trace_kind,
            entry_hash: hex::encode(row.hash),
            hash_format_version: gw_audit::ENTRY_VERSION,
            created_at: row.created_at,
        }
    }
}

/// An id without meaning: the first 52 bits of the entry's hash, which every JSON reader represents exactly.
fn opaque_id(hash: &[u8]) -> i64 {
    hash.first_chunk::<8>()
        .map_or(0, |first| i64::try_from(u64::from_be_bytes(*first) >> 12).unwrap_or(0))
}

/// A mutation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditLogEntry {
    /// The number of the entry: from 1 within its organization; for super, among all entries.
    id: i64,
    #[schema(value_type = String)]
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    actor_id: Option<UserId>,
    actor_external_id: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>)]
    ip_address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    org_id: Option<OrgId>,
    resource_id: String,
    resource_name: String,
    #[schema(value_type = String)]
    resource_type: ResourceType,
    #[schema(value_type = Option<Object>)]
    old_value: Option<Box<RawValue>>,
    #[schema(value_type = Option<Object>)]
    new_value: Option<Box<RawValue>>,
    /// SHA-256 of the entry's bytes; absent until the entry is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_hash: Option<String>,
    /// `true` if the row differs from what a mutation wrote: the entry shows what was found. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    tampered: Option<bool>,
    /// The fault of a row with `tampered`: `unauthenticated` (changed or forged), `replaced` (not the row that was
    /// committed), `id_reused` (another entry was sealed under its id before), `missing` (the row is gone, and this
    /// entry takes its place).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    outbox_fault: Option<OutboxFault>,
}

impl AuditLogEntry {
    /// The entry as this administrator may read it (HD18, HD40).
    pub(crate) fn new(row: audit::AuditLog, admin: &Admin) -> Self {
        let number_in_org = row
            .org_seq
            .map_or(0, |seq| i64::try_from(seq.saturating_add(1)).unwrap_or(i64::MAX));
        let entry = row.entry;
        let json = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        Self {
            id: if admin.is_super() { row.id } else { number_in_org },
            action: entry.action,
            actor_id: entry.actor_id,
            actor_external_id: entry.actor_external_id.map(String::from).unwrap_or_default(),
            created_at: row.created_at,
            ip_address: entry.ip_address,
            correlation_id: entry.correlation_id.map(Cow::into_owned),
            org_id: entry.org_id,
            resource_id: entry.resource_id.unwrap_or_default(),
            resource_name: entry.resource_name.unwrap_or_default(),
            resource_type: entry.resource_type,
            old_value: json(entry.old_value),
            new_value: json(entry.new_value),
            entry_hash: row.hash.map(hex::encode),
            tampered: entry.outbox_fault.map(|_| true),
            outbox_fault: entry.outbox_fault,
        }
    }
}
