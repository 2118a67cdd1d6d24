//! Rows by their ids, each evaluated again by the policy core and written as it says.
//!
//! The index selected the rows. A row that the policy core does not let survive is a contradiction: the request fails,
//! and nothing is shown.

use crate::{
    error::ExplorerError,
    places::block_range,
    view::View,
    wire::{AddressMetadata, InternalTransaction, Log, PRIVATE, TokenTransfer, Transaction},
};
use gw_chain_store::rows::{self as chain, CallType, ChainRow, TokenStandard, TransactionRow};
use gw_policy::{
    Viewer,
    snapshot::Moment,
    visibility::{
        GasPricing, LogData, LogRow, LogViewer, LogVisibility, TransactionRoles,
        explorer::{
            AddressText, AddressVisibility, ContractVisibility, FrameEntry, TransactionEntry,
            TransactionEntryVisibility, TransferEntry,
        },
    },
};
use gw_postings::{RowId, RowSet, Space};
use gw_types::{Address, B256, Timestamp, U256};
use std::collections::{BTreeMap, BTreeSet};

/// How often a loop over long logs lets other requests have their turn.
const YIELD_EVERY: usize = 32;
/// The rows that are read and evaluated at once.
const CHUNK: usize = 100;

/// The transactions to which rows belong, with what their evaluation needs.
#[derive(Debug, Default)]
pub(crate) struct Parents(BTreeMap<RowId, Parent>);

#[derive(Debug)]
struct Parent {
    row: TransactionRow,
    /// Its transfers; empty unless a transfer can make a transaction survive (K12).
    transfers: Vec<TransferEntry>,
}

impl Parent {
    fn entry(&self) -> TransactionEntry<'_> {
        let transaction = &self.row.transaction;
        TransactionEntry {
            row: gw_policy::visibility::TransactionRow {
                hash: transaction.hash,
                from: transaction.from,
                to: transaction.to,
                moment: Moment::Block(self.row.block_number),
                time: Some(Timestamp::from_secs(self.row.timestamp)),
            },
            created: transaction.created_contract,
            transfers: &self.transfers,
        }
    }
}

impl Parents {
    fn get(&self, id: RowId) -> Result<&Parent, ExplorerError> {
        self.0.get(&id).ok_or(ExplorerError::Internal(
            "a row belongs to a transaction that was not read",
        ))
    }
}

/// A judged log, before it has its number.
struct ShownLog {
    row: ChainRow<chain::Log>,
    visibility: LogVisibility,
    /// Whether the hash of the transaction is shown.
    tx_hash: bool,
}

impl View {
    /// Reads transactions for the evaluation of these rows.
    async fn parents(&self, ids: impl IntoIterator<Item = RowId>) -> Result<Parents, ExplorerError> {
        let ids: Vec<RowId> = ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let rows = self.reader.get_transactions(&ids).await?;
        let mut parents = BTreeMap::new();
        for row in rows {
            let transfers = if self.scopes.keeps_hidden_transfers() {
                let transfers = self.reader.list_transfers(row.id).await?;
                transfers.iter().map(|transfer| transfer_entry(&transfer.row)).collect()
            } else {
                Vec::new()
            };
            parents.insert(row.id, Parent { row, transfers });
        }
        Ok(Parents(parents))
    }

    /// The transactions with these ids, in their order.
    ///
    /// # Errors
    /// [`ExplorerError::Contradiction`] if one does not survive; any error of the store.
    pub(crate) async fn transactions(
        &self,
        ids: &[RowId],
        with_categories: bool,
    ) -> Result<Vec<Transaction>, ExplorerError> {
        let parents = self.parents(ids.iter().copied()).await?;
        let selected = self.rows(Space::Transactions)?;
        let transfers = if with_categories {
            Some(self.rows(Space::Transfers)?)
        } else {
            None
        };
        let viewer = self.viewer();
        let mut transactions = Vec::with_capacity(ids.len());
        for id in ids {
            let parent = parents.get(*id)?;
            let shown = viewer.transaction_entry(&parent.entry());
            let shown = shown.ok_or(ExplorerError::Contradiction(Space::Transactions))?;
            self.note_audited(shown.is_audited);
            let tx_index = self.shown_before(&selected, parent.row.block_number, *id)?;
            let transfer_count = match &transfers {
                Some(transfers) => Some(self.count_in_transaction(transfers, *id)?),
                None => None,
            };
            transactions.push(self.transaction(&parent.row, &shown, tx_index, transfer_count));
        }
        Ok(transactions)
    }

