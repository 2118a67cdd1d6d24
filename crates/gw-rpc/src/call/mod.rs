//! One JSON-RPC call and its authorization, which is renewed whenever the policy has changed (HD20).

mod context;
mod failure;

pub(crate) use context::{CallContext, ReadContext, result_of};
pub(crate) use failure::upstream_failure;

use crate::{
    limits::{Execution, LimitKey},
    outcome::RpcOutcome,
    request::RequestContext,
    state::RpcContext,
    upstream::NodeCaller,
};
use gw_evm::{
    Call, Class, Method, MethodLookup, ParamError, ParsedCall, VisibleTo,
    call::{self, ChainRules},
    envelope,
};
use gw_http::simulation::SenderRequired;
use gw_node::{AnswerHold, KeyId, Node, Payer};
use gw_policy::{
    Snapshot,
    access::{AccessRequest, Decision, HeadFacts, Impersonation, Permit, decide, upstream_key},
};
use gw_types::{DenyReason, Timestamp};
use std::sync::Arc;

/// A call with every input of its authorization except the policy, so that it can be authorized again at any time.
#[derive(Debug)]
pub(crate) struct RpcCall {
    state: Arc<RpcContext>,
    request: Arc<RequestContext>,
    lookup: MethodLookup,
    parsed: Result<ParsedCall, ParamError>,
    visible_to: VisibleTo,
}

/// A permitted call, the policy snapshot that permits it, and the time of the decision.
///
/// It cannot be copied, and opens no answers: [`CallContext`] queries the node for it, renews it whenever the node has
/// answered, and makes the viewer of the answers.
#[derive(Debug)]
pub(crate) struct AuthorizedCall {
    snapshot: Arc<Snapshot>,
    permit: Permit,
    limit_key: LimitKey,
    now: Timestamp,
    /// The memory that is charged to the request for the node's answers.
    hold: Arc<AnswerHold>,
}

/// The node, with the upstream key of the caller's group in the organization if there is one (G1). An unusable key is
/// not replaced by another one.
impl NodeCaller for AuthorizedCall {
    type Denial = RpcOutcome;

    fn view_of(&self, node: &Node) -> Result<Node, RpcOutcome> {
        let key = match (self.permit.user(), self.permit.org()) {
            (Some(user), Some(org)) => upstream_key(&self.snapshot, user, org, self.now),
            (Some(_) | None, _) => None,
        };
        let charge = |node: Node| node.charged_to(self.payer(), &self.hold);
        let Some((group, stored)) = key else {
            return Ok(charge(node.clone()));
        };
        node.for_group(group, stored).map(charge).map_err(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                error,
                group.id = %group,
                "the upstream key of a group cannot be used: calls of its members fail until the key is set again"
            );
            RpcOutcome::NodeUnreachable
        })
    }
}

impl AuthorizedCall {
    pub(crate) const fn permit(&self) -> &Permit {
        &self.permit
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The time of the decision.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// The key under which the limits of the caller are counted.
    pub(crate) const fn limit_key(&self) -> LimitKey {
        self.limit_key
    }

    /// The upstream key of requests to the node for this caller.
    ///
    /// # Errors
    /// [`RpcOutcome::NodeUnreachable`] if the upstream key of the caller's group cannot be used.
    pub(crate) fn key_id(&self, state: &RpcContext) -> Result<KeyId, RpcOutcome> {
        state.upstream().key_id(self)
    }

    /// The payer for the bytes of answers: the user, also when a personal URL makes the call.
    fn payer(&self) -> Payer {
        match (self.limit_key, self.permit.user()) {
            (LimitKey::User(user), _) | (LimitKey::Url(_), Some(user)) => Payer::User(user),
            (LimitKey::Address(network), _) => Payer::Network(network.address()),
            // Every personal URL belongs to a user.
            (LimitKey::Url(_), None) => Payer::Gateway,
        }
    }

    /// Target and gas of the execution, for [`crate::limits::ExecutionPauses`].
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

    pub(crate) fn denied(&self, reason: DenyReason) -> RpcOutcome {
        RpcOutcome::denied(reason, self.permit.org())
    }
}

impl RpcCall {
    pub(crate) fn new(
        state: &Arc<RpcContext>,
        request: &Arc<RequestContext>,
        lookup: MethodLookup,
        wire: envelope::Request<'_>,
    ) -> Self {
        let chain = ChainRules {
            chain_id: state.upstream().chain_id(),
        };
        let parsed = match (&lookup, lookup.method()) {
            (_, Some(method)) => call::parse(method, wire.params, chain),
            (MethodLookup::Custom(custom), None) => call::passthrough(custom.name(), wire.params),
            (MethodLookup::Registered(_) | MethodLookup::Blocked | MethodLookup::Unknown, None) => {
                Err(ParamError::invalid("unknown method"))
            }
        };
        let mut visible_to = wire.visible_to;
        let parsed = parsed.map(|mut parsed| {
            visible_to = std::mem::take(&mut visible_to).union(std::mem::take(&mut parsed.visible_to));
            parsed
        });
        Self {
            state: Arc::clone(state),
            request: Arc::clone(request),
            lookup,
            parsed,
            visible_to,
        }
    }

