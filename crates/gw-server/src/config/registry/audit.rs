//! The audit store, the journal, checkpoints and retention.

use super::{DAY, STRONG};
use crate::config::{
    kind::{self, number, size, span, words},
    variable::{Kind, Section::Audit, Variable},
};
use gw_types::Secret;
use std::{path::PathBuf, time::Duration};
use url::Url;

registry! {
    /// Address of the audit store.
    AUDIT_DATABASE_URL: Secret = Variable::new(Audit, &kind::DATABASE)
        .secret()
        .derived("SQLite, `<DATA_DIR>/audit.db`; with DATABASE_URL, its database name with `_audit` appended")
        .rule("in production another database than DATABASE_URL");
    /// Address of the audit store with a role that may delete. Only this role prunes entries and erases personal
    /// values. Without it, nothing is pruned if the role of AUDIT_DATABASE_URL may not delete.
    AUDIT_ADMIN_DATABASE_URL: Secret = Variable::new(Audit, &kind::DATABASE)
        .secret()
        .rule("names the database of AUDIT_DATABASE_URL; in production with a password");
    /// Directory of the journal.
    AUDIT_BUFFER_DIR: PathBuf = Variable::new(Audit, &kind::PATH)
        .derived("`<DATA_DIR>/audit`")
        .required()
        .rule("in production no tmpfs or overlay");
    /// Most unsealed bytes in the journal while the audit store is unavailable.
    AUDIT_BUFFER_MAX_BYTES: u64 =
        Variable::new(Audit, kind!(u64, "a size from 64MiB such as `8GiB`", |t| size(t, 64 << 20)))
            .default("8GiB");
    /// Behaviour when the journal is full: every request is rejected (`closed`), or plain reads continue
    /// (`open_reads`).
    AUDIT_FULL_POLICY: FullPolicy = Variable::new(Audit, &FULL_POLICY_KIND).default("closed");
    /// Responses that wait until their record is on disk: those of sends and administration (`process`), or all
    /// (`power`).
    AUDIT_DURABILITY: Durability = Variable::new(Audit, &DURABILITY_KIND).default("process");
    /// Signs the checkpoints of the audit log.
    AUDIT_CHECKPOINT_KEY: Secret = Variable::new(Audit, &kind::SIGNING_KEY)
        .secret()
        .derived("generated and kept in DATA_DIR")
        .required()
        .rule(STRONG);
    /// Public halves of older checkpoint keys.
    AUDIT_CHECKPOINT_PUBLIC_KEYS_PREVIOUS: Vec<[u8; 32]> = Variable::new(Audit, &kind::PUBLIC_KEYS);
    /// Time between checkpoints.
    AUDIT_CHECKPOINT_INTERVAL: Duration =
        Variable::new(Audit, kind!(Duration, "a span from 1s to 24h", |t| span(t, 1, DAY)))
            .default("1m");
    /// Address of a witness: each signed checkpoint and each signed list of chains is posted there as text.
    AUDIT_WITNESS_URL: Url = Variable::new(Audit, &kind::UPSTREAM).shown_as_origin().rule("https in production");
    /// Time between the service's own verifications of the audit log; 0 switches them off.
    AUDIT_INTEGRITY_VERIFY_INTERVAL: Duration =
        Variable::new(Audit, kind!(Duration, "a span up to 24h; `0` switches it off", |t| span(t, 0, DAY)))
            .default("15m");
    /// Address that each finding of a verification is posted to, as JSON.
    AUDIT_TAMPER_WEBHOOK_URL: Url = Variable::new(Audit, &kind::UPSTREAM).shown_as_origin().rule("https in production");
    /// Records the (shortened) parameters of requests.
    AUDIT_LOG_PARAMS: bool = Variable::new(Audit, &kind::BOOL).default("false");
    /// How long calls and retrievals are kept.
    RETENTION_ACCESS_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("2160h");
    /// How long compliance decisions are kept.
    RETENTION_COMPLIANCE_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// How long changes by administrators are kept.
    RETENTION_RBAC_AUDIT_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("8760h");
    /// How long disclosure reads and state transitions are kept.
    RETENTION_DISCLOSURE_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// How long security events (logins, bans, links, findings) are kept.
    RETENTION_SECURITY_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("8760h");
    /// How long travel-rule records are kept. This version has no such records.
    RETENTION_TRAVEL_RECORDS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// Time between two sweeps that delete entries older than their retention.
    RETENTION_CLEANUP_INTERVAL: Duration =
        Variable::new(Audit, kind!(Duration, "a span from 1m to 24h", |t| span(t, 60, DAY)))
            .default("1h");
    /// Most calls and retrievals that are kept, newest first; `0` means no limit. Entries younger than 24 hours are
    /// always kept.
    MAX_ACCESS_LOG_ROWS: u64 = Variable::new(Audit, kind!(u64, "a whole number", |t| number(t, 0, u64::MAX)))
        .default("0");
}

words! {
    /// Behaviour when the journal is full (spec/70 rule 14).
    FullPolicy, FULL_POLICY_KIND, "`closed` or `open_reads`" {
        /// Every request is rejected.
        Closed = "closed",
        /// Plain reads continue.
        OpenReads = "open_reads",
    }
}
words! {
    /// Failures that audit records survive (decision 10).
    Durability, DURABILITY_KIND, "`process` or `power`" {
        /// Records of plain reads survive a crash of the process, all other records a power cut.
        Process = "process",
        /// Every record survives a power cut.
        Power = "power",
    }
}
