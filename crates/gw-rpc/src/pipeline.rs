//! Answers one call: the steps of spec/20 §17 around the decisions of `gw-policy`.

use crate::{
    call::{AuthorizedCall, CallContext, RpcCall},
    consent, execute,
    limits::ConcurrencyPermit,
    outcome::RpcOutcome,
    record::{CallRecord, CallRecorder},
    redact,
    request::RequestContext,
    send,
    state::RpcContext,
    subscriptions,
};
use gw_audit::TraceKind;
use gw_evm::{Class, Method, envelope::Request};
use gw_policy::{Disclosed, access::Plan};
use gw_types::DenyReason;
use std::sync::Arc;

/// The admission of calls to the node. The elements of a batch share one concurrency permit (J7), and a send that
/// outlives its connection keeps it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallAdmission {
    permit: Option<Arc<ConcurrencyPermit>>,
    /// Whether the answers of the batch so far leave no memory for another one.
    is_full: bool,
}

/// Answers one call and records it. Each step may reject the call; the later steps are skipped then.
///
/// The steps that run once per request come before, in `http` and `dispatch`: size, encoding, token, depth, duplicates,
/// envelope, batch.
pub(crate) async fn answer(
    state: &Arc<RpcContext>,
    request: &Arc<RequestContext>,
    wire: Request<'_>,
    admission: &mut CallAdmission,
) -> RpcOutcome {
    // Find the method by its canonical name.
    let lookup = state.settings.custom_methods.lookup(wire.method);
    // Reserve room for the record before anything happens that must be recorded.
    let mut recorder = match CallRecorder::for_call(state, request, &lookup, wire.method) {
        Ok(recorder) => recorder,
        Err(unavailable) => return unavailable,
    };
    // Check the rate limit before any work. Rejections are recorded, too: they show who exceeds the limit.
    if state.rates.try_acquire(request.subject(), request.client).is_err() {
        return recorder.finish(RpcOutcome::Busy(DenyReason::RateLimited), false).await;
    }
    // A call that names an organization for the first time accepts its invitation.
    consent::accept_named(state, request).await;
    // Parse the parameters. Only callers who may use the method see an error in them.
    let rpc_call = RpcCall::new(state, request, lookup, wire);
    if state.settings.log_params {
        recorder.record.params = Some(redact::params(&rpc_call));
    }
    // Authorize the call. The checks, in order: blocked method, stale policy; revoked, unknown and banned callers;
    // metadata; anonymous list; KYC; organization; method list; parameter error; multicall; history; target; grant;
    // slot, selector, parameters; upgrade; claims; sender.
    let authorized = match rpc_call.authorize() {
        Ok(authorized) => authorized,
        Err(rejection) => return recorder.finish(rejection, false).await,
    };
    recorder.record.org = authorized.permit().org();
    recorder.record.epoch = Some(authorized.permit().epoch());
    recorder.record.allow_list_match = authorized.permit().allow_list_match();
    let mut context = CallContext::new(&rpc_call, &mut recorder.record, authorized);
    if let Some(answer) = answer_locally(&context) {
        return recorder.finish(into_outcome(answer), false).await;
    }
    // Check the circuit breaker, the pauses and the concurrent calls; count methods that show a trace.
    if let Err(busy) = admission
        .acquire(state, context.authorized())
        .and_then(|()| count_trace(state, context.authorized()))
    {
        return recorder.finish(busy, false).await;
    }
    match context.permit().plan() {
        // Traces, frames and touches, nonce, recipients, intent, reservations, visibility row; reauthorized; submitted;
        // accepted or released; outcome. A task of its own runs all of it, including the access record, so that it does
        // not end with the connection (HD21).
        Plan::Send => {
            context.record.trace = Some(TraceKind::Send);
            let (authorized, admission) = (context.into_authorized(), admission.clone());
            let task = state.sends.tasks.spawn(async move {
                let outcome = send::send(&mut CallContext::new(&rpc_call, &mut recorder.record, authorized)).await;
                drop(admission);
                recorder.finish(outcome, true).await
            });
            task.await.unwrap_or(RpcOutcome::Internal)
        }
        // A task of its own, which does not end with the connection: the call may be a send (HD21).
        Plan::Passthrough => {
            let (authorized, admission) = (context.into_authorized(), admission.clone());
            let task = state.sends.tasks.spawn(async move {
                let context = &mut CallContext::new(&rpc_call, &mut recorder.record, authorized);
                let answer = execute::passthrough(context).await;
                drop(admission);
                recorder.finish(into_outcome(answer), true).await
            });
            task.await.unwrap_or(RpcOutcome::Internal)
        }
        // Filters and subscriptions: the owner is checked, then the underlying read is authorized as if the caller made
        // it.
        Plan::Subscription => {
            let answer = subscriptions::answer(&mut context).await;
            recorder.finish(into_outcome(answer), false).await
        }
        Plan::Simulate | Plan::Forward | Plan::CodeCheck | Plan::Untraced | Plan::Local | Plan::ZeroQuantity => {
            let answer = read(&mut context).await;
            recorder.finish(into_outcome(answer), false).await
        }
    }
}

