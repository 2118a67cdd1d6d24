//! Reads whole blocks for the index of the explorer: header, transactions, receipts and call trees, pinned to the hash
//! of the block.
//!
//! These answers are not sealed, because the index stores all of them. Only `gw-indexer` may use [`BlockReader`];
//! `cargo xtask layers` checks this. What a viewer sees of the stored rows is decided in `gw-policy`.
//!
//! Invariants:
//! - A block without one of its receipts is an error, never a block with a guessed receipt (X7); so is a block whose
//!   header stands for other transactions than the node lists.
//! - A block that cannot be traced is a block without call trees, which is not the same as a block without frames.
//! - Code runs only in a traced view call, whose result names every account that it may depend on (HD26).

mod content;
mod state;
mod view;

pub use content::{BlockContent, HeaderContent, LogContent, MinedTransaction, ReceiptContent, TransactionContent};
pub use state::ContractState;
pub use view::{ViewCall, ViewResult};

use crate::{
    error::{FailoverError, NodeError},
    head::{Block, read_block},
    message::{Answer, read_batch},
    mined::trace_budget,
    node::Node,
    transport::RequestBudget,
};
use content::{parse_block, parse_block_trace, parse_receipts, with_receipts};
use gw_evm::{
    BlockId, BlockTag,
    trace::CallTree,
    wire::{self, UpstreamCall},
};
use gw_types::B256;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// Most receipts or traces of single transactions in one request.
const TRANSACTIONS_PER_REQUEST: usize = 50;
const TRACES_PER_REQUEST: usize = 8;
/// How long a method for whole blocks is left out after the node did not support it.
const RETRY_BULK: Duration = Duration::from_secs(600);

/// Why a block cannot be read now. A retry may help.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The node does not have the receipt of a transaction of the block (X7).
    #[error("the node has no receipt of a transaction of the block")]
    MissingReceipt,
    /// The transactions are not those of the header: the list is empty although a root of the header is not, or the
    /// gas of the receipts is not that of the block (X7).
    #[error("the node answered with other transactions than those that the header of the block stands for")]
    OtherTransactions,
    /// The logs of the receipts are not those of the bloom filter of the receipt or of the block (X7).
    #[error("the node answered with other logs than those in the bloom filters of the block")]
    OtherLogs,
    /// Parts of the answer belong to another block: the chain was reorganized while it was read.
    #[error("the node answered with parts of another block")]
    OtherBlock,
    /// The node did not answer, or not with the requested data.
    #[error("the node did not answer a query about a block")]
    Node(#[from] NodeError),
}

impl FailoverError for ReadError {
    fn is_transport_failure(&self) -> bool {
        match self {
            Self::Node(error) => error.is_transport_failure(),
            Self::MissingReceipt | Self::OtherTransactions | Self::OtherLogs | Self::OtherBlock => false,
        }
    }
}

/// A method that answers for a whole block; not every node has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BulkMethod {
    Receipts,
    Traces,
}

/// Reads blocks and state for the index of the explorer.
#[derive(Clone, Debug)]
pub struct BlockReader {
    node: Arc<Node>,
    /// Whether blocks are traced.
    traces: bool,
    /// When each node, by its index, was found not to support a method.
    unsupported: Arc<Mutex<BTreeMap<(usize, BulkMethod), Instant>>>,
}

