//! A call as the gateway understands it: typed, complete, and the only thing an upstream body is built from.

mod block;
mod live;
mod logs;
mod object;
mod params;
mod parse;
mod unexamined;

pub use live::{Live, LiveId, Topic};
pub use parse::{ChainRules, ParsedCall, parse};
pub use unexamined::{Mention, Unexamined, unexamined};

use crate::method::Method;
use alloy_primitives::{Address, B256, Bytes, U256};

/// A block named by tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockTag {
    /// The followed head; also an absent block parameter (decision 41).
    Latest,
    /// The node's pending state; means `latest` in simulations (HD11).
    Pending,
    /// The newest safe block.
    Safe,
    /// The newest finalized block.
    Finalized,
    /// The genesis block; counts as history (H1).
    Earliest,
}

impl BlockTag {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Pending => "pending",
            Self::Safe => "safe",
            Self::Finalized => "finalized",
            Self::Earliest => "earliest",
        }
    }
}

/// A block parameter: tag, number, or hash (EIP-1898).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockId {
    /// By tag.
    Tag(BlockTag),
    /// By number.
    Number(u64),
    /// By hash.
    Hash {
        /// The block hash.
        hash: B256,
        /// EIP-1898 `requireCanonical`.
        require_canonical: bool,
    },
}

impl BlockId {
    /// The followed head.
    pub const LATEST: Self = Self::Tag(BlockTag::Latest);
}

/// The execution-relevant members of a call object (spec/20 X2). `from` is `None` for absent, null and zero
/// (decision 38); `data` and `input` were equal or one of them (J5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallRequest {
    /// The sender, if one is named.
    pub from: Option<Address>,
    /// The target; `None` creates a contract.
    pub to: Option<Address>,
    /// Wei sent along.
    pub value: Option<U256>,
    /// Calldata or init code.
    pub input: Bytes,
    /// Gas limit.
    pub gas: Option<u64>,
    /// Legacy gas price.
    pub gas_price: Option<u128>,
    /// EIP-1559 fee cap.
    pub max_fee_per_gas: Option<u128>,
    /// EIP-1559 tip cap.
    pub max_priority_fee_per_gas: Option<u128>,
    /// Sender's nonce.
    pub nonce: Option<u64>,
    /// EIP-2930 access list.
    pub access_list: Option<alloy_eips::eip2930::AccessList>,
    /// Chain id, if named.
    pub chain_id: Option<u64>,
    /// EIP-7702 authorizations.
    pub authorization_list: Vec<alloy_eips::eip7702::SignedAuthorization>,
}

impl CallRequest {
    /// The function selector of the effective calldata, if it is long enough (F2).
    pub fn selector(&self) -> Option<[u8; 4]> {
        self.input.first_chunk::<4>().copied()
    }
}

/// Which execution without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SimulationKind {
    /// `eth_call`
    Call,
    /// `eth_estimateGas`
    EstimateGas,
    /// `eth_createAccessList`
    CreateAccessList,
    /// `debug_traceCall`, callTracer only (decision 6)
    TraceCall,
}

/// `eth_call` and its kin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// Which method.
    pub kind: SimulationKind,
    /// The call object.
    pub request: CallRequest,
    /// The block whose state it runs on.
    pub block: BlockId,
}

impl Simulation {
    /// Whether it asks what a plain payment would cost or do. As `eth_call` a call without data is none: its answer is that
    /// of code.
    pub fn is_payment(&self) -> bool {
        let is_run = match self.kind {
            SimulationKind::EstimateGas | SimulationKind::TraceCall => true,
            SimulationKind::Call | SimulationKind::CreateAccessList => false,
        };
        is_run && self.request.input.is_empty()
    }
}

/// One position of a topic criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicFilter {
    /// Matches anything (`null` or an empty list).
    Any,
    /// Matches any of these words.
    OneOf(Vec<B256>),
}

/// `eth_getLogs` criteria.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter {
    /// Emitters, distinct; empty when the caller named none.
    pub addresses: Vec<Address>,
    /// Up to four positions.
    pub topics: Vec<TopicFilter>,
    /// A block hash, or a range.
    pub range: LogRange,
}

/// Which blocks a log filter covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRange {
    /// One block by hash.
    Hash(B256),
    /// From and to, both included.
    Range {
        /// First block.
        from: BlockId,
        /// Last block.
        to: BlockId,
    },
}

/// One transaction, named in one of three ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionRef {
    /// By its hash.
    Hash(B256),
    /// By block hash and index.
    BlockHashAndIndex(B256, u64),
    /// By block number or tag and index.
    BlockNumberAndIndex(BlockId, u64),
    /// By sender and nonce.
    SenderAndNonce(Address, u64),
}

/// A decoded, canonical signed transaction with its recovered sender (W1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    /// The bytes as they are forwarded.
    pub raw: Bytes,
    /// keccak256 of the bytes.
    pub hash: B256,
    /// Transaction type: 0, 1, 2 or 4.
    pub tx_type: u8,
    /// The sender recovered from the signature.
    pub sender: Address,
    /// Its nonce.
    pub nonce: u64,
    /// The same fields as a call object, `from` and `nonce` set.
    pub request: CallRequest,
}

/// `eth_sendTransaction`: the node holds the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRequest {
    /// The mandatory sender.
    pub from: Address,
    /// The call object.
    pub request: CallRequest,
}

/// A parsed call: the closed set of things the gateway can do.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Methods without parameters: META, and CHAIN but for the two below.
    Plain(Method),
    /// `eth_feeHistory`
    FeeHistory {
        /// How many blocks.
        count: u64,
        /// Newest block of the range.
        newest: BlockId,
        /// Reward percentiles, if asked for.
        percentiles: Option<Vec<f64>>,
    },
    /// `web3_sha3`, answered locally.
    Sha3(Bytes),
    /// `eth_getBalance`
    Balance(Address, BlockId),
    /// `eth_getTransactionCount`
    Nonce(Address, BlockId),
    /// `eth_getCode`
    Code(Address, BlockId),
    /// `eth_getStorageAt`; `full_word` tells whether the slot came as 32 bytes.
    Storage {
        /// The account.
        address: Address,
        /// The slot.
        slot: B256,
        /// Whether the caller wrote all 32 bytes.
        full_word: bool,
        /// The block.
        block: BlockId,
    },
    /// `eth_getProof`
    Proof {
        /// The account.
        address: Address,
        /// Storage keys.
        slots: Vec<B256>,
        /// The block.
        block: BlockId,
    },
    /// SIM and `debug_traceCall`.
    Simulate(Box<Simulation>),
    /// `eth_getLogs`
    Logs(LogFilter),
    /// The transaction getters.
    Transaction(TransactionRef),
    /// `eth_getTransactionReceipt`
    Receipt(B256),
    /// `eth_getBlockByHash`, `eth_getBlockByNumber`
    Block {
        /// Which block.
        block: BlockId,
        /// Whole transactions or hashes.
        full: bool,
    },
    /// The two transaction counts.
    BlockTransactionCount(BlockId),
    /// `eth_getBlockReceipts`
    BlockReceipts(BlockId),
    /// The uncle counts: answered locally with zero.
    UncleCount,
    /// The uncles: answered locally with null.
    Uncle,
    /// `eth_sendRawTransaction`
    SendRaw(Box<SignedTransaction>),
    /// `eth_sendTransaction`
    Send(Box<SendRequest>),
    /// `debug_traceTransaction`
    TraceTransaction(B256),
    /// Filters and subscriptions
    Live(Live),
    /// A method beside the registry that passes through (spec/20 N3).
    Unexamined(Box<Unexamined>),
}
