//! Rows to models.

use super::{
    MetadataColumns, amount_column, call_type_column, count, metadata_column, proxy_kind_column, standard_column,
    to_column,
};
use crate::{
    ChainStoreError,
    entity::{blocks, contracts, frames, logs, proxy_changes, token_transfers, tokens, transactions},
    rows::{BlockData, Contract, Frame, Log, Proxy, TokenTransfer, Transaction, TransactionData},
};
use std::collections::{BTreeMap, BTreeSet};

/// The longest start of a name that is searched. Both engines limit the size of index entries, and names are untrusted.
const SEARCH_KEY: usize = 64;

/// The first ids of a block's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstIds {
    pub(crate) transactions: i64,
    pub(crate) transfers: i64,
    pub(crate) frames: i64,
    pub(crate) logs: i64,
}

impl FirstIds {
    /// By how much each id is above that of `other`.
    pub(crate) const fn since(self, other: Self) -> Self {
        Self {
            transactions: self.transactions.saturating_sub(other.transactions),
            transfers: self.transfers.saturating_sub(other.transfers),
            frames: self.frames.saturating_sub(other.frames),
            logs: self.logs.saturating_sub(other.logs),
        }
    }

    /// The first ids of the block after this one.
    pub(crate) fn after(block: &blocks::Model) -> Self {
        Self {
            transactions: block.first_transaction.saturating_add(block.transaction_count),
            transfers: block.first_transfer.saturating_add(block.transfer_count),
            frames: block.first_frame.saturating_add(block.frame_count),
            logs: block.first_log.saturating_add(block.log_count),
        }
    }
}

/// Where a frame belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePlace {
    pub(crate) block_number: i64,
    pub(crate) position: i64,
    pub(crate) transaction_id: i64,
}

/// The models of a block and its rows.
#[derive(Debug)]
pub(crate) struct BlockModels {
    pub(crate) block: blocks::Model,
    pub(crate) transactions: Vec<transactions::Model>,
    pub(crate) logs: Vec<logs::Model>,
    pub(crate) transfers: Vec<token_transfers::Model>,
    pub(crate) frames: Vec<frames::Model>,
    pub(crate) contracts: Vec<contracts::Model>,
    pub(crate) proxy_changes: Vec<proxy_changes::Model>,
    /// The tokens of the transfers. A token that is stored already keeps its row.
    pub(crate) tokens: Vec<tokens::Model>,
}

impl BlockModels {
    /// # Errors
    /// [`ChainStoreError::InvalidBlock`] if the rows contradict each other.
    pub(crate) fn new(data: &BlockData, first: FirstIds) -> Result<Self, ChainStoreError> {
        let invalid = |reason| ChainStoreError::InvalidBlock {
            block: data.block.number,
            reason,
        };
        let block_number = to_column(data.block.number)?;
        let mut models = Self {
            block: block_model(data, block_number, first),
            transactions: Vec::with_capacity(data.transactions.len()),
            logs: Vec::new(),
            transfers: Vec::new(),
            frames: Vec::new(),
            contracts: Vec::new(),
            proxy_changes: Vec::new(),
            tokens: Vec::new(),
        };
        for (id, data) in (first.transactions..).zip(&data.transactions) {
            models.add(id, data, first).map_err(invalid)?;
        }
        if !data.block.frames_complete && !models.frames.is_empty() {
            return Err(invalid("it has frames, but its trace is not complete"));
        }
        models.contracts = data
            .contracts
            .iter()
            .map(|row| contract_model(row, block_number))
            .collect();
        models.proxy_changes = proxy_models(data, block_number);
        let is_unique = |addresses: Vec<&Vec<u8>>| addresses.iter().collect::<BTreeSet<_>>().len() == addresses.len();
        if !is_unique(models.contracts.iter().map(|row| &row.address).collect())
            || !is_unique(models.proxy_changes.iter().map(|row| &row.address).collect())
        {
            return Err(invalid("it has two contracts or two proxy changes of one address"));
        }
        models.tokens = token_models(data, block_number);
        models.block.transfer_count = count(models.transfers.len());
        models.block.frame_count = count(models.frames.len());
        models.block.log_count = count(models.logs.len());
        Ok(models)
    }

