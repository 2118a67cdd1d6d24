//! `eth_call` and its kin: one trace at one block, judged, and the answer taken from that very trace (X3, X4).

use super::{estimate, pinned, time, unanswered};
use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
    state::Inner,
};
use gw_evm::{
    Call, CallRequest, Simulation, SimulationKind,
    trace::{Trace, TraceError},
    wire::TraceScope,
};
use gw_node::{Block, NoTrace, NodeError, Traced};
use gw_policy::{
    Disclosed, Sealed,
    access::{TraceFacts, TraceVerdict, broken_pins, judge_trace, stopped_at},
    sealed::RawError,
    view::{self, ErrorContext, node_error},
};
use gw_types::{Address, DenyReason};
use std::{borrow::Cow, collections::BTreeSet};

pub(crate) async fn simulate(asked: &Asked, judged: Judged, found: &mut Found) -> Result<Disclosed, Reply> {
    let Call::Simulate(simulation) = judged.permit.call() else {
        return Err(Reply::Internal);
    };
    let Simulation { kind, request, block } = Simulation::clone(simulation);
    let block = pinned(asked.state(), &judged, block, found).await?;
    match kind {
        SimulationKind::Call => {
            let run = run(asked, judged, &request, &block, TraceScope::Read, found).await?;
            view::call_result(&run.verdict).map_err(Reply::NodeError)
        }
        SimulationKind::EstimateGas => estimate::estimate(asked, judged, request, &block, found).await,
        SimulationKind::CreateAccessList => access_list(asked, judged, request, &block, found).await,
        SimulationKind::TraceCall => {
            let run = run(asked, judged, &request, &block, TraceScope::Read, found).await?;
            Ok(view::call_tree(&run.judged.viewer(asked.state()), &run.verdict))
        }
    }
}

/// A list changes what gas costs and with it perhaps what runs: lists are tried until one holds.
const LISTS: u32 = 4;

/// HD3: never the node's own list, but what judged runs read and wrote.
async fn access_list(
    asked: &Asked,
    mut judged: Judged,
    mut request: CallRequest,
    block: &Block,
    found: &mut Found,
) -> Result<Disclosed, Reply> {
    let mut tried = 0;
    loop {
        let run = run(asked, judged, &request, block, TraceScope::AccessList, found).await?;
        tried += 1;
        let list = run
            .verdict
            .access_list(&run.judged.viewer(asked.state()), &request, block.coinbase);
        if tried == LISTS || list == request.access_list.clone().unwrap_or_default() {
            return Ok(view::access_list(&run.verdict, &list));
        }
        (judged, request.access_list) = (run.judged, Some(list));
    }
}

/// An execution that passed.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) judged: Judged,
    pub(super) verdict: TraceVerdict,
}

/// Rounds of one run until its gas tells nothing: each may meet wallets that the one before had no gas for.
const ROUNDS: u32 = 4;

/// One run of the permitted call, at `request`'s gas: traced, and judged under the policy as it stands then (HD20).
///
/// RT9: a payment to an account that is not there costs more. So that no gas tells who is there, the answer is taken from a
/// run in which every wallet that is paid and not Full looks new; it is an upper bound, and runs again whether they are
/// there or not. HD28: it runs on the state that everybody is shown.
pub(super) async fn run(
    asked: &Asked,
    judged: Judged,
    request: &CallRequest,
    block: &Block,
    scope: TraceScope,
    found: &mut Found,
) -> Result<Run, Reply> {
    let state = asked.state();
    let mut judged = asked.again(judged)?;
    let mut new: BTreeSet<Address> = BTreeSet::new();
    let request = bounded(&priceless(state, request), block);
    for _ in 0..ROUNDS {
        let node = judged.node(state)?;
        let began = judged.now;
        let shown = judged.snapshot.visible_state(block.number).with_new(&new);
        let traced = found
            .upstream(state, node.trace(&request, block.pin(), scope, &shown))
            .await;
        judged = asked.again(judged)?;
        if traced.is_ok() {
            state.pauses.came_back(began);
        }
        let trace = match traced.map_err(|error| untraced(state, &judged, error))? {
            Traced::Refused(error) => return Err(unwilling(error)),
            Traced::Trace(trace) => trace,
        };
        let verdict = judge_run(state, &judged, trace, block, found)?;
        if state.knobs().hide_base_fee && view::reads_base_fee(&verdict) {
            return Err(judged.denied(DenyReason::ContractNotPermitted));
        }
        if !verdict.looked_new(&new) {
            tracing::error!(
                "the node traces no call on a changed state (`stateOverrides`): payments to wallets are not simulated"
            );
            break;
        }
        let known = new.len();
        new.extend(verdict.tells_existence_of());
        if new.len() == known {
            return Ok(Run { judged, verdict });
        }
    }
    Err(Reply::TracingUnavailable(DenyReason::TracingUnavailable))
}

