//! A scripted node, for tests that must see or script every byte sent upstream (decision 11).
//!
//! Without scripts it is a small correct chain at block [`FakeNode::HEAD`] without accounts, transactions and logs. It
//! keeps every body that it receives; [`FakeNode::take`] returns them and removes them, so that a test can assert that
//! nothing was sent.

use alloy_primitives::Address;
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The node's reply to one call.
#[derive(Clone, Debug)]
pub enum NodeReply {
    /// A result.
    Result(Value),
    /// A JSON-RPC error.
    Error(i64, &'static str, Value),
    /// An HTTP status and body instead of JSON-RPC, for the whole batch.
    Http(u16, &'static str),
    /// No response at all, until the node is dropped.
    Silence,
}

/// A call that the node received.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

type Script = Box<dyn FnMut(&Value) -> NodeReply + Send>;
type Improviser = Box<dyn FnMut(&Received) -> Option<NodeReply> + Send>;

#[derive(Default)]
struct Inner {
    scripts: BTreeMap<String, Script>,
    improviser: Option<Improviser>,
    bodies: Vec<Bytes>,
    keys: Vec<Option<String>>,
    limited: Option<String>,
}

/// A scripted node on a free port, stopped when dropped.
pub struct FakeNode {
    url: String,
    inner: Arc<Mutex<Inner>>,
    server: tokio::task::JoinHandle<()>,
}

impl core::fmt::Debug for FakeNode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "FakeNode({})", self.url)
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl FakeNode {
    /// The number of the newest block.
    pub const HEAD: u64 = 100;
    /// The hash of the newest block.
    pub const HEAD_HASH: &'static str = "0x6464646464646464646464646464646464646464646464646464646464646464";
    /// The chain id.
    pub const CHAIN_ID: u64 = 31337;

    /// Starts a node on a free port.
    ///
    /// # Panics
    /// If no port can be bound.
    pub async fn start() -> Self {
        let listener = match tokio::net::TcpListener::bind(("127.0.0.1", 0)).await {
            Ok(listener) => listener,
            Err(error) => panic!("cannot listen: {error}"),
        };
        let port = listener.local_addr().map_or(0, |address| address.port());
        let inner = Arc::new(Mutex::new(Inner::default()));
        let app = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                panic!("the fake node failed: {error}");
            }
        });
        Self {
            url: format!("http://127.0.0.1:{port}"),
            inner,
            server,
        }
    }

    /// The URL of the node.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the result of every call of `method`.
    pub fn set_result(&self, method: &str, result: Value) {
        self.script(method, move |_| NodeReply::Result(result.clone()));
    }

    /// Sets the reply to every call of `method`.
    pub fn reply(&self, method: &str, reply: NodeReply) {
        self.script(method, move |_| reply.clone());
    }

    /// Sets a function of the parameters that computes the reply to every call of `method`.
    pub fn script(&self, method: &str, script: impl FnMut(&Value) -> NodeReply + Send + 'static) {
        lock(&self.inner).scripts.insert(method.to_owned(), Box::new(script));
    }

    /// Sets a function that replies to calls without a script. If it returns `None`, the default chain replies.
    pub fn improvise(&self, improviser: impl FnMut(&Received) -> Option<NodeReply> + Send + 'static) {
        lock(&self.inner).improviser = Some(Box::new(improviser));
    }

    /// The bodies received since the last call, as bytes.
    pub fn take_bodies(&self) -> Vec<Bytes> {
        std::mem::take(&mut lock(&self.inner).bodies)
    }

    /// The calls received since the last call, batches flattened.
    pub fn take(&self) -> Vec<Received> {
        self.take_bodies()
            .iter()
            .flat_map(|body| calls(body).1)
            .map(|(_, call)| call)
            .collect()
    }

    /// The `Authorization` headers of the requests received since the last call.
    pub fn take_keys(&self) -> Vec<Option<String>> {
        std::mem::take(&mut lock(&self.inner).keys)
    }

    /// From now on responds with 429 to each request with this `Authorization` value, and to no other. `None` ends
    /// this.
    pub fn limit(&self, key: Option<&str>) {
        lock(&self.inner).limited = key.map(str::to_owned);
    }

    /// Asserts that nothing was received since the last call.
    ///
    /// # Panics
    /// If something was received.
    #[track_caller]
    pub fn assert_silent(&self) {
        let received = self.take();
        assert!(received.is_empty(), "forwarded: {received:?}");
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the body is a batch, and its calls with their ids.
fn calls(body: &[u8]) -> (bool, Vec<(Value, Received)>) {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let call = |call: &Value| {
        let method = call.get("method").and_then(Value::as_str).unwrap_or("").to_owned();
        let received = Received {
            method,
            params: call.get("params").cloned().unwrap_or(Value::Null),
        };
        (call.get("id").cloned().unwrap_or(Value::Null), received)
    };
    match &body {
        Value::Array(batch) => (true, batch.iter().map(call).collect()),
        single => (false, vec![call(single)]),
    }
}

async fn answer(State(inner): State<Arc<Mutex<Inner>>>, headers: HeaderMap, body: Bytes) -> axum::response::Response {
    let (is_batch, calls) = calls(&body);
    let replies: Vec<(Value, NodeReply)> = {
        let mut inner = lock(&inner);
        inner.bodies.push(body);
        let key = headers
            .get("authorization")
            .and_then(|key| key.to_str().ok())
            .map(str::to_owned);
        let is_limited = key.is_some() && key == inner.limited;
        inner.keys.push(key);
        if is_limited {
            return (StatusCode::TOO_MANY_REQUESTS, "slow down").into_response();
        }
        let Inner {
            scripts, improviser, ..
        } = &mut *inner;
        let mut reply = |call: &Received| match scripts.get_mut(&call.method) {
            Some(script) => script(&call.params),
            None => improviser
                .as_mut()
                .and_then(|improvise| improvise(call))
                .unwrap_or_else(|| default_reply(call)),
        };
        calls.iter().map(|(id, call)| (id.clone(), reply(call))).collect()
    };
    let mut answers = Vec::with_capacity(replies.len());
    for (id, reply) in replies {
        answers.push(match reply {
            NodeReply::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            NodeReply::Error(code, message, Value::Null) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
            NodeReply::Error(code, message, data) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}})
            }
            NodeReply::Http(status, body) => {
                return (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), body).into_response();
            }
            NodeReply::Silence => std::future::pending().await,
        });
    }
    let body = if is_batch {
        Value::Array(answers)
    } else {
        answers.pop().unwrap_or(Value::Null)
    };
    ([("content-type", "application/json")], body.to_string()).into_response()
}

