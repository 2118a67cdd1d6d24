//! What happened without a record while the journal had no room: calls that were answered
//! (`AUDIT_FULL_POLICY=open_reads`), and security events. Calls are counted, and logged once; when a record can be
//! written again, a security event has their number, and the events that waited are written.

use crate::error::JournalError;
use gw_audit::{SecurityEvent, SecurityKind};
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// Calls and events that are not in the journal yet.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded {
    state: Mutex<State>,
    /// Whether there are any; read without the lock, because every recorded call asks.
    has_any: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    events: Vec<SecurityEvent>,
}

impl Unrecorded {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that was answered without a record.
    pub(crate) fn add_call(&self) {
        metrics::counter!("ledger_gateway_unrecorded_calls_total").increment(1);
        let mut state = self.lock();
        if state.calls == 0 {
            tracing::error!(
                "the journal is full: reads are answered without an access record (AUDIT_FULL_POLICY=open_reads); make \
                 room on its disk, raise AUDIT_BUFFER_MAX_BYTES, or bring the audit database back"
            );
        }
        state.calls = state.calls.saturating_add(1);
        self.has_any.store(true, Ordering::Release);
    }

    /// Keeps an event until it can be written.
    pub(crate) fn add_event(&self, event: SecurityEvent) {
        self.lock().events.push(event);
        self.has_any.store(true, Ordering::Release);
    }

    /// Writes the events and the number of calls by `append`, after another record was written. What cannot be written
    /// is kept.
    pub(crate) fn write<T>(&self, append: impl Fn(SecurityEvent) -> Result<T, JournalError>) {
        if !self.has_any.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        while let Some(event) = state.events.first().cloned() {
            if append(event).is_err() {
                return;
            }
            state.events.remove(0);
        }
        if state.calls > 0 {
            let event = SecurityEvent {
                count: Some(state.calls),
                ..SecurityEvent::new(SecurityKind::CallsUnrecorded)
            };
            if append(event).is_err() {
                return;
            }
            tracing::warn!(
                count = state.calls,
                "calls are recorded again: so many were answered without an access record"
            );
            state.calls = 0;
        }
        self.has_any.store(false, Ordering::Release);
    }
}
