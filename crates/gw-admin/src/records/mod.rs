//! `/logs` and `/audit-logs`: the access log and the audit log.
pub(crate) mod audit_logs;
pub(crate) mod logs;
