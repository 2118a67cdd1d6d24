//! Findings of the sealer: in the security stream, and counted.

use gw_audit::{SecurityEvent, SecurityKind, Stream};
use gw_journal::Journal;

/// Something in a chain, or on the way to it, is not what was written.
#[derive(Clone, Debug)]
pub(crate) struct Alarm {
    /// The chain's stream.
    pub(super) stream: Stream,
    /// A code and, behind a colon, the ids it is about.
    pub(super) reason: String,
    /// How many entries are concerned.
    pub(super) count: Option<u64>,
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

/// Records a finding. The caller writes the line for the operator.
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
        tracing::error!(%kind, %error, "a finding of the sealer could not be recorded");
    }
}
