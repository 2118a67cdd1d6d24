//! Decodes a block into rows. Pure functions.
//!
//! A log that has the form of no transfer stays a log: decoding never fails because of what a contract emitted. It
//! fails only if the node's numbers cannot be those of a chain.

mod contracts;
mod text;
mod transfers;

pub use contracts::{Creation, changed_proxies, creations, proxy};
pub(crate) use contracts::{contract_rows, creations_of};

use contracts::proxy_changes;
use gw_chain_store::{
    TransactionTrace,
    rows::{Block, BlockData, CallType, Frame, Log, TokenTransfer, Transaction, TransactionData},
};
use gw_evm::trace::{CallTree, FrameKind};
use gw_node::{BlockContent, ContractState, HeaderContent, MinedTransaction};
use gw_types::{Address, U256};
use std::collections::BTreeMap;
use text::revert_reason;
pub(crate) use text::{clean_text, string};
use transfers::transfers;

/// Most characters of an error or revert reason that are stored.
const LONGEST_REASON: usize = 1024;

/// Why a block cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A number is larger than any chain has.
    #[error("`{0}` is out of range")]
    OutOfRange(&'static str),
    /// Neither the transaction nor its receipt says what was paid for gas.
    #[error("a transaction has no gas price")]
    NoGasPrice,
    /// The state of a contract that the block created or changed was not read.
    #[error("the state of a contract of the block is missing")]
    NoContractState,
    /// The call trees are not those of the transactions.
    #[error("the number of call trees differs from the number of transactions")]
    OtherCallTrees,
}

/// Decodes a block. `states` contains the contracts of [`creations`] and [`changed_proxies`] as they are at the end of
/// the block.
///
/// # Errors
/// [`DecodeError`].
pub fn decode(content: &BlockContent, states: &BTreeMap<Address, ContractState>) -> Result<BlockData, DecodeError> {
    let trees = content.call_trees.as_deref();
    if trees.is_some_and(|trees| trees.len() != content.transactions.len()) {
        return Err(DecodeError::OtherCallTrees);
    }
    let mut transactions = Vec::with_capacity(content.transactions.len());
    for (index, mined) in content.transactions.iter().enumerate() {
        let tree = trees.and_then(|trees| trees.get(index));
        transactions.push(transaction(mined, tree)?);
    }
    Ok(BlockData {
        block: block(&content.header, trees.is_some())?,
        transactions,
        contracts: contract_rows(&creations(content), states)?,
        proxy_changes: proxy_changes(&changed_proxies(content), states)?,
    })
}

fn block(header: &HeaderContent, frames_complete: bool) -> Result<Block, DecodeError> {
    let timestamp = i64::try_from(number("timestamp", header.timestamp)?);
    Ok(Block {
        number: number("number", header.number)?,
        hash: header.hash,
        parent_hash: header.parent_hash,
        timestamp: timestamp.map_err(|_| DecodeError::OutOfRange("timestamp"))?,
        gas_limit: number("gasLimit", header.gas_limit)?,
        gas_used: number("gasUsed", header.gas_used)?,
        base_fee_per_gas: header.base_fee_per_gas,
        difficulty: header.difficulty.unwrap_or_default(),
        total_difficulty: header.total_difficulty,
        nonce: number("nonce", header.nonce.unwrap_or_default())?,
        miner: header.miner,
        extra_data: header.extra_data.clone(),
        state_root: header.state_root,
        transactions_root: header.transactions_root,
        receipts_root: header.receipts_root,
        frames_complete,
    })
}

fn number(field: &'static str, value: U256) -> Result<u64, DecodeError> {
    value.try_into().map_err(|_| DecodeError::OutOfRange(field))
}

