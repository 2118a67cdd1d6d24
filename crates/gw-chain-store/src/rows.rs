//! The rows of the chain: what the indexer hands over for a block, and what the store gives back.
//!
//! A row contains only what the chain says about it. The rows of a block are nested in [`BlockData`], so no row can
//! name a transaction or block that it does not belong to. Rows that were read from the store are wrapped in a type
//! that adds their position on the chain: [`BlockRow`], [`TransactionRow`], [`ChainRow`].
//!
//! Ids of rows count rows that a viewer may not see. They leave the process in no answer, cursor or log line.

use gw_postings::{BlockRows, FrameParties, LogParties, RowId, Space, TransactionRows, TransferParties};
use gw_types::{Address, B256, Bytes, Timestamp, U256};
use std::ops::Range;

/// A block with all its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockData {
    /// The header.
    pub block: Block,
    /// The transactions in the order of their index.
    pub transactions: Vec<TransactionData>,
    /// The contracts that the block created, as they are at its end. At most one per address.
    pub contracts: Vec<Contract>,
    /// The contracts of earlier blocks whose proxy changed, as they are at the end of the block. At most one per
    /// address.
    pub proxy_changes: Vec<ProxyChange>,
}

/// A transaction with the rows that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionData {
    /// The transaction.
    pub transaction: Transaction,
    /// The logs in the order of their index.
    pub logs: Vec<Log>,
    /// The token transfers in the order of their logs and of their position in the log.
    pub transfers: Vec<TokenTransfer>,
    /// The internal transactions in the order of the trace, without the top frame. Empty while
    /// [`Block::frames_complete`] is false.
    pub frames: Vec<Frame>,
}

/// The header of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number.
    pub number: u64,
    /// The hash.
    pub hash: B256,
    /// The hash of the block before it.
    pub parent_hash: B256,
    /// Seconds since 1970, as in the header.
    pub timestamp: i64,
    /// The gas limit.
    pub gas_limit: u64,
    /// The gas that all transactions used.
    pub gas_used: u64,
    /// The base fee per gas in wei; `None` before EIP-1559.
    pub base_fee_per_gas: Option<U256>,
    /// The difficulty.
    pub difficulty: U256,
    /// The sum of all difficulties up to this block; `None` if the node does not report it.
    pub total_difficulty: Option<U256>,
    /// The nonce of the header as a big-endian number.
    pub nonce: u64,
    /// The recipient of the fees.
    pub miner: Address,
    /// The extra data of the header.
    pub extra_data: Bytes,
    /// The root of the state.
    pub state_root: B256,
    /// The root of the transactions.
    pub transactions_root: B256,
    /// The root of the receipts.
    pub receipts_root: B256,
    /// Whether the block was traced. If not, its frames are unknown, not absent.
    pub frames_complete: bool,
}

/// A block by number and hash: the same number may stand for another block after a reorganization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockNumHash {
    /// The number.
    pub number: u64,
    /// The hash.
    pub hash: B256,
}

/// A transaction and its receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The hash.
    pub hash: B256,
    /// The sender.
    pub from: Address,
    /// The recipient; `None` for a deployment.
    pub to: Option<Address>,
    /// The contract that a successful deployment created.
    pub created_contract: Option<Address>,
    /// The amount in wei.
    pub value: U256,
    /// The gas limit.
    pub gas_limit: u64,
    /// The gas that was used.
    pub gas_used: u64,
    /// The price per gas that was paid, in wei.
    pub effective_gas_price: U256,
    /// The highest price per gas in wei (EIP-1559); `None` for other types.
    pub max_fee_per_gas: Option<U256>,
    /// The highest tip per gas in wei (EIP-1559); `None` for other types.
    pub max_priority_fee_per_gas: Option<U256>,
    /// The nonce of the sender.
    pub nonce: u64,
    /// The type (EIP-2718).
    pub transaction_type: u8,
    /// The calldata, or the creation code.
    pub input: Bytes,
    /// Whether it succeeded, according to the receipt.
    pub success: bool,
    /// The error of the top frame.
    pub error: Option<String>,
    /// The decoded reason of a revert.
    pub revert_reason: Option<String>,
}

