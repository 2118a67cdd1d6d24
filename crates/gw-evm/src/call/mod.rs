//! Typed calls: the complete meaning of a request, and the only source of upstream requests.

mod block;
mod logs;
mod object;
mod params;
mod parse;
mod passthrough;
mod subscription;

pub use parse::{ChainRules, ParsedCall, parse};
pub use passthrough::{AddressInParams, Passthrough, passthrough};
pub use subscription::{SubscriptionCall, SubscriptionId, Topic};

use crate::method::Method;
use alloy_primitives::{Address, B256, Bytes, U256};

/// A block named by tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockTag {
    /// The head that the gateway follows; also the default for an absent block parameter (decision 41).
    Latest,
    /// The pending state of the node; means `latest` in simulations (HD11).
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
    /// The head that the gateway follows.
    pub const LATEST: Self = Self::Tag(BlockTag::Latest);
}

/// The members of a call object that affect execution (spec/20 X2). `from` is `None` if absent, null or zero
/// (decision 38). `input` is the value of `input`, of `data`, or of both if they are equal (J5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallRequest {
    /// The sender, if the caller names one.
    pub from: Option<Address>,
    /// The target; `None` creates a contract.
    pub to: Option<Address>,
    /// Value in wei.
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
    /// Chain id, if the caller names one.
    pub chain_id: Option<u64>,
    /// EIP-7702 authorizations.
    pub authorization_list: Vec<alloy_eips::eip7702::SignedAuthorization>,
}

impl CallRequest {
    /// The function selector; `None` if the calldata has fewer than four bytes (F2).
    pub fn selector(&self) -> Option<[u8; 4]> {
        self.input.first_chunk::<4>().copied()
    }
}

/// The kind of an execution without effect.
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

/// An execution without effect, such as `eth_call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// The method.
    pub kind: SimulationKind,
    /// The call object.
    pub request: CallRequest,
    /// The block whose state it runs on.
    pub block: BlockId,
}

impl Simulation {
    /// Whether this estimates or traces a plain payment. An `eth_call` without data is not a payment, because its
    /// result is the output of code.
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

/// The blocks that a log filter covers.
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

/// A reference to one transaction.
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
    /// The bytes that are forwarded.
    pub raw: Bytes,
    /// keccak256 of the bytes.
    pub hash: B256,
    /// Transaction type: 0, 1, 2 or 4.
    pub tx_type: u8,
    /// The sender recovered from the signature.
    pub sender: Address,
    /// Its nonce.
    pub nonce: u64,
    /// The fields of the transaction as a call object, with `from` and `nonce`.
    pub request: CallRequest,
}

/// `eth_sendTransaction`: the node signs with its own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRequest {
    /// The mandatory sender.
    pub from: Address,
    /// The call object.
    pub request: CallRequest,
}

/// A parsed call. The variants are the closed set of operations of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Methods without parameters: class META, and class CHAIN except the next two variants.
    Plain(Method),
    /// `eth_feeHistory`
    FeeHistory {
        /// How many blocks.
        count: u64,
        /// Newest block of the range.
        newest: BlockId,
        /// Reward percentiles, if requested.
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
    /// `eth_getStorageAt`
    Storage {
        /// The account.
        address: Address,
        /// The slot.
        slot: B256,
        /// Whether the caller wrote the slot with all 32 bytes.
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
        /// Whether the caller requests whole transactions instead of hashes.
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
    Subscription(SubscriptionCall),
    /// A custom method that passes through unexamined (spec/20 N3).
    Passthrough(Box<Passthrough>),
}
