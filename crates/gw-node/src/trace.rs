//! Traces of calls that have not happened (spec/20 X2-X5): one exchange each, whichever form the node knows.

use crate::{
    Answer, Budget, Node, NodeError,
    head::{parse, small},
    message::read_batch,
    node::Failure,
    probe,
};
use gw_evm::{
    CallRequest,
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

/// What came of tracing.
#[derive(Debug)]
pub enum Traced {
    /// A complete trace.
    Trace(Sealed<Trace>),
    /// The node would not run it: no funds, a spent nonce. Not a failure to trace unless nobody knows the words
    /// (HD15).
    Refused(Sealed<RawError>),
}

/// What the node says to a send before it is sent.
#[derive(Debug)]
pub struct SendTrace {
    /// On the state of the head.
    pub now: Traced,
    /// In the block after it.
    pub next: Traced,
    /// The nonce the sender's next transaction needs, pending ones counted.
    pub pending_nonce: u64,
}

/// Why there is no trace: the call is refused, nothing is forwarded (X11).
#[derive(Debug, thiserror::Error)]
pub enum NoTrace {
    /// The last probe found no tracing.
    #[error("the node gives no traces")]
    Unsupported,
    /// The trace cannot be used.
    #[error("the trace cannot be used")]
    Unusable(#[source] TraceError),
    /// The node did not answer.
    #[error("the node gave no trace")]
    Node(#[from] NodeError),
}

impl Failure for NoTrace {
    fn is_of_transport(&self) -> bool {
        match self {
            Self::Node(error) => error.is_of_transport(),
            Self::Unsupported | Self::Unusable(_) => false,
        }
    }
}

impl Node {
    /// Traces a simulation on the state of `pin`, but for what is overridden.
    pub async fn trace(
        &self,
        request: &CallRequest,
        pin: Pin,
        scope: TraceScope,
        state: &VisibleState,
    ) -> Result<Traced, NoTrace> {
        self.reading(|on| async move {
            let form = on.trace_form().ok_or(NoTrace::Unsupported)?;
            on.require_overrides(form, pin, state).await?;
            let scope = OverrideRounds::scope(scope, state);
            let mut rounds = OverrideRounds::begin(&on, request, pin, state).await?;
            loop {
                let calls = wire::trace_batch(request, pin, scope, form, None, &rounds.applied);
                let body = on.exchange(&calls, Budget::ReadTrace).await?;
                let traced = trace(read_batch(&body, calls.len())?, scope, form)?;
                if rounds.is_complete([&traced])? {
                    return Ok(sealed(traced));
                }
            }
        })
        .await
    }

    /// Traces a mined transaction.
    pub async fn trace_mined(&self, hash: B256) -> Result<Sealed<Trace>, NoTrace> {
        self.mined_trace(hash).await.map(Sealed::new)
    }

    /// Traces a send twice, as of `pin` and as of the block after it, and asks for the sender's pending nonce, all in
    /// one exchange (HD2, HD13, HD15). Both run on the same state.
    pub async fn trace_send(
        &self,
        request: &CallRequest,
        pin: Pin,
        next: NextBlock,
        state: &VisibleState,
    ) -> Result<SendTrace, NoTrace> {
        let sender = request.from.unwrap_or(Address::ZERO);
        self.reading(|on| async move {
            let form = on.trace_form().ok_or(NoTrace::Unsupported)?;
            on.require_overrides(form, pin, state).await?;
            let scope = OverrideRounds::scope(TraceScope::Send, state);
            let mut rounds = OverrideRounds::begin(&on, request, pin, state).await?;
            loop {
                let applied = &rounds.applied;
                let mut calls = wire::trace_batch(request, pin, scope, form, None, applied);
                let each = calls.len();
                calls.extend(wire::trace_batch(request, pin, scope, form, Some(next), applied));
                let params = format!(r#"["{sender:#x}","pending"]"#);
                calls.push(UpstreamCall {
                    method: "eth_getTransactionCount".into(),
                    params,
                });
                let body = on.exchange(&calls, Budget::SendTrace).await?;
                let mut now = read_batch(&body, calls.len())?;
                let mut later = now.split_off(each);
                let Some(Answer::Result(nonce)) = later.pop() else {
                    return Err(NoTrace::Node(NodeError::Unparsable));
                };
                let pending_nonce = serde_json::from_str(nonce.get())
                    .map_err(|_| NodeError::Unparsable)
                    .and_then(small)?;
                let now = trace(now, scope, form)?;
                let next = trace(later, scope, form)?;
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

    /// What a mined transaction created and kept, from its own trace (R3, HD14).
    pub async fn created_by(&self, hash: B256) -> Result<Vec<Address>, NoTrace> {
        self.mined_trace(hash).await.map(|trace| trace.created().collect())
    }

    async fn mined_trace(&self, hash: B256) -> Result<Trace, NoTrace> {
        self.reading(|on| async move {
            let form = on.trace_form().ok_or(NoTrace::Unsupported)?;
            let calls = wire::trace_transaction(hash, TraceScope::Read, form);
            let body = on.exchange(&calls, Budget::ReadTrace).await?;
            trace(read_batch(&body, calls.len())?, TraceScope::Read, form)?
                .map_err(|_| NoTrace::Unusable(TraceError::Malformed))
        })
        .await
    }

    /// Where anything is withheld, a node that runs calls on the chain's own state gives no trace.
    async fn require_overrides(&self, form: TraceForm, pin: Pin, state: &VisibleState) -> Result<(), NoTrace> {
        let endpoint = self.endpoint().ok_or(NoTrace::Unsupported)?;
        if !state.withholds() || endpoint.overriding.load() {
            return Ok(());
        }
        if !probe::overrides(self, form, pin).await {
            tracing::error!(
                "the node traces no call on a changed state (`stateOverrides`): nothing can be withheld of it"
            );
            return Err(NoTrace::Unsupported);
        }
        endpoint.overriding.store(true);
        Ok(())
    }

    /// Balance and nonce of an account on the chain's own state.
    async fn account_at(&self, address: Address, pin: Pin) -> Result<Account, NodeError> {
        let params = format!(r#"["{address:#x}",{{"blockHash":"{:#x}"}}]"#, pin.hash);
        let calls = [
            ("eth_getBalance", params.as_str()),
            ("eth_getTransactionCount", params.as_str()),
        ];
        let answers = self.ask(&calls, Budget::Fact).await?;
        let [Answer::Result(balance), Answer::Result(nonce)] = answers.as_slice() else {
            return Err(NodeError::NoAnswer);
        };
        Ok(Account {
            balance: parse(balance)?,
            nonce: small(parse(nonce)?)?,
            ..Account::default()
        })
    }

    /// The probe's own trace, of nobody's call.
    pub(crate) async fn trace_in(&self, form: TraceForm, calls: &[UpstreamCall]) -> Option<Trace> {
        let body = self.exchange(calls, Budget::Fact).await.ok()?;
        trace(read_batch(&body, calls.len()).ok()?, TraceScope::Read, form)
            .ok()?
            .ok()
    }
}

/// So many rounds tell the run what it touched; later ones all that is withheld where it touched anything.
const ROUNDS_BY_TOUCH: usize = 3;

/// Most traces of one run.
const MAX_ROUNDS: usize = 24;

/// Repeats the trace of a run until its overrides cover all withheld accounts and slots that it touches. One request cannot
/// carry all withheld state: nodes limit its size (HD36). At least two traces run while anything is withheld, so that their
/// number does not reveal whether the run touches it.
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

    /// With the overrides of the accounts that are known before the first trace.
    async fn begin(node: &Node, request: &CallRequest, pin: Pin, state: &'s VisibleState) -> Result<Self, NodeError> {
        let known = [Some(request.from.unwrap_or(Address::ZERO)), request.to]
            .into_iter()
            .flatten();
        let differing = known.filter(|address| state.withholds() && state.differs(*address));
        let mut held: BTreeMap<Address, Account> = state
            .new_accounts()
            .iter()
            .map(|address| (*address, Account::default()))
            .collect();
        for address in differing.collect::<BTreeSet<_>>() {
            held.insert(address, node.account_at(address, pin).await?);
        }
        Ok(Self {
            state,
            applied: state.overrides(&held),
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
        let mut met_more = false;
        for trace in runs.into_iter().flatten() {
            let met = if self.count < ROUNDS_BY_TOUCH {
                self.state.overrides(&trace.touched)
            } else {
                self.state.whole_overrides(&trace.touched)
            };
            met_more |= self.applied.extend(met);
        }
        match (met_more, self.count) {
            (true, MAX_ROUNDS..) => Err(NoTrace::Unusable(TraceError::Malformed)),
            (true, _) | (false, 1) => Ok(false),
            (false, _) => Ok(true),
        }
    }
}

fn sealed(traced: Result<Trace, Sealed<RawError>>) -> Traced {
    match traced {
        Ok(trace) => Traced::Trace(Sealed::new(trace)),
        Err(refusal) => Traced::Refused(refusal),
    }
}

/// The trace in the answers, or the node's refusal to run it.
fn trace(
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
