//! Security events of logins, tokens and links (spec/70 section 1).

use crate::routes::Provenance;
use gw_audit::{SecurityEvent, SecurityKind};
use std::sync::Arc;

/// The journal took no record: what should have been recorded must not happen or not be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal took no record")]
pub struct NotRecorded;

/// Where security events go: the journal, as it is wired in `gw-server`.
#[derive(Clone)]
pub struct SecuritySink(Arc<dyn Fn(usize) -> Result<Room, NotRecorded> + Send + Sync>);

/// Room for records, taken before an effect so that it cannot go unrecorded (HD22); given back when dropped.
pub struct Room(Box<dyn FnMut(SecurityEvent) -> Result<(), NotRecorded> + Send>);

impl SecuritySink {
    /// A sink that takes room for so many events from `reserve`.
    pub fn new(reserve: impl Fn(usize) -> Result<Room, NotRecorded> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reserve))
    }

    /// Room for `events` events.
    pub(crate) fn reserve(&self, events: usize) -> Result<Room, NotRecorded> {
        (self.0)(events)
    }

    /// Records a refusal: nothing was given, so nothing needs undoing if it cannot be recorded.
    pub(crate) fn note(&self, event: SecurityEvent) {
        let kind = event.kind;
        if self.reserve(1).and_then(|mut room| room.record(event)).is_err() {
            tracing::error!(event.kind = kind.as_str(), "a security event could not be recorded");
        }
    }
}

impl Room {
    /// Room that `append` fills; it returns once the event is in the journal.
    pub fn new(append: impl FnMut(SecurityEvent) -> Result<(), NotRecorded> + Send + 'static) -> Self {
        Self(Box::new(append))
    }

    /// Records one event.
    pub(crate) fn record(&mut self, event: SecurityEvent) -> Result<(), NotRecorded> {
        (self.0)(event)
    }
}

impl core::fmt::Debug for Room {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Room")
    }
}

impl core::fmt::Debug for SecuritySink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SecuritySink")
    }
}

/// An event of a request.
pub(crate) fn event(kind: SecurityKind, provenance: &Provenance) -> SecurityEvent {
    SecurityEvent {
        ip_address: Some(provenance.client.0),
        correlation_id: Some(provenance.correlation.as_str().to_owned().into()),
        ..SecurityEvent::new(kind)
    }
}
