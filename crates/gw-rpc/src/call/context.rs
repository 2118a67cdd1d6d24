//! A call in progress: its authorization, and the data for its access record. All queries to the node on behalf of a
//! call go through here.
//!
//! Invariant (HD20): an answer of the node exists only after the call was authorized again. The context owns the only
//! authorization, a query borrows the context mutably and renews the authorization in place, so no viewer from before
//! a query can open its answer (`crate::upstream` has the proof).

use super::{
    AuthorizedCall, RpcCall,
    failure::{trace_failure, upstream_failure},
};
use crate::{
    outcome::RpcOutcome,
    record::CallRecord,
    request::RequestContext,
    state::RpcContext,
    upstream::{Authorization, NodeCaller, QueryFailure, SubmissionAnswer},
};
use gw_evm::{
    Call, ParamError,
    wire::{Pin, UpstreamCall},
};
use gw_node::{Answer, NoTrace, Node, NodeError, RecentBlocks, RequestBudget, RetryPolicy, SealedAnswer};
use gw_policy::{
    RawJson, Sealed, Snapshot, Viewer,
    access::Permit,
    view::{ErrorContext, node_error},
};
use gw_types::{DenyReason, Timestamp};
use std::sync::Arc;

/// A permitted call in progress and its access record.
#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    current: CurrentCall<'a>,
    /// The data for the access record; each step of the call adds what it learns.
    pub(crate) record: &'a mut CallRecord,
}

/// A call and its only authorization.
#[derive(Debug)]
struct CurrentCall<'a> {
    call: &'a RpcCall,
    authorized: AuthorizedCall,
}

impl NodeCaller for CurrentCall<'_> {
    type Denial = RpcOutcome;

    fn view_of(&self, node: &Node) -> Result<Node, RpcOutcome> {
        self.authorized.view_of(node)
    }
}

impl Authorization for CurrentCall<'_> {
    fn renew(&mut self) -> Result<(), RpcOutcome> {
        self.call.reauthorize(&mut self.authorized)
    }
}

impl<'a> CallContext<'a> {
    /// The context of `call`, which `authorized` permits.
    pub(crate) fn new(call: &'a RpcCall, record: &'a mut CallRecord, authorized: AuthorizedCall) -> Self {
        Self {
            current: CurrentCall { call, authorized },
            record,
        }
    }

    /// The authorization, to continue the call in a context of another task.
    pub(crate) fn into_authorized(self) -> AuthorizedCall {
        self.current.authorized
    }

