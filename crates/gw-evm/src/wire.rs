//! Encodes the requests to the node: canonical JSON from typed calls, pinned to one block.
//!
//! Invariant: no client text is copied. Every byte comes from a typed field (J5), and every execution names its
//! sender (decision 38). Passthrough calls are the exception: their values are the client's (N3).

use crate::{
    call::{BlockId, BlockTag, Call, CallRequest, LogFilter, LogRange, SimulationKind, TopicFilter, TransactionRef},
    method::Method,
};
use alloy_eips::{eip2930::AccessList, eip7702::SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, U256};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{Display, LowerHex, Write as _},
};

/// The block a call was resolved to (X3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pin {
    /// Block number.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
}

/// One JSON-RPC call to the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamCall {
    /// The method.
    pub method: Cow<'static, str>,
    /// The parameters, a JSON array.
    pub params: String,
}

impl UpstreamCall {
    /// Whether the node executes code that the parameters choose (HD26). Sends do not count, because they execute in
    /// a block.
    pub fn is_execution(&self) -> bool {
        const EXECUTIONS: [&str; 10] = [
            "eth_call",
            "eth_callBundle",
            "eth_callMany",
            "eth_createAccessList",
            "eth_estimateGas",
            "eth_simulateV1",
            "debug_traceCall",
            "debug_traceCallMany",
            "trace_call",
            "trace_callMany",
        ];
        EXECUTIONS.contains(&&*self.method)
    }
}

/// Encodes `call` at `pin`; `None` for calls that the gateway answers itself or from a trace.
///
/// State and simulation calls run at the pin, regardless of the block that the caller names. A `pending` nonce is the
/// only exception: it stays pending, and only its owner may ask for it. A pending balance would reveal blocks that
/// are not validated yet (HD28). Block, log and transaction getters keep the number or hash that the caller names;
/// `latest` and `pending` become the pin, and no range ends above the pin (HD2).
pub fn body(call: &Call, pin: Pin) -> Option<UpstreamCall> {
    Some(match call {
        Call::Plain(Method::Accounts | Method::Coinbase) => return None,
        Call::Plain(method) => upstream(method.as_str(), &[]),
        Call::FeeHistory {
            count,
            newest,
            percentiles,
        } => {
            let rewards = list(percentiles.iter().flatten());
            upstream("eth_feeHistory", &[hex(*count), range_end(*newest, pin), rewards])
        }
        Call::Balance(address, _) => upstream("eth_getBalance", &[hex(address), hash_param(pin.hash)]),
        Call::Nonce(address, block) => upstream("eth_getTransactionCount", &[hex(address), nonce_block(*block, pin)]),
        Call::Code(address, _) => upstream("eth_getCode", &[hex(address), hash_param(pin.hash)]),
        Call::Storage { address, slot, .. } => {
            upstream("eth_getStorageAt", &[hex(address), hex(slot), hash_param(pin.hash)])
        }
        Call::Proof { address, slots, .. } => upstream(
            "eth_getProof",
            &[hex(address), list(slots.iter().map(hex)), hash_param(pin.hash)],
        ),
        Call::Simulate(simulation) => match simulation.kind {
            // X4: sent only in addition to a trace, for nodes whose traces have no output.
            SimulationKind::Call => upstream(
                "eth_call",
                &[simulation_object(&simulation.request), hash_param(pin.hash)],
            ),
            // HD3: the gateway derives these answers from traces.
            SimulationKind::EstimateGas | SimulationKind::CreateAccessList | SimulationKind::TraceCall => return None,
        },
        Call::Logs(filter) => upstream("eth_getLogs", &[logs(filter, pin)]),
        Call::Transaction(which) => transaction(*which, pin),
        Call::Receipt(hash) => upstream("eth_getTransactionReceipt", &[hex(hash)]),
        // Always whole transactions: which of them the caller may see depends on the parties of each.
        Call::Block { block, .. } | Call::BlockTransactionCount(block) => match block_param(*block, pin) {
            BlockParam::Hash(hash) => upstream("eth_getBlockByHash", &[hex(hash), "true".to_owned()]),
            BlockParam::Number(number) => upstream("eth_getBlockByNumber", &[number, "true".to_owned()]),
        },
        Call::BlockReceipts(block) => match block_param(*block, pin) {
            BlockParam::Hash(hash) => upstream("eth_getBlockReceipts", &[hash_param(hash)]),
            BlockParam::Number(number) => upstream("eth_getBlockReceipts", &[number]),
        },
        Call::SendRaw(signed) => upstream("eth_sendRawTransaction", &[hex(&signed.raw)]),
        Call::Send(send) => {
            let mut request = send.request.clone();
            request.from = Some(send.from);
            upstream("eth_sendTransaction", &[object(&request, request.nonce)])
        }
        // The values are the caller's (N3), but the JSON text is written anew.
        Call::Passthrough(call) => UpstreamCall {
            method: Cow::Owned(call.method.clone()),
            params: list(call.params.iter()),
        },
        Call::Sha3(_) | Call::UncleCount | Call::Uncle | Call::TraceTransaction(_) | Call::Subscription(_) => {
            return None;
        }
    })
}

