//! Traces of calls and sends before they happen (spec/20 X2-X5): one exchange for each trace, in the form that the node
//! supports.

use crate::{
    error::{FailoverError, NodeError},
    head::{at_hash, parse, to_u64},
    message::{Answer, read_batch},
    node::Node,
    probe,
    transport::RequestBudget,
};
use gw_evm::{
    BlockId, BlockTag, CallRequest,
    trace::{Account, Trace, TraceError},
    wire::{self, NextBlock, Pin, StateOverrides, TraceForm, TraceScope, UpstreamCall},
};
use gw_policy::{
    sealed::{RawError, Sealed},
    snapshot::VisibleState,
};
use gw_types::{Address, B256};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The result of tracing.
#[derive(Debug)]
pub enum TraceResult {
    /// A complete trace.
    Trace(Sealed<Trace>),
    /// The node refused to run the call, for example for lack of funds or a used nonce. It counts as a failure to trace
    /// only if the error text is unknown (HD15).
    Refused(Sealed<RawError>),
}

/// The traces of a send before it is sent.
#[derive(Debug)]
pub struct SendTrace {
    /// The trace on the state of the head.
    pub now: TraceResult,
    /// The trace in the block after the head.
    pub next: TraceResult,
    /// The nonce of the sender's next transaction, pending ones counted.
    pub pending_nonce: u64,
}

