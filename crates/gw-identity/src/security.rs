//! Records of this crate: security events of logins, tokens and links, and access records of users who read their own
//! data (spec/70 section 1).

use crate::{request_info::RequestInfo, state::IdentityState};
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gw_audit::{AccessRecord, AuthMethod, SecurityEvent, SecurityKind};
use gw_http::{AuthenticatedUser, RequestRecorder};
use http::StatusCode;

impl IdentityState {
    /// Records a refusal. Nothing was given, so nothing needs undoing if it cannot be recorded.
    pub(crate) fn record_refusal(&self, event: SecurityEvent) {
        let kind = event.kind;
        if let Err(error) = self
            .journal
            .reserve(1)
            .and_then(|mut reservation| reservation.append(event))
        {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                event.kind = kind.as_str(),
                error,
                "a security event could not be recorded"
            );
        }
    }
}

/// An event of a request.
pub(crate) fn event(kind: SecurityKind, request_info: &RequestInfo) -> SecurityEvent {
    SecurityEvent {
        ip_address: Some(request_info.client.0),
        correlation_id: Some(request_info.correlation.as_str().to_owned().into()),
        ..SecurityEvent::new(kind)
    }
}

/// The middleware around the routes of the caller's own data.
pub(crate) async fn record(State(state): State<IdentityState>, request: Request, next: Next) -> Response {
    let caller = AuthenticatedUser::authenticate(&state.http_context, request.headers());
    let complete = move |record: &mut AccessRecord, _: StatusCode| {
        if let Ok(caller) = caller {
            record.external_id = Some(caller.user.external_id.clone());
            record.auth_method = if caller.by_cookie {
                AuthMethod::Cookie
            } else {
                AuthMethod::Bearer
            };
            record.policy_epoch = Some(caller.snapshot.epoch());
        }
    };
    let recorder = RequestRecorder {
        context: &state.http_context,
        journal: &state.journal,
        tasks: &state.tasks,
    };
    recorder.record(request, next, complete).await
}