    fn add(&mut self, id: i64, data: &TransactionData, first: FirstIds) -> Result<(), &'static str> {
        let place = TransactionPlace {
            id,
            block_number: self.block.number,
            first_transfer: first.transfers.saturating_add(count(self.transfers.len())),
            frame_position: count(self.frames.len()),
            first_log: first.logs.saturating_add(count(self.logs.len())),
        };
        self.transactions.push(transaction_model(data, place));
        for (log_id, log) in (place.first_log..).zip(&data.logs) {
            self.logs.push(log_model(log, log_id, id)?);
        }
        let transfers = (place.first_transfer..).zip(&data.transfers);
        self.transfers
            .extend(transfers.map(|(transfer_id, row)| transfer_model(row, transfer_id, id)));
        let frames = (place.frame_position..).zip(&data.frames);
        self.frames.extend(frames.map(|(position, row)| {
            let place = FramePlace {
                block_number: place.block_number,
                position,
                transaction_id: id,
            };
            frame_model(row, place)
        }));
        Ok(())
    }
}

/// Where a transaction and its rows belong.
#[derive(Clone, Copy)]
struct TransactionPlace {
    id: i64,
    block_number: i64,
    first_transfer: i64,
    frame_position: i64,
    first_log: i64,
}

/// The counts of transfers, frames and logs are set when these are known.
fn block_model(data: &BlockData, number: i64, first: FirstIds) -> blocks::Model {
    let block = &data.block;
    blocks::Model {
        number,
        hash: block.hash.to_vec(),
        parent_hash: block.parent_hash.to_vec(),
        timestamp: block.timestamp,
        gas_limit: block.gas_limit.cast_signed(),
        gas_used: block.gas_used.cast_signed(),
        base_fee_per_gas: block.base_fee_per_gas.map(amount_column),
        difficulty: amount_column(block.difficulty),
        total_difficulty: block.total_difficulty.map(amount_column),
        nonce: block.nonce.cast_signed(),
        miner: block.miner.to_vec(),
        extra_data: block.extra_data.to_vec(),
        state_root: block.state_root.to_vec(),
        transactions_root: block.transactions_root.to_vec(),
        receipts_root: block.receipts_root.to_vec(),
        frames_complete: block.frames_complete,
        first_transaction: first.transactions,
        transaction_count: count(data.transactions.len()),
        first_transfer: first.transfers,
        transfer_count: 0,
        first_frame: first.frames,
        frame_count: 0,
        first_log: first.logs,
        log_count: 0,
    }
}

fn transaction_model(data: &TransactionData, place: TransactionPlace) -> transactions::Model {
    // Every field is named, so that a new one is not forgotten.
    let Transaction {
        hash,
        from,
        to,
        created_contract,
        value,
        gas_limit,
        gas_used,
        effective_gas_price,
        max_fee_per_gas,
        max_priority_fee_per_gas,
        nonce,
        transaction_type,
        input,
        success,
        error,
        revert_reason,
    } = &data.transaction;
    transactions::Model {
        id: place.id,
        block_number: place.block_number,
        hash: hash.to_vec(),
        from_address: from.to_vec(),
        to_address: to.map(|to| to.to_vec()),
        created_contract: created_contract.map(|address| address.to_vec()),
        value: amount_column(*value),
        gas_limit: gas_limit.cast_signed(),
        gas_used: gas_used.cast_signed(),
        effective_gas_price: amount_column(*effective_gas_price),
        max_fee_per_gas: max_fee_per_gas.map(amount_column),
        max_priority_fee_per_gas: max_priority_fee_per_gas.map(amount_column),
        nonce: nonce.cast_signed(),
        transaction_type: i16::from(*transaction_type),
        input: input.to_vec(),
        success: *success,
        error: error.as_ref().map(|text| text.as_bytes().to_vec()),
        revert_reason: revert_reason.as_ref().map(|text| text.as_bytes().to_vec()),
        first_transfer: place.first_transfer,
        transfer_count: count(data.transfers.len()),
        frame_position: place.frame_position,
        frame_count: count(data.frames.len()),
        first_log: place.first_log,
        log_count: count(data.logs.len()),
    }
}

