//! Models to rows.

use super::{Columns, MetadataColumns, call_type, metadata_columns, proxy_kind, standard};
use crate::{
    ChainStoreError,
    entity::{blocks, contracts, frames, logs, token_balances, token_transfers, tokens, transactions},
    rows::{
        Block, BlockIds, BlockRow, ChainRow, Contract, ContractRow, Frame, Log, MetadataState, Proxy, Token,
        TokenBalance, TokenMetadata, TokenRow, TokenTransfer, Transaction, TransactionRow,
    },
};
use gw_postings::RowId;
use gw_types::B256;
use std::ops::Range;

/// The transaction to which a log, transfer or frame belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) transaction_hash: B256,
    pub(crate) block_number: u64,
    pub(crate) timestamp: i64,
}

impl Owner {
    fn row<T>(self, id: u64, transaction_id: u64, row: T) -> ChainRow<T> {
        ChainRow {
            id: RowId(id),
            block_number: self.block_number,
            timestamp: self.timestamp,
            transaction_id: RowId(transaction_id),
            transaction_hash: self.transaction_hash,
            row,
        }
    }
}

pub(crate) fn block_row(model: blocks::Model) -> Result<BlockRow, ChainStoreError> {
    let columns = Columns("blocks");
    let range = |column, first: i64, count: i64| -> Result<Range<u64>, ChainStoreError> {
        let end = first.checked_add(count).ok_or_else(|| columns.malformed(column))?;
        Ok(columns.number(column, first)?..columns.number(column, end)?)
    };
    Ok(BlockRow {
        ids: BlockIds {
            transactions: range("first_transaction", model.first_transaction, model.transaction_count)?,
            transfers: range("first_transfer", model.first_transfer, model.transfer_count)?,
            frames: range("first_frame", model.first_frame, model.frame_count)?,
            logs: range("first_log", model.first_log, model.log_count)?,
        },
        block: Block {
            number: columns.number("number", model.number)?,
            hash: columns.hash("hash", &model.hash)?,
            parent_hash: columns.hash("parent_hash", &model.parent_hash)?,
            timestamp: model.timestamp,
            gas_limit: model.gas_limit.cast_unsigned(),
            gas_used: model.gas_used.cast_unsigned(),
            base_fee_per_gas: columns.optional_amount("base_fee_per_gas", model.base_fee_per_gas)?,
            difficulty: columns.amount("difficulty", &model.difficulty)?,
            total_difficulty: columns.optional_amount("total_difficulty", model.total_difficulty)?,
            nonce: model.nonce.cast_unsigned(),
            miner: columns.address("miner", &model.miner)?,
            extra_data: model.extra_data.into(),
            state_root: columns.hash("state_root", &model.state_root)?,
            transactions_root: columns.hash("transactions_root", &model.transactions_root)?,
            receipts_root: columns.hash("receipts_root", &model.receipts_root)?,
            frames_complete: model.frames_complete,
        },
    })
}

/// The first id and the timestamp are those of the transaction's block.
pub(crate) fn transaction(
    model: transactions::Model,
    first_id: i64,
    timestamp: i64,
) -> Result<TransactionRow, ChainStoreError> {
    let columns = Columns("transactions");
    Ok(TransactionRow {
        id: RowId(columns.number("id", model.id)?),
        block_number: columns.number("block_number", model.block_number)?,
        timestamp,
        index: columns.index("id", model.id.saturating_sub(first_id))?,
        transaction: Transaction {
            hash: columns.hash("hash", &model.hash)?,
            from: columns.address("from_address", &model.from_address)?,
            to: columns.optional_address("to_address", model.to_address)?,
            created_contract: columns.optional_address("created_contract", model.created_contract)?,
            value: columns.amount("value", &model.value)?,
            gas_limit: model.gas_limit.cast_unsigned(),
            gas_used: model.gas_used.cast_unsigned(),
            effective_gas_price: columns.amount("effective_gas_price", &model.effective_gas_price)?,
            max_fee_per_gas: columns.optional_amount("max_fee_per_gas", model.max_fee_per_gas)?,
            max_priority_fee_per_gas: columns
                .optional_amount("max_priority_fee_per_gas", model.max_priority_fee_per_gas)?,
            nonce: model.nonce.cast_unsigned(),
            transaction_type: u8::try_from(model.transaction_type)
                .map_err(|_| columns.malformed("transaction_type"))?,
            input: model.input.into(),
            success: model.success,
            error: columns.optional_text("error", model.error)?,
            revert_reason: columns.optional_text("revert_reason", model.revert_reason)?,
        },
    })
}

pub(crate) fn log(model: logs::Model, owner: Owner) -> Result<ChainRow<Log>, ChainStoreError> {
    let columns = Columns("logs");
    let topics = [model.topic0, model.topic1, model.topic2, model.topic3];
    let topics = topics.iter().flatten().map(|topic| columns.hash("topic0", topic));
    let row = Log {
        index: columns.index("log_index", model.log_index)?,
        address: columns.address("address", &model.address)?,
        topics: topics.collect::<Result<_, _>>()?,
        data: model.data.into(),
    };
    let id = columns.number("id", model.id)?;
    Ok(owner.row(id, columns.number("transaction_id", model.transaction_id)?, row))
}

