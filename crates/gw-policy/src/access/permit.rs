//! The request of a decision and its outcome: a permit that only [`super::decide`] makes, a denial with its reason, or
//! an error that the caller may see.

use super::{identify::Caller, resource::StateAge};
use crate::{
    principal::Impersonation,
    settings::PolicySettings,
    snapshot::Snapshot,
    visibility::{GrantUses, Viewer},
};
use gw_evm::{
    AllowListMatch, Call, Class, CustomMethod, Method, MethodLookup, ParamError, VisibleTo,
    wire::{self, Pin, UpstreamCall},
};
use gw_types::{Address, DenyReason, Epoch, OrgId, Timestamp, UserId};
use std::sync::Arc;

/// Everything that a decision depends on besides the snapshot.
#[derive(Clone, Debug)]
pub struct AccessRequest<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// The method that was called.
    pub lookup: MethodLookup,
    /// The parsed call, or the error in its parameters. Only callers who may use the method get this error.
    pub call: Result<&'a Call, &'a ParamError>,
    /// The union of all `visibleTo` and `privateFor` entries, unparsed (W4). Ignored on all methods but sends
    /// (decision 25).
    pub visible_to: &'a VisibleTo,
    /// The organization named by path or header.
    pub named_org: NamedOrg,
    /// The time of the decision.
    pub now: Timestamp,
    /// The followed head.
    pub head: HeadFacts,
    /// The policy settings.
    pub policy_settings: &'a PolicySettings,
}

/// The organization that a request names (O2). A request whose path and header disagree is refused earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedOrg {
    /// The request names no organization.
    Unnamed,
    /// The request names this organization, which may not exist.
    Org(OrgId),
    /// The request names something that is not a UUID, and so no organization (decision 40).
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

/// The chain at the time of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadFacts {
    /// The followed head's number.
    pub number: u64,
}

/// The outcome of [`decide`](super::decide) for one call. Only [`Decision::Allow`] carries a [`Permit`], without which
/// nothing is executed or sent upstream.
#[derive(Clone, Debug)]
#[must_use]
#[expect(
    clippy::large_enum_variant,
    reason = "a decision is taken apart at once; a box would cost every allowed call"
)]
pub enum Decision {
    /// The call is allowed.
    Allow(Permit),
    /// The call is denied: the opaque 404.
    Deny(Denial),
    /// The parameters are wrong: 400 with code -32602.
    Invalid(Invalid),
}

/// A denial, for the access record only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The reason.
    pub reason: DenyReason,
    /// The organization of the audit record (L2, HD12): one of the caller's, never the one that owns the probed
    /// contract.
    pub org: Option<OrgId>,
}

/// A refusal whose reason the caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The text for the caller.
    pub error: ParamError,
    /// The reason, for the access record.
    pub reason: DenyReason,
    /// The organization of the audit record.
    pub org: Option<OrgId>,
}

/// Why a check refuses a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckError {
    /// Answered with the opaque denial.
    Deny(DenyReason),
    /// Answered with 400 and a text for the caller.
    Invalid(ParamError, DenyReason),
}

impl From<DenyReason> for CheckError {
    fn from(reason: DenyReason) -> Self {
        Self::Deny(reason)
    }
}

/// How a permitted call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Answered without the node: hashing, own addresses, uncles.
    Local,
    /// Creates, polls or ends a filter or a subscription. Every delivery is authorized as the read that it repeats
    /// (`eth_getLogs`, `eth_getBlockByNumber`).
    Subscription,
    /// Forwarded to the node; the view functions open the result.
    Forward,
    /// Constant `0x0`, without the node: balance or nonce of an address that is not Full (K8).
    ZeroQuantity,
    /// `eth_getCode` of an address that the caller has no access to: `0x` if it has no code, else the opaque denial
    /// (decision 37).
    CodeCheck,
    /// Traced at a pinned block. The trace is evaluated, and the result is taken from it.
    Simulate,
    /// `eth_call` while its tracing is switched off (X9): forwarded at a pinned block, with the node's result
    /// unchanged.
    Untraced,
    /// Traced, evaluated, then sent. Plain value transfers are traced, too: only the trace shows whether the receiver
    /// has code (X1).
    Send,
    /// Forwarded unchanged; the node's response is returned unchanged (N3).
    Passthrough,
}

