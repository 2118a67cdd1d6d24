//! Executes each kind of permitted call, except sends ([`crate::send`]).

mod block_target;
mod estimate;
mod followed_blocks;
mod forward;
mod local;
mod logs;
mod open_answer;
mod passthrough;
mod simulate;
mod trace;

pub(crate) use forward::forward;
pub(crate) use local::{local, metadata};
pub(crate) use passthrough::passthrough;
pub(crate) use simulate::{evaluate_run, execution_rejected, reevaluate_run, simulate};

use crate::{call::CallContext, outcome::RpcOutcome, state::RpcContext};
use gw_evm::BlockId;
use gw_node::{Block, Head};
use gw_policy::{
    sealed::{RawError, Sealed},
    view::{ErrorContext, node_error},
};
use gw_types::Timestamp;
use std::sync::Arc;

/// The followed head: what `latest` means for this call (X3, decision 41).
pub(crate) fn head(state: &RpcContext) -> Result<Arc<Head>, RpcOutcome> {
    state.upstream().head().ok_or(RpcOutcome::NodeUnreachable)
}

/// The block at which the call reads state. Numbers and hashes have passed the history check (H1).
///
/// # Errors
/// An error like the node's own, if there is no such block.
async fn resolve_block(context: &mut CallContext<'_>, block: BlockId) -> Result<Block, RpcOutcome> {
    if let BlockId::Tag(gw_evm::BlockTag::Latest | gw_evm::BlockTag::Pending) = block {
        return Ok(head(context.state())?.block);
    }
    let resolved = context.query(|node, _| async move { node.block(block).await }).await?;
    resolved.ok_or_else(|| {
        let error = RawError {
            code: -32000,
            message: String::new(),
            data: None,
        };
        RpcOutcome::NodeError(node_error(ErrorContext::Other, Sealed::new(error)))
    })
}

/// Follows the chain up to this block, if the node has it (decision 41).
async fn advance_head_to(context: &mut CallContext<'_>, number: u64) -> Result<(), RpcOutcome> {
    let upstream = context.state().upstream();
    context.follow_chain(upstream.advance_head_to(number)).await
}

fn block_time(block: &Block) -> Timestamp {
    Timestamp::from_secs(i64::try_from(block.timestamp).unwrap_or(i64::MAX))
}