/// The request for the code of an account in the pending state of the node, which includes blocks that are not
/// validated yet. The result is for decisions only.
pub fn pending_code(address: Address) -> UpstreamCall {
    code(address, BlockId::Tag(BlockTag::Pending))
}

/// The request for the chain id of the node.
pub fn chain_id() -> UpstreamCall {
    upstream(Method::ChainId.as_str(), &[])
}

/// The request for the gas price that the node suggests.
pub fn gas_price() -> UpstreamCall {
    upstream(Method::GasPrice.as_str(), &[])
}

/// The request for a block without its transactions.
pub fn header(block: BlockId) -> UpstreamCall {
    block_by_id(block, false)
}

/// The request for a block with its transactions.
pub fn block(block: BlockId) -> UpstreamCall {
    block_by_id(block, true)
}

fn block_by_id(block: BlockId, with_transactions: bool) -> UpstreamCall {
    let (method, block) = match block {
        BlockId::Hash { hash, .. } => ("eth_getBlockByHash", hex(hash)),
        BlockId::Number(number) => ("eth_getBlockByNumber", hex(number)),
        BlockId::Tag(BlockTag::Earliest) => ("eth_getBlockByNumber", hex(0)),
        BlockId::Tag(named) => ("eth_getBlockByNumber", tag(tag_name(named))),
    };
    upstream(method, &[block, with_transactions.to_string()])
}

/// The request for all receipts of a block.
pub fn block_receipts(hash: B256) -> UpstreamCall {
    upstream("eth_getBlockReceipts", &[hash_param(hash)])
}

/// The request for the balance of an account at this block.
pub fn balance(address: Address, block: BlockId) -> UpstreamCall {
    upstream("eth_getBalance", &[hex(address), state_block(block)])
}

/// The request for the number of nonces that an account has used at this block.
pub fn nonce(address: Address, block: BlockId) -> UpstreamCall {
    upstream("eth_getTransactionCount", &[hex(address), state_block(block)])
}

/// The request for the code of an account at this block.
pub fn code(address: Address, block: BlockId) -> UpstreamCall {
    upstream("eth_getCode", &[hex(address), state_block(block)])
}

/// The request for one storage slot of an account at this block.
pub fn storage(address: Address, slot: B256, block: BlockId) -> UpstreamCall {
    upstream("eth_getStorageAt", &[hex(address), hex(slot), state_block(block)])
}

/// The request for a transaction, pending or mined.
pub fn transaction_by_hash(hash: B256) -> UpstreamCall {
    upstream("eth_getTransactionByHash", &[hex(hash)])
}

/// The request for the receipt of a transaction.
pub fn receipt(hash: B256) -> UpstreamCall {
    upstream("eth_getTransactionReceipt", &[hex(hash)])
}

