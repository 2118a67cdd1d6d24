//! Findings of the sealer: an event in the security stream and a metric for each.

use gw_audit::{SecurityEvent, SecurityKind, Stream};
use gw_journal::Journal;

/// A finding: an entry of a chain, or a record for it, differs from what was written.
#[derive(Clone, Debug)]
pub(crate) struct Alarm {
    /// The chain's stream.
    pub(super) stream: Stream,
    /// A code and, after a colon, the affected ids.
    pub(crate) reason: String,
    /// Number of affected entries.
    pub(crate) count: Option<u64>,
}

impl Alarm {
    /// An alarm about the administrative chain.
    pub(crate) const fn of_admin(reason: String) -> Self {
        Self {
            stream: Stream::Admin,
            reason,
            count: None,
        }
    }
}

/// Records and counts a finding. The caller writes the log line for the operator.
pub(crate) fn raise(journal: &Journal, alarm: Alarm) {
    let code = alarm.reason.split(':').next().unwrap_or_default().to_owned();
    let chain = alarm.stream.as_str();
    metrics::counter!("ledger_gateway_audit_chain_integrity_violations_total", "chain" => chain, "reason" => code)
        .increment(1);
    record(journal, SecurityKind::TamperDetected, alarm.reason, alarm.count);
}

/// Records an event of the sealer.
pub(super) fn record(journal: &Journal, kind: SecurityKind, reason: String, count: Option<u64>) {
    let mut event = SecurityEvent::new(kind);
    event.reason = Some(reason.into());
    event.count = count;
    if let Err(error) = journal.append(event) {
        tracing::error!(%kind, %error, "the journal did not accept a finding of the sealer");
    }
}