/// An event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The index in the block.
    pub index: u32,
    /// The contract that emitted it.
    pub address: Address,
    /// At most four topics.
    pub topics: Vec<B256>,
    /// The data.
    pub data: Bytes,
}

/// A token transfer: one per moved token id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTransfer {
    /// The index of its log in the block.
    pub log_index: u32,
    /// The position in the batch of an ERC-1155 `TransferBatch`, else 0.
    pub batch_position: u32,
    /// The token contract.
    pub token: Address,
    /// The sender of the tokens; the zero address for a mint.
    pub from: Address,
    /// The recipient of the tokens; the zero address for a burn.
    pub to: Address,
    /// The amount; 1 for ERC-721.
    pub value: U256,
    /// The token id; `None` for ERC-20.
    pub token_id: Option<U256>,
    /// The standard according to the form of the log.
    pub standard: TokenStandard,
}

/// A token standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenStandard {
    /// Fungible tokens.
    Erc20,
    /// Non-fungible tokens.
    Erc721,
    /// Several tokens in one contract.
    Erc1155,
}

/// An internal transaction: a frame below the top frame of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The position in the trace: the index in each parent frame.
    pub trace_address: Vec<u32>,
    /// The instruction that made it.
    pub call_type: CallType,
    /// The caller.
    pub from: Address,
    /// The called address, or the created contract; `None` for a failed creation.
    pub to: Option<Address>,
    /// The amount in wei.
    pub value: U256,
    /// The gas limit.
    pub gas: u64,
    /// The gas that was used.
    pub gas_used: u64,
    /// The calldata, or the creation code.
    pub input: Bytes,
    /// The returned data, or the created code.
    pub output: Bytes,
    /// The error.
    pub error: Option<String>,
}

/// The instruction that made a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallType {
    /// `CALL`.
    Call,
    /// `STATICCALL`.
    StaticCall,
    /// `DELEGATECALL`.
    DelegateCall,
    /// `CALLCODE`.
    CallCode,
    /// `CREATE`.
    Create,
    /// `CREATE2`.
    Create2,
    /// `SELFDESTRUCT`.
    SelfDestruct,
}

/// A contract at the end of the block that created it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The address.
    pub address: Address,
    /// The account whose code or transaction created it; `None` for a contract of the genesis block.
    pub creator: Option<Address>,
    /// The hash of the transaction that created it; `None` for a contract of the genesis block.
    pub creation_transaction: Option<B256>,
    /// The Keccak-256 hash of the code.
    pub code_hash: B256,
    /// The code.
    pub code: Bytes,
    /// The kind of proxy; `None` if it is no proxy.
    pub proxy: Option<Proxy>,
}

/// A contract that runs the code of another contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Proxy {
    /// How it finds the implementation.
    pub kind: ProxyKind,
    /// The contract with the code; `None` if none is set.
    pub implementation: Option<Address>,
}

/// How a proxy finds its implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyKind {
    /// A minimal proxy, whose code contains the implementation (EIP-1167).
    Minimal,
    /// The implementation slot (EIP-1967).
    ImplementationSlot,
    /// A beacon that names the implementation (EIP-1967).
    Beacon,
    /// The logic slot (EIP-1822).
    LogicSlot,
}

/// A change of a contract's proxy after its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProxyChange {
    /// The contract.
    pub address: Address,
    /// The proxy after the change; `None` if it is none any more.
    pub proxy: Option<Proxy>,
}

/// A token contract. Its first transfer creates the row; the metadata is read later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token contract.
    pub address: Address,
    /// The standard of its first transfer.
    pub standard: TokenStandard,
    /// What is known about the metadata.
    pub metadata: MetadataState,
    /// The total supply; `None` while it was not read, and if the contract does not report it.
    pub total_supply: Option<U256>,
}

/// What is known about the metadata of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataState {
    /// Not read yet.
    Pending,
    /// The contract does not answer the metadata calls.
    Unavailable,
    /// What the contract answered.
    Known(TokenMetadata),
}

