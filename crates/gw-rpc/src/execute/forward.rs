//! Calls the node answers; the views of the policy core open what it says (spec/30 section 5.1).

use super::{head, logs, pinned, time, trace, unanswered};
use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
    state::Inner,
};
use bytes::Bytes;
use gw_evm::{
    BlockId, BlockTag, Call, Method, TransactionRef,
    wire::{self, Pin},
};
use gw_node::{Answer, Budget, Head, NodeError};
use gw_policy::{
    Disclosed, RawJson, Sealed,
    access::{ReadBlock, check_historical_ownership, check_pin},
    view::{self, BlockTransactions, ErrorContext, FeeFacts, node_error},
};
use gw_types::{Address, DenyReason, U256};

/// Asks the node and opens its answer under the policy of the moment it came.
pub(crate) async fn forward(asked: &Asked, judged: Judged, found: &mut Found) -> Result<Disclosed, Reply> {
    let state = asked.state();
    if let Call::Logs(filter) = judged.permit.call() {
        let filter = filter.clone();
        return logs::logs(asked, judged, &filter, found).await;
    }
    if let Call::TraceTransaction(hash) = judged.permit.call() {
        let hash = *hash;
        return trace::mined(asked, judged, hash, found).await;
    }
    let head = head(state)?;
    let mut read_at = None;
    let pin = match place(judged.permit.call()) {
        Place::State(block) => {
            let block = pinned(state, &judged, block, found).await?;
            read_at = Some(ReadBlock {
                number: block.number,
                time: time(&block),
            });
            block.pin()
        }
        // Nothing above the followed head is there; a higher number makes the gateway look once (decision 41).
        Place::Block(number) if number > head.number => {
            raise(state, number, found).await?;
            let head = super::head(state)?;
            if number > head.number {
                asked.again(judged)?;
                return Ok(Disclosed::NULL);
            }
            head.pin()
        }
        Place::Block(_) | Place::Head => head.pin(),
    };
    let judged = asked.again(judged)?;
    if let Some(block) = read_at {
        check_historical_ownership(&judged.snapshot, &judged.permit, block, judged.now)
            .map_err(|reason| judged.denied(reason))?;
    }
    let (sealed, judged) = match judged.permit.rests_on_pin() {
        None => {
            let call = judged.permit.call().clone();
            let (answer, judged) = ask_of_followed(asked, judged, &call, pin, found).await?;
            (answer.unwrap_or_else(nothing), judged)
        }
        Some(address) => {
            let (code, sealed) = ask_beside(state, address, &judged, pin, found).await?;
            let judged = asked.again(judged)?;
            if let Err(broken) = check_pin(&judged.snapshot, address, &code) {
                if head.hash == pin.hash {
                    state.pins.report(state, broken.into_iter().collect());
                }
                return untagged(&judged, code);
            }
            (sealed, judged)
        }
    };
    open(
        state,
        &judged,
        &head,
        read_at.map_or(head.number, |block| block.number),
        sealed,
    )
}

/// Where on the chain a call looks.
enum Place {
    /// At the state of this block.
    State(BlockId),
    /// For the block of this number.
    Block(u64),
    /// At the head, or where it says to the node.
    Head,
}

fn place(call: &Call) -> Place {
    match call {
        Call::Balance(_, block) | Call::Nonce(_, block) | Call::Code(_, block) => Place::State(*block),
        Call::Storage { block, .. } | Call::Proof { block, .. } => Place::State(*block),
        Call::Simulate(simulation) => Place::State(simulation.block),
        Call::Block {
            block: BlockId::Number(number),
            ..
        }
        | Call::BlockTransactionCount(BlockId::Number(number))
        | Call::BlockReceipts(BlockId::Number(number))
        | Call::Transaction(TransactionRef::BlockNumberAndIndex(BlockId::Number(number), _)) => Place::Block(*number),
        _ => Place::Head,
    }
}

/// Deadline class of a forwarded call (RTO8): short for what the node stores, long for what it computes.
fn budget(call: &Call) -> Budget {
    let is_lookup = matches!(
        call,
        Call::Plain(_)
            | Call::Balance(..)
            | Call::Nonce(..)
            | Call::Code(..)
            | Call::Storage { .. }
            | Call::Transaction(_)
            | Call::Receipt(_)
            | Call::Block { .. }
            | Call::BlockTransactionCount(_)
    );
    if is_lookup { Budget::Lookup } else { Budget::Forward }
}

