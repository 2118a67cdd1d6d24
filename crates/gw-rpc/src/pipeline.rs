//! One call, from its name to its answer: the order of spec/20 §17 around the pure decisions of `gw-policy`.

use crate::{
    consent, execute,
    limits::Slot,
    live,
    origin::Origin,
    question::{Asked, Judged},
    record::{Found, Recorder},
    redact,
    reply::Reply,
    send,
    state::Inner,
};
use gw_audit::TraceKind;
use gw_evm::{Class, envelope::Request};
use gw_policy::{Disclosed, access::Plan};
use gw_types::DenyReason;
use std::sync::Arc;

/// A place among the caller's calls in flight: shared by the elements of a batch (J7), and kept by a send that
/// outlives its connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    slot: Option<Arc<Slot>>,
    /// The answers of the batch so far leave no room for another one.
    is_full: bool,
}

/// Answers one call and records it. Each step may end it; nothing that stands below happens then.
///
/// Before this, once per HTTP request (`http`): size and encoding, token, depth, duplicates, envelope, batch.
pub(crate) async fn answer(state: &Arc<Inner>, origin: &Arc<Origin>, call: Request<'_>, place: &mut Place) -> Reply {
    // The canonical name.
    let lookup = state.settings.extras.lookup(call.method);
    // Room for the record, before anything is done that would have to be recorded.
    let mut recorder = match Recorder::of_call(state, origin, &lookup, call.method) {
        Ok(recorder) => recorder,
        Err(reply) => return reply,
    };
    // Too often? Before any work, and recorded: who knocks too hard is somebody to know of.
    if state.rates.refuse(origin.subject(), origin.client) {
        return recorder.finish(Reply::Busy(DenyReason::RateLimited), false).await;
    }
    // Naming an organization for the first time accepts its invitation.
    consent::accept_named(state, origin).await;
    // Parameters get their types; what is wrong with them is held until the caller may use the method at all.
    let asked = Asked::new(state, origin, lookup, call);
    if state.settings.log_params {
        recorder.found.params = Some(redact::params(&asked));
    }
    // Blocked? Policy stale? Who calls: revoked, unknown, banned? Metadata; anonymous list; KYC; organization; method
    // list; held error; multicall; history; target; grant; slot, selector, parameters; upgrade; claims; sender.
    let judged = match asked.judge() {
        Ok(judged) => judged,
        Err(reply) => return recorder.finish(reply, false).await,
    };
    recorder.found.org = judged.permit.org();
    recorder.found.epoch = Some(judged.permit.epoch());
    recorder.found.listed = judged.permit.listed();
    // What we know ourselves takes no place and no trip to the node.
    if let Some(known) = known(&asked, &judged) {
        return recorder.finish(told(known), false).await;
    }
    // The pause the node asked for, or whose executions keep it busy; calls in flight.
    if let Err(reply) = place.take(state, &judged) {
        return recorder.finish(reply, false).await;
    }
    // Traces for their own sake are costly: charged before the node is asked (J8).
    if judged.permit.method().is_some_and(|row| row.class() == Class::Trace)
        && state.traces.refuse(judged.party, judged.now)
    {
        return recorder.finish(Reply::Busy(DenyReason::RateLimited), false).await;
    }
    match judged.permit.plan() {
        // Pin, traces, frames and touches, nonce, recipients, intent, reservations, visibility row; decided once more;
        // forward; accept or release; outcome. Apart from the connection, down to its record (HD21).
        Plan::Send => {
            recorder.found.trace = Some(TraceKind::Send);
            let place = place.clone();
            let sending = state.sends.tasks.spawn(async move {
                let reply = send::send(&asked, judged, &mut recorder.found).await;
                drop(place);
                recorder.finish(reply, true).await
            });
            sending.await.unwrap_or(Reply::Internal)
        }
        // To the node and back, apart from the connection: it may be a send (HD21).
        Plan::Unexamined => {
            let place = place.clone();
            let passing = state.sends.tasks.spawn(async move {
                let answer = execute::pass(&asked, judged, &mut recorder.found).await;
                drop(place);
                recorder.finish(told(answer), true).await
            });
            passing.await.unwrap_or(Reply::Internal)
        }
        // Whose it is; then the read it stands for, judged as if it were called.
        Plan::Live => {
            let answer = live::filters::answer(&asked, &judged, &mut recorder.found).await;
            recorder.finish(told(answer), false).await
        }
        Plan::Simulate | Plan::Forward | Plan::CodeCheck | Plan::Untraced | Plan::Local | Plan::ZeroQuantity => {
            let answer = read(&asked, judged, &mut recorder.found).await;
            recorder.finish(told(answer), false).await
        }
    }
}

