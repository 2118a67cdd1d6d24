//! Rows of the store as records, with everything in them.

use crate::{
    rows::{bytes, call_type, categories, hash, lower, time, token_type, transfer_type},
    wire::{AddressMetadata, Balance, Block, Contract, InternalTransaction, Log, Token, TokenTransfer, Transaction},
};
use gw_chain_store::{
    TokenHolding,
    rows::{self as chain, BlockRow, ChainRow, ContractRow, MetadataState, TokenBalance, TokenRow, TransactionRow},
};

pub(super) fn block(row: &BlockRow) -> Block {
    let block = &row.block;
    Block {
        number: block.number,
        hash: hash(block.hash),
        parent_hash: hash(block.parent_hash),
        timestamp: block.timestamp,
        gas_limit: block.gas_limit,
        base_fee_per_gas: block.base_fee_per_gas.map(|fee| fee.to_string()),
        transaction_count: row.ids.transactions.end.saturating_sub(row.ids.transactions.start),
        difficulty: block.difficulty.to_string(),
        total_difficulty: block.total_difficulty.map(|total| total.to_string()),
        nonce: format!("0x{:016x}", block.nonce),
        miner: lower(block.miner),
        extra_data: bytes(&block.extra_data),
        state_root: hash(block.state_root),
        transactions_root: hash(block.transactions_root),
        receipts_root: hash(block.receipts_root),
        created_at: time(block.timestamp),
    }
}

/// `transfers` is the number of its transfers, if the categories are wanted.
pub(super) fn transaction(row: &TransactionRow, transfers: Option<u64>) -> Transaction {
    let transaction = &row.transaction;
    Transaction {
        hash: hash(transaction.hash),
        block_number: row.block_number,
        block_timestamp: row.timestamp,
        tx_index: row.index.into(),
        from: lower(transaction.from),
        to: transaction.to.map(lower),
        contract_address: transaction.created_contract.map(lower),
        value: transaction.value.to_string(),
        gas_used: transaction.gas_used,
        gas_price: transaction.effective_gas_price.to_string(),
        gas_limit: transaction.gas_limit,
        max_fee_per_gas: transaction.max_fee_per_gas.map(|fee| fee.to_string()),
        max_priority_fee_per_gas: transaction.max_priority_fee_per_gas.map(|fee| fee.to_string()),
        nonce: Some(transaction.nonce),
        tx_type: transaction.transaction_type,
        input_data: bytes(&transaction.input),
        status: u8::from(transaction.success),
        error: transaction.error.clone(),
        revert_reason: transaction.revert_reason.clone(),
        created_at: time(row.timestamp),
        tx_categories: transfers.map_or_else(Vec::new, |count| categories(transaction, true, true, count)),
        token_transfer_count: transfers,
        address_metadata: AddressMetadata::new(),
    }
}

pub(super) fn transfer(row: &ChainRow<chain::TokenTransfer>) -> TokenTransfer {
    let transfer = &row.row;
    TokenTransfer {
        tx_hash: hash(row.transaction_hash),
        // X8: one row per token id, by the index of the log and the position in it.
        log_index: u64::from(transfer.log_index).saturating_add(transfer.batch_position.into()),
        token_address: lower(transfer.token),
        from: lower(transfer.from),
        to: lower(transfer.to),
        value: transfer.value.to_string(),
        block_number: row.block_number,
        timestamp: row.timestamp,
        transfer_type: transfer_type(transfer),
        token_type: token_type(transfer.standard),
        token_id: transfer.token_id.map(|id| id.to_string()),
        is_internal: false,
        address_metadata: AddressMetadata::new(),
    }
}

pub(super) fn frame(row: &ChainRow<chain::Frame>) -> InternalTransaction {
    let frame = &row.row;
    let position: Vec<String> = frame.trace_address.iter().map(ToString::to_string).collect();
    InternalTransaction {
        tx_hash: hash(row.transaction_hash),
        block_number: row.block_number,
        trace_address: position.join("."),
        from: lower(frame.from),
        to: frame.to.map(lower),
        value: frame.value.to_string(),
        gas: frame.gas,
        gas_used: frame.gas_used,
        input: Some(bytes(&frame.input)),
        output: Some(bytes(&frame.output)),
        call_type: call_type(frame.call_type),
        error: frame.error.clone(),
        timestamp: row.timestamp,
        address_metadata: AddressMetadata::new(),
    }
}

pub(super) fn log(row: &ChainRow<chain::Log>) -> Log {
    let topic = |position: usize| row.row.topics.get(position).map(|topic| hash(*topic));
    Log {
        tx_hash: hash(row.transaction_hash),
        log_index: row.row.index.into(),
        address: lower(row.row.address),
        topic0: topic(0),
        topic1: topic(1),
        topic2: topic(2),
        topic3: topic(3),
        data: bytes(&row.row.data),
        block_number: row.block_number,
        timestamp: row.timestamp,
        removed: false,
    }
}

/// `is_pending` says that balances of holders are still to be read.
pub(super) fn token(row: &TokenRow, transfers: u64, is_pending: bool) -> Token {
    let token = &row.token;
    let metadata = match &token.metadata {
        MetadataState::Known(metadata) => metadata.clone(),
        MetadataState::Pending | MetadataState::Unavailable => Default::default(),
    };
    Token {
        address: lower(token.address),
        symbol: metadata.symbol.unwrap_or_default(),
        name: metadata.name,
        decimals: metadata.decimals.unwrap_or_default(),
        token_type: token_type(token.standard),
        total_supply: token.total_supply.map(|supply| supply.to_string()),
        holder_count: row.holder_count,
        transfer_count: transfers,
        block_number: Some(row.block_number),
        created_at: Some(time(row.timestamp)),
        balances_pending: is_pending.then_some(true),
    }
}

/// `is_pending` says that the balance changed since it was read.
pub(super) fn balance(row: &TokenBalance, is_pending: bool) -> Balance {
    Balance {
        address: lower(row.holder),
        token_address: lower(row.token),
        block_number: row.block_number,
        token_id: row.token_id.map(|id| id.to_string()),
        balance: row.balance.to_string(),
        is_pending: is_pending.then_some(true),
    }
}

/// A balance that is still to be read for the first time.
pub(super) fn unread_balance(holding: &TokenHolding, newest: u64) -> Balance {
    Balance {
        address: lower(holding.holder),
        token_address: lower(holding.token),
        block_number: newest,
        token_id: holding.token_id.map(|id| id.to_string()),
        balance: String::new(),
        is_pending: Some(true),
    }
}

pub(super) fn contract(row: &ContractRow) -> Contract {
    let contract = &row.contract;
    Contract {
        address: lower(contract.address),
        bytecode: bytes(&contract.code),
        bytecode_hash: hash(contract.code_hash),
        creator: contract.creator.map_or_else(String::new, lower),
        creation_tx: contract.creation_transaction.map_or_else(String::new, hash),
        block_number: Some(row.block_number),
        contract_name: None,
        is_verified: false,
    }
}
