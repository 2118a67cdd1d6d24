//! Calls of custom methods that are passed through (spec/20 N3).

use super::head;
use crate::{
    call::{CallContext, upstream_failure},
    outcome::RpcOutcome,
};
use gw_policy::{Disclosed, view};

/// Sends the node the caller's own body, and returns the node's answer if the newest policy still permits it. The call
/// may be a send, so it goes to one node, once.
pub(crate) async fn passthrough(context: &mut CallContext<'_>) -> Result<Disclosed, RpcOutcome> {
    let state = context.state();
    let pin = head(state)?.pin();
    context.renew()?;
    let body = context
        .permit()
        .body(context.permit().call(), pin)
        .ok_or(RpcOutcome::Internal)?;
    // Memory for the answer is checked before the request: after it, a retry could send the call twice.
    context
        .request()
        .hold
        .ready_once()
        .await
        .map_err(|full| upstream_failure(state, &full.into()))?;
    let answer = context.query_once(body).await?;
    Ok(view::passthrough(context.permit(), answer))
}
