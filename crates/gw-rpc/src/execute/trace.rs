//! `debug_traceTransaction`: what a mined transaction did, for its parties and the administrators of its target.

use super::{
    forward::{ask_about_followed_blocks, null_answer},
    head,
};
use crate::{
    call::{AuthorizedCall, CallContext},
    outcome::RpcOutcome,
};
use gw_evm::{Call, TransactionRef};
use gw_node::Node;
use gw_policy::{Disclosed, view};
use gw_types::{B256, DenyReason};

pub(super) async fn trace_transaction(
    context: &mut CallContext<'_>,
    authorized: AuthorizedCall,
    hash: B256,
) -> Result<Disclosed, RpcOutcome> {
    let state = context.state();
    let pin = head(state)?.pin();
    let lookup = Call::Transaction(TransactionRef::Hash(hash));
    let (transaction, authorized) = ask_about_followed_blocks(context, authorized, &lookup, pin).await?;
    let transaction = transaction.unwrap_or_else(null_answer);
    // An unknown transaction and one of other parties get the same denial.
    let block = view::traceable(&authorized.viewer(state), &transaction);
    let block = block.ok_or_else(|| authorized.denied(DenyReason::ContractNotPermitted))?;
    if block.is_none() {
        return Ok(Disclosed::NULL);
    }
    let query = |node: Node, _: &AuthorizedCall| async move { node.trace_mined(hash).await };
    let (trace, authorized) = context.query_trace(authorized, query).await?;
    // A trace does not name its block, so the transaction must still be in the same block as before (HD28).
    let (reread, authorized) = ask_about_followed_blocks(context, authorized, &lookup, pin).await?;
    let reread = reread.unwrap_or_else(null_answer);
    if view::referenced_blocks(&reread) != view::referenced_blocks(&transaction) {
        return Ok(Disclosed::NULL);
    }
    view::mined_call_tree(&authorized.viewer(state), &transaction, trace)
        .ok_or_else(|| authorized.denied(DenyReason::ContractNotPermitted))
}
