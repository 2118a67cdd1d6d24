//! `/logs` and `/audit-logs`
pub(crate) mod audit_logs;
pub(crate) mod logs;
