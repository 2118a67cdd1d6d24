//! Traces transactions of a mined block: the whole block at once, a few transactions at once, or one by one with
//! retries. A transaction that the node traces in none of these ways, while it answers everything else, is unreadable.

use super::{
    MinedExecution, MinedRun, SentTransaction, TRANSACTIONS_PER_REQUEST, UnreadableTransaction, queries::read_sent,
    results, trace_budget,
};
use crate::{
    error::NodeError,
    head::{self, at_hash},
    message::{Answer, names_execution_limit, read_batch},
    node::Node,
    probe,
    trace::NoTrace,
    transport::RequestBudget,
    unreadable::{self, TraceFailure},
};
use gw_evm::{
    trace::{Trace, TraceError},
    wire::{self, TraceForm, TraceScope},
};
use gw_policy::sealed::Sealed;
use gw_types::{Address, B256};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// The most attempts to trace a transaction before its block waits for the next poll of the head.
const MAX_ATTEMPTS: u32 = 10;
/// From this many transactions of one block on, a trace of the whole block is tried first.
const MIN_FOR_BLOCK_TRACE: usize = 4;

/// How the attempts to trace a transaction ended.
enum TraceEnd {
    Run(Box<MinedExecution>),
    Unreadable,
    /// The node has no state before the block.
    StateMissing,
}

impl Node {
    /// Traces these transactions of a block; the results are in the order of `wanted`. The time limit of a block
    /// depends on its gas: after one transaction of a sender took too long, only the parts of that sender's other
    /// transactions in the block are read (HD36).
    ///
    /// # Errors
    /// [`NoTrace::Unsupported`] if the node does not trace; [`NoTrace::Node`] if it does not answer, with
    /// [`NodeError::TraceDeferred`] until the pause after the last failed trace has ended; [`NoTrace::Unusable`] if a
    /// transaction is not in this block any more.
    pub async fn trace_block_transactions(&self, block: B256, wanted: &[B256]) -> Result<Vec<MinedExecution>, NoTrace> {
        let form = self.trace_form().ok_or(NoTrace::Unsupported)?;
        let (failures, index) = (self.shared.trace_failures(), self.index());
        if wanted.iter().any(|hash| failures.is_deferred((index, *hash))) {
            return Err(NoTrace::Node(NodeError::TraceDeferred));
        }
        let gas = self.gas_used(wanted).await?;
        let wanted: Vec<(B256, u64)> = wanted.iter().copied().zip(gas).collect();
        if wanted.len() >= MIN_FOR_BLOCK_TRACE
            && let Some(executions) = self.trace_whole_block(block, &wanted, form).await
        {
            // The trace of a whole block is no control of the trace of a transaction, but finds a candidate for one.
            self.shared.control_transaction().remember(&wanted);
            return Ok(executions);
        }
        let mut executions = Vec::with_capacity(wanted.len());
        let mut slow_senders = BTreeSet::new();
        for chunk in wanted.chunks(TRANSACTIONS_PER_REQUEST) {
            let traced = if chunk.len() > 1 {
                self.trace_chunk(block, chunk, form).await.ok()
            } else {
                None
            };
            if let Some(runs) = traced {
                self.shared.control_transaction().remember(chunk);
                executions.extend(runs);
                continue;
            }
            for transaction in chunk {
                let run = self.trace_single(block, *transaction, form, &slow_senders).await?;
                if let MinedExecution::Unreadable(UnreadableTransaction { sent: Some(sent), .. }) = &run {
                    slow_senders.insert(sent.sender);
                }
                executions.push(run);
            }
        }
        Ok(executions)
    }