/// Why there is no trace. The call is refused and nothing is forwarded (X11).
#[derive(Debug, thiserror::Error)]
pub enum NoTrace {
    /// The last probe found that the node does not trace.
    #[error("the node does not support tracing")]
    Unsupported,
    /// The answer is no usable trace.
    #[error("the node's answer is not a usable trace")]
    Unusable(#[source] TraceError),
    /// The node did not answer.
    #[error("the node did not answer the trace request")]
    Node(#[from] NodeError),
}

impl FailoverError for NoTrace {
    fn is_transport_failure(&self) -> bool {
        match self {
            Self::Node(error) => error.is_transport_failure(),
            Self::Unsupported | Self::Unusable(_) => false,
        }
    }
}

impl Node {
    /// Traces a simulation on the state of `pin`, with withheld state overridden.
    ///
    /// # Errors
    /// [`NoTrace`] if the node cannot trace or gives no usable trace.
    pub async fn trace(
        &self,
        request: &CallRequest,
        pin: Pin,
        scope: TraceScope,
        state: &VisibleState,
    ) -> Result<TraceResult, NoTrace> {
        self.with_failover(|node| async move { node.trace_on(request, pin, scope, state).await.map(sealed) })
            .await
    }

    /// Traces a simulation on this node, with withheld state overridden.
    pub(crate) async fn trace_on(
        &self,
        request: &CallRequest,
        pin: Pin,
        scope: TraceScope,
        state: &VisibleState,
    ) -> Result<Result<Trace, Sealed<RawError>>, NoTrace> {
        let form = self.trace_form().ok_or(NoTrace::Unsupported)?;
        self.require_overrides(form, pin, state).await?;
        let scope = OverrideRounds::scope(scope, state);
        let mut rounds = OverrideRounds::begin(self, request, pin, state).await?;
        loop {
            let calls = wire::trace_batch(request, pin, scope, form, None, &rounds.applied);
            let body = self.exchange(&calls, RequestBudget::ReadTrace).await?;
            let traced = trace(read_batch(&body, calls.len())?, scope, form)?;
            if rounds.is_complete([&traced])? {
                return Ok(traced);
            }
        }
    }

    /// Traces a mined transaction.
    ///
    /// # Errors
    /// [`NoTrace`] if the node cannot trace or gives no usable trace.
    pub async fn trace_mined(&self, hash: B256) -> Result<Sealed<Trace>, NoTrace> {
        self.mined_trace(hash).await.map(Sealed::new)
    }

    /// Traces a send twice, at `pin` and in the block after it, and queries the sender's pending nonce, in one exchange
    /// (HD2, HD13, HD15). Both traces run on the same state.
    ///
    /// # Errors
    /// [`NoTrace`] if the node cannot trace or gives no usable trace.
    pub async fn trace_send(
        &self,
        request: &CallRequest,
        pin: Pin,
        next: NextBlock,
        state: &VisibleState,
    ) -> Result<SendTrace, NoTrace> {
        let sender = request.from.unwrap_or(Address::ZERO);
        self.with_failover(|node| async move {
            let form = node.trace_form().ok_or(NoTrace::Unsupported)?;
            node.require_overrides(form, pin, state).await?;
            let scope = OverrideRounds::scope(TraceScope::Send, state);
            let mut rounds = OverrideRounds::begin(&node, request, pin, state).await?;
            loop {
                let applied = &rounds.applied;
                let mut calls = wire::trace_batch(request, pin, scope, form, None, applied);
                let calls_per_trace = calls.len();
                calls.extend(wire::trace_batch(request, pin, scope, form, Some(next), applied));
                calls.push(wire::nonce(sender, BlockId::Tag(BlockTag::Pending)));
                let body = node.exchange(&calls, RequestBudget::SendTrace).await?;
                let mut now_answers = read_batch(&body, calls.len())?;
                let mut next_answers = now_answers.split_off(calls_per_trace);
                let Some(Answer::Result(nonce)) = next_answers.pop() else {
                    return Err(NoTrace::Node(NodeError::Unparsable));
                };
                let pending_nonce = serde_json::from_str(nonce.get())
                    .map_err(|_| NodeError::Unparsable)
                    .and_then(to_u64)?;
                let now = trace(now_answers, scope, form)?;
                let next = trace(next_answers, scope, form)?;
                if rounds.is_complete([&now, &next])? {
                    return Ok(SendTrace {
                        now: sealed(now),
                        next: sealed(next),
                        pending_nonce,
                    });
                }
            }
        })
        .await
    }

    /// The contracts that a mined transaction created and kept, from its trace (R3, HD14).
    ///
    /// # Errors
    /// [`NoTrace`] if the node cannot trace or gives no usable trace.
    pub async fn created_by(&self, hash: B256) -> Result<Vec<Address>, NoTrace> {
        self.mined_trace(hash).await.map(|trace| trace.created().collect())
    }

    async fn mined_trace(&self, hash: B256) -> Result<Trace, NoTrace> {
        self.with_failover(|node| async move {
            let form = node.trace_form().ok_or(NoTrace::Unsupported)?;
            let calls = wire::trace_transaction(hash, TraceScope::Read, form);
            let body = node.exchange(&calls, RequestBudget::ReadTrace).await?;
            trace(read_batch(&body, calls.len())?, TraceScope::Read, form)?
                .map_err(|_| NoTrace::Unusable(TraceError::Malformed))
        })
        .await
    }

    /// Requires a node that supports state overrides if anything is withheld.
    ///
    /// # Errors
    /// [`NoTrace::Unsupported`] if it does not: its traces would run on the chain's own state. [`NoTrace::Node`] if it
    /// did not answer.
    async fn require_overrides(&self, form: TraceForm, pin: Pin, state: &VisibleState) -> Result<(), NoTrace> {
        let endpoint = self.endpoint().ok_or(NoTrace::Unsupported)?;
        if !state.withholds() || endpoint.overriding.load() {
            return Ok(());
        }
        if !probe::overrides(self, form, pin).await? {
            tracing::error!(
                "the node ignores `stateOverrides` in traces, so withheld state cannot be hidden: the call is refused"
            );
            return Err(NoTrace::Unsupported);
        }
        endpoint.overriding.store(true);
        Ok(())
    }

    /// Balance and nonce of an account on the chain's own state, without overrides.
    async fn account_at(&self, address: Address, pin: Pin) -> Result<Account, NodeError> {
        let block = at_hash(pin.hash);
        let calls = [wire::balance(address, block), wire::nonce(address, block)];
        let answers = self.ask(&calls, RequestBudget::Fact).await?;
        let [Answer::Result(balance), Answer::Result(nonce)] = answers.as_slice() else {
            return Err(NodeError::NoAnswer);
        };
        Ok(Account {
            balance: parse(balance)?,
            nonce: to_u64(parse(nonce)?)?,
            ..Account::default()
        })
    }

    /// Makes a trace for the probe, of no caller's call. `None` if the node answers with an error, or with something
    /// else than a trace.
    ///
    /// # Errors
    /// If the node did not answer.
    pub(crate) async fn trace_in(&self, form: TraceForm, calls: &[UpstreamCall]) -> Result<Option<Trace>, NodeError> {
        let body = match self.exchange(calls, RequestBudget::Fact).await {
            Ok(body) => body,
            Err(NodeError::TooLarge) => return Ok(None),
            Err(error) => return Err(error),
        };
        let traced = trace(read_batch(&body, calls.len())?, TraceScope::Read, form);
        Ok(traced.ok().and_then(Result::ok))
    }
}

/// For this many rounds, only the withheld values that the run touched are overridden; later rounds override everything
/// that is withheld of the touched accounts.
const ROUNDS_BY_TOUCH: usize = 3;

/// Most rounds of one run.
const MAX_ROUNDS: usize = 24;

/// Repeats the trace of a run until its overrides cover all withheld accounts and slots that it touches. One request
/// cannot carry all withheld state: nodes limit its size (HD36). At least two traces run while anything is withheld, so
/// that their number does not reveal whether the run touches it.
struct OverrideRounds<'s> {
    state: &'s VisibleState,
    applied: StateOverrides,
    count: usize,
}

impl<'s> OverrideRounds<'s> {
    /// The trace scope: with slots while anything is withheld.
    fn scope(scope: TraceScope, state: &VisibleState) -> TraceScope {
        if state.withholds() { scope.with_slots() } else { scope }
    }

