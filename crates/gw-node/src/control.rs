//! The control of a trace that failed: whether the node traces another mined transaction by the same method at the same
//! time (HD36). Without a control, a fault of the node looks like a transaction that cannot be traced.
//!
//! The control is the last transaction that was traced, or the newest one that the node traces now. If there is none,
//! nothing is known, and the failure counts as a fault of the node.

use crate::{
    error::NodeError,
    head::parse,
    message::{Answer, read_batch},
    mined::{WireHashes, results, trace_budget},
    node::Node,
    transport::RequestBudget,
};
use gw_evm::{
    BlockId,
    trace::Trace,
    wire::{self, TraceForm, TraceScope},
};
use gw_types::B256;

/// How many blocks are searched for a control, and how many of them in one request.
const BLOCKS: u64 = 256;
const BLOCKS_PER_REQUEST: u64 = 64;
/// Most transactions of one block whose gas is compared: a transaction that uses little gas is traced with little work.
const TRANSACTIONS_PER_BLOCK: usize = 32;
/// Most transactions of one block that are tried, and most in one search.
const CANDIDATES_PER_BLOCK: usize = 3;
const MAX_CANDIDATES: usize = 12;

impl Node {
    /// Whether the node traces another mined transaction than this one now.
    ///
    /// # Errors
    /// [`NodeError`] if the node does not answer the search for one.
    pub(crate) async fn traces_another(&self, hash: B256, head: u64, form: TraceForm) -> Result<bool, NodeError> {
        let control = self.shared.control_transaction();
        if let Some(known) = control.load().filter(|(known, _)| *known != hash)
            && self.is_traceable(known, form).await
        {
            return Ok(true);
        }
        let (mut end, mut tried) = (head.saturating_add(1), 0);
        let first = end.saturating_sub(BLOCKS);
        while end > first {
            let start = end.saturating_sub(BLOCKS_PER_REQUEST).max(first);
            let calls: Vec<_> = (start..end)
                .map(|number| wire::header(BlockId::Number(number)))
                .collect();
            for answer in self.ask(&calls, RequestBudget::Block).await?.into_iter().rev() {
                let Answer::Result(block) = answer else { continue };
                let Ok(Some(block)) = parse::<Option<WireHashes>>(&block) else {
                    continue;
                };
                for candidate in self.cheapest_of(&block.transactions, hash).await? {
                    if self.is_traceable(candidate, form).await {
                        control.remember(&[candidate]);
                        return Ok(true);
                    }
                    tried += 1;
                }
                if tried >= MAX_CANDIDATES {
                    return Ok(false);
                }
            }
            end = start;
        }
        Ok(false)
    }

    /// The transactions of these that used the least gas, without this one.
    async fn cheapest_of(&self, hashes: &[B256], without: B256) -> Result<Vec<(B256, u64)>, NodeError> {
        let others = hashes.iter().copied().filter(|hash| *hash != without);
        let others: Vec<B256> = others.take(TRANSACTIONS_PER_BLOCK).collect();
        let gas = self.gas_used(&others).await?;
        let mut others: Vec<(B256, u64)> = others.into_iter().zip(gas).collect();
        others.sort_by_key(|(_, gas)| *gas);
        others.truncate(CANDIDATES_PER_BLOCK);
        Ok(others)
    }

    async fn is_traceable(&self, transaction: (B256, u64), form: TraceForm) -> bool {
        let (hash, gas) = transaction;
        let calls = wire::trace_transaction(hash, TraceScope::Mined, form);
        let Ok(body) = self.exchange(&calls, trace_budget(gas)).await else {
            return false;
        };
        let traces = read_batch(&body, calls.len()).ok().and_then(results);
        traces.is_some_and(|traces| Trace::parse(&traces, TraceScope::Mined, form).is_ok())
    }
}