/// Proof that a call was allowed: the call, the user, the policy epoch and the restrictions. Only [`super::decide`]
/// creates one.
#[derive(Clone, Debug)]
pub struct Permit {
    pub(super) call: PermittedCall,
    pub(super) grant: CallGrant,
    pub(super) limits: Restrictions,
}

/// The call that was allowed, and how it is answered.
#[derive(Clone, Debug)]
pub(super) struct PermittedCall {
    /// The call, with `pending` replaced by `latest` where HD11 requires it.
    pub(super) call: Call,
    pub(super) method: Option<Method>,
    pub(super) custom: Option<Arc<CustomMethod>>,
    pub(super) plan: Plan,
    /// The `visibleTo` entries of a send; empty for other methods.
    pub(super) visible_to: VisibleTo,
    /// How old the state is that the call reads.
    pub(super) age: StateAge,
    /// The followed head's number at the decision.
    pub(super) head: u64,
}

/// For whom and under which policy a call was allowed.
#[derive(Clone, Debug)]
pub(super) struct CallGrant {
    pub(super) user: Option<UserId>,
    /// The organization of the audit record.
    pub(super) org: Option<OrgId>,
    /// The organization that the request names.
    pub(super) named_org: Option<OrgId>,
    pub(super) epoch: Epoch,
    pub(super) allow_list_match: Option<AllowListMatch>,
    pub(super) impersonation: Option<Box<Impersonation>>,
}

/// Restrictions on the execution and the result of a permitted call.
#[derive(Clone, Debug, Default)]
pub(super) struct Restrictions {
    /// Addresses of a log filter of which only logs in the caller's own and shared transactions are shown.
    pub(super) shared_logs_only: Vec<Address>,
    /// Whether the result depends on the code pin of a shared contract.
    pub(super) requires_code_pin: bool,
    pub(super) url: UrlRestrictions,
}

/// Restrictions by the scope of a personal URL (HD17). Without a URL nothing is restricted.
#[derive(Clone, Debug, Default)]
pub(super) struct UrlRestrictions {
    /// Whether only the owner's own transactions are shown, and of code only its absence.
    pub(super) own_transactions_only: bool,
    /// Whether revert data is left out.
    pub(super) no_revert_data: bool,
    /// The only organization contracts that a simulation may call; `None`: no restriction.
    pub(super) contracts: Option<Arc<[Address]>>,
}

impl Permit {
    /// A permit without restrictions.
    pub(super) fn new(
        snapshot: &Snapshot,
        request: &AccessRequest<'_>,
        method: Option<Method>,
        (user, org): (Option<UserId>, Option<OrgId>),
        plan: Plan,
        call: Call,
    ) -> Self {
        let is_send = method.is_some_and(|method| method.class() == Class::Write);
        let custom = if let MethodLookup::Custom(custom) = &request.lookup {
            Some(Arc::clone(custom))
        } else {
            None
        };
        let impersonation = request
            .caller
            .impersonation()
            .map(|impersonation| request.with_signer(impersonation));
        let visible_to = if is_send {
            request.visible_to.clone()
        } else {
            VisibleTo::default()
        };
        Self {
            call: PermittedCall {
                call,
                method,
                custom,
                plan,
                visible_to,
                age: StateAge::Present,
                head: request.head.number,
            },
            grant: CallGrant {
                user,
                org,
                named_org: request.named_org.org(),
                epoch: snapshot.epoch(),
                allow_list_match: None,
                impersonation: impersonation.map(Box::new),
            },
            limits: Restrictions::default(),
        }
    }

    /// The permitted call, with `pending` replaced by `latest` where HD11 requires it.
    pub fn call(&self) -> &Call {
        &self.call.call
    }

    /// The registered method; `None` for a custom method that is passed through (N3).
    pub fn method(&self) -> Option<Method> {
        self.call.method
    }

    /// The allow-list entry that permits a custom method.
    pub fn allow_list_match(&self) -> Option<AllowListMatch> {
        self.grant.allow_list_match
    }

    /// The upstream request body for `call`, which is the permitted call or a narrower one, with the name of the method
    /// that was called (N2). `None` if the call is answered without the node, or from a trace.
    pub fn body(&self, call: &Call, pin: Pin) -> Option<UpstreamCall> {
        match (&self.call.custom, self.call.method) {
            (Some(custom), Some(method)) => wire::body_as(call, pin, method, custom.name()),
            (Some(_) | None, _) => wire::body(call, pin),
        }
    }

