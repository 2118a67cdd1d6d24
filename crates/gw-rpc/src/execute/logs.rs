//! `eth_getLogs`: narrows the filter to what the viewer may query, reads the parties of the transactions, and returns
//! the rows that the viewer may see (HD1, J9).

use super::{advance_head_to, followed_blocks::ask_about_followed_blocks, head, resolve_block};
use crate::{
    call::{AuthorizedCall, CallContext},
    outcome::RpcOutcome,
    parties::{NodeParties, PartyCache},
};
use bytes::Bytes;
use gw_evm::{BlockId, BlockTag, Call, LogFilter, LogRange, ParamError, wire::Pin};
use gw_node::Node;
use gw_policy::{
    Disclosed, RawJson, Sealed,
    view::{self, LogsAnswer, PartiesNeeded, TxParties},
};
use gw_types::DenyReason;
use std::sync::Arc;

/// The most blocks of one range (J9).
const MAX_BLOCKS: u64 = 10_000;
/// The most rows of one answer (J9).
const MAX_ROWS: usize = 10_000;

pub(super) async fn logs(context: &mut CallContext<'_>, filter: &LogFilter) -> Result<Disclosed, RpcOutcome> {
    if view::shows_nothing(&context.viewer(), filter, context.permit().shared_logs_only()) {
        return Err(context.denied(DenyReason::ContractNotPermitted));
    }
    let bounded = bound_range(context, filter).await?;
    context.renew()?;
    let mut answer = None;
    if let Some((bounded, pin)) = bounded {
        let upstream = Call::Logs(view::upstream_filter(&context.viewer(), &bounded));
        answer = ask_about_followed_blocks(context, &upstream, pin).await?;
    }
    // Blocks above the head have no logs. Whether the caller may query them is checked all the same.
    let sealed = answer.unwrap_or_else(|| Sealed::new(RawJson::new(Bytes::from_static(b"[]"))));
    let needed = view::parties_needed(&context.viewer(), filter, &sealed);
    let parties = parties(context, filter, &needed).await?;
    match view::logs(
        &context.viewer(),
        filter,
        context.permit().shared_logs_only(),
        &parties,
        sealed,
    ) {
        LogsAnswer::NotPermitted => Err(context.denied(DenyReason::ContractNotPermitted)),
        LogsAnswer::Rows(_, count) if count > MAX_ROWS => {
            Err(context.invalid(ParamError::limit("too many results: 10000 at most")))
        }
        LogsAnswer::Rows(rows, _) => Ok(rows),
    }
}

/// A filter whose range has block numbers up to the head, and the pin to that head.
type BoundFilter = (LogFilter, Pin);

/// Bounds the range of a filter by the head; `None` if the whole range is above the head.
async fn bound_range(context: &mut CallContext<'_>, filter: &LogFilter) -> Result<Option<BoundFilter>, RpcOutcome> {
    let state = context.state();
    let LogRange::Range { from, to } = filter.range else {
        return Ok(Some((filter.clone(), head(state)?.pin())));
    };
    let from = block_number(context, from).await?;
    let to = block_number(context, to).await?;
    if from > to {
        return Err(context.invalid(ParamError::invalid("fromBlock is above toBlock")));
    }
    if to - from >= MAX_BLOCKS {
        return Err(context.invalid(ParamError::limit("block range too wide: 10000 blocks at most")));
    }
    if to > head(state)?.number {
        advance_head_to(context, to).await?;
    }
    let head = head(state)?.pin();
    let range = LogRange::Range {
        from: BlockId::Number(from),
        to: BlockId::Number(to.min(head.number)),
    };
    Ok((from <= head.number).then(|| {
        (
            LogFilter {
                range,
                ..filter.clone()
            },
            head,
        )
    }))
}

async fn block_number(context: &mut CallContext<'_>, block: BlockId) -> Result<u64, RpcOutcome> {
    match block {
        BlockId::Number(number) => Ok(number),
        BlockId::Tag(BlockTag::Earliest) => Ok(0),
        BlockId::Tag(_) | BlockId::Hash { .. } => Ok(resolve_block(context, block).await?.number),
    }
}

/// Reads senders and receivers of the transactions that the viewer might be a party of. They are facts of the signed
/// transactions, so what a call has read before is not read again.
///
/// A caller without access to one of the addresses neither uses nor fills the shared cache: the response time would
/// tell whether others read the logs of that address (docs/decisions/0015).
async fn parties(
    context: &mut CallContext<'_>,
    filter: &LogFilter,
    needed: &[PartiesNeeded],
) -> Result<TxParties, RpcOutcome> {
    let (state, mut parties) = (Arc::clone(context.state()), TxParties::default());
    let is_shared = view::reaches_all(&context.viewer(), filter, context.permit().shared_logs_only());
    let unshared = PartyCache::new(0);
    let cache = if is_shared { &state.parties } else { &unshared };
    let missing = &cache.find_known(needed, &mut parties);
    if missing.is_empty() {
        return Ok(parties);
    }
    let pin = head(&state)?.pin();
    let query = |node: Node, _: &AuthorizedCall| async move {
        let source = NodeParties::new(node, pin);
        cache.fetch(missing, &source, &mut parties).await?;
        Ok(parties)
    };
    context.query(query).await
}
