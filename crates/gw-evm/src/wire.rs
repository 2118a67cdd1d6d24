//! What is sent to the node: bodies written from typed calls, canonical, pinned to one block.
//!
//! Invariant: nothing here copies client text; every byte comes from a typed field (J5), and whatever executes names
//! its sender (decision 38). Only of calls that pass unexamined the values are the client's (N3).

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
    /// Its number.
    pub number: u64,
    /// Its hash.
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
    /// Whether the node runs code for it that its parameters choose (HD26). Sends run in a block, for everybody to see.
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

/// The body of `call` at `pin`; `None` for what the gateway answers itself or from a trace.
///
/// State and simulation calls run at the pin, whichever block they named. Only a `pending` nonce stays pending, and only its
/// owner may ask for it. A pending balance would show blocks that are not validated yet (HD28). Block, log and transaction getters keep the number or hash they
/// named; `latest` and `pending` become the pin, and no range ends above it (HD2).
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
            upstream("eth_feeHistory", &[hex(*count), capped(*newest, pin), rewards])
        }
        Call::Balance(address, _) => upstream("eth_getBalance", &[hex(address), pinned(pin.hash)]),
        Call::Nonce(address, block) => upstream("eth_getTransactionCount", &[hex(address), own_state(*block, pin)]),
        Call::Code(address, _) => upstream("eth_getCode", &[hex(address), pinned(pin.hash)]),
        Call::Storage { address, slot, .. } => {
            upstream("eth_getStorageAt", &[hex(address), hex(slot), pinned(pin.hash)])
        }
        Call::Proof { address, slots, .. } => upstream(
            "eth_getProof",
            &[hex(address), list(slots.iter().map(hex)), pinned(pin.hash)],
        ),
        Call::Simulate(simulation) => match simulation.kind {
            // X4: only beside a trace, for nodes whose trace has no output.
            SimulationKind::Call => upstream("eth_call", &[executed(&simulation.request), pinned(pin.hash)]),
            // HD3: the gateway searches and lists itself.
            SimulationKind::EstimateGas | SimulationKind::CreateAccessList | SimulationKind::TraceCall => return None,
        },
        Call::Logs(filter) => upstream("eth_getLogs", &[logs(filter, pin)]),
        Call::Transaction(which) => transaction(*which, pin),
        Call::Receipt(hash) => upstream("eth_getTransactionReceipt", &[hex(hash)]),
        // Whole transactions, whatever the caller asked for: which of them he may see is judged on their parties.
        Call::Block { block, .. } | Call::BlockTransactionCount(block) => match named(*block, pin) {
            Named::Hash(hash) => upstream("eth_getBlockByHash", &[hex(hash), "true".to_owned()]),
            Named::Number(number) => upstream("eth_getBlockByNumber", &[number, "true".to_owned()]),
        },
        Call::BlockReceipts(block) => match named(*block, pin) {
            Named::Hash(hash) => upstream("eth_getBlockReceipts", &[pinned(hash)]),
            Named::Number(number) => upstream("eth_getBlockReceipts", &[number]),
        },
        Call::SendRaw(signed) => upstream("eth_sendRawTransaction", &[hex(&signed.raw)]),
        Call::Send(send) => {
            let mut request = send.request.clone();
            request.from = Some(send.from);
            upstream("eth_sendTransaction", &[object(&request, request.nonce)])
        }
        // Its strings and numbers are the caller's (N3); the text is ours.
        Call::Unexamined(call) => UpstreamCall {
            method: Cow::Owned(call.method.clone()),
            params: list(call.params.iter()),
        },
        Call::Sha3(_) | Call::UncleCount | Call::Uncle | Call::TraceTransaction(_) | Call::Live(_) => return None,
    })
}

/// The code of an account as the node has it now, judged blocks or not: for decisions only.
pub fn pending_code(address: Address) -> UpstreamCall {
    upstream("eth_getCode", &[hex(address), tag("pending")])
}

/// Which chain the node is on.
pub fn chain_id() -> UpstreamCall {
    upstream(Method::ChainId.as_str(), &[])
}

/// The body of `call` under the name of a method that stands for `row` (N2). Where the gateway asks something else than
/// the row's own question, to derive the answer itself, it asks as for the row.
pub fn body_as(call: &Call, pin: Pin, row: Method, name: &str) -> Option<UpstreamCall> {
    let asked = body(&by_number(call, pin), pin)?;
    if asked.method != row.as_str() {
        return Some(asked);
    }
    Some(UpstreamCall {
        method: Cow::Owned(name.to_owned()),
        params: asked.params,
    })
}

