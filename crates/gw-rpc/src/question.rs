//! One question to the policy, and asking it again when the policy moved (HD20).

use crate::{
    limits::{Execution, Party},
    origin::Origin,
    rehearsal::FundsUnknown,
    reply::Reply,
    state::Inner,
};
use gw_evm::{
    Call, Class, Lookup, Method, ParamError, ParsedCall, VisibleTo,
    call::{self, ChainRules},
    envelope::Request,
};
use gw_node::{AnswerHold, Node, Payer};
use gw_policy::{
    Snapshot, Viewer,
    access::{Beside, Decision, HeadFacts, Permit, Question, decide, upstream_key},
};
use gw_types::{DenyReason, Timestamp};
use std::sync::Arc;

/// One call with everything a decision about it needs but the policy: it can be asked again at any moment.
#[derive(Debug)]
pub(crate) struct Asked {
    state: Arc<Inner>,
    origin: Arc<Origin>,
    lookup: Lookup,
    parsed: Result<ParsedCall, ParamError>,
    visible_to: VisibleTo,
}

/// A permitted call, the policy that permitted it, and when.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) permit: Permit,
    pub(crate) party: Party,
    pub(crate) now: Timestamp,
    /// What its request holds of the budget of answers.
    pub(crate) hold: Arc<AnswerHold>,
}

impl Judged {
    /// The caller as somebody who looks at answers.
    pub(crate) fn viewer<'a>(&'a self, state: &'a Inner) -> Viewer<'a> {
        self.permit.viewer(&self.snapshot, self.now, state.knobs())
    }

    /// The node as it is asked for this caller: by the key of their group in the organization, if one has a key (G1). A key
    /// that cannot be used is no reason to ask by another one.
    pub(crate) fn node(&self, state: &Inner) -> Result<Node, Reply> {
        let key = match (self.permit.user(), self.permit.org()) {
            (Some(user), Some(org)) => upstream_key(&self.snapshot, user, org, self.now),
            (Some(_) | None, _) => None,
        };
        let charged = |node: Node| node.charged_to(self.payer(), &self.hold);
        let Some((group, stored)) = key else {
            return Ok(charged(Node::clone(state.node())));
        };
        state.node().for_group(stored).map(charged).map_err(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, group.id = %group, "the upstream key of a group cannot be used: its members are refused");
            Reply::NodeUnreachable
        })
    }

    /// Who pays for what is read of its answers: the user, however many personal URLs they come by.
    fn payer(&self) -> Payer {
        match (self.party, self.permit.user()) {
            (Party::User(user), _) | (Party::Url(_), Some(user)) => Payer::User(user),
            (Party::Address(network), _) => Payer::Network(network.address()),
            // A personal URL is somebody's.
            (Party::Url(_), None) => Payer::Gateway,
        }
    }

    /// What it executes, as pauses go by it.
    pub(crate) fn execution(&self) -> Execution {
        let request = match self.permit.call() {
            Call::Simulate(simulation) => Some(&simulation.request),
            Call::SendRaw(raw) => Some(&raw.request),
            Call::Send(send) => Some(&send.request),
            _ => None,
        };
        Execution {
            target: request.and_then(|request| request.to),
            gas: request.and_then(|request| request.gas),
        }
    }

    pub(crate) fn denied(&self, reason: DenyReason) -> Reply {
        Reply::denied(reason, self.permit.org())
    }

    pub(crate) fn invalid(&self, error: ParamError) -> Reply {
        Reply::invalid(error, self.permit.org())
    }
}

impl Asked {
    pub(crate) fn new(state: &Arc<Inner>, origin: &Arc<Origin>, lookup: Lookup, request: Request<'_>) -> Self {
        let chain = ChainRules {
            chain_id: state.node().chain_id(),
        };
        let parsed = match (&lookup, lookup.row()) {
            (_, Some(row)) => call::parse(row, request.params, chain),
            (Lookup::Extra(extra), None) => call::unexamined(extra.name(), request.params),
            (Lookup::Known(_) | Lookup::Blocked | Lookup::Unknown, None) => Err(ParamError::invalid("unknown method")),
        };
        let mut visible_to = request.visible_to;
        let parsed = parsed.map(|mut parsed| {
            visible_to = std::mem::take(&mut visible_to).union(std::mem::take(&mut parsed.visible_to));
            parsed
        });
        Self {
            state: Arc::clone(state),
            origin: Arc::clone(origin),
            lookup,
            parsed,
            visible_to,
        }
    }