fn transaction(mined: &MinedTransaction, tree: Option<&CallTree>) -> Result<TransactionData, DecodeError> {
    let MinedTransaction { transaction, receipt } = mined;
    if receipt.status > U256::ONE {
        return Err(DecodeError::OutOfRange("status"));
    }
    let success = receipt.status == U256::ONE;
    let failure = tree.filter(|_| !success).map(failure_reason).unwrap_or_default();
    let effective_gas_price = receipt.effective_gas_price.or(transaction.gas_price);
    let transaction_type = transaction.transaction_type.unwrap_or_default();
    let row = Transaction {
        hash: transaction.hash,
        from: transaction.from,
        to: transaction.to,
        created_contract: created_contract(mined),
        value: transaction.value,
        gas_limit: number("gas", transaction.gas)?,
        gas_used: number("gasUsed", receipt.gas_used)?,
        effective_gas_price: effective_gas_price.ok_or(DecodeError::NoGasPrice)?,
        max_fee_per_gas: transaction.max_fee_per_gas,
        max_priority_fee_per_gas: transaction.max_priority_fee_per_gas,
        nonce: number("nonce", transaction.nonce)?,
        transaction_type: transaction_type
            .try_into()
            .map_err(|_| DecodeError::OutOfRange("type"))?,
        input: transaction.input.clone(),
        success,
        error: failure.error,
        revert_reason: failure.revert_reason,
    };
    let logs = receipt.logs.iter().map(|log| {
        let index = u32::try_from(number("logIndex", log.log_index)?);
        Ok(Log {
            index: index.map_err(|_| DecodeError::OutOfRange("logIndex"))?,
            address: log.address,
            topics: log.topics.clone(),
            data: log.data.clone(),
        })
    });
    let logs: Vec<Log> = logs.collect::<Result<_, _>>()?;
    if logs.iter().any(|log| log.topics.len() > 4) {
        return Err(DecodeError::OutOfRange("topics"));
    }
    let token_transfers: Vec<TokenTransfer> = logs.iter().flat_map(transfers).collect();
    Ok(TransactionData {
        frames: tree.map(frames).unwrap_or_default(),
        transfers: token_transfers,
        transaction: row,
        logs,
    })
}

/// Why a transaction failed.
#[derive(Debug, Default)]
struct FailureReason {
    error: Option<String>,
    revert_reason: Option<String>,
}

fn failure_reason(tree: &CallTree) -> FailureReason {
    let top = &tree.top;
    let text = |text: &Option<String>| text.as_deref().map(|text| clean_text(text, LONGEST_REASON));
    FailureReason {
        error: text(&top.error),
        revert_reason: revert_reason(&top.output).or_else(|| text(&top.revert_reason)),
    }
}

/// The trace of a transaction of a block that is stored already.
pub(crate) fn transaction_trace(tree: &CallTree, success: bool) -> TransactionTrace {
    let failure = if success {
        FailureReason::default()
    } else {
        failure_reason(tree)
    };
    TransactionTrace {
        frames: frames(tree),
        error: failure.error,
        revert_reason: failure.revert_reason,
    }
}

/// The contract that a successful deployment created.
fn created_contract(mined: &MinedTransaction) -> Option<Address> {
    let is_created = mined.transaction.to.is_none() && mined.receipt.status == U256::ONE;
    mined.receipt.contract_address.filter(|_| is_created)
}

/// The internal transactions of a call tree: all frames below the top frame.
pub fn frames(tree: &CallTree) -> Vec<Frame> {
    let addresses = tree.trace_addresses();
    let below_top = tree.frames.iter().zip(addresses).skip(1);
    let row = |(frame, trace_address): (&gw_evm::trace::Frame, Vec<u32>)| Frame {
        trace_address,
        call_type: match frame.kind {
            FrameKind::Call => CallType::Call,
            FrameKind::StaticCall => CallType::StaticCall,
            FrameKind::DelegateCall => CallType::DelegateCall,
            FrameKind::CallCode => CallType::CallCode,
            FrameKind::Create => CallType::Create,
            FrameKind::Create2 => CallType::Create2,
            FrameKind::SelfDestruct => CallType::SelfDestruct,
        },
        from: frame.from,
        to: frame.to,
        value: frame.value,
        gas: frame.gas.unwrap_or_default(),
        gas_used: frame.gas_used.unwrap_or_default(),
        input: frame.input.clone(),
        output: frame.output.clone(),
        error: frame.error.as_deref().map(|error| clean_text(error, LONGEST_REASON)),
    };
    below_top.map(row).collect()
}

#[cfg(test)]
mod tests;