/// The pinned block by its number, where a method takes no hash.
fn by_number(call: &Call, pin: Pin) -> Call {
    let head = |block: &BlockId| matches!(block, BlockId::Tag(BlockTag::Latest | BlockTag::Pending));
    let number = BlockId::Number(pin.number);
    if let Call::Block { block, full } = call
        && head(block)
    {
        return Call::Block {
            block: number,
            full: *full,
        };
    }
    if let Call::Transaction(TransactionRef::BlockNumberAndIndex(block, index)) = call
        && head(block)
    {
        return Call::Transaction(TransactionRef::BlockNumberAndIndex(number, *index));
    }
    call.clone()
}

/// Which way a node gives the call tree and the state touches in one round trip (decision 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceForm {
    /// One call with the muxTracer.
    Mux,
    /// Both tracers as two elements of one batch.
    Batch,
}

/// What a trace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceScope {
    /// A simulation: call tree and touches.
    Read,
    /// `eth_createAccessList`: call tree and touches with the slots (HD3).
    AccessList,
    /// A send: the state diff too (HD15).
    Send,
    /// A mined send: the state diff, and the slots that were read or written.
    Mined,
}

impl TraceScope {
    /// The same with the slots that were read or written.
    #[must_use]
    pub const fn with_slots(self) -> Self {
        match self {
            Self::Read | Self::AccessList => Self::AccessList,
            Self::Send | Self::Mined => Self::Mined,
        }
    }
}

/// What an execution without effect finds of one account in place of what the chain holds; absent parts are the chain's.
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

/// The state that an execution without effect runs on, as far as it is not the chain's: what convicted transactions changed
/// is as before them (HD28), and accounts whose existence gas would tell look new (RT9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateOverrides(BTreeMap<Address, AccountOverride>);

impl StateOverrides {
    /// Of these accounts.
    pub const fn new(accounts: BTreeMap<Address, AccountOverride>) -> Self {
        Self(accounts)
    }

    /// Adds accounts, and slots of known ones; whether there was anything new. What is known stays: a run on these overrides
    /// finds them, and not the chain's own values.
    pub fn extend(&mut self, other: Self) -> bool {
        let mut is_new = false;
        for (address, account) in other.0 {
            match self.0.get_mut(&address) {
                None => {
                    is_new = true;
                    self.0.insert(address, account);
                }
                Some(known) => {
                    for (slot, word) in account.slots {
                        known.slots.entry(slot).or_insert_with(|| {
                            is_new = true;
                            word
                        });
                    }
                }
            }
        }
        is_new
    }

    /// The member of a tracer's configuration, after another one; nothing without an account.
    fn member(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut accounts = Members::new();
        for (address, account) in &self.0 {
            let slots = account.slots.iter().fold(Members::new(), |all, (slot, word)| {
                all.json(&format!("{slot:#x}"), hex(word))
            });
            let one = Members::new()
                .maybe("balance", account.balance.map(hex))
                .maybe("nonce", account.nonce.map(hex))
                .maybe("code", account.code.as_ref().map(hex))
                .maybe("stateDiff", (!account.slots.is_empty()).then(|| slots.end()));
            accounts = accounts.json(&format!("{address:#x}"), one.end());
        }
        format!(",\"stateOverrides\":{}", accounts.end())
    }
}

/// Number and time of the block a send would run in (HD2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextBlock {
    /// Its number.
    pub number: u64,
    /// Its time, in seconds.
    pub timestamp: u64,
}

/// The calls of one trace of `request` on the state of `pin`, but for what is overridden, to be sent as one batch; their
/// results in the same order go to [`crate::trace::Trace::parse`].
///
/// The nonce is left out: nodes run simulations at the sender's nonce, and some refuse another.
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
    let request = executed(request);
    let call = |tracer: &&str| {
        upstream(
            "debug_traceCall",
            &[request.clone(), pinned(pin.hash), format!("{{{tracer}{overrides}}}")],
        )
    };
    tracers(scope, form).iter().map(call).collect()
}

/// The same for a mined transaction.
pub fn trace_transaction(hash: B256, scope: TraceScope, form: TraceForm) -> Vec<UpstreamCall> {
    let call = |tracer: &&str| upstream("debug_traceTransaction", &[hex(hash), format!("{{{tracer}}}")]);
    tracers(scope, form).iter().map(call).collect()
}

