//! Calls that the node answers; the views of `gw-policy` open the answers (spec/30 section 5.1).

use super::{advance_head_to, block_time, head, logs, resolve_block, trace};
use crate::{
    call::{AuthorizedCall, CallContext, result_of},
    outcome::RpcOutcome,
};
use bytes::Bytes;
use gw_evm::{
    BlockId, BlockTag, Call, Method, TransactionRef,
    wire::{self, Pin},
};
use gw_node::{Head, Node, NodeError, RequestBudget};
use gw_policy::{
    Disclosed, RawJson, Sealed,
    access::{ReadBlock, check_historical_ownership, check_pin},
    view::{self, BlockTransactions, FeeFacts},
};
use gw_types::{Address, DenyReason, U256};

/// Queries the node, and opens its answer under the newest policy (HD20).
pub(crate) async fn forward(context: &mut CallContext<'_>) -> Result<Disclosed, RpcOutcome> {
    let state = context.state();
    if let Call::Logs(filter) = context.permit().call() {
        let filter = filter.clone();
        return logs::logs(context, &filter).await;
    }
    if let Call::TraceTransaction(hash) = context.permit().call() {
        let hash = *hash;
        return trace::trace_transaction(context, hash).await;
    }
    let head = head(state)?;
    let mut read_block = None;
    let pin = match block_target(context.permit().call()) {
        BlockTarget::State(block) => {
            let block = resolve_block(context, block).await?;
            read_block = Some(ReadBlock {
                number: block.number,
                time: block_time(&block),
            });
            block.pin()
        }
        // For callers, no block above the followed head exists. A higher number makes the gateway check for a new head
        // once (decision 41).
        BlockTarget::Block(number) if number > head.number => {
            advance_head_to(context, number).await?;
            let head = super::head(state)?;
            if number > head.number {
                return Ok(Disclosed::NULL);
            }
            head.pin()
        }
        BlockTarget::Block(_) | BlockTarget::Head => head.pin(),
    };
    context.renew()?;
    if let Some(block) = read_block {
        check_historical_ownership(context.snapshot(), context.permit(), block, context.now())
            .map_err(|reason| context.denied(reason))?;
    }
    let sealed = match context.permit().requires_code_pin() {
        None => {
            let call = context.permit().call().clone();
            let answer = ask_about_followed_blocks(context, &call, pin).await?;
            answer.unwrap_or_else(null_answer)
        }
        Some(address) => {
            let (code, sealed) = ask_with_code(context, address, pin).await?;
            if let Err(broken) = check_pin(context.snapshot(), address, &code) {
                if head.hash == pin.hash {
                    state.report_broken_pins(broken.into_iter().collect());
                }
                return without_shared_tag(context, code);
            }
            sealed
        }
    };
    open_answer(
        context,
        &head,
        read_block.map_or(head.number, |block| block.number),
        sealed,
    )
}

/// The block that a call queries.
enum BlockTarget {
    /// The state at this block.
    State(BlockId),
    /// The block of this number itself.
    Block(u64),
    /// The followed head, or a block that the node finds by a hash.
    Head,
}

fn block_target(call: &Call) -> BlockTarget {
    match call {
        Call::Balance(_, block) | Call::Nonce(_, block) | Call::Code(_, block) => BlockTarget::State(*block),
        Call::Storage { block, .. } | Call::Proof { block, .. } => BlockTarget::State(*block),
        Call::Simulate(simulation) => BlockTarget::State(simulation.block),
        Call::Block {
            block: BlockId::Number(number),
            ..
        }
        | Call::BlockTransactionCount(BlockId::Number(number))
        | Call::BlockReceipts(BlockId::Number(number))
        | Call::Transaction(TransactionRef::BlockNumberAndIndex(BlockId::Number(number), _)) => {
            BlockTarget::Block(*number)
        }
        _ => BlockTarget::Head,
    }
}

/// Deadline of a forwarded call (RTO8): short for what the node stores, long for what it computes.
fn budget(call: &Call) -> RequestBudget {
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
    if is_lookup {
        RequestBudget::Lookup
    } else {
        RequestBudget::Forward
    }
}

