//! What a decision is: a permit that only [`super::decide`] can make, a denial with its reason, or an error the
//! caller may see.

use super::{beside::Beside, identify::Caller, subject::StateAge};
use crate::{knobs::Knobs, snapshot::Snapshot, visibility::Viewer};
use gw_evm::{
    Call, Extra, Listed, Lookup, Method, ParamError, VisibleTo,
    wire::{self, Pin, UpstreamCall},
};
use gw_types::{Address, DenyReason, Epoch, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// Everything a decision depends on besides the snapshot.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// What the method name means.
    pub lookup: Lookup,
    /// The parsed call, or why its parameters were refused; the error is held until the caller may use the method.
    pub call: Result<&'a Call, &'a ParamError>,
    /// All `visibleTo` and `privateFor` entries united, as written (W4). Ignored on all methods but sends
    /// (decision 25).
    pub visible_to: &'a VisibleTo,
    /// The organization named by path or header.
    pub named_org: NamedOrg,
    /// The present.
    pub now: Timestamp,
    /// The followed head.
    pub head: HeadFacts,
    /// Decision knobs.
    pub knobs: &'a Knobs,
}

/// The organization a request names (O2). That path and header disagree is the request's error, not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedOrg {
    /// None.
    Unnamed,
    /// This one; whether it exists and the caller is in it is judged here.
    Org(OrgId),
    /// Something that is no UUID: no organization (decision 40).
    Unreadable,
}

impl NamedOrg {
    /// The organization, if one is named.
    pub const fn org(self) -> Option<OrgId> {
        match self {
            Self::Org(org) => Some(org),
            Self::Unnamed | Self::Unreadable => None,
        }
    }
}

/// What is known about the chain when a call is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadFacts {
    /// The followed head's number.
    pub number: u64,
}

/// The outcome of a decision.
#[derive(Clone, Debug)]
#[must_use]
#[expect(
    clippy::large_enum_variant,
    reason = "a decision is taken apart at once; a box would cost every allowed call"
)]
pub enum Decision {
    /// May go on, as planned.
    Allow(Permit),
    /// The opaque 404.
    Deny(Denial),
    /// 400 with code -32602: the caller may use the method, but not like this.
    Invalid(Invalid),
}

/// A denial: for the access record only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Why.
    pub reason: DenyReason,
    /// Under which organization it is filed (L2, HD12): one the caller is in, never the probed contract's.
    pub org: Option<OrgId>,
}

/// A refusal whose cause the caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The text for the caller.
    pub error: ParamError,
    /// For the access record.
    pub reason: DenyReason,
    /// Under which organization it is filed.
    pub org: Option<OrgId>,
}

/// How a permitted call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Without the node: hashing, own addresses, uncles.
    Local,
    /// A filter or a subscription is made, asked or ended. What it delivers is judged as the read it stands for
    /// (`eth_getLogs`, `eth_getBlockByNumber`), each time anew.
    Live,
    /// By the node, the answer opened by the view functions.
    Forward,
    /// Constant `0x0`, without the node: balance or nonce of an address that is not Full (K8).
    ZeroQuantity,
    /// `eth_getCode` on an address out of reach: ask the node all the same; no code is `0x`, any code the opaque
    /// denial (decision 37).
    CodeCheck,
    /// Trace at a pinned block, judge the trace, answer from it.
    Simulate,
    /// `eth_call` while its tracing is switched off (X9): forwarded at a pinned block, answered as the node answers.
    Untraced,
    /// Trace, judge, then forward. Every send is traced, plain value too: only the trace shows whether the
    /// receiver has code (X1).
    Send,
    /// As it is to the node, the answer as it is to the caller (N3).
    Unexamined,
}