    fn transaction(
        &self,
        row: &TransactionRow,
        shown: &TransactionEntryVisibility,
        tx_index: u64,
        transfer_count: Option<u64>,
    ) -> Transaction {
        let transaction = &row.transaction;
        let mut metadata = AddressMetadata::new();
        let from = self.print(transaction.from, shown.from, &mut metadata);
        let mut optional = |address: Option<Address>, shown: Option<AddressVisibility>| {
            let (address, shown) = address.zip(shown)?;
            Some(self.print(address, shown, &mut metadata))
        };
        let to = optional(transaction.to, shown.to);
        let contract_address = optional(transaction.created_contract, shown.created);
        let payload = |text: &Option<String>| text.clone().filter(|_| shown.payload);
        Transaction {
            hash: hash_if(shown.survival.shows_hash(), transaction.hash),
            block_number: row.block_number,
            block_timestamp: row.timestamp,
            tx_index,
            from,
            to,
            contract_address,
            value: amount_if(shown.value, transaction.value),
            gas_used: transaction.gas_used,
            gas_price: self.gas_price(transaction).to_string(),
            gas_limit: transaction.gas_limit,
            max_fee_per_gas: transaction.max_fee_per_gas.map(|fee| fee.to_string()),
            max_priority_fee_per_gas: transaction.max_priority_fee_per_gas.map(|fee| fee.to_string()),
            nonce: shown.nonce.then_some(transaction.nonce),
            tx_type: transaction.transaction_type,
            input_data: if shown.payload {
                bytes(&transaction.input)
            } else {
                String::new()
            },
            status: u8::from(transaction.success),
            error: payload(&transaction.error),
            revert_reason: payload(&transaction.revert_reason),
            created_at: time(row.timestamp),
            tx_categories: transfer_count.map_or_else(Vec::new, |count| {
                categories(transaction, shown.value, shown.payload, count)
            }),
            token_transfer_count: transfer_count,
            address_metadata: metadata,
        }
    }

    /// The price that a transaction paid for its gas. Under `HIDE_BASE_FEE`, a price that follows the base fee reads as
    /// the most that the sender would have paid, as on `/rpc`.
    fn gas_price(&self, transaction: &chain::Transaction) -> U256 {
        let pricing = GasPricing::from_type(transaction.transaction_type);
        if self.viewer().shows_gas_price(pricing) {
            transaction.effective_gas_price
        } else {
            transaction.max_fee_per_gas.unwrap_or_default()
        }
    }