/// The most gas of a simulation (J9): nothing is paid for it, so what a caller names is no bound. Without a name the node
/// takes its own.
pub(super) const MOST_SIMULATED: u64 = 50_000_000;

/// At most what a block holds, as it could never be sent.
fn bounded(request: &CallRequest, block: &Block) -> CallRequest {
    let most = block.gas_limit.min(MOST_SIMULATED);
    CallRequest {
        gas: request.gas.map(|gas| gas.min(most)),
        ..request.clone()
    }
}

/// `HIDE_BASE_FEE`: a simulation names no price. Whether the node would take a price, and what GASPRICE makes of a limit,
/// are told by the base fee.
fn priceless<'r>(state: &Inner, request: &'r CallRequest) -> Cow<'r, CallRequest> {
    if !state.knobs().hide_base_fee {
        return Cow::Borrowed(request);
    }
    let unpriced = CallRequest {
        gas_price: None,
        max_fee_per_gas: None,
        max_priority_fee_per_gas: None,
        ..request.clone()
    };
    Cow::Owned(unpriced)
}

/// X5-X8: every frame and every touch.
pub(crate) fn judge_run(
    state: &Inner,
    judged: &Judged,
    trace: Sealed<Trace>,
    block: &Block,
    found: &mut Found,
) -> Result<TraceVerdict, Reply> {
    let broken = broken_pins(&judged.snapshot, &trace);
    // What an older block held says nothing of today's code.
    if !broken.is_empty() && state.node().head().is_some_and(|head| head.hash == block.hash) {
        state.pins.report(state, broken);
    }
    let facts = facts(block);
    if judged.permit.beside().is_some() {
        found.stopped = stopped_at(
            &judged.snapshot,
            &judged.permit,
            &trace,
            &facts,
            judged.now,
            state.knobs(),
        )
        .or(found.stopped);
    }
    judge_trace(
        &judged.snapshot,
        &judged.permit,
        trace,
        &facts,
        judged.now,
        state.knobs(),
    )
    .map_err(|reason| judged.denied(reason))
}

/// The same trace, by the policy of this moment (HD20).
pub(crate) fn judge_again(
    state: &Inner,
    judged: &Judged,
    verdict: TraceVerdict,
    block: &Block,
) -> Result<TraceVerdict, Reply> {
    verdict
        .again(
            &judged.snapshot,
            &judged.permit,
            &facts(block),
            judged.now,
            state.knobs(),
        )
        .map_err(|reason| judged.denied(reason))
}

fn facts(block: &Block) -> TraceFacts {
    TraceFacts {
        coinbase: block.coinbase,
        number: block.number,
        time: time(block),
    }
}

/// HD15: the node would not run it. In known words that is the answer; in any other there is no trace.
pub(crate) fn unwilling(error: Sealed<RawError>) -> Reply {
    let said = node_error(ErrorContext::Other, error);
    if said.tells_outcome() {
        Reply::NodeError(said)
    } else {
        Reply::TracingUnavailable(DenyReason::TracingUnavailable)
    }
}

/// X11: without a trace nothing is answered and nothing forwarded. A frame that nobody can judge is a verdict on what the
/// trace holds (decision 58).
pub(crate) fn untraced(state: &Inner, judged: &Judged, error: NoTrace) -> Reply {
    match &error {
        NoTrace::Node(NodeError::Timeout) => state.pauses.timed_out(judged.party, judged.execution(), judged.now),
        NoTrace::Node(NodeError::TooLarge) | NoTrace::Unusable(TraceError::TooDeep | TraceError::TooManyFrames) => {
            state.pauses.too_large(judged.party, judged.execution(), judged.now);
        }
        NoTrace::Unsupported | NoTrace::Node(_) | NoTrace::Unusable(_) => {}
    }
    let reason = match &error {
        NoTrace::Unusable(TraceError::UnknownFrame) => return judged.denied(DenyReason::TraceMismatch),
        NoTrace::Unusable(TraceError::TooDeep | TraceError::TooManyFrames) => DenyReason::TraceDepthExceeded,
        NoTrace::Unsupported
        | NoTrace::Unusable(TraceError::Malformed)
        | NoTrace::Node(NodeError::Timeout | NodeError::TooLarge | NodeError::Unparsable | NodeError::NoAnswer) => {
            DenyReason::TracingUnavailable
        }
        NoTrace::Node(error) => return unanswered(state, error),
    };
    tracing::warn!(error = &error as &dyn std::error::Error, "a call could not be traced");
    Reply::TracingUnavailable(reason)
}