    /// Replaces the signer of a signed transaction by an address without an owner, unless the impersonating
    /// administrator owns the signer's address as well (HD7).
    ///
    /// # Errors
    /// [`SenderRequired`] if the transaction carries value, which the replacement address does not have.
    pub(crate) fn hide_signer(&mut self, impersonation: Impersonation) -> Result<(), SenderRequired> {
        let Ok(parsed) = &mut self.parsed else { return Ok(()) };
        if !impersonation.hide_signer(&self.state.feed().pin().snapshot, &mut parsed.call) {
            return Ok(());
        }
        if let Call::SendRaw(signed) = &parsed.call
            && signed.request.value.is_some_and(|value| !value.is_zero())
        {
            return Err(SenderRequired);
        }
        Ok(())
    }

    /// The read that a filter or a subscription repeats for its owner.
    pub(crate) fn for_read(state: &Arc<RpcContext>, request: &Arc<RequestContext>, method: Method, call: Call) -> Self {
        let parsed = Ok(ParsedCall {
            call,
            visible_to: VisibleTo::default(),
        });
        let (state, request) = (Arc::clone(state), Arc::clone(request));
        Self {
            state,
            request,
            lookup: MethodLookup::Registered(method),
            parsed,
            visible_to: VisibleTo::default(),
        }
    }

    pub(crate) fn state(&self) -> &Arc<RpcContext> {
        &self.state
    }

    pub(crate) fn request(&self) -> &Arc<RequestContext> {
        &self.request
    }

    pub(crate) fn call(&self) -> Option<&Call> {
        self.parsed.as_ref().ok().map(|parsed| &parsed.call)
    }

    /// Authorizes the call under the newest policy, whose snapshot stays with the permit.
    ///
    /// # Errors
    /// The denial, or another outcome for the caller.
    pub(crate) fn authorize(&self) -> Result<AuthorizedCall, RpcOutcome> {
        let authorized = self.decide();
        self.state.metrics.decided(authorized.is_ok());
        authorized
    }

    fn decide(&self) -> Result<AuthorizedCall, RpcOutcome> {
        let method = match &self.lookup {
            MethodLookup::Registered(_) | MethodLookup::Custom(_) => self.lookup.method(),
            MethodLookup::Blocked => return Err(RpcOutcome::denied(DenyReason::MethodNotAllowed, None)),
            MethodLookup::Unknown => return Err(RpcOutcome::denied(DenyReason::MethodUnknown, None)),
        };
        let pinned = self.state.feed().pin();
        // While the policy is stale, only metadata calls are answered (decision 45).
        if !pinned.fresh && method.is_none_or(|method| method.class() != Class::Meta) {
            return Err(RpcOutcome::PolicyUnavailable);
        }
        let now = self.state.clock().now();
        let caller = self.request.caller(&pinned.snapshot, now)?;
        let access_request = AccessRequest {
            caller: &caller,
            lookup: self.lookup.clone(),
            call: self.parsed.as_ref().map(|parsed| &parsed.call),
            visible_to: &self.visible_to,
            named_org: self.request.named_org,
            now,
            // Without a head, calls that read the chain are not answered anyway.
            head: HeadFacts {
                number: self.state.upstream().head().map_or(0, |head| head.number),
            },
            policy_settings: self.state.policy_settings(),
        };
        match decide(&pinned.snapshot, &access_request) {
            Decision::Allow(permit) => {
                let (limit_key, hold) = (self.request.limit_key(&caller), Arc::clone(&self.request.hold));
                Ok(AuthorizedCall {
                    limit_key,
                    snapshot: pinned.snapshot,
                    permit,
                    now,
                    hold,
                })
            }
            Decision::Deny(denial) => Err(RpcOutcome::Denied(denial)),
            Decision::Invalid(invalid) => Err(RpcOutcome::Invalid(invalid)),
        }
    }

    /// Authorizes the call again (HD20): directly before a query to the node, and before an answer is opened. While the
    /// policy has not changed, the permit stays; otherwise a permit of the newest policy replaces it. The new permit
    /// may have another plan; the views show an answer correctly under either plan.
    ///
    /// # Errors
    /// The denial by the newest policy, or another outcome for the caller.
    fn reauthorize(&self, authorized: &mut AuthorizedCall) -> Result<(), RpcOutcome> {
        let pinned = self.state.feed().pin();
        if pinned.fresh && pinned.snapshot.epoch() == authorized.permit.epoch() {
            authorized.now = self.state.clock().now();
        } else {
            *authorized = self.authorize()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD20: a type that is `Clone` makes the call below ambiguous, so that it does not compile.
    #[test]
    fn hd20_no_copy_of_an_authorization_outlives_a_query() {
        trait Copyable<Marker> {
            fn is_not_clone() {}
        }
        struct Cloneable;
        impl<T: ?Sized> Copyable<()> for T {}
        impl<T: Clone> Copyable<Cloneable> for T {}
        <AuthorizedCall as Copyable<_>>::is_not_clone();
        <CallContext<'_> as Copyable<_>>::is_not_clone();
    }
}