/// Queries the node for one call. The body is written from the typed call.
async fn ask_node(context: &mut CallContext<'_>, call: &Call, pin: Pin) -> Result<Sealed<RawJson>, RpcOutcome> {
    if let Call::Nonce(address, BlockId::Tag(BlockTag::Pending)) = call {
        return pending_nonce(context, *address, pin).await;
    }
    context.query_permitted(call, pin, budget(call)).await
}

/// The nonce for the next transaction of the account's owner. Code that runs as a wallet uses nonces as well, for the
/// contracts that it creates. How many it used in a block that is not validated yet stays hidden (HD28), so a wallet
/// that runs code gets the nonce of the validated block.
async fn pending_nonce(
    context: &mut CallContext<'_>,
    address: Address,
    pin: Pin,
) -> Result<Sealed<RawJson>, RpcOutcome> {
    let nonce = |block| {
        context
            .permit()
            .body(&Call::Nonce(address, block), pin)
            .ok_or(RpcOutcome::Internal)
    };
    let pending = BlockId::Tag(BlockTag::Pending);
    let calls = [wire::pending_code(address), nonce(pending)?, nonce(BlockId::LATEST)?];
    let query = |node: Node, _: &AuthorizedCall| async move { node.batch(&calls, RequestBudget::Lookup).await };
    let answers = context.query(query).await?;
    let results = answers.into_iter().map(result_of).collect::<Result<Vec<_>, _>>()?;
    let [code, pending, validated] = <[_; 3]>::try_from(results).map_err(|_| RpcOutcome::Internal)?;
    Ok(if view::runs_no_code(&code) { pending } else { validated })
}

/// The most queries to the node while its answer names blocks that the gateway does not follow.
const MAX_ATTEMPTS: u32 = 2;