    /// Starts with the overrides of the accounts that are known before the first trace.
    async fn begin(node: &Node, request: &CallRequest, pin: Pin, state: &'s VisibleState) -> Result<Self, NodeError> {
        let known = [Some(request.from.unwrap_or(Address::ZERO)), request.to]
            .into_iter()
            .flatten();
        let changed = known.filter(|address| state.withholds() && state.differs(*address));
        let mut accounts: BTreeMap<Address, Account> = state
            .new_accounts()
            .iter()
            .map(|address| (*address, Account::default()))
            .collect();
        for address in changed.collect::<BTreeSet<_>>() {
            accounts.insert(address, node.account_at(address, pin).await?);
        }
        Ok(Self {
            state,
            applied: state.overrides(&accounts),
            count: 0,
        })
    }

    /// Adds the overrides that these traces call for; `true` if there were none.
    ///
    /// # Errors
    /// [`NoTrace::Unusable`] after [`MAX_ROUNDS`] traces.
    fn is_complete<'t>(
        &mut self,
        runs: impl IntoIterator<Item = &'t Result<Trace, Sealed<RawError>>>,
    ) -> Result<bool, NoTrace> {
        self.count += 1;
        if !self.state.withholds() {
            return Ok(true);
        }
        let mut has_more = false;
        for trace in runs.into_iter().flatten() {
            let touched_overrides = if self.count < ROUNDS_BY_TOUCH {
                self.state.overrides(&trace.touched)
            } else {
                self.state.whole_overrides(&trace.touched)
            };
            has_more |= self.applied.extend(touched_overrides);
        }
        match (has_more, self.count) {
            (true, MAX_ROUNDS..) => Err(NoTrace::Unusable(TraceError::Malformed)),
            (true, _) | (false, 1) => Ok(false),
            (false, _) => Ok(true),
        }
    }
}

fn sealed(traced: Result<Trace, Sealed<RawError>>) -> TraceResult {
    match traced {
        Ok(trace) => TraceResult::Trace(Sealed::new(trace)),
        Err(refusal) => TraceResult::Refused(refusal),
    }
}

/// Parses the answers to a trace request; `Ok(Err(_))` if the node refused to run the call.
pub(crate) fn trace(
    answers: Vec<Answer<&RawValue>>,
    scope: TraceScope,
    form: TraceForm,
) -> Result<Result<Trace, Sealed<RawError>>, NoTrace> {
    let mut results = Vec::with_capacity(answers.len());
    for answer in answers {
        match answer {
            Answer::Result(result) => results.push(result),
            Answer::Error(error) => return Ok(Err(error)),
        }
    }
    Trace::parse(&results, scope, form).map(Ok).map_err(NoTrace::Unusable)
}
