//! The access record of a JSON-RPC call (spec/20 §15). It is written before the answer leaves, even if the client has
//! gone.
//!
//! Room in the journal is reserved before the call has any effect, so that a call that cannot be recorded does not
//! happen. [`gw_journal::AccessRecorder`] guarantees that the call leaves exactly one record.

use crate::{outcome::RpcOutcome, request::RequestContext, state::RpcContext, telemetry::CallOutcome};
use gw_audit::{AccessRecord, MatchedVia, TraceKind};
use gw_evm::{AllowListMatch, Class, Method, MethodLookup};
use gw_http::{ReadOrigin, feed_reveals, journal_reads};
use gw_journal::{AccessRecorder, Journal, WhenFull};
use gw_policy::{access::DeniedFrame, visibility::GrantUses};
use gw_types::{Epoch, OrgId};
use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

/// Writes the access record of one JSON-RPC call and counts the call.
#[derive(Debug)]
pub(crate) struct CallRecorder {
    state: Arc<RpcContext>,
    method: Option<Method>,
    is_authenticated: bool,
    recorder: AccessRecorder,
    pub(crate) record: CallRecord,
}

/// The data that the steps of a call add to its record.
#[derive(Debug, Default)]
pub(crate) struct CallRecord {
    pub(crate) org: Option<OrgId>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) params: Option<String>,
    pub(crate) trace: Option<TraceKind>,
    /// Which entry of an allow-list permits a custom method.
    pub(crate) allow_list_match: Option<AllowListMatch>,
    /// The frame at which an execution was denied, for an impersonating administrator (V1).
    pub(crate) denied_frame: Option<DeniedFrame>,
    /// The grants of disclosure that the answer needs.
    pub(crate) grant_uses: GrantUses,
    upstream: Option<Duration>,
}

impl CallRecord {
    /// Waits for a query to the node and counts the time. The record shows the query even if the client goes away
    /// meanwhile.
    pub(crate) async fn time_upstream<T>(&mut self, state: &RpcContext, query: impl Future<Output = T>) -> T {
        let before = *self.upstream.get_or_insert_default();
        let started_at = Instant::now();
        let answer = query.await;
        let elapsed = started_at.elapsed();
        self.upstream = Some(before + elapsed);
        state.metrics.node(elapsed);
        answer
    }
}

/// Journals the reads under the grants of disclosure that a result needs, and waits until they are on disk (spec/50
/// rule 39). A result whose reads cannot be journaled is replaced by [`RpcOutcome::AuditUnavailable`], whatever
/// `AUDIT_FULL_POLICY` allows.
pub(crate) async fn journal_grant_reads(
    journal: &Journal,
    record: &CallRecord,
    origin: impl FnOnce() -> ReadOrigin,
    outcome: RpcOutcome,
) -> RpcOutcome {
    if !matches!(outcome, RpcOutcome::Result(_)) {
        return outcome;
    }
    let uses = record.grant_uses.take();
    if uses.is_empty() {
        return outcome;
    }
    let reads = feed_reveals(uses, &origin());
    match journal_reads(journal, reads).await {
        Ok(()) => outcome,
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a read under a grant of disclosure cannot be recorded; nothing was shown"
            );
            RpcOutcome::AuditUnavailable
        }
    }
}

impl CallRecorder {
    /// The recorder of a call of the method `name`.
    pub(crate) fn for_call(
        state: &Arc<RpcContext>,
        request: &Arc<RequestContext>,
        lookup: &MethodLookup,
        name: &str,
    ) -> Result<Self, RpcOutcome> {
        // A custom method that is passed through may be a send.
        let may_write = |method: Option<Method>| method.is_none_or(|method| method.class() == Class::Write);
        match lookup {
            MethodLookup::Registered(method) => Self::open(
                state,
                request,
                Cow::Borrowed(method.as_str()),
                Some(*method),
                !may_write(Some(*method)),
            ),
            MethodLookup::Custom(custom) => Self::open(
                state,
                request,
                Cow::Owned(custom.name().to_owned()),
                custom.method(),
                !may_write(custom.method()),
            ),
            MethodLookup::Blocked | MethodLookup::Unknown => {
                Self::open(state, request, Cow::Owned(printable_method(name)), None, true)
            }
        }
    }

    /// The recorder of a request from which no call was parsed (L1).
    pub(crate) fn for_unparsed(state: &Arc<RpcContext>, request: &Arc<RequestContext>) -> Result<Self, RpcOutcome> {
        Self::open(state, request, Cow::Borrowed("unparsed"), None, true)
    }

