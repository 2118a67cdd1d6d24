//! `debug_traceTransaction`: what a mined transaction did, for its parties and the administrators of its target.

use super::{
    forward::{ask, raise},
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
    let transaction = ask(state, &judged, &Call::Transaction(TransactionRef::Hash(hash)), pin, found).await?;
    let judged = asked.again(judged)?;
    // Unknown, or of others: the same denial.
    let block = view::traceable(&judged.viewer(state), &transaction);
    let block = block.ok_or_else(|| judged.denied(DenyReason::ContractNotPermitted))?;
    let Some(number) = block else { return Ok(Disclosed::NULL) };
    if number > head(state)?.number {
        raise(state, number, found).await?;
    }
    let trace = found.upstream(state, judged.node(state)?.trace_mined(hash)).await;
    let trace = trace.map_err(|error| untraced(state, &judged, error))?;
    let judged = asked.again(judged)?;
    view::mined_call_tree(&judged.viewer(state), &transaction, trace)
        .ok_or_else(|| judged.denied(DenyReason::ContractNotPermitted))
}
