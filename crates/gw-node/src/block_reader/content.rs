//! What the node says about a block: the parsed answers, and the checks that they belong together.
//!
//! Invariant: a [`BlockContent`] has one receipt per transaction. Nothing in it is a default for something that the
//! node did not say.

use super::ReadError;
use crate::{
    error::NodeError,
    head::{Block, to_u64},
};
use alloy_primitives::{Bloom, b256};
use gw_evm::trace::{CallTree, transactions};
use gw_types::{Address, B256, Bytes, U256};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A block with its transactions, their receipts and their call trees.
#[derive(Clone, Debug)]
pub struct BlockContent {
    /// The header.
    pub header: HeaderContent,
    /// The transactions in the order of the block.
    pub transactions: Vec<MinedTransaction>,
    /// The call tree of each transaction, in the same order; `None` if the node could not trace the block.
    pub call_trees: Option<Vec<CallTree>>,
}

/// The header of a block.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderContent {
    /// The number.
    pub number: U256,
    /// The hash.
    pub hash: B256,
    /// The hash of the block before it.
    pub parent_hash: B256,
    /// Seconds since 1970.
    pub timestamp: U256,
    /// The gas limit.
    pub gas_limit: U256,
    /// The gas that all transactions used.
    pub gas_used: U256,
    /// The base fee in wei, on chains that have one.
    #[serde(default)]
    pub base_fee_per_gas: Option<U256>,
    /// The difficulty; absent on some chains without mining.
    #[serde(default)]
    pub difficulty: Option<U256>,
    /// The sum of all difficulties; most nodes do not report it.
    #[serde(default)]
    pub total_difficulty: Option<U256>,
    /// The nonce; absent on some chains without mining.
    #[serde(default)]
    pub nonce: Option<U256>,
    /// The recipient of the fees.
    #[serde(alias = "author")]
    pub miner: Address,
    /// The extra data.
    #[serde(default)]
    pub extra_data: Bytes,
    /// The root of the state.
    pub state_root: B256,
    /// The root of the transactions.
    pub transactions_root: B256,
    /// The root of the receipts.
    pub receipts_root: B256,
    /// The bloom filter of all logs; some nodes do not keep one.
    #[serde(default)]
    pub logs_bloom: Option<Bloom>,
}

/// A transaction and its receipt.
#[derive(Clone, Debug)]
pub struct MinedTransaction {
    /// The transaction.
    pub transaction: TransactionContent,
    /// Its receipt.
    pub receipt: ReceiptContent,
}

/// A transaction of a block.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionContent {
    /// The hash.
    pub hash: B256,
    /// The sender.
    pub from: Address,
    /// The recipient; `None` for a deployment.
    #[serde(default)]
    pub to: Option<Address>,
    /// The amount in wei.
    pub value: U256,
    /// The gas limit.
    pub gas: U256,
    /// The price per gas that the sender signed, or the effective one.
    #[serde(default)]
    pub gas_price: Option<U256>,
    /// The highest price per gas (EIP-1559).
    #[serde(default)]
    pub max_fee_per_gas: Option<U256>,
    /// The highest tip per gas (EIP-1559).
    #[serde(default)]
    pub max_priority_fee_per_gas: Option<U256>,
    /// The nonce of the sender.
    pub nonce: U256,
    /// The type (EIP-2718); nodes may leave out the type of legacy transactions.
    #[serde(default, rename = "type")]
    pub transaction_type: Option<U256>,
    /// The calldata, or the creation code.
    pub input: Bytes,
}

/// The receipt of a transaction.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptContent {
    /// The hash of the transaction.
    pub transaction_hash: B256,
    /// The hash of the block.
    pub block_hash: B256,
    /// 1 if the transaction succeeded.
    pub status: U256,
    /// The gas that was used.
    pub gas_used: U256,
    /// The price per gas that was paid; absent before EIP-1559.
    #[serde(default)]
    pub effective_gas_price: Option<U256>,
    /// The contract that a transaction without `to` created.
    #[serde(default)]
    pub contract_address: Option<Address>,
    /// The logs.
    pub logs: Vec<LogContent>,
    /// Their bloom filter; some nodes do not keep one.
    #[serde(default)]
    pub logs_bloom: Option<Bloom>,
}

/// A log of a receipt.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogContent {
    /// The index in the block.
    pub log_index: U256,
    /// The contract that emitted it.
    pub address: Address,
    /// The topics.
    pub topics: Vec<B256>,
    /// The data.
    pub data: Bytes,
}

#[derive(Deserialize)]
struct WireTransactions {
    transactions: Vec<TransactionContent>,
}

impl HeaderContent {
    /// The parts of the header that the gateway follows.
    pub(crate) fn block(&self) -> Result<Block, NodeError> {
        Ok(Block {
            number: to_u64(self.number)?,
            hash: self.hash,
            parent: self.parent_hash,
            timestamp: to_u64(self.timestamp)?,
            gas_limit: to_u64(self.gas_limit)?,
            coinbase: self.miner,
            base_fee: self.base_fee_per_gas,
        })
    }
}

