//! Calls of custom methods that are passed through (spec/20 N3).

use super::{head, upstream_failure};
use crate::{
    call::{AuthorizedCall, CallContext, result_of},
    outcome::RpcOutcome,
};
use gw_node::{Node, NodeError, RetryPolicy};
use gw_policy::{Disclosed, view};

/// Sends the node the caller's own body, and returns the node's answer if the newest policy still permits it. The call
/// may be a send, so it goes to one node, once.
pub(crate) async fn passthrough(
    context: &mut CallContext<'_>,
    authorized: AuthorizedCall,
) -> Result<Disclosed, RpcOutcome> {
    let state = context.state();
    let pin = head(state)?.pin();
    let authorized = context.reauthorize(authorized)?;
    let body = authorized
        .permit
        .body(authorized.permit.call(), pin)
        .ok_or(RpcOutcome::Internal)?;
    // Memory for the answer is checked before the request: after it, a retry could send the call twice.
    authorized
        .hold
        .ready_once()
        .await
        .map_err(|full| upstream_failure(state, &full.into()))?;
    let authorized = context.reauthorize(authorized)?;
    let submission = |node: Node| async move { node.send(&body, RetryPolicy::Never).await };
    let answer = context
        .submit(&authorized, submission)
        .await?
        .map_err(|error| match error {
            NodeError::NoRoom(_) => RpcOutcome::NodeUnreachable,
            error => upstream_failure(state, &error),
        })?;
    let authorized = context.reauthorize(authorized)?;
    Ok(view::passthrough(&authorized.permit, result_of(answer)?))
}
