//! Queries about blocks: an answer that names a block which the gateway does not follow is not used (HD28).

use super::block_target::budget;
use crate::{
    call::{CallContext, result_of},
    outcome::RpcOutcome,
};
use bytes::Bytes;
use gw_evm::{
    BlockId, BlockTag, Call,
    wire::{self, Pin},
};
use gw_node::{NodeError, RequestBudget};
use gw_policy::{RawJson, Sealed, view};
use gw_types::Address;

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
    let answers = context
        .query(|node, _| async move { node.batch(&calls, RequestBudget::Lookup).await })
        .await?;
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
