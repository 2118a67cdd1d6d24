//! `eth_call` and the other simulations: one trace at one block is evaluated, and the answer comes from that trace (X3,
//! X4).

use super::{block_time, estimate, resolve_block};
use crate::{
    call::{AuthorizedCall, CallContext},
    outcome::RpcOutcome,
    state::RpcContext,
};
use gw_evm::{Call, CallRequest, Simulation, SimulationKind, trace::Trace, wire::TraceScope};
use gw_node::{Block, Node, TraceResult};
use gw_policy::{
    Disclosed, Sealed,
    access::{TraceFacts, TraceVerdict, broken_pins, denied_frame, evaluate_trace},
    sealed::RawError,
    view::{self, ErrorContext, node_error},
};
use gw_types::{Address, DenyReason};
use std::{borrow::Cow, collections::BTreeSet};

pub(crate) async fn simulate(context: &mut CallContext<'_>) -> Result<Disclosed, RpcOutcome> {
    let Call::Simulate(simulation) = context.permit().call() else {
        return Err(RpcOutcome::Internal);
    };
    let Simulation { kind, request, block } = Simulation::clone(simulation);
    let block = resolve_block(context, block).await?;
    match kind {
        SimulationKind::Call => {
            let verdict = run_traced(context, &request, &block, TraceScope::Read).await?;
            view::call_result(&verdict).map_err(RpcOutcome::NodeError)
        }
        SimulationKind::EstimateGas => estimate::estimate(context, request, &block).await,
        SimulationKind::CreateAccessList => access_list(context, request, &block).await,
        SimulationKind::TraceCall => {
            let verdict = run_traced(context, &request, &block, TraceScope::Read).await?;
            Ok(view::call_tree(&context.viewer(), &verdict))
        }
    }
}

/// The most access lists to try: a list changes gas costs, and with them perhaps the execution.
const MAX_ACCESS_LISTS: u32 = 4;

/// HD3: the access list comes from what permitted runs read and wrote, never from the node's own method.
async fn access_list(
    context: &mut CallContext<'_>,
    mut request: CallRequest,
    block: &Block,
) -> Result<Disclosed, RpcOutcome> {
    let mut attempts = 0;
    loop {
        let verdict = run_traced(context, &request, block, TraceScope::AccessList).await?;
        attempts += 1;
        let list = verdict.access_list(&context.viewer(), &request, block.coinbase);
        if attempts == MAX_ACCESS_LISTS || list == request.access_list.clone().unwrap_or_default() {
            return Ok(view::access_list(&verdict, &list));
        }
        request.access_list = Some(list);
    }
}

/// The most rounds until the gas of a run reveals nothing: each round may reach wallets for which the previous round
/// had no gas left.
const MAX_ROUNDS: u32 = 4;

/// Runs the permitted call with the gas of `request`, traced, and evaluates the trace under the newest policy (HD20).
///
/// A payment to an account that does not exist costs more gas (RT9). To hide which accounts exist, the answer comes
/// from a run in which every paid wallet that the viewer does not see in full looks like a new account; its gas is an
/// upper bound. The run reads the state that every caller is shown (HD28).
///
/// # Errors
/// The denial of the trace, the node's error as one of the known texts, or [`RpcOutcome::TracingUnavailable`].
pub(super) async fn run_traced(
    context: &mut CallContext<'_>,
    request: &CallRequest,
    block: &Block,
    scope: TraceScope,
) -> Result<TraceVerdict, RpcOutcome> {
    let state = context.state();
    let mut new_accounts: BTreeSet<Address> = BTreeSet::new();
    let request = bound_gas(&without_prices(state, request), block);
    for _ in 0..MAX_ROUNDS {
        let (accounts, request) = (&new_accounts, &request);
        let query = |node: Node, authorized: &AuthorizedCall| {
            let visible_state = authorized.snapshot().visible_state(block.number).with_new(accounts);
            async move { node.trace(request, block.pin(), scope, &visible_state).await }
        };
        let trace = match context.query_trace(query).await? {
            TraceResult::Refused(error) => return Err(execution_rejected(error)),
            TraceResult::Trace(trace) => trace,
        };
        let verdict = evaluate_run(context, trace, block)?;
        if state.policy_settings().hide_base_fee && view::reads_base_fee(&verdict) {
            return Err(context.denied(DenyReason::ContractNotPermitted));
        }
        if !verdict.looked_new(&new_accounts) {
            tracing::error!(
                "the node ignores `stateOverrides` when it traces a call: payments to wallets cannot be simulated"
            );
            break;
        }
        let count_before = new_accounts.len();
        new_accounts.extend(verdict.existence_revealing_addresses());
        if new_accounts.len() == count_before {
            return Ok(verdict);
        }
    }
    Err(RpcOutcome::TracingUnavailable(DenyReason::TracingUnavailable))
}

