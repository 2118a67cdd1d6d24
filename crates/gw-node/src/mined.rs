//! Reads mined blocks: a block by its hash with the hashes of its transactions, the nonces that senders had used at its
//! end, and the effects of single transactions (HD2, HD36).
//!
//! Invariant: the size of a block decides nothing. A block is queried without its transactions. A query for several
//! transactions that fails is repeated for each of them alone. A transaction that cannot be read even then is an
//! [`UnreadableTransaction`] if its own content causes that ([`crate::unreadable`]); a node that does not answer is an
//! error.

use crate::{
    error::NodeError,
    head::{self, Block, at_hash, parse, read_block, to_u64},
    message::{Answer, names_execution_limit, read_batch},
    node::Node,
    probe,
    trace::NoTrace,
    transport::RequestBudget,
    unreadable::{self, TraceFailure},
};
use gw_evm::{
    trace::{Change, Trace, TraceError, changed, emitters, made, touched},
    wire::{self, TraceForm, TraceScope, UpstreamCall},
};
use gw_policy::sealed::Sealed;
use gw_types::{Address, B256, Bytes, U256};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The most attempts to trace a transaction before its block waits for the next poll of the head.
const MAX_ATTEMPTS: u32 = 10;
/// Most transactions in one request.
const TRANSACTIONS_PER_REQUEST: usize = 8;
/// Most small queries in one request.
const FACTS_PER_REQUEST: usize = 200;
/// From this many transactions of one block on, a trace of the whole block is tried first.
const MIN_FOR_BLOCK_TRACE: usize = 4;
/// The time that every trace may take, in addition to one second per million gas. A trace that takes longer for its gas
/// was made to.
const BASE_TRACE_TIME: Duration = Duration::from_secs(5);
const GAS_PER_MILLISECOND: u64 = 1000;

pub(crate) fn trace_budget(gas: u64) -> RequestBudget {
    RequestBudget::MinedExecution(BASE_TRACE_TIME.saturating_add(Duration::from_millis(gas / GAS_PER_MILLISECOND)))
}

/// A block with the hashes of its transactions.
#[derive(Clone, Debug)]
pub struct BlockListing {
    /// The block.
    pub block: Block,
    /// The hashes of its transactions, in block order.
    pub transactions: Vec<B256>,
}

/// A mined transaction as its sender signed it.
#[derive(Clone, Debug)]
pub struct SentTransaction {
    /// The transaction hash.
    pub hash: B256,
    /// The sender.
    pub sender: Address,
    /// The nonce.
    pub nonce: u64,
    /// The recipient; `None` for a deployment.
    pub to: Option<Address>,
    /// The delegations that it authorizes: wallet and delegate (EIP-7702).
    pub delegations: Vec<(Address, Address)>,
}

/// The effects of a mined transaction.
#[derive(Debug)]
pub struct MinedRun {
    /// The transaction.
    pub sent: SentTransaction,
    /// The whole trace.
    pub trace: Sealed<Trace>,
    /// The contracts that the transaction created and kept.
    pub created: Vec<Address>,
}

/// A transaction that cannot be read as a whole, with the parts that can be read.
#[derive(Debug)]
pub struct UnreadableTransaction {
    /// The transaction hash.
    pub hash: B256,
    /// The transaction, if it can be read.
    pub sent: Option<SentTransaction>,
    /// The accounts that it changed, if they can be read.
    pub changes: Option<BTreeMap<Address, Change>>,
    /// The emitters of its logs.
    pub emitters: Vec<Address>,
    /// The contracts that it created.
    pub created: Vec<Address>,
    /// Whether the node has no state before its block: then it says nothing about the transaction.
    pub is_state_missing: bool,
}

/// How the attempts to trace a transaction ended.
enum TraceEnd {
    Run(Box<MinedExecution>),
    Unreadable,
    /// The node has no state before the block.
    StateMissing,
}

/// The result of reading a mined transaction.
#[derive(Debug)]
pub enum MinedExecution {
    /// The transaction was read.
    Run(MinedRun),
    /// The transaction cannot be read as a whole.
    Unreadable(UnreadableTransaction),
}

impl MinedExecution {
    /// The transaction hash.
    pub const fn hash(&self) -> B256 {
        match self {
            Self::Run(run) => run.sent.hash,
            Self::Unreadable(unreadable) => unreadable.hash,
        }
    }

