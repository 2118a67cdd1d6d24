//! Reads the updates of a filter or a subscription since its last poll, as its owner may see them.

use crate::{
    call::{ReadContext, RpcCall},
    execute,
    outcome::RpcOutcome,
    registry::{LogCursor, Updates},
    request::RequestContext,
    state::RpcContext,
};
use gw_evm::{BlockId, Call, LogFilter, LogRange, Method, Topic};
use gw_policy::{
    Disclosed,
    view::{self, DeliveredLog},
};
use gw_types::B256;
use std::{ops::Range, sync::Arc};

/// The most blocks of one poll: as many as one `eth_getLogs` may cover (J9).
const MAX_BLOCKS: u64 = 10_000;

/// The result of an `eth_getLogs` by the owner.
struct LogRead {
    rows: Result<Vec<DeliveredLog>, RpcOutcome>,
    /// The last block that the rows cover.
    to: u64,
}

/// The read behind a topic, without a particular block. A caller who may not make it gets no updates.
pub(crate) fn underlying_read(state: &Arc<RpcContext>, request: &Arc<RequestContext>, topic: &Topic) -> RpcCall {
    match topic {
        Topic::Heads => block_read(state, request, BlockId::LATEST),
        Topic::Logs(filter) => RpcCall::for_read(state, request, Method::GetLogs, Call::Logs(filter.clone())),
    }
}

/// The updates since the last poll, as the owner may see them now. The position moves only if the read succeeds or is
/// denied.
///
/// # Errors
/// The denial of the read, or the outcome for a node that does not answer.
pub(crate) async fn poll(cursor: &mut LogCursor, context: &mut ReadContext<'_>) -> Result<Updates, RpcOutcome> {
    let recent_blocks = context.recent_blocks().await?;
    let blocks = cursor.undelivered(&recent_blocks);
    match cursor.topic().clone() {
        Topic::Heads => {
            underlying_read(context.state(), context.request(), cursor.topic()).authorize()?;
            let end = blocks.end;
            let hashes = blocks.filter_map(|number| recent_blocks.hash(number)).collect();
            cursor.advance(recent_blocks, end);
            Ok(Updates::Blocks(hashes))
        }
        Topic::Logs(filter) => {
            let read = read_logs(context, &filter, blocks).await?;
            let updates = read
                .rows
                .map(|rows| Updates::Logs(cursor.deliver(&recent_blocks, rows)));
            cursor.advance(recent_blocks, read.to.saturating_add(1));
            updates
        }
    }
}

/// Reads the owner's `eth_getLogs` for these blocks. If one answer cannot hold the rows, the read covers fewer blocks,
/// and the next poll reads the rest.
async fn read_logs(
    context: &mut ReadContext<'_>,
    filter: &LogFilter,
    blocks: Range<u64>,
) -> Result<LogRead, RpcOutcome> {
    let (state, request) = (context.state(), context.request());
    let authorize = || underlying_read(state, request, &Topic::Logs(filter.clone())).authorize();
    let LogRange::Range { from, to } = filter.range else {
        // A filter for one block gets no updates: that block was mined before.
        authorize()?;
        return Ok(LogRead {
            rows: Ok(Vec::new()),
            to: blocks.end.saturating_sub(1),
        });
    };
    let newest = blocks.end.saturating_sub(1);
    let first = block_bound(from).map_or(blocks.start, |from| from.max(blocks.start));
    let mut last = newest.min(first.saturating_add(MAX_BLOCKS - 1));
    loop {
        let end = block_bound(to).map_or(last, |to| to.min(last));
        if first > end {
            authorize()?;
            return Ok(LogRead {
                rows: Ok(Vec::new()),
                to: last.max(blocks.start.saturating_sub(1)).min(newest),
            });
        }
        let range = LogRange::Range {
            from: BlockId::Number(first),
            to: BlockId::Number(end),
        };
        let filter = LogFilter {
            range,
            ..filter.clone()
        };
        let read = RpcCall::for_read(state, request, Method::GetLogs, Call::Logs(filter));
        match execute::forward(&mut context.authorize(&read)?).await {
            Ok(answer) => {
                return Ok(LogRead {
                    rows: Ok(view::log_rows(&answer)),
                    to: last,
                });
            }
            // Decision 20: the owner has no visible logs in these blocks. Later blocks may have some.
            Err(denied @ RpcOutcome::Denied(_)) => {
                return Ok(LogRead {
                    rows: Err(denied),
                    to: last,
                });
            }
            Err(RpcOutcome::Invalid(invalid)) if invalid.error.code() == LIMIT_EXCEEDED && end > first => {
                last = first + (end - first) / 2;
            }
            Err(outcome) => return Err(outcome),
        }
    }
}

/// The error code of an exceeded limit (J9).
const LIMIT_EXCEEDED: i32 = -32005;

/// The block number in a filter's range; a tag is no bound.
fn block_bound(block: BlockId) -> Option<u64> {
    if let BlockId::Number(number) = block {
        Some(number)
    } else {
        None
    }
}

/// The owner's `eth_getBlockByNumber`, with transaction hashes only.
fn block_read(state: &Arc<RpcContext>, request: &Arc<RequestContext>, block: BlockId) -> RpcCall {
    RpcCall::for_read(
        state,
        request,
        Method::GetBlockByNumber,
        Call::Block { block, full: false },
    )
}

/// A block as `newHeads` shows it to the owner; `None` if it has left the chain.
///
/// # Errors
/// The denial of the read, or the outcome for a node that does not answer.
pub(crate) async fn header(context: &mut ReadContext<'_>, hash: B256) -> Result<Option<Disclosed>, RpcOutcome> {
    let block = BlockId::Hash {
        hash,
        require_canonical: false,
    };
    let read = block_read(context.state(), context.request(), block);
    Ok(view::header(&execute::forward(&mut context.authorize(&read)?).await?))
}