    /// The recorder of an internal operation for a caller, such as a subscription delivery, under the name `name`.
    pub(crate) fn for_internal(
        state: &Arc<RpcContext>,
        request: &Arc<RequestContext>,
        name: &'static str,
    ) -> Result<Self, RpcOutcome> {
        Self::open(state, request, Cow::Borrowed(name), None, true)
    }

    fn open(
        state: &Arc<RpcContext>,
        request: &Arc<RequestContext>,
        name: Cow<'static, str>,
        method: Option<Method>,
        may_go_unrecorded: bool,
    ) -> Result<Self, RpcOutcome> {
        let record = AccessRecord {
            external_id: request.subject().cloned(),
            ip_address: Some(request.client.0),
            correlation_id: request.correlation_id.as_ref().map(|id| id.as_str().to_owned().into()),
            auth_method: request.auth,
            rpc_url_id: request.url_id(),
            ..AccessRecord::new(name, 0)
        };
        let when_full = if state.settings.open_reads && may_go_unrecorded {
            WhenFull::GoOn
        } else {
            WhenFull::Refuse
        };
        let recorder =
            AccessRecorder::open(state.journal(), record, when_full).map_err(|_| RpcOutcome::AuditUnavailable)?;
        let (state, is_authenticated) = (Arc::clone(state), request.subject().is_some());
        Ok(Self {
            state,
            method,
            is_authenticated,
            recorder,
            record: CallRecord::default(),
        })
    }

    /// Writes the record, and waits for its fsync if `durably`. Returns the outcome for the caller: one that cannot be
    /// recorded is replaced by [`RpcOutcome::AuditUnavailable`].
    pub(crate) async fn finish(mut self, outcome: RpcOutcome, durably: bool) -> RpcOutcome {
        let call = &self.recorder.record;
        let origin = || ReadOrigin {
            ip_address: call.ip_address,
            correlation_id: call.correlation_id.clone(),
        };
        let outcome = journal_grant_reads(self.state.journal(), &self.record, origin, outcome).await;
        let (status, wire_status) = (outcome.status(), outcome.wire_status(self.state.settings.denial_status));
        self.measure(&outcome);
        self.record.org = outcome.org().or(self.record.org);
        self.complete();
        let durably = durably || self.state.settings.wait_for_fsync;
        self.recorder.record.response_status = (wire_status != status).then(|| wire_status.as_u16());
        self.recorder.record.denial_reason = outcome.reason();
        match self.recorder.finish(status.as_u16(), durably).await {
            Ok(()) => outcome,
            Err(_) => RpcOutcome::AuditUnavailable,
        }
    }

    /// Copies the data from the steps of the call into its record.
    fn complete(&mut self) {
        let matched_via = self.record.epoch.and_then(|_| self.matched_via());
        let CallRecord {
            org,
            epoch,
            params,
            trace,
            upstream,
            ..
        } = &mut self.record;
        let record = &mut self.recorder.record;
        record.request_params = params.take();
        record.org_id = *org;
        record.node_called = upstream.is_some();
        record.upstream_ms = upstream.map(|duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX));
        record.policy_epoch = *epoch;
        record.matched_via = matched_via;
        record.trace_kind = *trace;
    }

    fn matched_via(&self) -> Option<MatchedVia> {
        match (
            self.record.allow_list_match,
            self.method.map(Method::class),
            self.is_authenticated,
        ) {
            (Some(AllowListMatch::ByPrefix), ..) => Some(MatchedVia::Prefix),
            (Some(AllowListMatch::ByName), ..) => Some(MatchedVia::Method),
            (None, None, _) => None,
            (None, Some(Class::Meta), _) => Some(MatchedVia::Metadata),
            (None, Some(_), false) => Some(MatchedVia::AnonymousList),
            (None, Some(_), true) => Some(MatchedVia::Method),
        }
    }

    fn measure(&self, outcome: &RpcOutcome) {
        let call_outcome = match outcome {
            RpcOutcome::Result(_) => CallOutcome::Success,
            outcome if outcome.status().is_client_error() => CallOutcome::Denied,
            _ => CallOutcome::Error,
        };
        self.state
            .metrics
            .call(self.method, call_outcome, self.recorder.elapsed());
        if let Some(reason) = outcome.reason() {
            metrics::counter!("ledger_gateway_denials_total", "reason_class" => reason.class()).increment(1);
        }
    }
}

/// The record of a call whose client has gone shows how far the call came.
impl Drop for CallRecorder {
    fn drop(&mut self) {
        self.complete();
    }
}

/// A method name that is not registered, shortened and with placeholders for unprintable characters.
fn printable_method(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .take(Method::NAME_MAX)
        .collect()
}