/// The reply of the default chain.
fn default_reply(call: &Received) -> NodeReply {
    let hex = |number: u64| json!(format!("{number:#x}"));
    let result = match call.method.as_str() {
        "eth_chainId" => hex(FakeNode::CHAIN_ID),
        "eth_blockNumber" => hex(FakeNode::HEAD),
        "eth_getBlockByNumber" | "eth_getBlockByHash" => block(FakeNode::HEAD, FakeNode::HEAD_HASH),
        "eth_gasPrice" => hex(2_000_000_000),
        "eth_getBalance" | "eth_getTransactionCount" => hex(0),
        "eth_getCode" => json!("0x"),
        "eth_getLogs" | "eth_getBlockReceipts" => json!([]),
        "eth_syncing" => json!(false),
        "eth_getTransactionByHash" | "eth_getTransactionReceipt" => Value::Null,
        "debug_traceCall" => return trace(&call.params),
        _ => return NodeReply::Error(-32601, "the method does not exist", Value::Null),
    };
    NodeReply::Result(result)
}

/// An empty block.
pub fn block(number: u64, hash: &str) -> Value {
    let word = |digit: &str| format!("0x{}", digit.repeat(64));
    json!({
        "number": format!("{number:#x}"), "hash": hash, "parentHash": word("3"), "nonce": "0x0000000000000000",
        "sha3Uncles": word("1"), "logsBloom": format!("0x{}", "0".repeat(512)), "transactionsRoot": word("4"),
        "stateRoot": word("5"), "receiptsRoot": word("6"), "miner": "0x00000000000000000000000000000000c01bba5e",
        "difficulty": "0x0", "extraData": "0x", "size": "0x220", "gasLimit": "0x1c9c380", "gasUsed": "0x5208",
        "timestamp": "0x65000000", "baseFeePerGas": "0x3b9aca00", "mixHash": word("0"), "uncles": [],
        "transactions": [], "withdrawals": []
    })
}

/// The trace of a call that only enters its target, in the format of the requested tracer.
pub fn trace(params: &Value) -> NodeReply {
    let call = params.get(0).cloned().unwrap_or_default();
    let config = params.get(2).cloned().unwrap_or_default();
    let member = |name: &str| call.get(name).cloned().unwrap_or(Value::Null);
    let zero = "0x0000000000000000000000000000000000000000";
    let from = member("from").as_str().unwrap_or(zero).to_owned();
    match config.get("tracer").and_then(Value::as_str) {
        Some("callTracer") => {
            let value = call.get("value").cloned().unwrap_or(json!("0x0"));
            let mut tree = json!({
                "type": "CALL", "from": from, "gas": "0x1c97158", "gasUsed": "0x5258", "input": member("input"),
                "output": "0x", "value": value, "to": member("to")
            });
            if member("to").is_null() {
                let creator: Address = from.parse().unwrap_or_default();
                tree = json!({
                    "type": "CREATE", "from": from, "gas": "0x1c97158", "gasUsed": "0x10000", "input": member("input"),
                    "output": "0x00", "value": value, "to": creator.create(0)
                });
            }
            NodeReply::Result(tree)
        }
        Some("prestateTracer") => {
            let diff = config
                .pointer("/tracerConfig/diffMode")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            let mut accounts = serde_json::Map::new();
            accounts.insert(from, json!({"balance": "0x0"}));
            if let Some(to) = member("to").as_str() {
                accounts.insert(to.to_owned(), json!({"balance": "0x0"}));
            }
            NodeReply::Result(if diff {
                json!({"pre": {}, "post": {}})
            } else {
                Value::Object(accounts)
            })
        }
        _ => NodeReply::Error(-32602, "unsupported tracer type", Value::Null),
    }
}