    /// Whether a transaction is found by its hash.
    ///
    /// # Errors
    /// [`ExplorerError::Contradiction`] if it was selected and does not survive; any error of the store.
    pub(crate) async fn finds_by_hash(&self, id: RowId) -> Result<bool, ExplorerError> {
        if !self.rows(Space::Transactions)?.contains(id) {
            return Ok(false);
        }
        let parents = self.parents([id]).await?;
        let entry = parents.get(id)?.entry();
        let shows_hash = |viewer: Viewer<'_>| {
            let shown = viewer.transaction_entry(&entry);
            let shown = shown.ok_or(ExplorerError::Contradiction(Space::Transactions))?;
            Ok::<_, ExplorerError>(shown.survival.shows_hash())
        };
        // A grant that shows the transaction without its hash leaves no record of a read here: its grantee would learn
        // from it that the hash was right (HD5).
        Ok(shows_hash(self.silent_viewer())? && shows_hash(self.viewer())?)
    }

    /// How a contract is shown that was created in this transaction; `None` if nothing of its creation is shown.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) async fn contract_visibility(
        &self,
        contract: Address,
        creator: Address,
        creation: TransactionRow,
    ) -> Result<Option<ContractVisibility>, ExplorerError> {
        let parents = self.parents([creation.id]).await?;
        let entry = parents.get(creation.id)?.entry();
        Ok(self.viewer().contract_entry(contract, creator, &entry))
    }

    /// The token transfers with these ids, in their order.
    ///
    /// # Errors
    /// As [`Self::transactions`].
    pub(crate) async fn transfers(&self, ids: &[RowId]) -> Result<Vec<TokenTransfer>, ExplorerError> {
        let selected = self.rows(Space::Transfers)?;
        let mut transfers = Vec::with_capacity(ids.len());
        // A transaction may have tens of thousands: other requests get their turn (HD36).
        for ids in ids.chunks(CHUNK) {
            let rows = self.reader.get_transfers(ids).await?;
            let parents = self.parents(rows.iter().map(|row| row.transaction_id)).await?;
            let viewer = self.viewer();
            for row in &rows {
                let transfer = &row.row;
                let shown = viewer.transfer_entry(&parents.get(row.transaction_id)?.entry(), &transfer_entry(transfer));
                let shown = shown.ok_or(ExplorerError::Contradiction(Space::Transfers))?;
                self.note_audited(shown.is_audited);
                let mut metadata = AddressMetadata::new();
                transfers.push(TokenTransfer {
                    tx_hash: hash_if(shown.tx_hash, row.transaction_hash),
                    log_index: self.count_before_in_transaction(&selected, row.transaction_id, row.id)?,
                    token_address: self.print(transfer.token, shown.token, &mut metadata),
                    from: self.print(transfer.from, shown.from, &mut metadata),
                    to: self.print(transfer.to, shown.to, &mut metadata),
                    value: amount_if(shown.amounts, transfer.value),
                    block_number: row.block_number,
                    timestamp: row.timestamp,
                    transfer_type: transfer_type(transfer),
                    token_type: token_type(transfer.standard),
                    token_id: transfer.token_id.filter(|_| shown.amounts).map(|id| id.to_string()),
                    is_internal: false,
                    address_metadata: metadata,
                });
            }
            tokio::task::yield_now().await;
        }
        Ok(transfers)
    }

    /// The internal transactions with these ids, in their order.
    ///
    /// # Errors
    /// As [`Self::transactions`].
    pub(crate) async fn frames(&self, ids: &[RowId]) -> Result<Vec<InternalTransaction>, ExplorerError> {
        let selected = self.rows(Space::Frames)?;
        let mut frames = Vec::with_capacity(ids.len());
        // A transaction may have tens of thousands: other requests get their turn (HD36).
        for ids in ids.chunks(CHUNK) {
            let rows = self.reader.get_frames(ids).await?;
            let parents = self.parents(rows.iter().map(|row| row.transaction_id)).await?;
            let viewer = self.viewer();
            for row in &rows {
                let frame = &row.row;
                let sides = FrameEntry {
                    from: frame.from,
                    to: frame.to,
                };
                let shown = viewer.frame_entry(&parents.get(row.transaction_id)?.entry(), &sides);
                let shown = shown.ok_or(ExplorerError::Contradiction(Space::Frames))?;
                self.note_audited(shown.is_audited);
                let mut metadata = AddressMetadata::new();
                let position = self.count_before_in_transaction(&selected, row.transaction_id, row.id)?;
                frames.push(InternalTransaction {
                    tx_hash: hash_if(shown.tx_hash, row.transaction_hash),
                    block_number: row.block_number,
                    trace_address: position.to_string(),
                    from: self.print(frame.from, shown.from, &mut metadata),
                    to: (frame.to.zip(shown.to)).map(|(to, shown)| self.print(to, shown, &mut metadata)),
                    value: amount_if(shown.content.value, moved_value(frame)),
                    gas: frame.gas,
                    gas_used: frame.gas_used,
                    input: shown.content.payload.then(|| bytes(&frame.input)),
                    output: shown.content.payload.then(|| bytes(&frame.output)),
                    call_type: call_type(frame.call_type),
                    error: frame.error.clone().filter(|_| shown.content.payload),
                    timestamp: row.timestamp,
                    address_metadata: metadata,
                });
            }
            tokio::task::yield_now().await;
        }
        Ok(frames)
    }

    /// The logs with these ids that are shown, in their order. Each has the number of shown logs before it in its
    /// transaction, so the candidates among these are evaluated, too.
    ///
    /// # Errors
    /// [`ExplorerError::Contradiction`] if a log that was selected for certain is not shown; any error of the store.
    pub(crate) async fn logs(&self, ids: &[RowId]) -> Result<Vec<(RowId, Log)>, ExplorerError> {
        let (certain, possible) = (self.rows(Space::Logs)?, self.possible_rows(Space::Logs)?);
        let candidates = possible.difference(&certain);
        let mut needed: BTreeSet<RowId> = ids.iter().copied().collect();
        for id in ids {
            needed.extend(candidates.rows_in(self.logs_of_same_transaction(*id)?.start..id.0));
        }
        let needed: Vec<RowId> = needed.into_iter().collect();
        let mut shown = BTreeMap::new();
        for needed in needed.chunks(CHUNK) {
            for log in self.evaluated_logs(needed, &certain).await? {
                shown.insert(log.row.id, log);
            }
            // Long logs take milliseconds each: other requests get their turn (HD36).
            tokio::task::yield_now().await;
        }
        let mut logs = Vec::with_capacity(ids.len());
        for (index, id) in ids.iter().enumerate() {
            if index % YIELD_EVERY == 0 {
                tokio::task::yield_now().await;
            }
            if let Some(log) = shown.get(id) {
                let before = self.logs_of_same_transaction(*id)?.start..id.0;
                let evaluated = shown.range(RowId(before.start)..*id);
                let evaluated = evaluated.filter(|(row, _)| candidates.contains(**row)).count() as u64;
                logs.push((*id, write_log(log, certain.count_in(before) + evaluated)));
            }
        }
        Ok(logs)
    }

    /// Those of these logs that are shown, and of which `is_wanted` holds as they are shown.
    ///
    /// # Errors
    /// As [`Self::logs`].
    pub(crate) async fn shown_among(
        &self,
        ids: &[RowId],
        is_wanted: impl Fn(&LogVisibility, &[B256]) -> bool,
    ) -> Result<Vec<RowId>, ExplorerError> {
        let certain = self.rows(Space::Logs)?;
        let mut shown = Vec::new();
        for ids in ids.chunks(CHUNK) {
            let logs = self.evaluated_logs(ids, &certain).await?;
            let wanted = logs
                .iter()
                .filter(|log| is_wanted(&log.visibility, &log.row.row.topics));
            shown.extend(wanted.map(|log| log.row.id));
        }
        Ok(shown)
    }

    fn logs_of_same_transaction(&self, log: RowId) -> Result<std::ops::Range<u64>, ExplorerError> {
        let range = self.index(|postings| {
            let transaction = postings.transaction_of(Space::Logs, log)?;
            Some(postings.rows_of_transaction(Space::Logs, transaction))
        })?;
        range.ok_or(ExplorerError::Internal("a log belongs to no transaction"))
    }

    /// Reads logs and evaluates them, and leaves out those that are not shown.
    async fn evaluated_logs(&self, ids: &[RowId], certain: &RowSet) -> Result<Vec<ShownLog>, ExplorerError> {
        let rows = self.reader.get_logs(ids).await?;
        let parents = self.parents(rows.iter().map(|row| row.transaction_id)).await?;
        let viewer = self.viewer();
        let mut judge = LogViewer::new(&viewer);
        let mut shown = Vec::with_capacity(rows.len());
        for row in rows {
            let entry = parents.get(row.transaction_id)?.entry();
            let parent = &entry.row;
            let roles = TransactionRoles::new(&viewer, row.transaction_hash, Some((parent.from, parent.to)));
            let log = LogRow {
                emitter: row.row.address,
                tx_hash: row.transaction_hash,
                topics: &row.row.topics,
                data: LogData::Bytes(&row.row.data),
                moment: Moment::Block(row.block_number),
            };
            let visibility = judge.log(&log, roles);
            let visibility = visibility.map_err(|_| ExplorerError::Internal("the data of a log is malformed"))?;
            if visibility != LogVisibility::Dropped {
                let tx_hash = viewer.shows_hash_of(&entry);
                shown.push(ShownLog {
                    row,
                    visibility,
                    tx_hash,
                });
            } else if certain.contains(row.id) {
                return Err(ExplorerError::Contradiction(Space::Logs));
            }
        }
        Ok(shown)
    }

    /// The rows of a transaction in another space, the oldest first, as far as the viewer sees them.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn rows_in_transaction(&self, rows: &RowSet, transaction: RowId) -> Result<Vec<RowId>, ExplorerError> {
        let range = self.index(|postings| postings.rows_of_transaction(rows.space(), transaction))?;
        Ok(range.map(RowId).filter(|row| rows.contains(*row)).collect())
    }

    fn count_in_transaction(&self, rows: &RowSet, transaction: RowId) -> Result<u64, ExplorerError> {
        let range = self.index(|postings| postings.rows_of_transaction(rows.space(), transaction))?;
        Ok(rows.count_in(range))
    }

    fn count_before_in_transaction(&self, rows: &RowSet, transaction: RowId, row: RowId) -> Result<u64, ExplorerError> {
        let range = self.index(|postings| postings.rows_of_transaction(rows.space(), transaction))?;
        Ok(rows.count_in(range.start..row.0))
    }

    /// The number of these rows in the block before this one.
    fn shown_before(&self, rows: &RowSet, block: u64, row: RowId) -> Result<u64, ExplorerError> {
        let range = self.index(|postings| postings.ids_in_blocks(rows.space(), block_range(block)))?;
        Ok(rows.count_in(range.start..row.0))
    }

    /// The text of an address. Notes its reason if it is printed in clear (R11).
    pub(crate) fn print(&self, address: Address, shown: AddressVisibility, metadata: &mut AddressMetadata) -> String {
        match shown.text {
            AddressText::Private => PRIVATE.to_owned(),
            AddressText::Alias(grant) => {
                let alias = self.state.aliases.alias(grant, address);
                alias.unwrap_or_else(|| PRIVATE.to_owned())
            }
            AddressText::Clear => {
                let text = lower(address);
                if let Some(reason) = shown.metadata() {
                    metadata.entry(text.clone()).or_insert(reason.as_str());
                }
                text
            }
        }
    }
}