    /// How the call is answered.
    pub fn plan(&self) -> Plan {
        self.call.plan
    }

    /// The user of the call; `None` for an anonymous caller.
    pub fn user(&self) -> Option<UserId> {
        self.grant.user
    }

    /// The organization of the audit record; `None` if the call belongs to no single organization.
    pub fn org(&self) -> Option<OrgId> {
        self.grant.org
    }

    /// The organization that the request names (HD39). It bounds what the result shows: rights in the user's other
    /// organizations do not count ([`crate::visibility::Viewer::scoped_to_org`]).
    pub fn named_org(&self) -> Option<OrgId> {
        self.grant.named_org
    }

    /// The epoch of the policy that allowed the call; at another epoch the call is decided again (HD20).
    pub fn epoch(&self) -> Epoch {
        self.grant.epoch
    }

    /// The age of the state that the call reads, given the number of its block (H1).
    pub(super) fn age_at(&self, number: u64) -> StateAge {
        self.call.age.at(number, self.call.head)
    }

    /// The shared contract whose state the call reads, if the caller may read it only while its code is the pinned one
    /// (X6). [`super::check_pin`] compares the code.
    pub fn requires_code_pin(&self) -> Option<Address> {
        super::history::state_of(self.call()).filter(|_| self.limits.requires_code_pin)
    }

    /// The impersonation that the call is part of (HD7). The result of an impersonated call goes to the administrator,
    /// and the call changes nothing.
    pub fn impersonation(&self) -> Option<Impersonation> {
        self.grant.impersonation.as_deref().copied()
    }

    /// The viewer of the result: the user within the restrictions of this permit, and restricted to what an
    /// impersonating administrator may see.
    pub fn viewer<'s>(
        &self,
        snapshot: &'s Snapshot,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
    ) -> Viewer<'s> {
        self.collecting_viewer(snapshot, now, policy_settings, None)
    }

    /// [`Self::viewer`], which also collects the grants of disclosure that the result needs.
    pub fn collecting_viewer<'s>(
        &self,
        snapshot: &'s Snapshot,
        now: Timestamp,
        policy_settings: &'s PolicySettings,
        uses: Option<&GrantUses>,
    ) -> Viewer<'s> {
        let viewer = Viewer::new(snapshot, self.user(), now, policy_settings);
        let viewer = viewer
            .collecting(uses)
            .scoped_to_org(self.named_org())
            .own_transactions_only(self.own_transactions_only());
        match &self.grant.impersonation {
            None => viewer,
            Some(impersonation) => viewer.restricted_to(impersonation.impersonator()),
        }
    }

    /// Whether revert data is left out of the result, so that it shows only that the execution reverts (HD17).
    pub fn no_revert_data(&self) -> bool {
        self.limits.url.no_revert_data
    }

    /// Whether the result shows only transactions that the caller sent or received, and of code only its absence
    /// (HD17).
    pub fn own_transactions_only(&self) -> bool {
        self.limits.url.own_transactions_only
    }

    /// Addresses of an `eth_getLogs` filter that the caller has no right to read logs of. Only their logs in the
    /// caller's own and shared transactions are returned; if there are none, the whole call is denied (decision 20).
    pub fn shared_logs_only(&self) -> &[Address] {
        &self.limits.shared_logs_only
    }
}

impl AccessRequest<'_> {
    /// The impersonation with the signer of a signed transaction as its assumed sender.
    pub(super) fn with_signer(&self, impersonation: Impersonation) -> Impersonation {
        if let Ok(Call::SendRaw(raw)) = self.call {
            impersonation.sending_from(raw.sender)
        } else {
            impersonation
        }
    }

    /// The parsed call.
    ///
    /// # Errors
    /// The error in the call's parameters. Only callers who may use the method get it.
    pub(super) fn require_valid_params(&self) -> Result<&Call, CheckError> {
        self.call
            .map_err(|error| CheckError::Invalid(error.clone(), DenyReason::InvalidRequestShape))
    }
}

/// The plan of a call that has no target.
pub(super) fn plan_without_target(call: &Call) -> Plan {
    if matches!(call, Call::Subscription(_)) {
        return Plan::Subscription;
    }
    let is_local = Call::Plain(Method::Accounts) == *call
        || Call::Plain(Method::Coinbase) == *call
        || matches!(call, Call::Sha3(_) | Call::UncleCount | Call::Uncle);
    if is_local { Plan::Local } else { Plan::Forward }
}