/// Encodes `call` under `name`, a custom method that is an alias of `row` (N2). If the gateway derives the answer of
/// `row` from another upstream method, the request names that method, as it does for `row` itself.
pub fn body_as(call: &Call, pin: Pin, row: Method, name: &str) -> Option<UpstreamCall> {
    let upstream_call = body(&by_number(call, pin), pin)?;
    if upstream_call.method != row.as_str() {
        return Some(upstream_call);
    }
    Some(UpstreamCall {
        method: Cow::Owned(name.to_owned()),
        params: upstream_call.params,
    })
}

/// Replaces `latest` and `pending` by the number of the pinned block, for upstream methods that take no block hash.
fn by_number(call: &Call, pin: Pin) -> Call {
    let is_head = |block: &BlockId| matches!(block, BlockId::Tag(BlockTag::Latest | BlockTag::Pending));
    let number = BlockId::Number(pin.number);
    if let Call::Block { block, full } = call
        && is_head(block)
    {
        return Call::Block {
            block: number,
            full: *full,
        };
    }
    if let Call::Transaction(TransactionRef::BlockNumberAndIndex(block, index)) = call
        && is_head(block)
    {
        return Call::Transaction(TransactionRef::BlockNumberAndIndex(number, *index));
    }
    call.clone()
}

/// How a node returns the call tree and the touched accounts in one round trip (decision 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceForm {
    /// One call with the muxTracer.
    Mux,
    /// Both tracers as two elements of one batch.
    Batch,
}

/// The purpose of a trace; it determines the tracers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceScope {
    /// A simulation: call tree and touched accounts.
    Read,
    /// `eth_createAccessList`: call tree and touched accounts with their slots (HD3).
    AccessList,
    /// A send: as [`Self::Read`], with the state diff (HD15).
    Send,
    /// A mined send: as [`Self::Send`], with the slots that were read or written.
    Mined,
}

impl TraceScope {
    /// The scope, extended by the slots that were read or written.
    #[must_use]
    pub const fn with_slots(self) -> Self {
        match self {
            Self::Read | Self::AccessList => Self::AccessList,
            Self::Send | Self::Mined => Self::Mined,
        }
    }
}

/// Values that replace those of one account in an execution without effect. Absent parts keep the value of the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOverride {
    /// Its balance.
    pub balance: Option<U256>,
    /// Its nonce.
    pub nonce: Option<u64>,
    /// Its code.
    pub code: Option<Bytes>,
    /// Single slots.
    pub slots: BTreeMap<B256, B256>,
}

/// Differences between the state of the chain and the state on which an execution without effect runs. Changes by
/// transactions with a post-execution violation are undone (HD28), and accounts whose existence the gas costs would
/// reveal look new (RT9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateOverrides(BTreeMap<Address, AccountOverride>);

impl StateOverrides {
    /// Overrides of `accounts`.
    pub const fn new(accounts: BTreeMap<Address, AccountOverride>) -> Self {
        Self(accounts)
    }

    /// Adds accounts, and slots of accounts that are already overridden. Returns whether anything was added. Existing
    /// overrides win, because a run with these overrides reports the overridden values and not those of the chain.
    pub fn extend(&mut self, other: Self) -> bool {
        let mut is_new = false;
        for (address, account) in other.0 {
            match self.0.get_mut(&address) {
                None => {
                    is_new = true;
                    self.0.insert(address, account);
                }
                Some(existing) => {
                    for (slot, word) in account.slots {
                        existing.slots.entry(slot).or_insert_with(|| {
                            is_new = true;
                            word
                        });
                    }
                }
            }
        }
        is_new
    }

    /// The `stateOverrides` member of a tracer configuration, with a leading comma; empty without accounts.
    fn member(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut accounts = Members::new();
        for (address, account) in &self.0 {
            let slots = account.slots.iter().fold(Members::new(), |members, (slot, word)| {
                members.json(&format!("{slot:#x}"), hex(word))
            });
            let members = Members::new()
                .maybe("balance", account.balance.map(hex))
                .maybe("nonce", account.nonce.map(hex))
                .maybe("code", account.code.as_ref().map(hex))
                .maybe("stateDiff", (!account.slots.is_empty()).then(|| slots.end()));
            accounts = accounts.json(&format!("{address:#x}"), members.end());
        }
        format!(",\"stateOverrides\":{}", accounts.end())
    }
}

