//! `debug_traceTransaction`: what a mined transaction did, for its parties and the administrators of its target.

use super::{
    followed_blocks::{ask_about_followed_blocks, null_answer},
    head,
};
use crate::{call::CallContext, outcome::RpcOutcome};
use gw_evm::{Call, TransactionRef};
use gw_policy::{Disclosed, view};
use gw_types::{B256, DenyReason};

pub(super) async fn trace_transaction(context: &mut CallContext<'_>, hash: B256) -> Result<Disclosed, RpcOutcome> {
    let pin = head(context.state())?.pin();
    let lookup = Call::Transaction(TransactionRef::Hash(hash));
    let transaction = ask_about_followed_blocks(context, &lookup, pin).await?;
    let transaction = transaction.unwrap_or_else(null_answer);
    // An unknown transaction and one of other parties get the same denial.
    let block = view::traceable(&context.viewer(), &transaction);
    let block = block.ok_or_else(|| context.denied(DenyReason::ContractNotPermitted))?;
    if block.is_none() {
        return Ok(Disclosed::NULL);
    }
    let trace = context
        .query_trace(|node, _| async move { node.trace_mined(hash).await })
        .await?;
    // A trace does not name its block, so the transaction must still be in the same block as before (HD28).
    let reread = ask_about_followed_blocks(context, &lookup, pin).await?;
    let reread = reread.unwrap_or_else(null_answer);
    if view::referenced_blocks(&reread) != view::referenced_blocks(&transaction) {
        return Ok(Disclosed::NULL);
    }
    view::mined_call_tree(&context.viewer(), &transaction, trace)
        .ok_or_else(|| context.denied(DenyReason::ContractNotPermitted))
}