/// Proof that a call was allowed, by whom it was made and under which policy. Only [`super::decide`] makes one.
#[derive(Clone, Debug)]
pub struct Permit {
    pub(super) call: Call,
    pub(super) method: Option<Method>,
    pub(super) extra: Option<Arc<Extra>>,
    pub(super) listed: Option<Listed>,
    pub(super) plan: Plan,
    pub(super) user: Option<UserId>,
    pub(super) org: Option<OrgId>,
    pub(super) named: Option<OrgId>,
    pub(super) epoch: Epoch,
    pub(super) visible_to: VisibleTo,
    pub(super) shared_logs_only: Vec<Address>,
    pub(super) age: StateAge,
    pub(super) head: u64,
    pub(super) rests_on_pin: bool,
    pub(super) own_only: bool,
    pub(super) no_revert_data: bool,
    /// HD17: the only contracts of organizations that a simulation calls, if the scope of a personal URL names them.
    pub(super) picked: Option<Arc<[Address]>>,
    pub(super) beside: Option<Box<Beside>>,
}

impl Permit {
    /// The call as it may be carried out; `pending` already means `latest` where it has to (HD11, §9).
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The registry row; `None` passes through unexamined (N3).
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// By which entry a list lets a method through that is beside the registry.
    pub fn listed(&self) -> Option<Listed> {
        self.listed
    }

    /// What the node is asked for `call`, which is the permitted call or a narrower one: under the name of the method
    /// that was called (N2). `None` is answered without the node, or from a trace.
    pub fn body(&self, call: &Call, pin: Pin) -> Option<UpstreamCall> {
        match (&self.extra, self.method) {
            (Some(extra), Some(row)) => wire::body_as(call, pin, row, extra.name()),
            (Some(_) | None, _) => wire::body(call, pin),
        }
    }

    /// How it is answered.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// The user it was allowed for; `None` is an anonymous caller.
    pub fn user(&self) -> Option<UserId> {
        self.user
    }

    /// The organization it is filed under: `None` when no single one was in question.
    pub fn org(&self) -> Option<OrgId> {
        self.org
    }

    /// HD39: the organization that the request names. It bounds what the answer shows: rights of the user's other
    /// organizations count for nothing ([`crate::visibility::Viewer::restricted_to`]).
    pub fn named_org(&self) -> Option<OrgId> {
        self.named
    }

    /// The policy it was allowed under; when it moved, decide again (HD20).
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// H1: how old the state is that the call reads, now that the number of its block is known.
    pub(super) fn age_at(&self, number: u64) -> StateAge {
        self.age.at(number, self.head)
    }

    /// X6: state of a shared contract was asked for, and is the caller's to read only while the code there is the
    /// pinned one. Whoever has that code asks [`super::check_pin`].
    pub fn rests_on_pin(&self) -> Option<Address> {
        super::history::state_of(&self.call).filter(|_| self.rests_on_pin)
    }

    /// HD7: who looks over the user's shoulder. Nothing may come of the call then but an answer to them.
    pub fn beside(&self) -> Option<Beside> {
        self.beside.as_deref().copied()
    }

    /// Who looks at the answer: the user within the limits of this permit, beside an administrator if there is one.
    pub fn viewer<'s>(&self, snapshot: &'s Snapshot, now: Timestamp, knobs: &'s Knobs) -> Viewer<'s> {
        let viewer = Viewer::new(snapshot, self.user, now, knobs);
        let viewer = viewer.restricted_to(self.named_org()).own_only(self.own_only);
        match &self.beside {
            None => viewer,
            Some(beside) => viewer.beside(beside.operator()),
        }
    }

    /// HD17: that a run reverts is told, but not what it reverts with: that is an answer of the code that ran.
    pub fn no_revert_data(&self) -> bool {
        self.no_revert_data
    }

    /// HD17: of transactions only those show whose sender or receiver the caller is, and of code only
    /// that there is none, whatever else they may see.
    pub fn own_only(&self) -> bool {
        self.own_only
    }

    /// `eth_getLogs`: addresses the caller holds no grant on. They answer with rows of the caller's own and shared
    /// transactions; if there are none, the whole call is the opaque denial (decision 20).
    pub fn shared_logs_only(&self) -> &[Address] {
        &self.shared_logs_only
    }
}
