//! The access record of every request (E12). It names the route, never the addresses in its path. An answer with rows
//! that are shown only under audit leaves a security event besides (K10), and one that needs grants of disclosure a
//! read under each of them (spec/50 rule 39).

use crate::{error::ExplorerError, state::ExplorerState};
use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use gw_audit::{AccessRecord, AuthMethod, SecurityEvent, SecurityKind};
use gw_http::{ApiError, CorrelationId, ReadOrigin, RequestRecorder, feed_reveals};
use gw_policy::visibility::GrantUses;
use gw_types::{Epoch, ExternalId, OrgId};
use http::StatusCode;
use std::{
    borrow::Cow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Carries what a handler learns of a request to its record.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSlot(Arc<Details>);

#[derive(Debug, Default)]
struct Details {
    caller: OnceLock<(Option<ExternalId>, AuthMethod)>,
    epoch: OnceLock<Epoch>,
    org: OnceLock<OrgId>,
    audited_rows: AtomicU64,
    grant_uses: GrantUses,
}

impl CallerSlot {
    pub(crate) fn set(&self, caller: ExternalId, auth_method: AuthMethod) {
        // The first caller is kept: every extractor of a request finds the same one.
        let _first = self.0.caller.set((Some(caller), auth_method));
    }

    /// Notes that the caller has a platform token.
    pub(crate) fn set_platform(&self) {
        let _first = self.0.caller.set((None, AuthMethod::AdminToken));
    }

    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        let _first = self.0.epoch.set(epoch);
    }

    /// Files the record under the organization that the request changed (HD12).
    pub(crate) fn set_org(&self, org: OrgId) {
        let _first = self.0.org.set(org);
    }

    /// Notes that the answer contains a row that is shown only under audit (K10, spec/30 section 2.4).
    pub(crate) fn note_audited_row(&self) {
        self.0.audited_rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Where the grants of disclosure are collected that the answer needs.
    pub(crate) fn grant_uses(&self) -> &GrantUses {
        &self.0.grant_uses
    }

    fn audited_rows(&self) -> u64 {
        self.0.audited_rows.load(Ordering::Relaxed)
    }
}

/// Middleware around every route of the explorer that writes the access record.
pub(crate) async fn record(State(state): State<ExplorerState>, mut request: Request, next: Next) -> Response {
    let slot = CallerSlot::default();
    request.extensions_mut().insert(slot.clone());
    let complete = move |record: &mut AccessRecord, _: StatusCode| {
        let details = &slot.0;
        if let Some((caller, auth_method)) = details.caller.get() {
            record.external_id.clone_from(caller);
            record.auth_method = *auth_method;
        }
        record.org_id = details.org.get().copied();
        record.policy_epoch = details.epoch.get().copied();
        if slot.audited_rows() > 0 {
            record.request_params = Some(r#"{"audited_rows":true}"#.to_owned());
        }
    };
    let recorder = RequestRecorder {
        context: &state.http_context,
        journal: &state.journal,
        tasks: &state.tasks,
    };
    recorder.record(request, next, complete).await
}

/// Middleware inside [`record`]: an answer with rows that are shown only under audit leaves once a security event about
/// it is on disk (K10), and one that needs grants of disclosure once the reads under them are (spec/50 rule 39).
/// Otherwise it is 503.
pub(crate) async fn audit(State(state): State<ExplorerState>, request: Request, next: Next) -> Response {
    let slot = request.extensions().get::<CallerSlot>().cloned().unwrap_or_default();
    let route = request.extensions().get::<MatchedPath>();
    let route = format!(
        "{} {}",
        request.method(),
        route.map_or("unmatched", MatchedPath::as_str)
    );
    let ip_address = state.http_context.client(request.extensions(), request.headers()).0;
    let correlation_id = request.extensions().get::<CorrelationId>();
    let correlation_id: Option<Cow<'static, str>> = correlation_id.map(|id| id.as_str().to_owned().into());
    let origin = ReadOrigin {
        ip_address: Some(ip_address),
        correlation_id: correlation_id.clone(),
    };
    let answer = next.run(request).await;
    if !answer.status().is_success() {
        return answer;
    }
    let reads = feed_reveals(slot.grant_uses().take(), &origin);
    if !reads.is_empty()
        && let Err(fault) = state.grants.record(reads).await
    {
        return ExplorerError::from(fault).into_response();
    }
    let rows = slot.audited_rows();
    if rows == 0 {
        return answer;
    }
    let event = SecurityEvent {
        external_id: slot.0.caller.get().and_then(|(caller, _)| caller.clone()),
        org_id: slot.0.org.get().copied(),
        ip_address: Some(ip_address),
        correlation_id,
        reason: Some(route.into()),
        count: Some(rows),
        ..SecurityEvent::new(SecurityKind::AuditedRowsShown)
    };
    let written = match state.journal.append(event) {
        Ok(position) => state.journal.durable(position).await,
        Err(error) => Err(error),
    };
    match written {
        Ok(_) => answer,
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the security event about rows that are shown only under audit could not be written: nothing was shown"
            );
            ApiError::audit_unavailable().into_response()
        }
    }
}
