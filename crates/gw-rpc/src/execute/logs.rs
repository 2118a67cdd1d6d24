//! `eth_getLogs`: narrows the filter to what the viewer may query, reads the parties of the transactions, and returns
//! the rows that the viewer may see (HD1, J9).

use super::{advance_head_to, followed_blocks::ask_about_followed_blocks, head, resolve_block};
use crate::{
    call::{AuthorizedCall, CallContext},
    outcome::RpcOutcome,
};
use bytes::Bytes;
use gw_evm::{
    BlockId, BlockTag, Call, LogFilter, LogRange, ParamError, TransactionRef,
    wire::{self, Pin},
};
use gw_node::{Answer, Node, NodeError, RequestBudget};
use gw_policy::{
    Disclosed, RawJson, Sealed,
    view::{self, LogsAnswer, PartiesNeeded, TxParties},
};
use gw_types::DenyReason;

/// The most blocks of one range (J9).
const MAX_BLOCKS: u64 = 10_000;
/// The most rows of one answer (J9).
const MAX_ROWS: usize = 10_000;
/// From this many transactions of one block, one query for the whole block is cheaper than one for each transaction.
const WHOLE_BLOCK: usize = 4;
/// The most transactions of one batch, when the answer with whole blocks is too large.
const MAX_TRANSACTIONS_PER_BATCH: usize = 64;

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
    let parties = parties(context, &needed).await?;
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

/// Reads senders and receivers of the transactions that the viewer might be a party of, in one batch.
async fn parties(context: &mut CallContext<'_>, needed: &[PartiesNeeded]) -> Result<TxParties, RpcOutcome> {
    let mut parties = TxParties::default();
    if needed.is_empty() {
        return Ok(parties);
    }
    let pin = head(context.state())?.pin();
    let transaction = |row: &PartiesNeeded| wire::body(&Call::Transaction(TransactionRef::Hash(row.tx_hash)), pin);
    let mut calls = Vec::new();
    for block_rows in needed.chunk_by(|row, next_row| row.block_hash == next_row.block_hash) {
        match block_rows {
            [first, ..] if block_rows.len() >= WHOLE_BLOCK => {
                let block = BlockId::Hash {
                    hash: first.block_hash,
                    require_canonical: false,
                };
                calls.extend(wire::body(&Call::Block { block, full: true }, pin));
            }
            rows => calls.extend(rows.iter().filter_map(transaction)),
        }
    }
    let query = |node: Node, _: &AuthorizedCall| async move {
        match node.batch(&calls, RequestBudget::Forward).await {
            // Large transactions of others in those blocks must not keep a caller from their own logs (HD36).
            Err(NodeError::TooLarge) => {
                let mut answers = Vec::with_capacity(needed.len());
                for rows in needed.chunks(MAX_TRANSACTIONS_PER_BATCH) {
                    let calls: Vec<_> = rows.iter().filter_map(transaction).collect();
                    answers.extend(node.batch(&calls, RequestBudget::Forward).await?);
                }
                Ok(answers)
            }
            answers => answers,
        }
    };
    let answers = context.query(query).await?;
    for answer in answers {
        // A transaction that the node does not return has no known parties.
        if let Answer::Result(sealed) = answer {
            parties.learn(&sealed);
        }
    }
    Ok(parties)
}