impl BlockReader {
    /// A reader of this node's chain.
    pub fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            traces: true,
            unsupported: Arc::default(),
        }
    }

    /// Reads blocks without call trees, as from a node that cannot trace (`ENABLE_TRACING`).
    #[must_use]
    pub fn without_traces(mut self) -> Self {
        self.traces = false;
        self
    }

    /// The id of the chain.
    pub fn chain_id(&self) -> u64 {
        self.node.chain_id()
    }

    /// The followed head; `None` while no node confirms it.
    pub fn head(&self) -> Option<Block> {
        self.node.head().map(|head| head.block)
    }

    /// A receiver that is marked changed whenever the head changes or becomes invalid.
    pub fn head_moves(&self) -> watch::Receiver<()> {
        self.node.head_moves()
    }

    /// The block of the chain with this number; `None` if there is none.
    ///
    /// # Errors
    /// [`NodeError`] if the node does not answer.
    pub async fn header(&self, number: u64) -> Result<Option<Block>, NodeError> {
        let call = wire::header(BlockId::Number(number));
        read_block(&self.node.query_within(call, RequestBudget::Block).await?)
    }

    /// The newest finalized block; `None` if there is none, or the chain has no finality.
    ///
    /// # Errors
    /// [`NodeError`] if the node does not answer.
    pub async fn finalized(&self) -> Result<Option<Block>, NodeError> {
        let call = wire::header(BlockId::Tag(BlockTag::Finalized));
        match self.node.query_within(call, RequestBudget::Block).await {
            Ok(text) => read_block(&text),
            Err(NodeError::NoAnswer) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the block of the chain with this number; `None` if there is none.
    ///
    /// # Errors
    /// [`ReadError`]. A failed trace is no error: the content is without call trees then.
    pub async fn block(&self, number: u64) -> Result<Option<BlockContent>, ReadError> {
        self.node
            .with_failover(|node| async move {
                let call = wire::block(BlockId::Number(number));
                let text = node.query_within(call, RequestBudget::Block).await?;
                let text = str::from_utf8(&text).map_err(|_| NodeError::Unparsable)?;
                if text.trim() == "null" {
                    return Ok(None);
                }
                let (header, transactions) = parse_block(text)?;
                if header.block()?.number != number {
                    return Err(NodeError::Unparsable.into());
                }
                let hashes: Vec<B256> = transactions.iter().map(|transaction| transaction.hash).collect();
                let (receipts, call_trees) = tokio::join!(
                    self.receipts(&node, header.hash, &hashes),
                    self.traces(&node, &header, &hashes)
                );
                Ok(Some(BlockContent {
                    transactions: with_receipts(&header, transactions, receipts?)?,
                    call_trees: call_trees?,
                    header,
                }))
            })
            .await
    }

    /// Reads the call trees of these transactions, which are all transactions of the block with this number and hash;
    /// `None` if the node cannot trace the block.
    ///
    /// # Errors
    /// [`ReadError`] if the node does not answer or the block left the chain.
    pub async fn call_trees(
        &self,
        number: u64,
        hash: B256,
        transactions: &[B256],
    ) -> Result<Option<Vec<CallTree>>, ReadError> {
        self.node
            .with_failover(|node| async move {
                let text = node
                    .query_within(wire::block(BlockId::Number(number)), RequestBudget::Block)
                    .await?;
                let text = str::from_utf8(&text).map_err(|_| NodeError::Unparsable)?;
                if text.trim() == "null" {
                    return Err(ReadError::OtherBlock);
                }
                let (header, _) = parse_block(text)?;
                if header.hash != hash {
                    return Err(ReadError::OtherBlock);
                }
                self.traces(&node, &header, transactions).await
            })
            .await
    }

    /// The receipts of all transactions of a block; `None` for one that the node does not have.
    async fn receipts(
        &self,
        node: &Node,
        block: B256,
        hashes: &[B256],
    ) -> Result<Vec<Option<ReceiptContent>>, ReadError> {
        if hashes.is_empty() {
            return Ok(Vec::new());
        }
        let use_bulk = self.supports(node, BulkMethod::Receipts);
        if use_bulk {
            let body = node
                .exchange(&[wire::block_receipts(block)], RequestBudget::Block)
                .await;
            let body = match body {
                Err(NodeError::TooLarge) => None,
                body => Some(body?),
            };
            let text = body.as_ref().and_then(|body| result(body));
            if let Some(receipts) = text.and_then(|text| parse_receipts(text.get()).ok())
                && receipts.len() == hashes.len()
            {
                return Ok(receipts);
            }
        }
        let mut receipts = Vec::with_capacity(hashes.len());
        for hashes in hashes.chunks(TRANSACTIONS_PER_REQUEST) {
            let calls: Vec<UpstreamCall> = hashes.iter().map(|hash| wire::receipt(*hash)).collect();
            for answer in node.ask(&calls, RequestBudget::Block).await? {
                let Answer::Result(text) = answer else {
                    return Err(NodeError::NoAnswer.into());
                };
                receipts.push(serde_json::from_slice(&text).map_err(|_| NodeError::Unparsable)?);
            }
        }
        if use_bulk && receipts.iter().all(Option::is_some) {
            self.mark_unsupported(node, BulkMethod::Receipts);
        }
        Ok(receipts)
    }

    /// The call trees of a block; `None` if the node cannot trace it.
    ///
    /// # Errors
    /// [`ReadError`] if the transport to the node fails: then the block is read again as a whole.
    async fn traces(
        &self,
        node: &Node,
        header: &HeaderContent,
        hashes: &[B256],
    ) -> Result<Option<Vec<CallTree>>, ReadError> {
        if hashes.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if !self.traces || node.trace_form().is_none() {
            return Ok(None);
        }
        let budget = trace_budget(header.gas_used.try_into().unwrap_or(u64::MAX));
        let use_bulk = self.supports(node, BulkMethod::Traces);
        if use_bulk {
            let body = node.exchange(&[wire::trace_block_calls(header.hash)], budget).await;
            let body = trace_body(body)?;
            let trees = body
                .as_ref()
                .and_then(result)
                .and_then(|text| parse_block_trace(text, hashes.iter().copied()));
            if trees.is_some() {
                return Ok(trees);
            }
        }
        let mut trees = Vec::with_capacity(hashes.len());
        for chunk in hashes.chunks(TRACES_PER_REQUEST) {
            match trace_transactions(node, header.hash, chunk, budget).await? {
                Some(read) => trees.extend(read),
                // One of them is too large, or failed: query each transaction separately.
                None => {
                    for hash in chunk {
                        let Some(read) = trace_transactions(node, header.hash, &[*hash], budget).await? else {
                            return Ok(None);
                        };
                        trees.extend(read);
                    }
                }
            }
        }
        if use_bulk {
            self.mark_unsupported(node, BulkMethod::Traces);
        }
        Ok(Some(trees))
    }

    fn supports(&self, node: &Node, method: BulkMethod) -> bool {
        let unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
        unsupported
            .get(&(node.index(), method))
            .is_none_or(|since| since.elapsed() > RETRY_BULK)
    }

    /// Called when the method failed for a block that single queries could read.
    fn mark_unsupported(&self, node: &Node, method: BulkMethod) {
        let mut unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
        if unsupported.insert((node.index(), method), Instant::now()).is_none() {
            let node = node.index().saturating_add(1);
            tracing::info!(
                method = ?method,
                node,
                "the node does not answer for whole blocks: the indexer queries single transactions"
            );
        }
    }
}

/// The body of an answer to a trace; `None` if the trace failed although the node can be reached.
fn trace_body(body: Result<bytes::Bytes, NodeError>) -> Result<Option<bytes::Bytes>, NodeError> {
    match body {
        Ok(body) => Ok(Some(body)),
        // The trace is too large or takes too long. A node that answers nothing fails the other queries of the block.
        Err(NodeError::TooLarge | NodeError::Timeout | NodeError::Unparsable | NodeError::NoAnswer) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The result of the only call of a batch.
fn result(body: &bytes::Bytes) -> Option<&RawValue> {
    match read_batch(body, 1).ok()?.pop()? {
        Answer::Result(text) => Some(text),
        Answer::Error(_) => None,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePosition {
    block_hash: Option<B256>,
}

/// The call trees of these transactions of this block, in one exchange; `None` if the node cannot trace one of them.
///
/// # Errors
/// [`ReadError::OtherBlock`] if one of them is not in this block any more.
async fn trace_transactions(
    node: &Node,
    block: B256,
    hashes: &[B256],
    budget: RequestBudget,
) -> Result<Option<Vec<CallTree>>, ReadError> {
    let mut calls = Vec::with_capacity(hashes.len().saturating_mul(2));
    for hash in hashes {
        calls.push(wire::trace_transaction_calls(*hash));
        // A trace does not say in which block the transaction is.
        calls.push(wire::transaction_by_hash(*hash));
    }
    let Some(body) = trace_body(node.exchange(&calls, budget).await)? else {
        return Ok(None);
    };
    let Ok(answers) = read_batch(&body, calls.len()) else {
        return Ok(None);
    };
    let (mut trees, mut is_complete) = (Vec::with_capacity(hashes.len()), true);
    for answer in answers.chunks(2) {
        let [trace, Answer::Result(position)] = answer else {
            return Ok(None);
        };
        let position: Option<WirePosition> = serde_json::from_str(position.get()).map_err(|_| NodeError::Unparsable)?;
        if position.and_then(|position| position.block_hash) != Some(block) {
            return Err(ReadError::OtherBlock);
        }
        match trace {
            Answer::Result(tree) => match CallTree::parse(tree) {
                Ok(tree) => trees.push(tree),
                Err(_) => is_complete = false,
            },
            Answer::Error(_) => is_complete = false,
        }
    }
    Ok(is_complete.then_some(trees))
}