/// The same for every transaction of a mined block; [`crate::trace::transactions`] takes the results apart.
pub fn trace_block(hash: B256, scope: TraceScope, form: TraceForm) -> Vec<UpstreamCall> {
    let call = |tracer: &&str| upstream("debug_traceBlockByHash", &[hex(hash), format!("{{{tracer}}}")]);
    tracers(scope, form).iter().map(call).collect()
}

const CALLS: &str = r#""tracer":"callTracer","tracerConfig":{"withLog":true}"#;
/// Some nodes leave accounts without balance, nonce and code out unless asked: whether such an account was looked at
/// would then be told by whether it is empty (HD6). Nodes that know no such option list them.
const TOUCHES: &str = r#""tracer":"prestateTracer","tracerConfig":{"disableStorage":true,"includeEmpty":true}"#;
const BOTH: &str = concat!(
    r#""tracer":"muxTracer","tracerConfig":{"callTracer":{"withLog":true},"#,
    r#""prestateTracer":{"disableStorage":true,"includeEmpty":true}}"#
);
/// The same with the slots that were read or written.
const SLOTS: &str = r#""tracer":"prestateTracer","tracerConfig":{"includeEmpty":true}"#;
const BOTH_SLOTS: &str = concat!(
    r#""tracer":"muxTracer","tracerConfig":{"callTracer":{"withLog":true},"#,
    r#""prestateTracer":{"includeEmpty":true}}"#
);
/// The code is known from the touches and the created frames; here it would only be repeated.
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
        TransactionRef::BlockNumberAndIndex(block, index) => match named(block, pin) {
            Named::Hash(hash) => upstream("eth_getTransactionByBlockHashAndIndex", &[hex(hash), hex(index)]),
            Named::Number(number) => upstream("eth_getTransactionByBlockNumberAndIndex", &[number, hex(index)]),
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
            .json("fromBlock", numbered(from, pin))
            .json("toBlock", capped(to, pin)),
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

/// A block as a getter names it.
enum Named {
    Hash(B256),
    /// A number or a tag, as JSON.
    Number(String),
}

fn named(block: BlockId, pin: Pin) -> Named {
    match block {
        BlockId::Hash { hash, .. } => Named::Hash(hash),
        BlockId::Tag(BlockTag::Latest | BlockTag::Pending) => Named::Hash(pin.hash),
        BlockId::Tag(BlockTag::Safe | BlockTag::Finalized | BlockTag::Earliest) | BlockId::Number(_) => {
            Named::Number(numbered(block, pin))
        }
    }
}

/// For parameters that take no hash; a hash can only be the pin's.
fn numbered(block: BlockId, pin: Pin) -> String {
    match block {
        BlockId::Number(number) => hex(number),
        BlockId::Tag(BlockTag::Earliest) => hex(0),
        BlockId::Tag(BlockTag::Safe) => tag("safe"),
        BlockId::Tag(BlockTag::Finalized) => tag("finalized"),
        BlockId::Tag(BlockTag::Latest | BlockTag::Pending) | BlockId::Hash { .. } => hex(pin.number),
    }
}

/// The end of a range: never above the pin.
fn capped(block: BlockId, pin: Pin) -> String {
    match block {
        BlockId::Number(number) => hex(u64::min(number, pin.number)),
        BlockId::Tag(_) | BlockId::Hash { .. } => numbered(block, pin),
    }
}

fn own_state(block: BlockId, pin: Pin) -> String {
    match block {
        BlockId::Tag(BlockTag::Pending) => tag("pending"),
        BlockId::Tag(_) | BlockId::Number(_) | BlockId::Hash { .. } => pinned(pin.hash),
    }
}

/// EIP-1898; a block that left the chain is an error, not an answer.
fn pinned(hash: B256) -> String {
    Members::new()
        .json("blockHash", hex(hash))
        .json("requireCanonical", true)
        .end()
}

/// A call object for execution without effect.
fn executed(request: &CallRequest) -> String {
    object(request, None)
}

fn object(request: &CallRequest, nonce: Option<u64>) -> String {
    let mut members = Members::new()
        // Decision 38: nodes substitute an account of theirs for an absent sender.
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

/// The members of an object, written one after the other; names and values are never client text.
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