/// One call to the node, its body written from the typed call.
pub(super) async fn ask(
    state: &Inner,
    judged: &Judged,
    call: &Call,
    pin: Pin,
    found: &mut Found,
) -> Result<Sealed<RawJson>, Reply> {
    if let Call::Nonce(address, BlockId::Tag(BlockTag::Pending)) = call {
        return pending_nonce(state, judged, *address, pin, found).await;
    }
    let node = judged.node(state)?;
    match found
        .upstream(state, node.permitted(&judged.permit, call, pin, budget(call)))
        .await
    {
        Ok(None) => Err(Reply::Internal),
        Ok(Some(Answer::Result(sealed))) => Ok(sealed),
        Ok(Some(Answer::Error(error))) => Err(Reply::NodeError(node_error(ErrorContext::Other, error))),
        Err(error) => Err(unanswered(state, &error)),
    }
}

/// The nonce its owner sends with next. Code that runs as a wallet uses nonces too, for what it creates; how many it used in
/// a block that nobody judged yet is not told (HD28): of a wallet that runs code the judged nonce is.
async fn pending_nonce(
    state: &Inner,
    judged: &Judged,
    address: Address,
    pin: Pin,
    found: &mut Found,
) -> Result<Sealed<RawJson>, Reply> {
    let nonce = |block| {
        judged
            .permit
            .body(&Call::Nonce(address, block), pin)
            .ok_or(Reply::Internal)
    };
    let pending = BlockId::Tag(BlockTag::Pending);
    let calls = [wire::pending_code(address), nonce(pending)?, nonce(BlockId::LATEST)?];
    let answers = found
        .upstream(state, judged.node(state)?.batch(&calls, Budget::Lookup))
        .await;
    let mut results = Vec::with_capacity(calls.len());
    for answer in answers.map_err(|error| unanswered(state, &error))? {
        match answer {
            Answer::Result(sealed) => results.push(sealed),
            Answer::Error(error) => return Err(Reply::NodeError(node_error(ErrorContext::Other, error))),
        }
    }
    let [code, pending, judged] = <[_; 3]>::try_from(results).map_err(|_| Reply::Internal)?;
    Ok(if view::runs_no_code(&code) { pending } else { judged })
}

/// How often a question is asked whose answer is about blocks that the gateway does not follow.
const ASKED: u32 = 2;

/// HD28: nothing of a block leaves before the block is judged. An answer about a block that does not lead to the followed head
/// makes the gateway look at the head (decision 41); it is opened only if the block does then, by the policy of then. What is
/// asked again and still is about others is not there.
pub(super) async fn ask_of_followed(
    asked: &Asked,
    mut judged: Judged,
    call: &Call,
    pin: Pin,
    found: &mut Found,
) -> Result<(Option<Sealed<RawJson>>, Judged), Reply> {
    for _ in 0..ASKED {
        let answer = ask(asked.state(), &judged, call, pin, found).await?;
        let is_followed = followed(asked.state(), &answer, found).await?;
        judged = asked.again(judged)?;
        if is_followed {
            return Ok((Some(answer), judged));
        }
    }
    Ok((None, judged))
}

/// Whether every block that the answer is about leads to the followed head, after a look at it if one does not.
async fn followed(state: &Inner, answer: &Sealed<RawJson>, found: &mut Found) -> Result<bool, Reply> {
    let Some(named) = view::blocks_named(answer) else {
        return Ok(false);
    };
    let all = async || {
        for (number, hash) in &named {
            if !state.node().follows(*number, *hash).await? {
                return Ok(false);
            }
        }
        Ok::<_, NodeError>(true)
    };
    let looked = async {
        if all().await? {
            return Ok(true);
        }
        state.node().refresh_head().await?;
        all().await
    };
    found
        .upstream(state, looked)
        .await
        .map_err(|error| unanswered(state, &error))
}

/// What stands in place of an answer that is not there.
pub(super) fn nothing() -> Sealed<RawJson> {
    Sealed::new(RawJson::new(Bytes::from_static(b"null")))
}

/// A call about a shared contract, and that contract's code in the same exchange and block (X6).
async fn ask_beside(
    state: &Inner,
    address: Address,
    judged: &Judged,
    pin: Pin,
    found: &mut Found,
) -> Result<(Sealed<RawJson>, Sealed<RawJson>), Reply> {
    let code = wire::body(&Call::Code(address, BlockId::LATEST), pin).ok_or(Reply::Internal)?;
    let body = judged.permit.body(judged.permit.call(), pin).ok_or(Reply::Internal)?;
    let answers = found
        .upstream(
            state,
            judged.node(state)?.batch(&[code, body], budget(judged.permit.call())),
        )
        .await;
    let mut answers = answers.map_err(|error| unanswered(state, &error))?.into_iter();
    match (answers.next(), answers.next()) {
        (Some(Answer::Result(code)), Some(Answer::Result(answer))) => Ok((code, answer)),
        (_, Some(Answer::Error(error))) | (Some(Answer::Error(error)), _) => {
            Err(Reply::NodeError(node_error(ErrorContext::Other, error)))
        }
        (Some(_) | None, None) | (None, Some(_)) => Err(Reply::Internal),
    }
}