/// Number and time of the block in which a send would run (HD2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextBlock {
    /// Block number.
    pub number: u64,
    /// Block time in Unix seconds.
    pub timestamp: u64,
}

/// The calls that trace `request` on the state of `pin` with `overrides`, to be sent as one batch.
/// [`crate::trace::Trace::parse`] takes their results in the same order.
///
/// The nonce is left out: nodes run simulations at the sender's nonce, and some reject any other.
pub fn trace_batch(
    request: &CallRequest,
    pin: Pin,
    scope: TraceScope,
    form: TraceForm,
    next: Option<NextBlock>,
    overrides: &StateOverrides,
) -> Vec<UpstreamCall> {
    let block = next.map(|next| {
        let block = Members::new()
            .json("number", hex(next.number))
            .json("time", hex(next.timestamp))
            .end();
        format!(",\"blockOverrides\":{block}")
    });
    let overrides = format!("{}{}", block.unwrap_or_default(), overrides.member());
    let request = simulation_object(request);
    let call = |tracer: &&str| {
        upstream(
            "debug_traceCall",
            &[
                request.clone(),
                hash_param(pin.hash),
                format!("{{{tracer}{overrides}}}"),
            ],
        )
    };
    tracers(scope, form).iter().map(call).collect()
}

/// The calls that trace a mined transaction, as in [`trace_batch`].
pub fn trace_transaction(hash: B256, scope: TraceScope, form: TraceForm) -> Vec<UpstreamCall> {
    let call = |tracer: &&str| upstream("debug_traceTransaction", &[hex(hash), format!("{{{tracer}}}")]);
    tracers(scope, form).iter().map(call).collect()
}

/// The calls that trace every transaction of a mined block, as in [`trace_batch`]. [`crate::trace::transactions`]
/// splits their results by transaction.
pub fn trace_block(hash: B256, scope: TraceScope, form: TraceForm) -> Vec<UpstreamCall> {
    let call = |tracer: &&str| upstream("debug_traceBlockByHash", &[hex(hash), format!("{{{tracer}}}")]);
    tracers(scope, form).iter().map(call).collect()
}

/// The call for the call trees of all transactions of a mined block. [`crate::trace::transactions`] splits its result
/// by transaction, and [`crate::trace::CallTree`] parses the parts.
pub fn trace_block_calls(hash: B256) -> UpstreamCall {
    upstream("debug_traceBlockByHash", &[hex(hash), CALLS_WITHOUT_LOGS.to_owned()])
}

/// The call for the call tree of a mined transaction, for [`crate::trace::CallTree`].
pub fn trace_transaction_calls(hash: B256) -> UpstreamCall {
    upstream("debug_traceTransaction", &[hex(hash), CALLS_WITHOUT_LOGS.to_owned()])
}

/// Receipts already contain the logs.
const CALLS_WITHOUT_LOGS: &str = r#"{"tracer":"callTracer"}"#;
const CALLS: &str = r#""tracer":"callTracer","tracerConfig":{"withLog":true}"#;
/// `includeEmpty`: without it, some nodes leave out accounts without balance, nonce and code. Whether an access is
/// listed would then reveal whether the account is empty (HD6). Nodes without this option list such accounts anyway.
const TOUCHES: &str = r#""tracer":"prestateTracer","tracerConfig":{"disableStorage":true,"includeEmpty":true}"#;
const BOTH: &str = concat!(
    r#""tracer":"muxTracer","tracerConfig":{"callTracer":{"withLog":true},"#,
    r#""prestateTracer":{"disableStorage":true,"includeEmpty":true}}"#
);
/// As [`TOUCHES`], with the slots that were read or written.
const SLOTS: &str = r#""tracer":"prestateTracer","tracerConfig":{"includeEmpty":true}"#;
const BOTH_SLOTS: &str = concat!(
    r#""tracer":"muxTracer","tracerConfig":{"callTracer":{"withLog":true},"#,
    r#""prestateTracer":{"includeEmpty":true}}"#
);
/// `disableCode`: the code is already known from the touched accounts and the created frames.
const CHANGES: &str = r#""tracer":"prestateTracer","tracerConfig":{"diffMode":true,"disableCode":true}"#;

