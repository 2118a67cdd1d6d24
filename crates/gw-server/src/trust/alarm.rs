//! The alarm for tamper findings.

use crate::webhook::{Post, Webhook};
use gw_audit::{
    ChainId, SecurityEvent, SecurityKind, Stream,
    verify::{Finding, FindingKind, TableRow},
};
use gw_journal::Journal;
use gw_types::Clock;
use serde_json::json;
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Most findings that are reported. A history that was rewritten as a whole has more, and further reports would not
/// help.
const MAX_FINDINGS: usize = 4096;

/// Reports each tamper finding once: in the log, the metrics, the journal and to AUDIT_TAMPER_WEBHOOK_URL.
#[derive(Debug)]
pub(crate) struct TamperAlarm {
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    webhook: Option<Webhook>,
    raised: Mutex<HashSet<FindingKey>>,
    is_raised: AtomicBool,
    /// Whether the last verification read everything; `None` before the first one.
    is_complete: Mutex<Option<bool>>,
}

impl TamperAlarm {
    pub(crate) fn new(journal: Arc<Journal>, clock: Arc<dyn Clock>, webhook: Option<Webhook>) -> Self {
        Self {
            journal,
            clock,
            webhook,
            raised: Mutex::default(),
            is_raised: AtomicBool::new(false),
            is_complete: Mutex::default(),
        }
    }

    /// Whether there was a verification, and the last one read everything.
    pub(crate) fn is_verified(&self) -> bool {
        *self.is_complete.lock().unwrap_or_else(PoisonError::into_inner) == Some(true)
    }

    /// Records whether a verification read everything, and returns the same of the one before; `None` for the first.
    pub(crate) fn set_verified(&self, is_complete: bool) -> Option<bool> {
        let mut last = self.is_complete.lock().unwrap_or_else(PoisonError::into_inner);
        last.replace(is_complete)
    }

    /// Whether any finding was raised since the process started.
    pub(crate) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed)
    }

    /// Raises a finding about the outbox or the policy store. `reason` is a code, optionally followed by a colon and
    /// the affected ids. The caller must raise each finding only once, and logs the line for the operator.
    pub(crate) fn raise_outbox(&self, reason: String, count: Option<u64>) {
        self.raise_code(Stream::Admin, reason, count);
    }

    /// Raises a finding about a stream that only a security event records. `reason` is a code, optionally followed by a
    /// colon and details. The caller must raise each finding only once, and logs the line for the operator.
    pub(crate) fn raise_code(&self, stream: Stream, reason: String, count: Option<u64>) {
        self.is_raised.store(true, Ordering::Relaxed);
        let (chain, code) = (stream.as_str(), reason.split(':').next().unwrap_or_default().to_owned());
        metrics::counter!("ledger_gateway_audit_chain_integrity_violations_total", "chain" => chain, "reason" => code)
            .increment(1);
        if let Some(webhook) = &self.webhook {
            let body = json!({
                "type": SecurityKind::TamperDetected.as_str(),
                "chain": chain,
                "reason": reason,
                "count": count,
                "detected_at": self.clock.now().to_rfc3339(),
            });
            webhook.post(Post {
                content_type: "application/json",
                body: body.to_string(),
            });
        }
        let mut event = SecurityEvent::new(SecurityKind::TamperDetected);
        event.reason = Some(reason.into());
        event.count = count;
        if let Err(error) = self.journal.append(event) {
            tracing::error!(chain, %error, "the tamper finding could not be recorded in the journal");
        }
    }

    /// Raises a finding, unless it was raised before. `scanned` is the number of rows checked, `null_hashes` the number
    /// of those without a hash.
    pub(crate) fn raise(&self, chain: ChainId, finding: &Finding, scanned: u64, null_hashes: u64) {
        self.is_raised.store(true, Ordering::Relaxed);
        {
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            if raised.len() >= MAX_FINDINGS || !raised.insert((chain, finding.kind, finding.seq, finding.place)) {
                return;
            }
        }
        let reason = finding.kind.as_str();
        metrics::counter!(
            "ledger_gateway_audit_chain_integrity_violations_total", "chain" => chain.to_string(), "reason" => reason
        )
        .increment(1);
        let advice = match finding.kind {
            FindingKind::CheckpointMissing => {
                "entries of the audit log are overdue to be signed: start the instance that wrote them; if it is gone \
                 for good, run `ledger-gateway audit re-anchor`, which records that these entries were never signed"
            }
            FindingKind::JournalLost => {
                "records of a stopped writer were never sealed: find its journal directory, and run `ledger-gateway \
                 audit salvage` if it is damaged; if it is gone for good, run `ledger-gateway audit re-anchor`, which \
                 records the loss"
            }
            _ if finding.is_unverified() => {
                "a part of the audit log cannot be verified: check whether the table and its columns exist, whether a \
                 session has locked it, and the privileges of the role; run `ledger-gateway audit verify`"
            }
            _ => {
                "the audit log was tampered with: run `ledger-gateway audit verify`, and leave the database and the \
                 journal directory unchanged"
            }
        };
        let (table, row) = (
            finding.place.map(|place| place.table),
            finding.place.and_then(|place| place.id),
        );
        tracing::error!(%chain, reason, entry = finding.seq, table, row, "{advice}");
        let mut event = SecurityEvent::new(SecurityKind::TamperDetected);
        let place = match (table, row) {
            (Some(table), Some(row)) => format!(" {table}:{row}"),
            (Some(table), None) => format!(" {table}"),
            (None, _) => String::new(),
        };
        event.reason = Some(format!("{reason} {chain}{place}").into());
        event.count = finding.seq;
        if let Err(error) = self.journal.append(event) {
            tracing::error!(%chain, reason, %error, "the tamper finding could not be recorded in the journal");
        }
        if let Some(webhook) = &self.webhook {
            let body = json!({
                "type": SecurityKind::TamperDetected.as_str(),
                "chain": chain.to_string(),
                "reason": reason,
                "row_id": finding.seq,
                "table": table,
                "table_row_id": row,
                "row_time": finding.time.map(gw_types::Timestamp::to_rfc3339),
                "stored_hash": finding.stored,
                "expected_hash": finding.expected,
                "scanned_rows": scanned,
                "null_hash_rows": null_hashes,
                "detected_at": self.clock.now().to_rfc3339(),
            });
            webhook.post(Post {
                content_type: "application/json",
                body: body.to_string(),
            });
        }
    }
}

/// What makes a finding of a chain a different one.
type FindingKey = (ChainId, FindingKind, Option<u64>, Option<TableRow>);
