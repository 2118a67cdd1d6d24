//! `eth_getLogs`: what may be asked upstream, whose transactions they are, what this viewer sees (HD1, J9).

use super::{
    forward::{ask_of_followed, raise},
    head, pinned, unanswered,
};
use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
};
use bytes::Bytes;
use gw_evm::{
    BlockId, BlockTag, Call, LogFilter, LogRange, ParamError, TransactionRef,
    wire::{self, Pin},
};
use gw_node::{Answer, Budget, NodeError};
use gw_policy::{
    Disclosed, RawJson, Sealed,
    view::{self, LogsAnswer, PartiesNeeded, TxParties},
};
use gw_types::DenyReason;

/// The most blocks of one range (J9).
const MAX_BLOCKS: u64 = 10_000;
/// The most rows of one answer (J9).
const MAX_ROWS: usize = 10_000;
/// From so many transactions of one block on, the whole block is cheaper to ask for.
const WHOLE_BLOCK: usize = 4;
/// The most transactions of one question where whole blocks are too large.
const AT_ONCE: usize = 64;

pub(super) async fn logs(
    asked: &Asked,
    judged: Judged,
    filter: &LogFilter,
    found: &mut Found,
) -> Result<Disclosed, Reply> {
    let state = asked.state();
    if view::shows_nothing(&judged.viewer(state), filter, judged.permit.shared_logs_only()) {
        return Err(judged.denied(DenyReason::ContractNotPermitted));
    }
    let bounded = bounded(asked, &judged, filter, found).await?;
    let mut judged = asked.again(judged)?;
    let mut answer = None;
    if let Some((bounded, pin)) = bounded {
        let upstream = Call::Logs(view::upstream_filter(&judged.viewer(state), &bounded));
        (answer, judged) = ask_of_followed(asked, judged, &upstream, pin, found).await?;
    }
    // Blocks that are not there have no logs; whether the caller may ask for them is judged all the same.
    let sealed = answer.unwrap_or_else(|| Sealed::new(RawJson::new(Bytes::from_static(b"[]"))));
    let needed = view::parties_needed(&judged.viewer(state), filter, &sealed);
    let parties = parties(asked, &judged, &needed, found).await?;
    let judged = asked.again(judged)?;
    match view::logs(
        &judged.viewer(state),
        filter,
        judged.permit.shared_logs_only(),
        &parties,
        sealed,
    ) {
        LogsAnswer::NotPermitted => Err(judged.denied(DenyReason::ContractNotPermitted)),
        LogsAnswer::Rows(_, count) if count > MAX_ROWS => {
            Err(judged.invalid(ParamError::limit("too many results: 10000 at most")))
        }
        LogsAnswer::Rows(rows, _) => Ok(rows),
    }
}

/// The filter with its range in numbers, none above the head it is pinned to; nothing if all of it lies above.
async fn bounded(
    asked: &Asked,
    judged: &Judged,
    filter: &LogFilter,
    found: &mut Found,
) -> Result<Option<(LogFilter, Pin)>, Reply> {
    let state = asked.state();
    let LogRange::Range { from, to } = filter.range else {
        return Ok(Some((filter.clone(), head(state)?.pin())));
    };
    let from = number(asked, judged, from, found).await?;
    let to = number(asked, judged, to, found).await?;
    if from > to {
        return Err(judged.invalid(ParamError::invalid("fromBlock is above toBlock")));
    }
    if to - from >= MAX_BLOCKS {
        return Err(judged.invalid(ParamError::limit("block range too wide: 10000 blocks at most")));
    }
    if to > head(state)?.number {
        raise(state, to, found).await?;
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

async fn number(asked: &Asked, judged: &Judged, block: BlockId, found: &mut Found) -> Result<u64, Reply> {
    match block {
        BlockId::Number(number) => Ok(number),
        BlockId::Tag(BlockTag::Earliest) => Ok(0),
        BlockId::Tag(_) | BlockId::Hash { .. } => Ok(pinned(asked.state(), judged, block, found).await?.number),
    }
}

/// Senders and receivers of the transactions the viewer might be a party of, in one exchange.
async fn parties(
    asked: &Asked,
    judged: &Judged,
    needed: &[PartiesNeeded],
    found: &mut Found,
) -> Result<TxParties, Reply> {
    let mut known = TxParties::default();
    if needed.is_empty() {
        return Ok(known);
    }
    let state = asked.state();
    let pin = head(state)?.pin();
    let mut calls = Vec::new();
    for of_block in needed.chunk_by(|one, next| one.block_hash == next.block_hash) {
        match of_block {
            [first, ..] if of_block.len() >= WHOLE_BLOCK => {
                let block = BlockId::Hash {
                    hash: first.block_hash,
                    require_canonical: false,
                };
                calls.extend(wire::body(&Call::Block { block, full: true }, pin));
            }
            few => calls.extend(
                few.iter()
                    .filter_map(|one| wire::body(&Call::Transaction(TransactionRef::Hash(one.tx_hash)), pin)),
            ),
        }
    }
    let node = judged.node(state)?;
    let each = async {
        match node.batch(&calls, Budget::Forward).await {
            // What others put into those blocks keeps nobody from their own logs (HD36).
            Err(NodeError::TooLarge) => {
                let mut answers = Vec::with_capacity(needed.len());
                for few in needed.chunks(AT_ONCE) {
                    let transaction =
                        |one: &PartiesNeeded| wire::body(&Call::Transaction(TransactionRef::Hash(one.tx_hash)), pin);
                    let calls: Vec<_> = few.iter().filter_map(transaction).collect();
                    answers.extend(node.batch(&calls, Budget::Forward).await?);
                }
                Ok(answers)
            }
            answers => answers,
        }
    };
    for answer in found
        .upstream(state, each)
        .await
        .map_err(|error| unanswered(state, &error))?
    {
        // A transaction the node does not give is somebody else's.
        if let Answer::Result(sealed) = answer {
            known.learn(&sealed);
        }
    }
    Ok(known)
}
