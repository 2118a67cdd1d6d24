//! The access record of every request (E12). It names the route, never the addresses in its path.

use crate::state::ExplorerState;
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gw_audit::{AccessRecord, AuthMethod};
use gw_http::RequestRecorder;
use gw_types::{Epoch, ExternalId, OrgId};
use http::StatusCode;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// Carries what a handler learns of a request to its record.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallerSlot(Arc<Details>);

#[derive(Debug, Default)]
struct Details {
    caller: OnceLock<(Option<ExternalId>, AuthMethod)>,
    epoch: OnceLock<Epoch>,
    org: OnceLock<OrgId>,
    shows_audited_rows: AtomicBool,
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
        self.0.shows_audited_rows.store(true, Ordering::Relaxed);
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
        if details.shows_audited_rows.load(Ordering::Relaxed) {
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