/// D3: the answer as if the address were not tagged: code nobody registered.
fn untagged(judged: &Judged, code: Sealed<RawJson>) -> Result<Disclosed, Reply> {
    match judged.permit.call() {
        Call::Balance(..) | Call::Nonce(..) => Ok(Disclosed::ZERO),
        Call::Code(..) if view::is_no_code(&code) => Ok(Disclosed::NO_BYTES),
        _ => Err(judged.denied(DenyReason::CodehashMismatch)),
    }
}

/// Opens an answer that was read at the block of this number.
fn open(state: &Inner, judged: &Judged, head: &Head, at: u64, sealed: Sealed<RawJson>) -> Result<Disclosed, Reply> {
    let viewer = judged.viewer(state);
    let published = viewer
        .knobs()
        .hide_base_fee
        .then(|| view::published_price(head.gas_price));
    Ok(match judged.permit.call() {
        Call::Plain(Method::Syncing) => view::syncing(sealed),
        Call::Plain(Method::ProtocolVersion) => view::text(sealed),
        // HIDE_BASE_FEE: price less tip is the base fee.
        Call::Plain(Method::MaxPriorityFeePerGas) if published.is_some() => {
            view::local::figure(view::published_tip(head.gas_price))
        }
        Call::Plain(Method::BlobBaseFee) if published.is_some() => view::local::figure(U256::ONE),
        Call::Plain(Method::MaxPriorityFeePerGas | Method::BlobBaseFee | Method::PeerCount) => view::figure(sealed),
        Call::FeeHistory { percentiles, .. } => {
            let facts = FeeFacts {
                gas_price: head.gas_price,
                head_base_fee: head.base_fee.unwrap_or(U256::ZERO),
                percentiles: percentiles.as_ref().map(Vec::len),
            };
            view::fee_history(&viewer, facts, sealed)
        }
        Call::Balance(address, _) => view::balance(&viewer, *address, at, sealed),
        Call::Nonce(address, _) => view::nonce(&viewer, *address, at, sealed),
        Call::Code(address, _) => {
            view::code(&viewer, *address, at, sealed).ok_or_else(|| judged.denied(DenyReason::ContractNotPermitted))?
        }
        Call::Simulate(_) => view::untraced_call_result(sealed),
        Call::Storage { address, slot, .. } => view::storage(&viewer, *address, *slot, at, sealed),
        Call::Proof { address, .. } => view::proof(&viewer, *address, at, sealed),
        Call::Transaction(_) => view::transaction(&viewer, sealed),
        Call::Receipt(_) => view::receipt(&viewer, sealed),
        Call::Block { full: true, .. } => view::block(&viewer, BlockTransactions::Full, published, sealed),
        Call::Block { full: false, .. } => view::block(&viewer, BlockTransactions::Hashes, published, sealed),
        Call::BlockTransactionCount(_) => view::block_transaction_count(&viewer, sealed),
        Call::BlockReceipts(_) => view::block_receipts(&viewer, sealed),
        // Answered elsewhere, or not at all.
        _ => return Err(judged.denied(DenyReason::MethodNotAllowed)),
    })
}

pub(super) async fn raise(state: &Inner, number: u64, found: &mut Found) -> Result<(), Reply> {
    let raised = found.upstream(state, state.node().raise(number)).await;
    raised.map_err(|error| unanswered(state, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RTO8: what a node has at hand is waited for less long than what it computes.
    #[test]
    fn rto8_a_lookup_has_a_shorter_deadline_than_a_computation() {
        let address = Address::ZERO;
        for lookup in [
            Call::Balance(address, BlockId::LATEST),
            Call::Nonce(address, BlockId::LATEST),
            Call::Code(address, BlockId::LATEST),
            Call::Transaction(TransactionRef::Hash(Default::default())),
            Call::Receipt(Default::default()),
            Call::Block {
                block: BlockId::LATEST,
                full: true,
            },
        ] {
            assert_eq!(budget(&lookup), Budget::Lookup, "{lookup:?}");
        }
        let history = Call::FeeHistory {
            count: 1024,
            newest: BlockId::LATEST,
            percentiles: None,
        };
        for computed in [Call::BlockReceipts(BlockId::LATEST), history] {
            assert_eq!(budget(&computed), Budget::Forward, "{computed:?}");
        }
    }
}