    /// Reads these transactions from one trace of the whole block; `None` if that is not possible.
    async fn trace_whole_block(
        &self,
        block: B256,
        wanted: &[(B256, u64)],
        form: TraceForm,
    ) -> Option<Vec<MinedExecution>> {
        let calls = wire::trace_block(block, TraceScope::Mined, form);
        let (wanted, gas): (Vec<B256>, Vec<u64>) = wanted.iter().copied().unzip();
        let body = self
            .exchange(&calls, trace_budget(gas.into_iter().fold(0, u64::saturating_add)))
            .await
            .ok()?;
        let results = results(read_batch(&body, calls.len()).ok()?)?;
        let mined = gw_evm::trace::transactions(&results).ok()?;
        let mut sent = Vec::with_capacity(wanted.len());
        for hashes in wanted.chunks(TRANSACTIONS_PER_REQUEST) {
            sent.extend(self.sent(block, hashes).await.ok()?);
        }
        let execution_of = |(hash, sent): (&B256, Option<SentTransaction>)| {
            let results = &mined.iter().find(|mined| mined.hash == *hash)?.results;
            run(sent?, results, form).ok().map(MinedExecution::Run)
        };
        wanted.iter().zip(sent).map(execution_of).collect()
    }

    /// Traces a few transactions in one exchange.
    ///
    /// # Errors
    /// How the trace of the first transaction failed that has none.
    async fn trace_chunk(
        &self,
        block: B256,
        chunk: &[(B256, u64)],
        form: TraceForm,
    ) -> Result<Vec<MinedExecution>, TraceFailure> {
        let mut calls = Vec::new();
        let (hashes, gas): (Vec<B256>, Vec<u64>) = chunk.iter().copied().unzip();
        for hash in &hashes {
            calls.push(wire::transaction_by_hash(*hash));
            calls.extend(wire::trace_transaction(*hash, TraceScope::Mined, form));
        }
        let body = self
            .exchange(&calls, trace_budget(gas.into_iter().fold(0, u64::saturating_add)))
            .await?;
        let answers = read_batch(&body, calls.len())?;
        let calls_per_transaction = calls.len().checked_div(hashes.len()).unwrap_or_default().max(1);
        let mut answers = answers.into_iter();
        let mut executions = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let Some(Answer::Result(sent)) = answers.next() else {
                return Err(TraceFailure::missing_part());
            };
            let sent = read_sent(sent, hash, block).ok_or_else(TraceFailure::missing_part)?;
            let mut traces = Vec::with_capacity(calls_per_transaction);
            for answer in answers.by_ref().take(calls_per_transaction - 1) {
                match answer {
                    Answer::Result(trace) if trace.get() == "null" => return Err(TraceFailure::missing_part()),
                    Answer::Result(trace) => traces.push(trace),
                    Answer::Error(_) => return Err(TraceFailure::rejected(names_execution_limit(&body))),
                }
            }
            executions.push(MinedExecution::Run(run(sent, &traces, form)?));
        }
        Ok(executions)
    }

    /// Traces one transaction, with retries. It is unreadable if enough attempts in a row fail in the same way, while
    /// the node answers all queries before, between and after them (HD36, [`crate::unreadable`]).
    async fn trace_single(
        &self,
        block: B256,
        transaction: (B256, u64),
        form: TraceForm,
        slow_senders: &BTreeSet<Address>,
    ) -> Result<MinedExecution, NoTrace> {
        let (hash, _) = transaction;
        let is_slow_sender = !slow_senders.is_empty()
            && self
                .sent(block, &[hash])
                .await?
                .pop()
                .flatten()
                .is_some_and(|sent| slow_senders.contains(&sent.sender));
        let end = if is_slow_sender {
            self.require_healthy(block, hash, form).await?;
            TraceEnd::Unreadable
        } else {
            self.trace_repeatedly(block, transaction, form).await?
        };
        let is_state_missing = match end {
            TraceEnd::Run(execution) => return Ok(*execution),
            TraceEnd::Unreadable => false,
            TraceEnd::StateMissing => true,
        };
        let listing = self.listing(block).await?;
        let mut unreadable = self.read_parts(&listing, hash).await?;
        unreadable.is_state_missing = is_state_missing;
        tracing::error!(tx.hash = %hash, "a mined transaction cannot be read: it is reported as unreadable");
        Ok(MinedExecution::Unreadable(unreadable))
    }

    /// Traces one transaction, with retries.
    async fn trace_repeatedly(
        &self,
        block: B256,
        transaction: (B256, u64),
        form: TraceForm,
    ) -> Result<TraceEnd, NoTrace> {
        let (hash, _) = transaction;
        let (failures, key) = (self.shared.trace_failures(), (self.index(), hash));
        let (mut kind, mut count) = (None, 0);
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(unreadable::pause_before(attempt)).await;
            }
            let failure = match self.trace_chunk(block, &[transaction], form).await {
                Ok(mut executions) => {
                    failures.clear(key);
                    self.shared.control_transaction().remember(&[transaction]);
                    let execution = executions.pop().map(|execution| TraceEnd::Run(Box::new(execution)));
                    return execution.ok_or(NoTrace::Node(NodeError::Unparsable));
                }
                Err(failure) => failure,
            };
            match self.require_healthy(block, hash, form).await {
                Ok(()) => {}
                Err(error @ NoTrace::Node(NodeError::StateUnavailable)) => {
                    if failures.is_first(key) {
                        tracing::error!(
                            tx.hash = %hash,
                            block.hash = %block,
                            "the node has no state before a block with a transaction of the gateway, so the \
                             transaction cannot be traced: its block waits for five minutes, then the \
                             transaction is withheld and nobody is suspended; use a node that keeps this state"
                        );
                    }
                    // The node answers everything about its head.
                    return if failures.record(key, true) {
                        Ok(TraceEnd::StateMissing)
                    } else {
                        Err(error)
                    };
                }
                Err(error) => {
                    failures.record(key, false);
                    return Err(error);
                }
            }
            count = if kind == Some(failure.kind) { count + 1 } else { 1 };
            kind = Some(failure.kind);
            match failure.kind.attempts() {
                Some(attempts) if count >= attempts => return Ok(TraceEnd::Unreadable),
                Some(_) if attempt + 1 < MAX_ATTEMPTS => {}
                Some(_) | None if failures.record(key, true) => return Ok(TraceEnd::Unreadable),
                Some(_) | None => return Err(NoTrace::Node(failure.error)),
            }
        }
        Err(NoTrace::Node(NodeError::TraceDeferred))
    }

    /// Requires that the node answers: with the head, with traces of the probe, with this block and this
    /// transaction in it, and with the trace of another mined transaction. Each query is an exchange of its own.
    ///
    /// # Errors
    /// [`NoTrace::Unsupported`] if the node traces nothing any more, [`NoTrace::Unusable`] if the transaction has left
    /// the block, [`NoTrace::Node`] if a query was not answered, or no other mined transaction is traced; with
    /// [`NodeError::StateUnavailable`] if the node has no state before the block.
    async fn require_healthy(&self, block: B256, hash: B256, form: TraceForm) -> Result<(), NoTrace> {
        let head = head::read(&self.ask(&head::head_query(), RequestBudget::Block).await?)?;
        for _ in 0..2 {
            if !probe::supports(self, form, head.pin()).await? {
                return Err(NoTrace::Unsupported);
            }
        }
        let listing = self.listing(block).await?;
        match self.block_of(hash).await? {
            Some(present) if present == block => {}
            Some(_) | None => return Err(NoTrace::Unusable(TraceError::Malformed)),
        }
        self.require_state(listing.block.parent).await?;
        if self.traces_another(hash, head.number, form).await? {
            Ok(())
        } else {
            Err(NoTrace::Node(NodeError::NoAnswer))
        }
    }

    /// Requires that the node has the state at the end of this block.
    async fn require_state(&self, block: B256) -> Result<(), NodeError> {
        let nonce = wire::nonce(Address::ZERO, at_hash(block));
        let mut answers = self.ask(&[nonce], RequestBudget::Block).await?;
        match answers.pop() {
            Some(Answer::Result(nonce)) if nonce.as_ref() != b"null" => Ok(()),
            Some(Answer::Result(_) | Answer::Error(_)) | None => Err(NodeError::StateUnavailable),
        }
    }
}

fn run(sent: SentTransaction, results: &[&RawValue], form: TraceForm) -> Result<MinedRun, TraceError> {
    let trace = Trace::parse(results, TraceScope::Mined, form)?;
    let created = trace.created().collect();
    Ok(MinedRun {
        sent,
        trace: Sealed::new(trace),
        created,
    })
}