fn write_log(log: &ShownLog, number: u64) -> Log {
    let row = &log.row;
    let (masked, data) = match &log.visibility {
        LogVisibility::Masked { topics, data } => (*topics, data.as_deref()),
        LogVisibility::Whole | LogVisibility::Dropped => (0, None),
    };
    let topic = |position: usize| {
        let topic = row.row.topics.get(position)?;
        let is_masked = masked >> position & 1 == 1;
        Some(hash(if is_masked { B256::ZERO } else { *topic }))
    };
    Log {
        tx_hash: hash_if(log.tx_hash, row.transaction_hash),
        log_index: number,
        address: lower(row.row.address),
        topic0: topic(0),
        topic1: topic(1),
        topic2: topic(2),
        topic3: topic(3),
        data: bytes(data.unwrap_or(&row.row.data)),
        block_number: row.block_number,
        timestamp: row.timestamp,
        removed: false,
    }
}

fn transfer_entry(transfer: &chain::TokenTransfer) -> TransferEntry {
    TransferEntry {
        token: transfer.token,
        from: transfer.from,
        to: transfer.to,
    }
}

/// The categories that follow from what is shown. Those of hidden members would tell of them.
pub(crate) fn categories(
    transaction: &chain::Transaction,
    shows_value: bool,
    shows_payload: bool,
    transfers: u64,
) -> Vec<&'static str> {
    let mut categories = Vec::new();
    let has_input = !transaction.input.is_empty();
    if shows_value && shows_payload && transaction.value > U256::ZERO && !has_input {
        categories.push("coin_transfer");
    }
    if transaction.to.is_none() && transaction.success {
        categories.push("contract_creation");
    }
    if transaction.to.is_some() && shows_payload && transaction.input.len() >= 4 {
        categories.push("contract_call");
    }
    if transfers > 0 {
        categories.push("token_transfer");
    }
    categories
}