/// A permitted call without effect.
async fn read(asked: &Asked, judged: Judged, found: &mut Found) -> Result<Disclosed, Reply> {
    if judged.permit.plan() == Plan::Simulate {
        // Pin, trace, frames and touches; the answer from that very trace.
        found.trace = Some(TraceKind::Simulation);
        execute::simulate(asked, judged, found).await
    } else {
        // The typed body out; the answer opened under the policy of the moment it came.
        execute::forward(asked, judged, found).await
    }
}

/// What comes of a call that somebody else asks about (V1, V2). It takes the same steps, and leaves no record of the
/// user's: who asks has left one already, of their own. A send ends where something would happen.
pub(crate) async fn rehearse(asked: &Asked, found: &mut Found) -> (Reply, Option<send::Effects>) {
    let rehearsed = async {
        let judged = asked.judge()?;
        if let Some(known) = known(asked, &judged) {
            return Ok((known?, None));
        }
        let mut place = Place::default();
        place.take(asked.state(), &judged)?;
        if judged.permit.method().is_some_and(|row| row.class() == Class::Trace)
            && asked.state().traces.refuse(judged.party, judged.now)
        {
            return Err(Reply::Busy(DenyReason::RateLimited));
        }
        match judged.permit.plan() {
            Plan::Send => send::rehearse(asked, judged, found)
                .await
                .map(|effects| (Disclosed::NULL, Some(effects))),
            // What goes on after its answer is nobody else's to begin, and what nobody examines nobody else's to see.
            Plan::Live | Plan::Unexamined => Err(judged.denied(DenyReason::MethodNotAllowed)),
            Plan::Simulate | Plan::Forward | Plan::CodeCheck | Plan::Untraced | Plan::Local | Plan::ZeroQuantity => {
                read(asked, judged, found).await.map(|answer| (answer, None))
            }
        }
    };
    match rehearsed.await {
        Ok((answer, effects)) => (Reply::Result(answer), effects),
        Err(reply) => (reply, None),
    }
}

/// The answer, if it needs no node.
fn known(asked: &Asked, judged: &Judged) -> Option<Result<Disclosed, Reply>> {
    if let Some(row) = judged.permit.method().filter(|row| row.class() == Class::Meta) {
        return Some(execute::metadata(asked.state(), row));
    }
    match judged.permit.plan() {
        Plan::Local => Some(execute::local(asked, judged)),
        Plan::ZeroQuantity => Some(Ok(Disclosed::ZERO)),
        Plan::Live
        | Plan::Forward
        | Plan::CodeCheck
        | Plan::Untraced
        | Plan::Simulate
        | Plan::Send
        | Plan::Unexamined => None,
    }
}

fn told(answer: Result<Disclosed, Reply>) -> Reply {
    answer.map_or_else(|reply| reply, Reply::Result)
}

impl Place {
    /// Says whether there is room for one more answer in the batch.
    pub(crate) fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    fn take(&mut self, state: &Inner, judged: &Judged) -> Result<(), Reply> {
        if state.breakers.any_open(judged.now) && state.breakers.is_open(judged.node(state)?.key_id(), judged.now) {
            return Err(Reply::Busy(DenyReason::RateLimited));
        }
        if matches!(judged.permit.plan(), Plan::Simulate | Plan::Send)
            && state.pauses.is_paused(judged.party, judged.execution(), judged.now)
        {
            return Err(Reply::Busy(DenyReason::RateLimited));
        }
        if self.is_full {
            state.meters.crowded();
            return Err(Reply::Busy(DenyReason::ConcurrencyLimited));
        }
        if self.slot.is_none() {
            let Some(slot) = state.in_flight.take(judged.party) else {
                state.meters.crowded();
                return Err(Reply::Busy(DenyReason::ConcurrencyLimited));
            };
            self.slot = Some(Arc::new(slot));
        }
        Ok(())
    }
}