/// The maximum gas of a simulation (J9), which costs the caller nothing. It limits the gas that the caller names; if
/// the caller names none, the node's own limit applies.
pub(super) const MAX_SIMULATED_GAS: u64 = 50_000_000;

/// Lowers the gas to what a block holds.
fn bound_gas(request: &CallRequest, block: &Block) -> CallRequest {
    let max_gas = block.gas_limit.min(MAX_SIMULATED_GAS);
    CallRequest {
        gas: request.gas.map(|gas| gas.min(max_gas)),
        ..request.clone()
    }
}

/// `HIDE_BASE_FEE`: removes the prices of a simulation, because the node's check of a price and the value of GASPRICE
/// depend on the base fee.
fn without_prices<'r>(state: &RpcContext, request: &'r CallRequest) -> Cow<'r, CallRequest> {
    if !state.policy_settings().hide_base_fee {
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

/// Evaluates every frame and every touch of a trace (X5-X8).
///
/// # Errors
/// The denial.
pub(crate) fn evaluate_run(
    context: &mut CallContext<'_>,
    trace: Sealed<Trace>,
    block: &Block,
) -> Result<TraceVerdict, RpcOutcome> {
    let state = context.state();
    let (snapshot, permit, now) = (context.snapshot(), context.permit(), context.now());
    let broken = broken_pins(snapshot, &trace);
    // Only code at the head is reported: code at an older block may have been replaced since.
    if !broken.is_empty() && state.upstream().head().is_some_and(|head| head.hash == block.hash) {
        state.report_broken_pins(broken);
    }
    let facts = trace_facts(block);
    let denied_frame = permit
        .impersonation()
        .and_then(|_| denied_frame(snapshot, permit, &trace, &facts, now, state.policy_settings()));
    let verdict = evaluate_trace(snapshot, permit, trace, &facts, now, state.policy_settings())
        .map_err(|reason| context.denied(reason));
    context.record.denied_frame = denied_frame.or(context.record.denied_frame);
    verdict
}

/// Evaluates the trace of a run again, under a newer policy (HD20).
///
/// # Errors
/// The denial.
pub(crate) fn reevaluate_run(
    context: &CallContext<'_>,
    verdict: TraceVerdict,
    block: &Block,
) -> Result<TraceVerdict, RpcOutcome> {
    verdict
        .reevaluate(
            context.snapshot(),
            context.permit(),
            &trace_facts(block),
            context.now(),
            context.state().policy_settings(),
        )
        .map_err(|reason| context.denied(reason))
}

fn trace_facts(block: &Block) -> TraceFacts {
    TraceFacts {
        coinbase: block.coinbase,
        number: block.number,
        time: block_time(block),
    }
}

/// The outcome when the node refuses to run a call (HD15): the node's reason if it is a known one, otherwise
/// [`RpcOutcome::TracingUnavailable`].
pub(crate) fn execution_rejected(error: Sealed<RawError>) -> RpcOutcome {
    let shown_error = node_error(ErrorContext::Other, error);
    if shown_error.is_execution_failure() {
        RpcOutcome::NodeError(shown_error)
    } else {
        RpcOutcome::TracingUnavailable(DenyReason::TracingUnavailable)
    }
}