pub(crate) fn transfer_type(transfer: &chain::TokenTransfer) -> &'static str {
    if transfer.from.is_zero() {
        "mint"
    } else if transfer.to.is_zero() {
        "burn"
    } else {
        "transfer"
    }
}

pub(crate) const fn token_type(standard: TokenStandard) -> &'static str {
    match standard {
        TokenStandard::Erc20 => "ERC-20",
        TokenStandard::Erc721 => "ERC-721",
        TokenStandard::Erc1155 => "ERC-1155",
    }
}

/// The amount that a frame moves. For a `DELEGATECALL`, which moves nothing, nodes report the value of the frame or of
/// the transaction that it runs in: that is another row's.
fn moved_value(frame: &chain::Frame) -> U256 {
    match frame.call_type {
        CallType::DelegateCall => U256::ZERO,
        CallType::Call
        | CallType::StaticCall
        | CallType::CallCode
        | CallType::Create
        | CallType::Create2
        | CallType::SelfDestruct => frame.value,
    }
}

pub(crate) const fn call_type(call: CallType) -> &'static str {
    match call {
        CallType::Call => "CALL",
        CallType::StaticCall => "STATICCALL",
        CallType::DelegateCall => "DELEGATECALL",
        CallType::CallCode => "CALLCODE",
        CallType::Create => "CREATE",
        CallType::Create2 => "CREATE2",
        CallType::SelfDestruct => "SELFDESTRUCT",
    }
}

/// An address in lower-case hex.
pub(crate) fn lower(address: Address) -> String {
    bytes(address.as_slice())
}

/// A hash in hex.
pub(crate) fn hash(hash: B256) -> String {
    bytes(hash.as_slice())
}

/// Bytes in hex.
pub(crate) fn bytes(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// A time in seconds as RFC 3339.
pub(crate) fn time(seconds: i64) -> String {
    Timestamp::from_secs(seconds).to_rfc3339()
}

fn hash_if(is_shown: bool, shown: B256) -> String {
    if is_shown { hash(shown) } else { PRIVATE.to_owned() }
}

/// An amount as a decimal number, or nothing.
fn amount_if(is_shown: bool, amount: U256) -> String {
    if is_shown { amount.to_string() } else { String::new() }
}
