//! How each kind of permitted call is answered. Sends are [`crate::send`].

mod estimate;
mod forward;
mod local;
mod logs;
mod pass;
mod simulate;
mod trace;

pub(crate) use forward::forward;
pub(crate) use local::{local, metadata};
pub(crate) use pass::pass;
pub(crate) use simulate::{judge_again, judge_run, simulate, untraced, unwilling};

use crate::{question::Judged, record::Found, reply::Reply, state::Inner};
use gw_evm::BlockId;
use gw_node::{Block, Head, NodeError};
use gw_policy::{
    sealed::{RawError, Sealed},
    view::{ErrorContext, node_error},
};
use gw_types::{DenyReason, Timestamp};
use std::sync::Arc;

/// The followed head: what `latest` means for this call (X3, decision 41).
pub(crate) fn head(state: &Inner) -> Result<Arc<Head>, Reply> {
    state.node().head().ok_or(Reply::NodeUnreachable)
}

/// The block that the state of this call is read at. Numbers and hashes passed the history guard (H1); one that nobody
/// has is an error like the node's own.
async fn pinned(state: &Inner, judged: &Judged, block: BlockId, found: &mut Found) -> Result<Block, Reply> {
    if let BlockId::Tag(gw_evm::BlockTag::Latest | gw_evm::BlockTag::Pending) = block {
        return Ok(head(state)?.block);
    }
    let named = found
        .upstream(state, judged.node(state)?.block(block))
        .await
        .map_err(|error| unanswered(state, &error))?;
    named.ok_or_else(|| {
        let error = RawError {
            code: -32000,
            message: String::new(),
            data: None,
        };
        Reply::NodeError(node_error(ErrorContext::Other, Sealed::new(error)))
    })
}

/// When the block was.
fn time(block: &Block) -> Timestamp {
    Timestamp::from_secs(i64::try_from(block.timestamp).unwrap_or(i64::MAX))
}

/// No answer: one line for us, one constant text for the caller. "Too many" opens the breaker of the key by which the node
/// was asked (J8). What was not read because the caller holds too much already is one call too many.
pub(crate) fn unanswered(state: &Inner, error: &NodeError) -> Reply {
    if let NodeError::RateLimited(key) = error {
        state.meters.node_busy();
        state.breakers.open(*key, state.clock().now());
        return Reply::Busy(DenyReason::RateLimited);
    }
    if let NodeError::NoRoom(_) = error {
        state.meters.crowded();
        return Reply::Busy(DenyReason::ConcurrencyLimited);
    }
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the node did not answer a call"
    );
    Reply::NodeUnreachable
}