    /// The reads that a filter or a subscription makes for the caller. Their authorizations are their own.
    pub(crate) fn reads(&mut self) -> ReadContext<'_> {
        ReadContext::new(self.state(), self.request(), self.record)
    }

    pub(crate) fn state(&self) -> &'a Arc<RpcContext> {
        self.current.call.state()
    }

    pub(crate) fn request(&self) -> &'a Arc<RequestContext> {
        self.current.call.request()
    }

    pub(crate) fn authorized(&self) -> &AuthorizedCall {
        &self.current.authorized
    }

    pub(crate) fn permit(&self) -> &Permit {
        self.authorized().permit()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        self.authorized().snapshot()
    }

    /// The time of the authorization.
    pub(crate) fn now(&self) -> Timestamp {
        self.authorized().now()
    }

    /// The caller as the viewer of answers.
    pub(crate) fn viewer(&self) -> Viewer<'_> {
        self.permit().collecting_viewer(
            self.snapshot(),
            self.now(),
            self.state().policy_settings(),
            Some(&self.record.grant_uses),
        )
    }

    pub(crate) fn denied(&self, reason: DenyReason) -> RpcOutcome {
        RpcOutcome::denied(reason, self.permit().org())
    }

    pub(crate) fn invalid(&self, error: ParamError) -> RpcOutcome {
        RpcOutcome::invalid(error, self.permit().org())
    }

    /// Authorizes the call again, if the policy has changed (HD20). Queries do so by themselves.
    ///
    /// # Errors
    /// The denial by the newest policy, or another outcome for the caller.
    pub(crate) fn renew(&mut self) -> Result<(), RpcOutcome> {
        self.current.renew()
    }

    /// Queries the node.
    ///
    /// # Errors
    /// A denial by the newest policy, or the outcome for a node that does not answer.
    pub(crate) async fn query<T, Query>(
        &mut self,
        start_query: impl FnOnce(Node, &AuthorizedCall) -> Query,
    ) -> Result<T, RpcOutcome>
    where
        Query: Future<Output = Result<T, NodeError>>,
    {
        self.run(start_query).await.map_err(|failure| match failure {
            QueryFailure::Denied(outcome) => outcome,
            QueryFailure::Failed(error) => upstream_failure(self.state(), &error),
        })
    }

    /// Sends the node the request that the permit allows for `call`.
    ///
    /// # Errors
    /// As of [`CallContext::query`]; the node's own error as one of the known texts; [`RpcOutcome::Internal`] for a
    /// call that the gateway answers without the node.
    pub(crate) async fn query_permitted(
        &mut self,
        call: &Call,
        pin: Pin,
        budget: RequestBudget,
    ) -> Result<Sealed<RawJson>, RpcOutcome> {
        let answer = self
            .query(|node, authorized| node.permitted(authorized.permit(), call, pin, budget))
            .await?;
        result_of(answer.ok_or(RpcOutcome::Internal)?)
    }

    /// Sends the node a request of a method that is passed through. It may change the chain, so it goes to one node,
    /// once.
    ///
    /// # Errors
    /// As of [`CallContext::query`]; the node's own error as one of the known texts.
    pub(crate) async fn query_once(&mut self, request: UpstreamCall) -> Result<Sealed<RawJson>, RpcOutcome> {
        let query = |node: Node, _: &AuthorizedCall| async move { node.send(&request, RetryPolicy::Never).await };
        let answer = self.run(query).await.map_err(|failure| match failure {
            QueryFailure::Denied(outcome) => outcome,
            QueryFailure::Failed(NodeError::NoRoom(_)) => RpcOutcome::NodeUnreachable,
            QueryFailure::Failed(error) => upstream_failure(self.state(), &error),
        })?;
        result_of(answer)
    }

    /// Asks the node for a trace, and notes a finished execution for the pauses of heavy executions (HD36).
    ///
    /// # Errors
    /// A denial by the newest policy, or the outcome for a call that cannot be traced (X11).
    pub(crate) async fn query_trace<T, Query>(
        &mut self,
        start_query: impl FnOnce(Node, &AuthorizedCall) -> Query,
    ) -> Result<T, RpcOutcome>
    where
        Query: Future<Output = Result<T, NoTrace>>,
    {
        let started_at = self.state().clock().now();
        match self.run(start_query).await {
            Ok(trace) => {
                self.state().pauses.record_return(started_at);
                Ok(trace)
            }
            Err(QueryFailure::Denied(outcome)) => Err(outcome),
            Err(QueryFailure::Failed(error)) => {
                self.renew()?;
                Err(trace_failure(self.state(), self.authorized(), error))
            }
        }
    }

    /// Waits for a query about which blocks exist, and authorizes the call again.
    ///
    /// # Errors
    /// As of [`CallContext::query`].
    pub(crate) async fn follow_chain<T>(
        &mut self,
        query: impl Future<Output = Result<T, NodeError>>,
    ) -> Result<T, RpcOutcome> {
        let answer = self.record.time_upstream(self.current.call.state(), query).await;
        let answer = answer.map_err(|error| upstream_failure(self.state(), &error))?;
        self.renew()?;
        Ok(answer)
    }

    /// Submits a transaction to the node, once. The node's failure is part of the answer: whether the node accepted the
    /// transaction may be unknown. The call is not authorized again afterwards.
    ///
    /// # Errors
    /// The outcome for a caller whose upstream key cannot be used.
    pub(crate) async fn submit(
        &mut self,
        transaction: &UpstreamCall,
        retry: RetryPolicy,
    ) -> Result<SubmissionAnswer, RpcOutcome> {
        let state = self.state();
        let submission = state.upstream().submit(&self.current, transaction, retry);
        self.record.time_upstream(state, submission).await
    }

    /// Queries the node between two authorizations, and counts the time.
    async fn run<T, E, Query>(
        &mut self,
        start_query: impl FnOnce(Node, &AuthorizedCall) -> Query,
    ) -> Result<T, QueryFailure<E, RpcOutcome>>
    where
        Query: Future<Output = Result<T, E>>,
    {
        let state = self.state();
        let Self { current, record } = self;
        let start_query =
            |node: Node, current: &CurrentCall<'_>| record.time_upstream(state, start_query(node, &current.authorized));
        state.upstream().query(current, start_query).await
    }
}

/// The reads of a filter or a subscription for the caller of a request, and the record that they add to.
#[derive(Debug)]
pub(crate) struct ReadContext<'a> {
    state: &'a Arc<RpcContext>,
    request: &'a Arc<RequestContext>,
    record: &'a mut CallRecord,
}

impl<'a> ReadContext<'a> {
    pub(crate) fn new(
        state: &'a Arc<RpcContext>,
        request: &'a Arc<RequestContext>,
        record: &'a mut CallRecord,
    ) -> Self {
        Self { state, request, record }
    }

    pub(crate) fn state(&self) -> &'a Arc<RpcContext> {
        self.state
    }

    pub(crate) fn request(&self) -> &'a Arc<RequestContext> {
        self.request
    }

    /// Authorizes one read under the newest policy.
    ///
    /// # Errors
    /// The denial, or another outcome for the caller.
    pub(crate) fn authorize<'b>(&'b mut self, read: &'b RpcCall) -> Result<CallContext<'b>, RpcOutcome> {
        let authorized = read.authorize()?;
        Ok(CallContext::new(read, self.record, authorized))
    }

    /// The newest blocks of the chain. They decide at which blocks the next read reads, never what the caller may see.
    ///
    /// # Errors
    /// The outcome for a node that does not answer.
    pub(crate) async fn recent_blocks(&mut self) -> Result<Arc<RecentBlocks>, RpcOutcome> {
        let query = self.state.upstream().recent_blocks();
        let answer = self.record.time_upstream(self.state, query).await;
        answer.map_err(|error| upstream_failure(self.state, &error))
    }
}

/// The result of a node's answer.
///
/// # Errors
/// The node's own error, as one of the known texts.
pub(crate) fn result_of(answer: SealedAnswer) -> Result<Sealed<RawJson>, RpcOutcome> {
    match answer {
        Answer::Result(sealed) => Ok(sealed),
        Answer::Error(error) => Err(RpcOutcome::NodeError(node_error(ErrorContext::Other, error))),
    }
}
