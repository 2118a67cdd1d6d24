use crate::scope::Admin;
use gw_audit::{Action, AuthMethod, MatchedVia, OutboxFault, ResourceType, TraceKind};
use gw_store::audit;
use gw_types::{DenyReason, OrgId, PersonalUrlId, Timestamp, UserId};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, net::IpAddr};
use utoipa::ToSchema;

/// Calls and retrievals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AdminLogsResponse {
    pub(crate) data: Vec<AccessLogRow>,
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
}

/// A row of the access log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AccessLogRow {
    /// As it was sealed.
    Sealed(Box<AccessLog>),
    /// Not as it was sealed.
    Tampered(TamperedRow),
}

impl AccessLogRow {
    /// As this administrator reads it.
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
    /// As it was sealed, or as it waits to be.
    Entry(Box<AuditLogEntry>),
    /// Not as it was sealed.
    Tampered(TamperedRow),
}

impl AuditLogRow {
    /// As this administrator reads it.
    pub(crate) fn new(row: audit::LogRow<audit::AuditLog>, admin: &Admin) -> Self {
        match row {
            audit::LogRow::Entry(row) => Self::Entry(Box::new(AuditLogEntry::new(row, admin))),
            audit::LogRow::Tampered(row) => Self::Tampered(TamperedRow::new(row, admin)),
        }
    }
}

/// A row that was changed in the audit database: its bytes do not make the stored hash, it is not in its place in the chain,
/// or its columns differ from its bytes. `audit verify` names the change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TamperedRow {
    /// Names the row; it may have been changed, too.
    id: i64,
    /// Always true.
    tampered: bool,
    /// Only where the entry's own bytes still prove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Timestamp>,
}

impl TamperedRow {
    /// Who may not know how many rows there are is told a name that does not count (HD40).
    fn new(row: audit::TamperedRow, admin: &Admin) -> Self {
        let opaque = || row.hash.map_or(0, |hash| opaque(hash.as_ref()));
        let id = if admin.is_super() { row.id } else { opaque() };
        Self {
            id,
            tampered: true,
            created_at: row.created_at,
        }
    }
}

/// One call or retrieval, as sealed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccessLog {
    /// Names the record; super: in the order of their sealing. To others it says nothing: not how many calls the platform
    /// had between two of them.
    id: i64,
    /// Empty for anonymous callers and for administrative tokens.
    external_id: String,
    method: Cow<'static, str>,
    /// The true outcome.
    status_code: u16,
    /// What the caller was told, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<u16>,
    #[schema(value_type = Option<String>)]
    ip_address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<Cow<'static, str>>,
    /// Redacted parameters; super only (HD12).
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
    /// The personal RPC URL the call came by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    rpc_url_id: Option<PersonalUrlId>,
    duration_us: u64,
    node_called: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_ms: Option<u32>,
    /// Which policy it was judged by, counted over the platform; super only.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    matched_via: Option<MatchedVia>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    trace_kind: Option<TraceKind>,
    /// SHA-256 over the entry's bytes.
    entry_hash: String,
    hash_format_version: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl AccessLog {
    /// As this administrator reads it: only super learns what others do and have (HD12, HD18, HD40).
    pub(crate) fn new(row: audit::AccessLog, admin: &Admin) -> Self {
        if admin.is_super() {
            return Self::whole(row);
        }
        let id = opaque(row.hash.as_ref());
        let mut shown = Self {
            id,
            request_params: None,
            policy_epoch: None,
            ..Self::whole(row)
        };
        if let Some(reason) = shown.denial_reason.map(|reason| admin.visible_reason(reason)) {
            shown.denial_reason = Some(reason);
            // The gateway asks the node for some foreign contracts and for no unregistered address.
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

    /// As super reads it.
    fn whole(row: audit::AccessLog) -> Self {
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

/// A number that names an entry and nothing else: the first 52 bits of its hash, which every reader of JSON takes exactly.
fn opaque(hash: &[u8]) -> i64 {
    hash.first_chunk::<8>()
        .map_or(0, |first| i64::try_from(u64::from_be_bytes(*first) >> 12).unwrap_or(0))
}

/// One mutation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditLogEntry {
    /// The number of the entry: among those of its organization, from 1; for super among all.
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
    /// Absent until the entry is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_hash: Option<String>,
    /// True if no mutation wrote the row so: what the entry says is what was found. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    tampered: Option<bool>,
    /// What is wrong with the row, where `tampered` says so: `unauthenticated` (changed or forged), `replaced` (another row
    /// than was committed), `id_reused` (another entry was sealed under its id before), `missing` (there is none; the entry
    /// stands for it).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    outbox_fault: Option<OutboxFault>,
}

impl AuditLogEntry {
    /// As this administrator reads it (HD18, HD40).
    pub(crate) fn new(row: audit::AuditLog, admin: &Admin) -> Self {
        let own = row
            .org_seq
            .map_or(0, |seq| i64::try_from(seq.saturating_add(1)).unwrap_or(i64::MAX));
        let entry = row.entry;
        let json = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        Self {
            id: if admin.is_super() { row.id } else { own },
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
