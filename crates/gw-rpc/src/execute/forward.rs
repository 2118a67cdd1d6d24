//! Calls that the node answers; the views of `gw-policy` open the answers (spec/30 section 5.1).

use super::{
    advance_head_to,
    block_target::{BlockTarget, block_target, budget},
    block_time,
    followed_blocks::{ask_about_followed_blocks, null_answer},
    head, logs,
    open_answer::open_answer,
    resolve_block, trace,
};
use crate::{
    call::{CallContext, result_of},
    outcome::RpcOutcome,
};
use gw_evm::{
    BlockId, Call,
    wire::{self, Pin},
};
use gw_policy::{
    Disclosed, RawJson, Sealed,
    access::{ReadBlock, check_historical_ownership, check_pin},
    view,
};
use gw_types::{Address, DenyReason};

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
    let answers = context
        .query(|node, _| async move { node.batch(&[code, body], budget).await })
        .await?;
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