    /// The contracts that the transaction created.
    pub fn created(&self) -> &[Address] {
        match self {
            Self::Run(run) => &run.created,
            Self::Unreadable(unreadable) => &unreadable.created,
        }
    }

    /// The transaction, if it can be read.
    pub const fn sent(&self) -> Option<&SentTransaction> {
        match self {
            Self::Run(run) => Some(&run.sent),
            Self::Unreadable(unreadable) => unreadable.sent.as_ref(),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WireHashes {
    pub(crate) transactions: Vec<B256>,
}

/// The block of a transaction; `None` while it is pending.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlockHash {
    block_hash: Option<B256>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSent {
    hash: B256,
    from: Address,
    nonce: U256,
    #[serde(default)]
    to: Option<Address>,
    #[serde(default)]
    block_hash: Option<B256>,
    #[serde(default)]
    authorization_list: Option<Vec<WireDelegation>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDelegation {
    chain_id: U256,
    address: Address,
    nonce: U256,
    #[serde(alias = "v")]
    y_parity: U256,
    r: U256,
    s: U256,
}

impl WireDelegation {
    /// Wallet and delegate; `None` for an authorization without a valid signature, which has no effect.
    fn read(self) -> Option<(Address, Address)> {
        let (nonce, parity) = (to_u64(self.nonce).ok()?, self.y_parity.try_into().ok()?);
        let wallet = gw_evm::tx::delegating_wallet(self.chain_id, self.address, nonce, parity, [self.r, self.s])?;
        Some((wallet, self.address))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGas {
    gas_used: U256,
}

#[derive(Deserialize)]
struct WireLogs {
    logs: Vec<IgnoredAny>,
}

impl WireSent {
    fn read(self) -> Option<SentTransaction> {
        let delegations = self
            .authorization_list
            .unwrap_or_default()
            .into_iter()
            .filter_map(WireDelegation::read);
        Some(SentTransaction {
            hash: self.hash,
            sender: self.from,
            nonce: to_u64(self.nonce).ok()?,
            to: self.to,
            delegations: delegations.collect(),
        })
    }
}

impl Node {
    /// Reads a block by its hash, with the hashes of its transactions.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer.
    pub async fn listing(&self, hash: B256) -> Result<BlockListing, NodeError> {
        let text = self
            .query_within(wire::header(at_hash(hash)), RequestBudget::Block)
            .await?;
        let block = read_block(&text)?
            .filter(|block| block.hash == hash)
            .ok_or(NodeError::Unparsable)?;
        Ok(BlockListing {
            block,
            transactions: parse::<WireHashes>(&text)?.transactions,
        })
    }

    /// The number of nonces that each sender had used at the end of this block.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer; [`NodeError::NoAnswer`] for a JSON-RPC error.
    pub async fn nonces_at(&self, senders: &[Address], block: B256) -> Result<Vec<u64>, NodeError> {
        let mut nonces = Vec::with_capacity(senders.len());
        for senders in senders.chunks(FACTS_PER_REQUEST) {
            let calls: Vec<_> = senders
                .iter()
                .map(|sender| wire::nonce(*sender, at_hash(block)))
                .collect();
            for answer in self.ask(&calls, RequestBudget::Fact).await? {
                let Answer::Result(nonce) = answer else {
                    return Err(NodeError::NoAnswer);
                };
                nonces.push(to_u64(parse::<U256>(&nonce)?)?);
            }
        }
        Ok(nonces)
    }

    /// The hash of the block that a transaction is in; `None` if it is not mined.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer.
    pub async fn block_of(&self, hash: B256) -> Result<Option<B256>, NodeError> {
        let text = self
            .query_within(wire::transaction_by_hash(hash), RequestBudget::Block)
            .await?;
        Ok(parse::<Option<WireBlockHash>>(&text)?.and_then(|transaction| transaction.block_hash))
    }

    /// The transactions of this block; `None` for one that cannot be read.
    pub(crate) async fn sent_in(&self, listing: &BlockListing) -> Result<Vec<Option<SentTransaction>>, NodeError> {
        let mut sent = Vec::with_capacity(listing.transactions.len());
        for hashes in listing.transactions.chunks(TRANSACTIONS_PER_REQUEST) {
            sent.extend(self.sent(listing.block.hash, hashes).await?);
        }
        Ok(sent)
    }

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

    /// The gas that each of these mined transactions used. `u64::MAX`, which allows the longest time, if the node does
    /// not tell.
    pub(crate) async fn gas_used(&self, hashes: &[B256]) -> Result<Vec<u64>, NodeError> {
        let mut gas = Vec::with_capacity(hashes.len());
        for hashes in hashes.chunks(TRANSACTIONS_PER_REQUEST) {
            let calls: Vec<_> = hashes.iter().map(|hash| wire::receipt(*hash)).collect();
            for answer in self.ask(&calls, RequestBudget::Block).await? {
                gas.push(match answer {
                    Answer::Result(receipt) => {
                        parse::<Option<WireGas>>(&receipt)?.map_or(Ok(u64::MAX), |receipt| to_u64(receipt.gas_used))?
                    }
                    Answer::Error(_) => u64::MAX,
                });
            }
        }
        Ok(gas)
    }

    /// The number of events of a mined transaction. `u64::MAX` if the node cannot tell: then the logs of later
    /// transactions in its block cannot be told apart.
    ///
    /// # Errors
    /// [`NodeError`] if the node gives no usable answer.
    pub async fn log_count(&self, hash: B256) -> Result<u64, NodeError> {
        let receipt = self.result(&wire::receipt(hash)).await?;
        let count = receipt
            .and_then(|receipt| serde_json::from_str::<WireLogs>(receipt.get()).ok())
            .map(|receipt| receipt.logs.len());
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX))
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

    /// Requires that the node answers: with the head, with traces of a call of nobody, with this block and this
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

    /// Reads the parts of a transaction that cannot be read as a whole.
    async fn read_parts(&self, listing: &BlockListing, hash: B256) -> Result<UnreadableTransaction, NodeError> {
        let block = listing.block.hash;
        let sent = self
            .sent(block, &[hash])
            .await
            .ok()
            .and_then(|mut sent| sent.pop().flatten());
        let (mut log_emitters, mut candidates) = (BTreeSet::new(), BTreeSet::new());
        candidates.extend(
            sent.as_ref()
                .filter(|sent| sent.to.is_none())
                .map(|sent| sent.sender.create(sent.nonce)),
        );
        if let Some(receipt) = self.result(&wire::receipt(hash)).await? {
            let (emitters, created) = emitters(&receipt);
            log_emitters = emitters;
            candidates.extend(created);
        }
        // The call tree is the largest part; the other parts may still be readable.
        let parts = wire::trace_transaction(hash, TraceScope::Send, TraceForm::Batch);
        let [_, touched_call, diff_call] = parts.as_slice() else {
            return Err(NodeError::Unparsable);
        };
        let diff = self.result(diff_call).await?;
        let changes = diff.as_deref().and_then(changed);
        match &diff {
            Some(diff) => candidates.extend(made(diff)),
            // Without the diff, every touched account that got code in this block may be a contract of this
            // transaction. It counts as one, so that it stays unreadable.
            None => {
                let touched = self
                    .result(touched_call)
                    .await?
                    .map(|touches| touched(&touches))
                    .unwrap_or_default();
                candidates.extend(
                    touched
                        .into_iter()
                        .filter(|(_, had_code)| !had_code)
                        .map(|(address, _)| address),
                );
            }
        }
        let created = self.newly_created(candidates, &listing.block).await?;
        Ok(UnreadableTransaction {
            hash,
            sent,
            changes,
            emitters: log_emitters.into_iter().collect(),
            created,
            is_state_missing: false,
        })
    }

    /// The addresses that have code in this block and had none in its parent. An address counts as such where the node
    /// answers with an error: the transaction shows that it created a contract there.
    async fn newly_created(&self, addresses: BTreeSet<Address>, block: &Block) -> Result<Vec<Address>, NodeError> {
        let addresses: Vec<Address> = addresses.into_iter().collect();
        let now = self.code_at(&addresses, block.hash).await?;
        let before = self.code_at(&addresses, block.parent).await?;
        let created = addresses
            .into_iter()
            .zip(now.into_iter().zip(before))
            .filter(|(_, (now, before))| now.unwrap_or(true) && !before.unwrap_or(false));
        Ok(created.map(|(address, _)| address).collect())
    }

    /// The result of one call; `None` if the answer is an error, too large, too slow, or not readable, or if the node
    /// or a proxy closes the connection in place of an answer. A node that accepts no connection is an error.
    async fn result(&self, call: &UpstreamCall) -> Result<Option<Box<RawValue>>, NodeError> {
        match self.exchange(std::slice::from_ref(call), trace_budget(0)).await {
            Ok(body) => Ok(read_batch(&body, 1)
                .ok()
                .and_then(results)
                .and_then(|mut results| results.pop().map(ToOwned::to_owned))),
            // The answer is too large or takes too long to compute, for the node or for a proxy in front of it.
            Err(
                NodeError::TooLarge
                | NodeError::Timeout
                | NodeError::Broken(_)
                | NodeError::Unavailable
                | NodeError::RateLimited(_),
            ) => Ok(None),
            Err(NodeError::Unreachable(error)) if !error.is_connect() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether each address has code of its own in this block; a wallet that delegates (EIP-7702) has none. `None`
    /// where the node answers with an error.
    pub(crate) async fn code_at(&self, addresses: &[Address], block: B256) -> Result<Vec<Option<bool>>, NodeError> {
        let mut has_code = Vec::with_capacity(addresses.len());
        for addresses in addresses.chunks(FACTS_PER_REQUEST) {
            let calls: Vec<_> = addresses
                .iter()
                .map(|address| wire::code(*address, at_hash(block)))
                .collect();
            for answer in self.ask(&calls, RequestBudget::Block).await? {
                has_code.push(match answer {
                    Answer::Result(code) => {
                        let code = parse::<Bytes>(&code)?;
                        Some(!code.is_empty() && gw_evm::code::delegation(&code).is_none())
                    }
                    Answer::Error(_) => None,
                });
            }
        }
        Ok(has_code)
    }

    /// Transactions of this block; `None` for one that cannot be read or is not in this block.
    async fn sent(&self, block: B256, hashes: &[B256]) -> Result<Vec<Option<SentTransaction>>, NodeError> {
        let calls: Vec<_> = hashes.iter().map(|hash| wire::transaction_by_hash(*hash)).collect();
        let read = |body: &bytes::Bytes, hashes: &[B256]| {
            let answers = read_batch(body, hashes.len())?;
            let transactions = answers.into_iter().zip(hashes).map(|(answer, hash)| match answer {
                Answer::Result(sent) => read_sent(sent, *hash, block),
                Answer::Error(_) => None,
            });
            Ok::<Vec<_>, NodeError>(transactions.collect())
        };
        match self.exchange(&calls, RequestBudget::SendTrace).await {
            Ok(body) => read(&body, hashes),
            // The answer is too large: query each transaction separately.
            Err(NodeError::TooLarge) => {
                let mut sent = Vec::with_capacity(hashes.len());
                for (hash, call) in hashes.iter().zip(&calls) {
                    sent.push(
                        match self
                            .exchange(std::slice::from_ref(call), RequestBudget::SendTrace)
                            .await
                        {
                            Ok(body) => read(&body, &[*hash])?.pop().flatten(),
                            Err(NodeError::TooLarge) => None,
                            Err(error) => return Err(error),
                        },
                    );
                }
                Ok(sent)
            }
            Err(error) => Err(error),
        }
    }
}

/// Parses the transaction; `None` unless it has this hash and is in this block. A transaction that moved to another
/// block is validated there.
fn read_sent(text: &RawValue, hash: B256, block: B256) -> Option<SentTransaction> {
    let sent: WireSent = serde_json::from_str(text.get()).ok()?;
    if sent.hash != hash || sent.block_hash != Some(block) {
        return None;
    }
    sent.read()
}

/// All results; `None` if one answer is an error.
pub(crate) fn results(answers: Vec<Answer<&RawValue>>) -> Option<Vec<&RawValue>> {
    let result = |answer| match answer {
        Answer::Result(result) => Some(result),
        Answer::Error(_) => None,
    };
    answers.into_iter().map(result).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// HD36: the time limit of a small transaction is below that of a large one.
    #[test]
    fn hd36_the_time_limit_of_a_trace_depends_on_its_gas() {
        let seconds_for = |gas| match trace_budget(gas) {
            RequestBudget::MinedExecution(time) => time.as_secs(),
            budget => panic!("{budget:?}"),
        };
        assert_eq!(
            [
                seconds_for(0),
                seconds_for(900_000),
                seconds_for(8_000_000),
                seconds_for(30_000_000)
            ],
            [5, 5, 13, 35]
        );
    }
}