const fn tracers(scope: TraceScope, form: TraceForm) -> &'static [&'static str] {
    match (form, scope) {
        (TraceForm::Mux, TraceScope::Read) => &[BOTH],
        (TraceForm::Mux, TraceScope::AccessList) => &[BOTH_SLOTS],
        (TraceForm::Batch, TraceScope::AccessList) => &[CALLS, SLOTS],
        (TraceForm::Mux, TraceScope::Send) => &[BOTH, CHANGES],
        (TraceForm::Mux, TraceScope::Mined) => &[BOTH_SLOTS, CHANGES],
        (TraceForm::Batch, TraceScope::Mined) => &[CALLS, SLOTS, CHANGES],
        (TraceForm::Batch, TraceScope::Read) => &[CALLS, TOUCHES],
        (TraceForm::Batch, TraceScope::Send) => &[CALLS, TOUCHES, CHANGES],
    }
}

fn upstream(method: &'static str, params: &[String]) -> UpstreamCall {
    UpstreamCall {
        method: Cow::Borrowed(method),
        params: list(params.iter()),
    }
}

fn transaction(which: TransactionRef, pin: Pin) -> UpstreamCall {
    match which {
        TransactionRef::Hash(hash) => upstream("eth_getTransactionByHash", &[hex(hash)]),
        TransactionRef::BlockHashAndIndex(hash, index) => {
            upstream("eth_getTransactionByBlockHashAndIndex", &[hex(hash), hex(index)])
        }
        TransactionRef::BlockNumberAndIndex(block, index) => match block_param(block, pin) {
            BlockParam::Hash(hash) => upstream("eth_getTransactionByBlockHashAndIndex", &[hex(hash), hex(index)]),
            BlockParam::Number(number) => upstream("eth_getTransactionByBlockNumberAndIndex", &[number, hex(index)]),
        },
        TransactionRef::SenderAndNonce(sender, nonce) => {
            upstream("eth_getTransactionBySenderAndNonce", &[hex(sender), hex(nonce)])
        }
    }
}

fn logs(filter: &LogFilter, pin: Pin) -> String {
    let mut members = Members::new();
    members = match filter.range {
        LogRange::Hash(hash) => members.json("blockHash", hex(hash)),
        LogRange::Range { from, to } => members
            .json("fromBlock", number_param(from, pin))
            .json("toBlock", range_end(to, pin)),
    };
    if !filter.addresses.is_empty() {
        members = members.json("address", list(filter.addresses.iter().map(hex)));
    }
    let topics = filter.topics.iter().map(|topic| match topic {
        TopicFilter::Any => "null".to_owned(),
        TopicFilter::OneOf(words) => list(words.iter().map(hex)),
    });
    members.json("topics", list(topics)).end()
}

/// The block parameter of a getter.
enum BlockParam {
    Hash(B256),
    /// A number or a tag, as JSON.
    Number(String),
}

fn block_param(block: BlockId, pin: Pin) -> BlockParam {
    match block {
        BlockId::Hash { hash, .. } => BlockParam::Hash(hash),
        BlockId::Tag(BlockTag::Latest | BlockTag::Pending) => BlockParam::Hash(pin.hash),
        BlockId::Tag(BlockTag::Safe | BlockTag::Finalized | BlockTag::Earliest) | BlockId::Number(_) => {
            BlockParam::Number(number_param(block, pin))
        }
    }
}

/// A block parameter for methods that take no hash. A hash can only be that of the pin.
fn number_param(block: BlockId, pin: Pin) -> String {
    match block {
        BlockId::Number(number) => hex(number),
        BlockId::Tag(BlockTag::Earliest) => hex(0),
        BlockId::Tag(BlockTag::Safe) => tag("safe"),
        BlockId::Tag(BlockTag::Finalized) => tag("finalized"),
        BlockId::Tag(BlockTag::Latest | BlockTag::Pending) | BlockId::Hash { .. } => hex(pin.number),
    }
}

