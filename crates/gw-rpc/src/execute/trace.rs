//! `debug_traceTransaction`: what a mined transaction did, for its parties and the administrators of its target.

use super::{
    forward::{ask_of_followed, nothing},
    head, untraced,
};
use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
};
use gw_evm::{Call, TransactionRef};
use gw_policy::{Disclosed, view};
use gw_types::{B256, DenyReason};

pub(super) async fn mined(asked: &Asked, judged: Judged, hash: B256, found: &mut Found) -> Result<Disclosed, Reply> {
    let state = asked.state();
    let pin = head(state)?.pin();
    let question = Call::Transaction(TransactionRef::Hash(hash));
    let (transaction, judged) = ask_of_followed(asked, judged, &question, pin, found).await?;
    let transaction = transaction.unwrap_or_else(nothing);
    // Unknown, or of others: the same denial.
    let block = view::traceable(&judged.viewer(state), &transaction);
    let block = block.ok_or_else(|| judged.denied(DenyReason::ContractNotPermitted))?;
    if block.is_none() {
        return Ok(Disclosed::NULL);
    }
    let trace = found.upstream(state, judged.node(state)?.trace_mined(hash)).await;
    let trace = trace.map_err(|error| untraced(state, &judged, error))?;
    // A trace does not say of which block it is: the transaction must still be where it was (HD28).
    let (again, judged) = ask_of_followed(asked, judged, &question, pin, found).await?;
    let again = again.unwrap_or_else(nothing);
    if view::blocks_named(&again) != view::blocks_named(&transaction) {
        return Ok(Disclosed::NULL);
    }
    view::mined_call_tree(&judged.viewer(state), &transaction, trace)
        .ok_or_else(|| judged.denied(DenyReason::ContractNotPermitted))
}