fn log_model(log: &Log, id: i64, transaction_id: i64) -> Result<logs::Model, &'static str> {
    let mut topics = log.topics.iter().map(|topic| topic.to_vec());
    let model = logs::Model {
        id,
        transaction_id,
        log_index: log.index.into(),
        address: log.address.to_vec(),
        topic0: topics.next(),
        topic1: topics.next(),
        topic2: topics.next(),
        topic3: topics.next(),
        data: log.data.to_vec(),
    };
    match topics.next() {
        None => Ok(model),
        Some(_) => Err("a log has more than four topics"),
    }
}

fn transfer_model(transfer: &TokenTransfer, id: i64, transaction_id: i64) -> token_transfers::Model {
    token_transfers::Model {
        id,
        transaction_id,
        log_index: transfer.log_index.into(),
        batch_position: transfer.batch_position.into(),
        token_address: transfer.token.to_vec(),
        from_address: transfer.from.to_vec(),
        to_address: transfer.to.to_vec(),
        value: amount_column(transfer.value),
        token_id: transfer.token_id.map(amount_column),
        standard: standard_column(transfer.standard),
    }
}

pub(crate) fn frame_model(frame: &Frame, place: FramePlace) -> frames::Model {
    frames::Model {
        block_number: place.block_number,
        position: place.position,
        transaction_id: place.transaction_id,
        trace_address: frame
            .trace_address
            .iter()
            .flat_map(|index| index.to_be_bytes())
            .collect(),
        call_type: call_type_column(frame.call_type),
        from_address: frame.from.to_vec(),
        to_address: frame.to.map(|to| to.to_vec()),
        value: amount_column(frame.value),
        gas: frame.gas.cast_signed(),
        gas_used: frame.gas_used.cast_signed(),
        input: frame.input.to_vec(),
        output: frame.output.to_vec(),
        error: frame.error.as_ref().map(|text| text.as_bytes().to_vec()),
    }
}

pub(crate) fn contract_model(contract: &Contract, block_number: i64) -> contracts::Model {
    let (proxy_kind, implementation) = proxy_columns(contract.proxy);
    contracts::Model {
        address: contract.address.to_vec(),
        block_number,
        creator: contract.creator.map(|address| address.to_vec()),
        creation_transaction: contract.creation_transaction.map(|hash| hash.to_vec()),
        code_hash: contract.code_hash.to_vec(),
        code: contract.code.to_vec(),
        proxy_kind,
        implementation,
    }
}

fn proxy_models(data: &BlockData, block_number: i64) -> Vec<proxy_changes::Model> {
    let changes = data.proxy_changes.iter().map(|change| {
        let (proxy_kind, implementation) = proxy_columns(change.proxy);
        proxy_changes::Model {
            address: change.address.to_vec(),
            block_number,
            proxy_kind,
            implementation,
        }
    });
    changes.collect()
}

/// The columns of a proxy: its kind and its implementation.
fn proxy_columns(proxy: Option<Proxy>) -> (Option<i16>, Option<Vec<u8>>) {
    let implementation = proxy.and_then(|proxy| proxy.implementation);
    (
        proxy.map(|proxy| proxy_kind_column(proxy.kind)),
        implementation.map(|address| address.to_vec()),
    )
}

fn token_models(data: &BlockData, block_number: i64) -> Vec<tokens::Model> {
    let mut standards = BTreeMap::new();
    for transfer in data.transactions.iter().flat_map(|data| &data.transfers) {
        standards.entry(transfer.token).or_insert(transfer.standard);
    }
    let models = standards.into_iter().map(|(address, standard)| tokens::Model {
        address: address.to_vec(),
        block_number,
        standard: standard_column(standard),
        metadata_state: metadata_column(MetadataColumns::Pending),
        name: None,
        symbol: None,
        decimals: None,
        name_key: None,
        symbol_key: None,
        metadata_block: None,
        total_supply: None,
        supply_block: None,
        holder_count: 0,
    });
    models.collect()
}

/// What is searched of a name: its start in lower case.
pub(crate) fn search_key(text: &str) -> Vec<u8> {
    let mut key = text.trim().to_lowercase().into_bytes();
    key.truncate(SEARCH_KEY);
    key
}
