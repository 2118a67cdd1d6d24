//! What is recorded here: security events of logins, tokens and links, and who read their own data (spec/70 section 1).

use crate::{routes::Provenance, state::IdentityState};
use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_audit::{AccessRecord, AuthMethod, Record, SecurityEvent, SecurityKind};
use gw_http::{ApiError, Authenticated, CorrelationId};
use std::sync::Arc;
use tracing::Instrument as _;

/// The journal took no record: what should have been recorded must not happen or not be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal took no record")]
pub struct NotRecorded;

/// Where records go: the journal, as it is wired in `gw-server`.
#[derive(Clone)]
pub struct SecuritySink(Arc<dyn Fn(usize) -> Result<Room, NotRecorded> + Send + Sync>);

/// Room for records, taken before an effect so that it cannot go unrecorded (HD22); given back when dropped.
pub struct Room(Box<dyn FnMut(Record) -> Result<(), NotRecorded> + Send>);

impl SecuritySink {
    /// A sink that takes room for so many records from `reserve`.
    pub fn new(reserve: impl Fn(usize) -> Result<Room, NotRecorded> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reserve))
    }

    /// Room for so many records.
    pub(crate) fn reserve(&self, records: usize) -> Result<Room, NotRecorded> {
        (self.0)(records)
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
    /// Room that `append` fills; it returns once the record is in the journal.
    pub fn new(append: impl FnMut(Record) -> Result<(), NotRecorded> + Send + 'static) -> Self {
        Self(Box::new(append))
    }

    /// Writes one record.
    pub(crate) fn record(&mut self, record: impl Into<Record>) -> Result<(), NotRecorded> {
        (self.0)(record.into())
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

/// One access record per request for the caller's own data, refusals included. Room for it is taken first, and it is
/// written before the answer leaves; whether anybody waits for the answer makes no difference (HD21).
pub(crate) async fn recorded(State(state): State<IdentityState>, request: Request, next: Next) -> Response {
    let tasks = state.tasks.clone();
    let work = answer_and_record(state, request, next).in_current_span();
    tasks
        .spawn(work)
        .await
        .unwrap_or_else(|_| ApiError::internal().into_response())
}

async fn answer_and_record(state: IdentityState, request: Request, next: Next) -> Response {
    let Ok(mut room) = state.security.reserve(1) else {
        return ApiError::audit_unavailable().into_response();
    };
    let began = state.edge.now();
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unmatched", MatchedPath::as_str);
    let mut record = AccessRecord::new(format!("{} {path}", request.method()), 0);
    record.ip_address = Some(state.edge.client(request.extensions(), request.headers()).0);
    record.correlation_id = request
        .extensions()
        .get::<CorrelationId>()
        .map(|id| id.as_str().to_owned().into());
    if let Ok(caller) = Authenticated::of(&state.edge, request.headers()) {
        record.external_id = Some(caller.user.external_id.clone());
        record.auth_method = if caller.by_cookie {
            AuthMethod::Cookie
        } else {
            AuthMethod::Bearer
        };
        record.policy_epoch = Some(caller.snapshot.epoch());
    }
    let answer = next.run(request).await;
    record.status_code = answer.status().as_u16();
    record.duration_us = u64::try_from(state.edge.now().micros().saturating_sub(began.micros())).unwrap_or(0);
    match room.record(record) {
        Ok(()) => answer,
        Err(NotRecorded) => ApiError::audit_unavailable().into_response(),
    }
}