/// The end of a block range, never above the pin.
fn range_end(block: BlockId, pin: Pin) -> String {
    match block {
        BlockId::Number(number) => hex(u64::min(number, pin.number)),
        BlockId::Tag(_) | BlockId::Hash { .. } => number_param(block, pin),
    }
}

fn nonce_block(block: BlockId, pin: Pin) -> String {
    match block {
        BlockId::Tag(BlockTag::Pending) => tag("pending"),
        BlockId::Tag(_) | BlockId::Number(_) | BlockId::Hash { .. } => hash_param(pin.hash),
    }
}

/// The block of a query that the gateway makes for itself. A node answers a query at a hash that need not be canonical
/// even if the block has left the chain.
fn state_block(block: BlockId) -> String {
    match block {
        BlockId::Hash {
            hash,
            require_canonical: true,
        } => hash_param(hash),
        BlockId::Hash {
            hash,
            require_canonical: false,
        } => Members::new().json("blockHash", hex(hash)).end(),
        BlockId::Number(number) => hex(number),
        BlockId::Tag(named) => tag(tag_name(named)),
    }
}

/// An EIP-1898 block parameter. The node returns an error if the block has left the chain.
fn hash_param(hash: B256) -> String {
    Members::new()
        .json("blockHash", hex(hash))
        .json("requireCanonical", true)
        .end()
}

/// A call object for execution without effect.
fn simulation_object(request: &CallRequest) -> String {
    object(request, None)
}

fn object(request: &CallRequest, nonce: Option<u64>) -> String {
    let mut members = Members::new()
        // Decision 38: nodes would replace an absent sender by one of their own accounts.
        .json("from", hex(request.from.unwrap_or(Address::ZERO)))
        .maybe("to", request.to.map(hex))
        .maybe("value", request.value.map(hex))
        .json("input", hex(&request.input))
        .maybe("gas", request.gas.map(hex))
        .maybe("gasPrice", request.gas_price.map(hex))
        .maybe("maxFeePerGas", request.max_fee_per_gas.map(hex))
        .maybe("maxPriorityFeePerGas", request.max_priority_fee_per_gas.map(hex))
        .maybe("nonce", nonce.map(hex))
        .maybe("accessList", request.access_list.as_ref().map(access_list));
    if !request.authorization_list.is_empty() {
        members = members.json(
            "authorizationList",
            list(request.authorization_list.iter().map(authorization)),
        );
    }
    members.end()
}

fn access_list(items: &AccessList) -> String {
    list(items.iter().map(|item| {
        let keys = list(item.storage_keys.iter().map(hex));
        Members::new()
            .json("address", hex(item.address))
            .json("storageKeys", keys)
            .end()
    }))
}

fn authorization(signed: &SignedAuthorization) -> String {
    Members::new()
        .json("chainId", hex(signed.chain_id()))
        .json("address", hex(signed.address()))
        .json("nonce", hex(signed.nonce()))
        .json("yParity", hex(signed.y_parity()))
        .json("r", hex(signed.r()))
        .json("s", hex(signed.s()))
        .end()
}

/// A quantity, an address, a word or bytes as a JSON string.
fn hex(value: impl LowerHex) -> String {
    format!("\"{value:#x}\"")
}

const fn tag_name(named: BlockTag) -> &'static str {
    match named {
        BlockTag::Latest => "latest",
        BlockTag::Pending => "pending",
        BlockTag::Safe => "safe",
        BlockTag::Finalized => "finalized",
        BlockTag::Earliest => "earliest",
    }
}

fn tag(name: &str) -> String {
    format!("\"{name}\"")
}

fn list(items: impl Iterator<Item = impl Display>) -> String {
    let mut json = String::from("[");
    for (position, item) in items.enumerate() {
        let comma = if position == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(json, "{comma}{item}");
    }
    json.push(']');
    json
}

/// A writer for the members of a JSON object. Names and values are never client text.
struct Members(String);

impl Members {
    fn new() -> Self {
        Self(String::from("{"))
    }

    fn json(mut self, name: &str, value: impl Display) -> Self {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
        self
    }

    fn maybe(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.json(name, value),
            None => self,
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