/// Queries the node about blocks. No data of a block leaves before the block is validated (HD28), so an answer that
/// names a block other than the followed head and its ancestors makes the gateway check for a new head (decision 41).
/// `None` if the second answer names such a block, too: for callers it does not exist.
pub(super) async fn ask_about_followed_blocks(
    context: &mut CallContext<'_>,
    call: &Call,
    pin: Pin,
) -> Result<Option<Sealed<RawJson>>, RpcOutcome> {
    for _ in 0..MAX_ATTEMPTS {
        let answer = ask_node(context, call, pin).await?;
        if names_followed_blocks(context, &answer).await? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// Whether every block in the answer is the followed head or an ancestor of it. If one is not, the head is renewed and
/// the blocks are checked again.
async fn names_followed_blocks(context: &mut CallContext<'_>, answer: &Sealed<RawJson>) -> Result<bool, RpcOutcome> {
    let Some(blocks) = view::referenced_blocks(answer) else {
        return Ok(false);
    };
    let node = context.state().upstream();
    let follows_all = async || {
        for (number, hash) in &blocks {
            if !node.follows(*number, *hash).await? {
                return Ok(false);
            }
        }
        Ok::<_, NodeError>(true)
    };
    let check = async {
        if follows_all().await? {
            return Ok(true);
        }
        node.refresh_head().await?;
        follows_all().await
    };
    context.follow_chain(check).await
}

/// `null`, in place of an answer that does not exist for callers.
pub(super) fn null_answer() -> Sealed<RawJson> {
    Sealed::new(RawJson::new(Bytes::from_static(b"null")))
}

/// Queries the node about a shared contract and for its code, in one batch and at one block (X6).
async fn ask_with_code(
    context: &mut CallContext<'_>,
    address: Address,
    pin: Pin,
) -> Result<(Sealed<RawJson>, Sealed<RawJson>), RpcOutcome> {
    let code = wire::body(&Call::Code(address, BlockId::LATEST), pin).ok_or(RpcOutcome::Internal)?;
    let call = context.permit().call();
    let (body, budget) = (
        context.permit().body(call, pin).ok_or(RpcOutcome::Internal)?,
        budget(call),
    );
    let query = |node: Node, _: &AuthorizedCall| async move { node.batch(&[code, body], budget).await };
    let answers = context.query(query).await?;
    let mut answers = answers.into_iter();
    let (Some(code), Some(answer), None) = (answers.next(), answers.next(), answers.next()) else {
        return Err(RpcOutcome::Internal);
    };
    let answer = result_of(answer)?;
    Ok((result_of(code)?, answer))
}

/// D3: the answer for an unregistered contract, as if the address had no shared tag.
fn without_shared_tag(context: &CallContext<'_>, code: Sealed<RawJson>) -> Result<Disclosed, RpcOutcome> {
    match context.permit().call() {
        Call::Balance(..) | Call::Nonce(..) => Ok(Disclosed::ZERO),
        Call::Code(..) if view::is_no_code(&code) => Ok(Disclosed::NO_BYTES),
        _ => Err(context.denied(DenyReason::CodehashMismatch)),
    }
}

/// Opens an answer about the state at block `block_number`.
fn open_answer(
    context: &CallContext<'_>,
    head: &Head,
    block_number: u64,
    sealed: Sealed<RawJson>,
) -> Result<Disclosed, RpcOutcome> {
    let viewer = context.viewer();
    let published = viewer
        .knobs()
        .hide_base_fee
        .then(|| view::published_price(head.gas_price));
    Ok(match context.permit().call() {
        Call::Plain(Method::Syncing) => view::syncing(sealed),
        Call::Plain(Method::ProtocolVersion) => view::text(sealed),
        // HIDE_BASE_FEE: the price minus the tip is the base fee.
        Call::Plain(Method::MaxPriorityFeePerGas) if published.is_some() => {
            view::local::quantity(view::published_tip(head.gas_price))
        }
        Call::Plain(Method::BlobBaseFee) if published.is_some() => view::local::quantity(U256::ONE),
        Call::Plain(Method::MaxPriorityFeePerGas | Method::BlobBaseFee | Method::PeerCount) => {
            view::public_quantity(sealed)
        }
        Call::FeeHistory { percentiles, .. } => {
            let facts = FeeFacts {
                gas_price: head.gas_price,
                head_base_fee: head.base_fee.unwrap_or(U256::ZERO),
                percentiles: percentiles.as_ref().map(Vec::len),
            };
            view::fee_history(&viewer, facts, sealed)
        }
        Call::Balance(address, _) => view::balance(&viewer, *address, block_number, sealed),
        Call::Nonce(address, _) => view::nonce(&viewer, *address, block_number, sealed),
        Call::Code(address, _) => view::code(&viewer, *address, block_number, sealed)
            .ok_or_else(|| context.denied(DenyReason::ContractNotPermitted))?,
        Call::Simulate(_) => view::untraced_call_result(sealed),
        Call::Storage { address, slot, .. } => view::storage(&viewer, *address, *slot, block_number, sealed),
        Call::Proof { address, .. } => view::proof(&viewer, *address, block_number, sealed),
        Call::Transaction(_) => view::transaction(&viewer, sealed),
        Call::Receipt(_) => view::receipt(&viewer, sealed),
        Call::Block { full: true, .. } => view::block(&viewer, BlockTransactions::Full, published, sealed),
        Call::Block { full: false, .. } => view::block(&viewer, BlockTransactions::Hashes, published, sealed),
        Call::BlockTransactionCount(_) => view::block_transaction_count(&viewer, sealed),
        Call::BlockReceipts(_) => view::block_receipts(&viewer, sealed),
        // Answered by another module, or not at all.
        _ => return Err(context.denied(DenyReason::MethodNotAllowed)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RTO8: a value that the node stores has a shorter deadline than one that it computes.
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
            assert_eq!(budget(&lookup), RequestBudget::Lookup, "{lookup:?}");
        }
        let history = Call::FeeHistory {
            count: 1024,
            newest: BlockId::LATEST,
            percentiles: None,
        };
        for computation in [Call::BlockReceipts(BlockId::LATEST), history] {
            assert_eq!(budget(&computation), RequestBudget::Forward, "{computation:?}");
        }
    }
}
