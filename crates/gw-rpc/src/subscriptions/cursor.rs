//! The position of a filter or a subscription in the chain, and the updates since then, as its owner may see them.

use crate::{
    call::{ReadContext, RpcCall},
    execute,
    outcome::RpcOutcome,
    request::RequestContext,
    state::RpcContext,
};
use gw_evm::{BlockId, Call, LogFilter, LogRange, Method, Topic};
use gw_node::RecentBlocks;
use gw_policy::{
    Disclosed,
    view::{self, DeliveredLog},
};
use gw_types::B256;
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

/// The most blocks of one poll: as many as one `eth_getLogs` may cover (J9).
const MAX_BLOCKS: u64 = 10_000;
/// The number of blocks during which a delivered row can be marked as removed, and the most bytes of kept rows.
const KEPT_BLOCKS: u64 = 64;
const KEPT_BYTES: usize = 128 * 1024;

/// A topic, a position, and the recently delivered rows.
#[derive(Debug)]
pub(crate) struct LogCursor {
    pub(crate) topic: Topic,
    /// The chain at the last poll.
    recent_blocks: Arc<RecentBlocks>,
    /// The next block to deliver.
    next: u64,
    delivered: VecDeque<DeliveredLog>,
    delivered_bytes: usize,
}

/// The updates since the last poll.
#[derive(Debug)]
pub(crate) enum Updates {
    /// Rows of logs: first the removed ones, whose block left the chain, then the new ones.
    Logs(Vec<Disclosed>),
    /// The hashes of new blocks.
    Blocks(Vec<B256>),
}

/// The result of an `eth_getLogs` by the owner.
struct LogRead {
    rows: Result<Vec<DeliveredLog>, RpcOutcome>,
    /// The last block that the rows cover.
    to: u64,
}

impl LogCursor {
    /// A cursor at the next block.
    ///
    /// # Errors
    /// The outcome for a node that does not answer.
    pub(crate) async fn begin(context: &mut ReadContext<'_>, topic: Topic) -> Result<Self, RpcOutcome> {
        let recent_blocks = context.recent_blocks().await?;
        let next = recent_blocks.end();
        Ok(Self {
            topic,
            next,
            recent_blocks,
            delivered: VecDeque::new(),
            delivered_bytes: 0,
        })
    }

    /// The read behind a topic, without a particular block. A caller who may not make it gets no updates.
    pub(crate) fn underlying_read(state: &Arc<RpcContext>, request: &Arc<RequestContext>, topic: &Topic) -> RpcCall {
        match topic {
            Topic::Heads => block_read(state, request, BlockId::LATEST),
            Topic::Logs(filter) => RpcCall::for_read(state, request, Method::GetLogs, Call::Logs(filter.clone())),
        }
    }

    /// The updates since the last poll, as the owner may see them now. The position moves only if the read succeeds or
    /// is denied.
    ///
    /// # Errors
    /// The denial of the read, or the outcome for a node that does not answer.
    pub(crate) async fn poll(&mut self, context: &mut ReadContext<'_>) -> Result<Updates, RpcOutcome> {
        let recent_blocks = context.recent_blocks().await?;
        let from = recent_blocks.resume(&self.recent_blocks, self.next);
        let updates = match self.topic.clone() {
            Topic::Heads => {
                Self::underlying_read(context.state(), context.request(), &self.topic).authorize()?;
                let numbers = from..recent_blocks.end();
                self.next = recent_blocks.end();
                Updates::Blocks(numbers.filter_map(|number| recent_blocks.hash(number)).collect())
            }
            Topic::Logs(filter) => {
                let read = read_logs(context, &filter, from..recent_blocks.end()).await?;
                self.next = read.to.saturating_add(1);
                match read.rows {
                    Ok(rows) => Updates::Logs(self.deliver(&recent_blocks, rows)),
                    Err(denied) => {
                        self.recent_blocks = recent_blocks;
                        return Err(denied);
                    }
                }
            }
        };
        self.recent_blocks = recent_blocks;
        Ok(updates)
    }

    /// The next block to deliver.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Moves the position back to block `next`, whose updates were not delivered.
    pub(crate) fn rewind(&mut self, next: u64) {
        self.next = self.next.min(next);
    }

    /// Marks delivered rows that have left the chain as removed, and skips rows that were delivered before (WS-4).
    fn deliver(&mut self, recent_blocks: &RecentBlocks, rows: Vec<DeliveredLog>) -> Vec<Disclosed> {
        let is_removed = |log: &DeliveredLog| recent_blocks.has_left_chain(log.block_number, log.block_hash);
        let removed = self
            .delivered
            .iter()
            .rev()
            .filter(|log| is_removed(log))
            .map(DeliveredLog::removed);
        let mut out: Vec<Disclosed> = removed.collect();
        self.delivered.retain(|log| !is_removed(log));
        let delivered_keys: HashSet<(B256, u64)> = self
            .delivered
            .iter()
            .map(|log| (log.block_hash, log.log_index))
            .collect();
        for log in rows {
            if !delivered_keys.contains(&(log.block_hash, log.log_index)) {
                out.push(log.row.clone());
                self.delivered.push_back(log);
            }
        }
        self.forget_before(recent_blocks.end().saturating_sub(KEPT_BLOCKS));
        out
    }

    fn forget_before(&mut self, block: u64) {
        self.delivered_bytes = self.delivered.iter().map(|log| log.row.as_str().len()).sum();
        while let Some(oldest) = self.delivered.front()
            && (oldest.block_number < block || self.delivered_bytes > KEPT_BYTES)
        {
            self.delivered_bytes = self.delivered_bytes.saturating_sub(oldest.row.as_str().len());
            self.delivered.pop_front();
        }
    }
}

/// Reads the owner's `eth_getLogs` for these blocks. If one answer cannot hold the rows, the read covers fewer blocks,
/// and the next poll reads the rest.
async fn read_logs(
    context: &mut ReadContext<'_>,
    filter: &LogFilter,
    blocks: std::ops::Range<u64>,
) -> Result<LogRead, RpcOutcome> {
    let (state, request) = (context.state(), context.request());
    let authorize = || LogCursor::underlying_read(state, request, &Topic::Logs(filter.clone())).authorize();
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