pub(crate) fn transfer(
    model: token_transfers::Model,
    owner: Owner,
) -> Result<ChainRow<TokenTransfer>, ChainStoreError> {
    let columns = Columns("token_transfers");
    let row = TokenTransfer {
        log_index: columns.index("log_index", model.log_index)?,
        batch_position: columns.index("batch_position", model.batch_position)?,
        token: columns.address("token_address", &model.token_address)?,
        from: columns.address("from_address", &model.from_address)?,
        to: columns.address("to_address", &model.to_address)?,
        value: columns.amount("value", &model.value)?,
        token_id: columns.optional_amount("token_id", model.token_id)?,
        standard: standard(model.standard).ok_or_else(|| columns.malformed("standard"))?,
    };
    let id = columns.number("id", model.id)?;
    Ok(owner.row(id, columns.number("transaction_id", model.transaction_id)?, row))
}

/// `first_id` is the id of the first frame of the block.
pub(crate) fn frame(model: frames::Model, first_id: i64, owner: Owner) -> Result<ChainRow<Frame>, ChainStoreError> {
    let columns = Columns("frames");
    let trace_address = model.trace_address.chunks(4).map(|index| {
        let index = index.try_into().map_err(|_| columns.malformed("trace_address"))?;
        Ok(u32::from_be_bytes(index))
    });
    let row = Frame {
        trace_address: trace_address.collect::<Result<_, ChainStoreError>>()?,
        call_type: call_type(model.call_type).ok_or_else(|| columns.malformed("call_type"))?,
        from: columns.address("from_address", &model.from_address)?,
        to: columns.optional_address("to_address", model.to_address)?,
        value: columns.amount("value", &model.value)?,
        gas: model.gas.cast_unsigned(),
        gas_used: model.gas_used.cast_unsigned(),
        input: model.input.into(),
        output: model.output.into(),
        error: columns.optional_text("error", model.error)?,
    };
    let id = columns.number("position", first_id.saturating_add(model.position))?;
    Ok(owner.row(id, columns.number("transaction_id", model.transaction_id)?, row))
}

/// The proxy is the contract's own, whatever changed later.
pub(crate) fn contract_row(model: contracts::Model, timestamp: i64) -> Result<ContractRow, ChainStoreError> {
    let columns = Columns("contracts");
    Ok(ContractRow {
        block_number: columns.number("block_number", model.block_number)?,
        timestamp,
        contract: Contract {
            address: columns.address("address", &model.address)?,
            creator: columns.optional_address("creator", model.creator)?,
            creation_transaction: columns.optional(
                "creation_transaction",
                model.creation_transaction,
                |columns, column, value| columns.hash(column, &value),
            )?,
            code_hash: columns.hash("code_hash", &model.code_hash)?,
            code: model.code.into(),
            proxy: proxy(columns, model.proxy_kind, model.implementation)?,
        },
    })
}

pub(crate) fn proxy(
    columns: Columns,
    kind: Option<i16>,
    implementation: Option<Vec<u8>>,
) -> Result<Option<Proxy>, ChainStoreError> {
    let Some(kind) = kind else { return Ok(None) };
    Ok(Some(Proxy {
        kind: proxy_kind(kind).ok_or_else(|| columns.malformed("proxy_kind"))?,
        implementation: columns.optional_address("implementation", implementation)?,
    }))
}

/// The timestamp is that of the token's block.
pub(crate) fn token_row(model: tokens::Model, timestamp: i64) -> Result<TokenRow, ChainStoreError> {
    let columns = Columns("tokens");
    let metadata = metadata_columns(model.metadata_state).ok_or_else(|| columns.malformed("metadata_state"))?;
    let decimals = model.decimals.map(u8::try_from).transpose();
    Ok(TokenRow {
        block_number: columns.number("block_number", model.block_number)?,
        timestamp,
        holder_count: columns.number("holder_count", model.holder_count)?,
        token: Token {
            address: columns.address("address", &model.address)?,
            standard: standard(model.standard).ok_or_else(|| columns.malformed("standard"))?,
            metadata: match metadata {
                MetadataColumns::Pending => MetadataState::Pending,
                MetadataColumns::Unavailable => MetadataState::Unavailable,
                MetadataColumns::Known => MetadataState::Known(TokenMetadata {
                    name: columns.optional_text("name", model.name)?,
                    symbol: columns.optional_text("symbol", model.symbol)?,
                    decimals: decimals.map_err(|_| columns.malformed("decimals"))?,
                }),
            },
            total_supply: columns.optional_amount("total_supply", model.total_supply)?,
        },
    })
}

pub(crate) fn token_balance(model: &token_balances::Model) -> Result<TokenBalance, ChainStoreError> {
    let columns = Columns("token_balances");
    Ok(TokenBalance {
        token: columns.address("token_address", &model.token_address)?,
        holder: columns.address("holder", &model.holder)?,
        token_id: match &*model.token_id {
            [] => None,
            id => Some(columns.amount("token_id", id)?),
        },
        balance: columns.amount("balance", &model.balance)?,
        block_number: columns.number("block_number", model.block_number)?,
    })
}