/// The metadata of a token, as its contract reports it. Untrusted text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenMetadata {
    /// The name.
    pub name: Option<String>,
    /// The symbol.
    pub symbol: Option<String>,
    /// The number of decimals.
    pub decimals: Option<u8>,
}

/// A block that was read from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// The header.
    pub block: Block,
    /// The ids of its rows.
    pub ids: BlockIds,
}

/// The ids of the rows of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockIds {
    /// Its transactions.
    pub transactions: Range<u64>,
    /// Its token transfers.
    pub transfers: Range<u64>,
    /// Its internal transactions.
    pub frames: Range<u64>,
    /// Its logs.
    pub logs: Range<u64>,
}

impl BlockIds {
    /// The ids of one space.
    pub fn of(&self, space: Space) -> Range<u64> {
        match space {
            Space::Transactions => self.transactions.clone(),
            Space::Transfers => self.transfers.clone(),
            Space::Frames => self.frames.clone(),
            Space::Logs => self.logs.clone(),
        }
    }
}

/// A transaction that was read from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRow {
    /// Its id.
    pub id: RowId,
    /// The number of its block.
    pub block_number: u64,
    /// The timestamp of its block.
    pub timestamp: i64,
    /// The index in its block.
    pub index: u32,
    /// The transaction.
    pub transaction: Transaction,
}

/// A log, token transfer or internal transaction that was read from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRow<T> {
    /// Its id.
    pub id: RowId,
    /// The number of its block.
    pub block_number: u64,
    /// The timestamp of its block.
    pub timestamp: i64,
    /// The id of its transaction.
    pub transaction_id: RowId,
    /// The hash of its transaction.
    pub transaction_hash: B256,
    /// The row.
    pub row: T,
}

/// A contract that was read from the store, with the newest change of its proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractRow {
    /// The number of the block that created it.
    pub block_number: u64,
    /// The timestamp of that block.
    pub timestamp: i64,
    /// The contract.
    pub contract: Contract,
}

/// A token that was read from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// The number of the block with its first transfer.
    pub block_number: u64,
    /// The timestamp of that block.
    pub timestamp: i64,
    /// The number of addresses with a positive balance, as far as balances were read.
    pub holder_count: u64,
    /// The token.
    pub token: Token,
}

/// The balance of an address in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBalance {
    /// The token contract.
    pub token: Address,
    /// The address.
    pub holder: Address,
    /// The token id of an ERC-1155 token, else `None`.
    pub token_id: Option<U256>,
    /// The amount.
    pub balance: U256,
    /// The number of the block at which it was read.
    pub block_number: u64,
}

/// The balance of an address in wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The amount in wei.
    pub balance: U256,
    /// The number of the block at which it was read.
    pub block_number: u64,
}

impl Block {
    /// Its number and hash.
    pub const fn num_hash(&self) -> BlockNumHash {
        BlockNumHash {
            number: self.number,
            hash: self.hash,
        }
    }
}

impl BlockData {
    /// The addresses of the rows, for the posting index.
    pub fn posting_rows(&self) -> BlockRows {
        BlockRows {
            number: self.block.number,
            time: Timestamp::from_secs(self.block.timestamp),
            transactions: self.transactions.iter().map(TransactionData::posting_rows).collect(),
        }
    }
}

impl TransactionData {
    fn posting_rows(&self) -> TransactionRows {
        TransactionRows {
            from: self.transaction.from,
            to: self.transaction.to,
            transfers: self.transfers.iter().map(TokenTransfer::parties).collect(),
            frames: self.frames.iter().map(Frame::parties).collect(),
            logs: self.logs.iter().map(Log::parties).collect(),
        }
    }
}

impl TokenTransfer {
    fn parties(&self) -> TransferParties {
        TransferParties {
            token: self.token,
            from: self.from,
            to: self.to,
        }
    }
}

impl Frame {
    fn parties(&self) -> FrameParties {
        FrameParties {
            from: self.from,
            to: self.to,
        }
    }
}

impl Log {
    fn parties(&self) -> LogParties {
        LogParties::new(self.address, &self.topics)
    }
}
