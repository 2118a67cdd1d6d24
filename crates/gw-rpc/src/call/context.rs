//! A call in progress: its parameters, and the data for its access record. All queries to the node on behalf of a call
//! go through here.
//!
//! Invariant (HD20): an answer of the node is returned together with an authorization that was renewed after the answer
//! arrived. [`AuthorizedCall`] is passed by value, so an authorization from before an answer cannot be used with the
//! answer.

use super::{AuthorizedCall, RpcCall};
use crate::{
    execute::{trace_failure, upstream_failure},
    outcome::RpcOutcome,
    record::CallRecord,
    request::RequestContext,
    state::RpcContext,
};
use gw_evm::{Call, wire::Pin};
use gw_node::{Answer, NoTrace, Node, NodeError, RequestBudget, SealedAnswer};
use gw_policy::{
    RawJson, Sealed,
    view::{ErrorContext, node_error},
};
use std::sync::Arc;

/// A call in progress and its access record.
#[derive(Debug)]
pub(crate) struct CallContext<'a> {
    call: &'a RpcCall,
    /// The data for the access record; each step of the call adds what it learns.
    pub(crate) record: &'a mut CallRecord,
}

impl<'a> CallContext<'a> {
    pub(crate) fn new(call: &'a RpcCall, record: &'a mut CallRecord) -> Self {
        Self { call, record }
    }

    /// A context for `call` that adds to this record: for example the read that a filter repeats.
    pub(crate) fn for_call<'b>(&'b mut self, call: &'b RpcCall) -> CallContext<'b> {
        CallContext {
            call,
            record: self.record,
        }
    }

    pub(crate) fn call(&self) -> &'a RpcCall {
        self.call
    }

    pub(crate) fn state(&self) -> &'a Arc<RpcContext> {
        self.call.state()
    }

    pub(crate) fn request(&self) -> &'a Arc<RequestContext> {
        self.call.request()
    }

    /// Authorizes the call under the newest policy.
    ///
    /// # Errors
    /// The denial, or another outcome for the caller.
    pub(crate) fn authorize(&self) -> Result<AuthorizedCall, RpcOutcome> {
        self.call.authorize()
    }

    /// Authorizes the call again, if the policy has changed (HD20).
    pub(crate) fn reauthorize(&self, authorized: AuthorizedCall) -> Result<AuthorizedCall, RpcOutcome> {
        self.call.reauthorize(authorized)
    }

    /// Queries the node: reauthorizes the call, sends the query, counts the time, and reauthorizes the call again.
    ///
    /// # Errors
    /// A denial by the newest policy, or the outcome for a node that does not answer.
    pub(crate) async fn query<T, Query>(
        &mut self,
        authorized: AuthorizedCall,
        start_query: impl FnOnce(Node, &AuthorizedCall) -> Query,
    ) -> Result<(T, AuthorizedCall), RpcOutcome>
    where
        Query: Future<Output = Result<T, NodeError>>,
    {
        let authorized = self.reauthorize(authorized)?;
        let query = start_query(authorized.node(self.state())?, &authorized);
        let answer = self.record.time_upstream(self.call.state(), query).await;
        let answer = answer.map_err(|error| upstream_failure(self.state(), &error))?;
        Ok((answer, self.reauthorize(authorized)?))
    }

    /// Sends the node the request that the permit allows for `call`.
    ///
    /// # Errors
    /// As of [`CallContext::query`]; the node's own error as one of the known texts; [`RpcOutcome::Internal`] for a
    /// call that the gateway answers without the node.
    pub(crate) async fn query_permitted(
        &mut self,
        authorized: AuthorizedCall,
        call: &Call,
        pin: Pin,
        budget: RequestBudget,
    ) -> Result<(Sealed<RawJson>, AuthorizedCall), RpcOutcome> {
        let authorized = self.reauthorize(authorized)?;
        let node = authorized.node(self.state())?;
        let query = node.permitted(&authorized.permit, call, pin, budget);
        let answer = self.record.time_upstream(self.call.state(), query).await;
        let answer = answer.map_err(|error| upstream_failure(self.state(), &error))?;
        let sealed = result_of(answer.ok_or(RpcOutcome::Internal)?)?;
        Ok((sealed, self.reauthorize(authorized)?))
    }

    /// Asks the node for a trace, and notes a finished execution for the pauses of heavy executions (HD36).
    ///
    /// # Errors
    /// A denial by the newest policy, or the outcome for a call that cannot be traced (X11).
    pub(crate) async fn query_trace<T, Query>(
        &mut self,
        authorized: AuthorizedCall,
        start_query: impl FnOnce(Node, &AuthorizedCall) -> Query,
    ) -> Result<(T, AuthorizedCall), RpcOutcome>
    where
        Query: Future<Output = Result<T, NoTrace>>,
    {
        let authorized = self.reauthorize(authorized)?;
        let started_at = authorized.now;
        let query = start_query(authorized.node(self.state())?, &authorized);
        let trace = self.record.time_upstream(self.call.state(), query).await;
        let authorized = self.reauthorize(authorized)?;
        if trace.is_ok() {
            self.state().pauses.record_return(started_at);
        }
        let trace = trace.map_err(|error| trace_failure(self.state(), &authorized, error))?;
        Ok((trace, authorized))
    }

    /// Waits for a query about which blocks exist, and counts the time. Its result decides at which block the call
    /// reads, never what the caller may see, so the call is not reauthorized.
    ///
    /// # Errors
    /// The outcome for a node that does not answer.
    pub(crate) async fn follow_chain<T>(
        &mut self,
        query: impl Future<Output = Result<T, NodeError>>,
    ) -> Result<T, RpcOutcome> {
        let answer = self.record.time_upstream(self.call.state(), query).await;
        answer.map_err(|error| upstream_failure(self.state(), &error))
    }

    /// Sends the node a request that may change the chain, once. The node's failure is returned unchanged: whether the
    /// node accepted the request may be unknown. The call is not reauthorized afterwards.
    pub(crate) async fn submit<Submission>(
        &mut self,
        authorized: &AuthorizedCall,
        start_submission: impl FnOnce(Node) -> Submission,
    ) -> Result<Result<SealedAnswer, NodeError>, RpcOutcome>
    where
        Submission: Future<Output = Result<SealedAnswer, NodeError>>,
    {
        let submission = start_submission(authorized.node(self.state())?);
        Ok(self.record.time_upstream(self.call.state(), submission).await)
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