/// Answers a permitted call that changes nothing.
async fn read(context: &mut CallContext<'_>) -> Result<Disclosed, RpcOutcome> {
    if context.permit().plan() == Plan::Simulate {
        // Block, trace, frames and touches are checked; the answer comes from that trace.
        context.record.trace = Some(TraceKind::Simulation);
        execute::simulate(context).await
    } else {
        // The body is written from the typed call; the answer is opened under the newest policy.
        execute::forward(context).await
    }
}

/// Answers a call of a user for an impersonating administrator (V1, V2). It takes the same steps as the user's own
/// call, except that it writes no record for the user: the administrator's request has one already. A send is checked
/// and not sent.
pub(crate) async fn simulate_as(rpc_call: &RpcCall, record: &mut CallRecord) -> (RpcOutcome, Option<send::Effects>) {
    let steps = async {
        let context = &mut CallContext::new(rpc_call, record, rpc_call.authorize()?);
        let state = context.state();
        if let Some(answer) = answer_locally(context) {
            return Ok((answer?, None));
        }
        CallAdmission::default().acquire(state, context.authorized())?;
        count_trace(state, context.authorized())?;
        match context.permit().plan() {
            Plan::Send => send::simulate(context)
                .await
                .map(|effects| (Disclosed::NULL, Some(effects))),
            // Subscriptions and passthrough methods cannot be impersonated.
            Plan::Subscription | Plan::Passthrough => Err(context.denied(DenyReason::MethodNotAllowed)),
            Plan::Simulate | Plan::Forward | Plan::CodeCheck | Plan::Untraced | Plan::Local | Plan::ZeroQuantity => {
                read(context).await.map(|answer| (answer, None))
            }
        }
    };
    match steps.await {
        Ok((answer, effects)) => (RpcOutcome::Result(answer), effects),
        Err(outcome) => (outcome, None),
    }
}

/// Answers the call if that needs no node.
fn answer_locally(context: &CallContext<'_>) -> Option<Result<Disclosed, RpcOutcome>> {
    if let Some(method) = context.permit().method().filter(|method| method.class() == Class::Meta) {
        return Some(execute::metadata(context.state(), method));
    }
    match context.permit().plan() {
        Plan::Local => Some(execute::local(context)),
        Plan::ZeroQuantity => Some(Ok(Disclosed::ZERO)),
        Plan::Subscription
        | Plan::Forward
        | Plan::CodeCheck
        | Plan::Untraced
        | Plan::Simulate
        | Plan::Send
        | Plan::Passthrough => None,
    }
}

/// Counts a method that shows a trace, before the node is queried (J8).
///
/// # Errors
/// [`RpcOutcome::Busy`] while the caller has used up its quota.
fn count_trace(state: &RpcContext, authorized: &AuthorizedCall) -> Result<(), RpcOutcome> {
    let shows_trace = |method: Method| method.class() == Class::Trace;
    if authorized.permit().method().is_some_and(shows_trace)
        && state
            .traces
            .try_acquire(authorized.limit_key(), authorized.now())
            .is_err()
    {
        return Err(RpcOutcome::Busy(DenyReason::RateLimited));
    }
    Ok(())
}

fn into_outcome(answer: Result<Disclosed, RpcOutcome>) -> RpcOutcome {
    answer.map_or_else(|outcome| outcome, RpcOutcome::Result)
}

impl CallAdmission {
    /// Sets whether the answers of the batch so far leave no memory for another one.
    pub(crate) fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Admits one call.
    ///
    /// # Errors
    /// [`RpcOutcome::Busy`] while the circuit breaker of the key is open, while the caller's executions are paused, or
    /// while the caller has the most concurrent calls.
    fn acquire(&mut self, state: &RpcContext, authorized: &AuthorizedCall) -> Result<(), RpcOutcome> {
        let now = authorized.now();
        if state.breakers.any_open(now) && state.breakers.is_open(authorized.key_id(state)?, now) {
            return Err(RpcOutcome::Busy(DenyReason::RateLimited));
        }
        if matches!(authorized.permit().plan(), Plan::Simulate | Plan::Send)
            && state
                .pauses
                .is_paused(authorized.limit_key(), authorized.execution(), now)
        {
            return Err(RpcOutcome::Busy(DenyReason::RateLimited));
        }
        if self.is_full {
            state.metrics.concurrency_rejected();
            return Err(RpcOutcome::Busy(DenyReason::ConcurrencyLimited));
        }
        if self.permit.is_none() {
            let Some(permit) = state.in_flight.try_acquire(authorized.limit_key()) else {
                state.metrics.concurrency_rejected();
                return Err(RpcOutcome::Busy(DenyReason::ConcurrencyLimited));
            };
            self.permit = Some(Arc::new(permit));
        }
        Ok(())
    }
}