    /// Makes a signed transaction one of nobody's, unless its signer is the administrator's own (HD7).
    pub(crate) fn hide_signer(&mut self, beside: Beside) -> Result<(), FundsUnknown> {
        let Ok(parsed) = &mut self.parsed else { return Ok(()) };
        if !beside.hide_signer(&self.state.feed().pin().snapshot, &mut parsed.call) {
            return Ok(());
        }
        if let Call::SendRaw(signed) = &parsed.call
            && signed.request.value.is_some_and(|value| !value.is_zero())
        {
            return Err(FundsUnknown);
        }
        Ok(())
    }

    /// The read that a filter or a subscription of this caller stands for.
    pub(crate) fn reading(state: &Arc<Inner>, origin: &Arc<Origin>, method: Method, call: Call) -> Self {
        let parsed = Ok(ParsedCall {
            call,
            visible_to: VisibleTo::default(),
        });
        let (state, origin) = (Arc::clone(state), Arc::clone(origin));
        Self {
            state,
            origin,
            lookup: Lookup::Known(method),
            parsed,
            visible_to: VisibleTo::default(),
        }
    }

    pub(crate) fn state(&self) -> &Arc<Inner> {
        &self.state
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    pub(crate) fn call(&self) -> Option<&Call> {
        self.parsed.as_ref().ok().map(|parsed| &parsed.call)
    }

    /// May it go on? By the policy of this moment, which stays pinned with the answer.
    pub(crate) fn judge(&self) -> Result<Judged, Reply> {
        let judged = self.ask();
        self.state.meters.decided(judged.is_ok());
        judged
    }

    fn ask(&self) -> Result<Judged, Reply> {
        let row = match &self.lookup {
            Lookup::Known(_) | Lookup::Extra(_) => self.lookup.row(),
            Lookup::Blocked => return Err(Reply::denied(DenyReason::MethodNotAllowed, None)),
            Lookup::Unknown => return Err(Reply::denied(DenyReason::MethodUnknown, None)),
        };
        let pinned = self.state.feed().pin();
        // While policy cannot be trusted, metadata is all there is (decision 45).
        if !pinned.fresh && row.is_none_or(|row| row.class() != Class::Meta) {
            return Err(Reply::PolicyUnavailable);
        }
        let now = self.state.clock().now();
        let caller = self.origin.caller(&pinned.snapshot, now)?;
        let question = Question {
            caller: &caller,
            lookup: self.lookup.clone(),
            call: self.parsed.as_ref().map(|parsed| &parsed.call),
            visible_to: &self.visible_to,
            named_org: self.origin.named,
            now,
            // Without a head no number is history, and nothing is answered either.
            head: HeadFacts {
                number: self.state.node().head().map_or(0, |head| head.number),
            },
            knobs: self.state.knobs(),
        };
        match decide(&pinned.snapshot, &question) {
            Decision::Allow(permit) => {
                let (party, hold) = (self.origin.party(&caller), Arc::clone(&self.origin.hold));
                Ok(Judged {
                    party,
                    snapshot: pinned.snapshot,
                    permit,
                    now,
                    hold,
                })
            }
            Decision::Deny(denial) => Err(Reply::Denied(denial)),
            Decision::Invalid(invalid) => Err(Reply::Invalid(invalid)),
        }
    }

    /// HD20: directly before forwarding, and before an answer is opened. The same permit while the policy stands; else
    /// the question is asked again, and only a permit of the newest policy goes on.
    ///
    /// The plan may have changed with it, between forwarding and a constant; what the views show of the answer is
    /// right under either.
    pub(crate) fn again(&self, judged: Judged) -> Result<Judged, Reply> {
        let pinned = self.state.feed().pin();
        if pinned.fresh && pinned.snapshot.epoch() == judged.permit.epoch() {
            return Ok(Judged {
                now: self.state.clock().now(),
                ..judged
            });
        }
        self.judge()
    }
}
