//! Calls that pass through unexamined (spec/20 N3).

use super::{head, unanswered};
use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
};
use gw_node::{Answer, NodeError, Resend};
use gw_policy::{
    Disclosed,
    view::{self, ErrorContext, node_error},
};

/// Asks the node what the caller asked, and tells what it says, if the policy of that moment still lets it. It may be a
/// send, so one node hears it once.
pub(crate) async fn pass(asked: &Asked, judged: Judged, found: &mut Found) -> Result<Disclosed, Reply> {
    let state = asked.state();
    let pin = head(state)?.pin();
    let judged = asked.again(judged)?;
    let body = judged.permit.body(judged.permit.call(), pin).ok_or(Reply::Internal)?;
    let node = judged.node(state)?;
    // Once the node was asked, "try again" would be the wrong word.
    judged
        .hold
        .ready_once()
        .await
        .map_err(|full| unanswered(state, &full.into()))?;
    let answer = found
        .upstream(state, node.send(&body, Resend::Never))
        .await
        .map_err(|error| match error {
            NodeError::NoRoom(_) => Reply::NodeUnreachable,
            error => unanswered(state, &error),
        })?;
    let judged = asked.again(judged)?;
    match answer {
        Answer::Result(sealed) => Ok(view::unexamined(&judged.permit, sealed)),
        Answer::Error(error) => Err(Reply::NodeError(node_error(ErrorContext::Other, error))),
    }
}