impl BlockContent {
    /// Parses the answers of a node: a block with its transactions, all receipts of the block, and the call trees of
    /// the block in the form of `debug_traceBlockByHash`. This is for tests; [`super::BlockReader`] reads from a node.
    ///
    /// # Errors
    /// [`ReadError`] if an answer is malformed, a receipt is missing, or a receipt belongs to another transaction or
    /// block. Call trees that cannot be parsed are `None` in the result.
    pub fn parse(block: &str, receipts: &str, call_trees: Option<&str>) -> Result<Self, ReadError> {
        let (header, transactions) = parse_block(block)?;
        let receipts = parse_receipts(receipts)?;
        let transactions = with_receipts(&header, transactions, receipts)?;
        let trees = call_trees.and_then(|text| {
            let text = serde_json::from_str::<&RawValue>(text).ok()?;
            parse_block_trace(text, transactions.iter().map(|mined| mined.transaction.hash))
        });
        Ok(Self {
            header,
            transactions,
            call_trees: trees,
        })
    }
}

/// Parses a block with its transactions.
pub(super) fn parse_block(text: &str) -> Result<(HeaderContent, Vec<TransactionContent>), ReadError> {
    let header: HeaderContent = serde_json::from_str(text).map_err(|_| NodeError::Unparsable)?;
    let WireTransactions { transactions } = serde_json::from_str(text).map_err(|_| NodeError::Unparsable)?;
    Ok((header, transactions))
}

/// Parses the receipts of a block; `None` for one that the node does not have.
pub(super) fn parse_receipts(text: &str) -> Result<Vec<Option<ReceiptContent>>, ReadError> {
    let receipts: Option<Vec<Option<ReceiptContent>>> =
        serde_json::from_str(text).map_err(|_| NodeError::Unparsable)?;
    Ok(receipts.unwrap_or_default())
}

/// The root of a trie without entries: of the transactions and receipts of an empty block.
const EMPTY_ROOT: B256 = b256!("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");

/// Joins each transaction with its receipt.
///
/// # Errors
/// [`ReadError::MissingReceipt`] if there is none, [`ReadError::OtherBlock`] if it is of another block,
/// [`ReadError::OtherTransactions`] if the header contradicts the list of transactions or their gas, and
/// [`ReadError::OtherLogs`] if the logs are not those of the bloom filters (X7).
pub(super) fn with_receipts(
    header: &HeaderContent,
    transactions: Vec<TransactionContent>,
    receipts: Vec<Option<ReceiptContent>>,
) -> Result<Vec<MinedTransaction>, ReadError> {
    if receipts.len() > transactions.len() {
        return Err(NodeError::Unparsable.into());
    }
    let receipts = receipts.into_iter().chain(std::iter::repeat_with(|| None));
    let join = |(transaction, receipt): (TransactionContent, Option<ReceiptContent>)| {
        let receipt = receipt.ok_or(ReadError::MissingReceipt)?;
        if receipt.transaction_hash != transaction.hash {
            return Err(ReadError::MissingReceipt);
        }
        if receipt.block_hash != header.hash {
            return Err(ReadError::OtherBlock);
        }
        check_bloom(receipt.logs_bloom, &receipt.logs)?;
        Ok(MinedTransaction { transaction, receipt })
    };
    let mined: Vec<MinedTransaction> = transactions
        .into_iter()
        .zip(receipts)
        .map(join)
        .collect::<Result<_, _>>()?;
    check_transactions(header, &mined)?;
    check_bloom(header.logs_bloom, mined.iter().flat_map(|mined| &mined.receipt.logs))?;
    Ok(mined)
}

/// Compares the transactions with the header: a half answer lacks some, or all. A zero root proves nothing, because
/// some nodes do not keep one.
///
/// # Errors
/// [`ReadError::OtherTransactions`] if the list is empty although a root is that of a list with entries, or if the
/// receipts do not add up to the gas of the block.
fn check_transactions(header: &HeaderContent, mined: &[MinedTransaction]) -> Result<(), ReadError> {
    let has_entries = |root: B256| root != EMPTY_ROOT && root != B256::ZERO;
    let is_hollow = mined.is_empty() && (has_entries(header.transactions_root) || has_entries(header.receipts_root));
    let gas = (mined.iter()).try_fold(U256::ZERO, |gas, mined| gas.checked_add(mined.receipt.gas_used));
    if is_hollow || gas != Some(header.gas_used) {
        return Err(ReadError::OtherTransactions);
    }
    Ok(())
}

/// Compares logs with their bloom filter. An empty filter proves nothing, because some nodes do not keep one.
///
/// # Errors
/// [`ReadError::OtherLogs`] if the filter is that of other logs.
fn check_bloom<'a>(bloom: Option<Bloom>, logs: impl IntoIterator<Item = &'a LogContent>) -> Result<(), ReadError> {
    let Some(bloom) = bloom.filter(|bloom| *bloom != Bloom::ZERO) else {
        return Ok(());
    };
    let mut actual = Bloom::ZERO;
    for log in logs {
        actual.accrue_raw_log(log.address, &log.topics);
    }
    if actual == bloom {
        Ok(())
    } else {
        Err(ReadError::OtherLogs)
    }
}

/// The call trees of a traced block; `None` if they are malformed or of other transactions.
pub(super) fn parse_block_trace(result: &RawValue, hashes: impl Iterator<Item = B256>) -> Option<Vec<CallTree>> {
    let traced = transactions(&[result]).ok()?;
    if !traced.iter().map(|transaction| transaction.hash).eq(hashes) {
        return None;
    }
    let tree = |results: &[&RawValue]| CallTree::parse(results.first()?).ok();
    traced.iter().map(|transaction| tree(&transaction.results)).collect()
}
