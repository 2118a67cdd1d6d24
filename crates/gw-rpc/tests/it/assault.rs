//! Requests of any shape against a node that says anything: what must hold whatever both say. Seeds run it here; the
//! fuzzer runs it for hours (`fuzz/fuzz_targets/pipeline.rs`).

use crate::world::{Person, World, account, scripted_with, signed};
use gw_evm::Method;
use gw_policy::Knobs;
use gw_rpc::RpcSettings;
use gw_testkit::{
    FakeNode,
    fake_node::{Received, Reply, block, trace},
};
use gw_types::{Address, B256, Bytes, Claim, Clock as _, OrgId, Seconds, Timestamp};
use serde_json::{Map, Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// Stands for everything a stranger may not see: an address, and the head of every hidden word.
const CANARY: &str = "ca9a51e5ca9a51e5ca9a51e5ca9a51e5ca9a51e5";
const HIDDEN: &str = "ca9a51e5ca9a51e5";
const TOKEN: Address = Address::repeat_byte(0x11);
const FOREIGN: Address = Address::repeat_byte(0x22);

/// What the node may be asked for, and nothing else.
const ASKED: &[&str] = &[
    "debug_traceBlockByHash",
    "debug_traceCall",
    "debug_traceTransaction",
    "eth_blobBaseFee",
    "eth_blockNumber",
    "eth_chainId",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getCode",
    "eth_getLogs",
    "eth_getProof",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionBySenderAndNonce",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_maxPriorityFeePerGas",
    "eth_protocolVersion",
    "eth_sendRawTransaction",
    "eth_sendTransaction",
    "eth_syncing",
    "net_listening",
    "net_peerCount",
    "net_version",
    "web3_clientVersion",
];

/// Names that are never served, and some that nearly are.
const BLOCKED: &[&str] = &[
    "eth_sign",
    "eth_simulateV1",
    "eth_getRawTransactionByHash",
    "debug_traceBlockByNumber",
    "debug_storageRangeAt",
    "trace_call",
    "txpool_content",
    "admin_peers",
    "engine_newPayloadV4",
    "personal_sign",
    "ETH_CALL",
    "eth_call ",
    "eth\u{005f}call\u{0000}",
    "ｅth_call",
    "",
];

/// Who asks, and what the node says to them.
pub(crate) struct Assault {
    world: World,
    fake: FakeNode,
    callers: Vec<Option<Person>>,
    orgs: Vec<OrgId>,
    raws: Vec<String>,
    mood: Arc<Mutex<Mood>>,
    began: Timestamp,
    turn: AtomicU32,
}

/// How the node answers.
#[derive(Clone, Debug, Default)]
enum Mood {
    #[default]
    Honest,
    /// A full chain of other people's business.
    Canary,
    /// These words, whatever the question.
    Told(Value),
    /// A JSON-RPC error of its own making.
    Errs(i64),
    /// No JSON-RPC.
    Http(u16, &'static str),
}

impl Assault {
    pub(crate) async fn start() -> Self {
        let settings = RpcSettings {
            batch_max: 8,
            log_params: true,
            ..RpcSettings::default()
        };
        let (world, fake) = scripted_with(settings, Knobs::default(), 64 << 20).await;
        let (bank, rival) = (world.org("bank").await, world.org("rival").await);
        let ops = world.person("ops", bank, &["*"], &[Claim::Deploy]).await;
        let narrow = world
            .person("narrow", bank, &["eth_call", "eth_getLogs", "eth_getStorageAt"], &[])
            .await;
        let stranger = world.person("stranger", rival, &["*"], &[Claim::Deploy]).await;
        let hidden = world.person("hidden", bank, &[], &[]).await;
        let abi = json!([
            {"type": "function", "name": "balanceOf", "inputs": [{"name": "a", "type": "address"}],
             "outputs": [{"name": "", "type": "uint256"}], "stateMutability": "view"},
            {"type": "event", "name": "Transfer", "anonymous": false, "inputs": [
                {"name": "from", "type": "address", "indexed": true}, {"name": "to", "type": "address", "indexed": true},
                {"name": "value", "type": "uint256", "indexed": false}]}
        ]);
        world
            .contract(bank, TOKEN, Some(&abi), &[ops.group, narrow.group])
            .await;
        world.contract(bank, FOREIGN, Some(&abi), &[]).await;
        world.link(&ops, account(0).address()).await;
        world.link(&stranger, account(1).address()).await;
        world.link(&narrow, account(2).address()).await;
        world.link(&hidden, CANARY.parse().unwrap()).await;
        let raws = [
            (0, Some(TOKEN)),
            (0, None),
            (1, Some(TOKEN)),
            (1, Some(FOREIGN)),
            (1, None),
            (2, Some(TOKEN)),
        ]
        .map(|(key, to)| signed(&account(key), 0, to, 0, Bytes::from_static(&[0x60, 0x80, 0x52])).0)
        .to_vec();
        let (mood, began) = (Arc::new(Mutex::new(Mood::default())), world.clock.now());
        let saying = Arc::clone(&mood);
        fake.improvise(move |call| saying.lock().unwrap().clone().says(call));
        Self {
            world,
            fake,
            callers: vec![None, Some(stranger), Some(narrow), Some(ops)],
            orgs: vec![bank, rival],
            raws,
            mood,
            began,
            turn: AtomicU32::new(0),
        }
    }

    /// One request, made of these bytes.
    pub(crate) async fn one(&self, bytes: &[u8]) {
        let mut of = Choices(bytes);
        let who = usize::from(of.next()) % self.callers.len();
        let path = match of.next() % 6 {
            0 => "/".to_owned(),
            1 => format!("/rpc/{}", self.orgs[usize::from(of.next()) % self.orgs.len()]),
            2 => format!("/rpc/x{}", of.text()),
            _ => "/rpc".to_owned(),
        };
        let mood = match of.next() % 8 {
            0 | 1 => Mood::Honest,
            2..=4 => Mood::Canary,
            5 => Mood::Told(self.value(&mut of, 3)),
            6 => Mood::Errs([3, -32000, -32001, -32005, -32602, 7][usize::from(of.next()) % 6]),
            _ => [
                Mood::Http(500, "ca9a51e5ca9a51e5"),
                Mood::Http(200, "<html>"),
                Mood::Http(200, "[]"),
                Mood::Http(429, ""),
            ][usize::from(of.next()) % 4]
                .clone(),
        };
        let body = match of.next() % 16 {
            0 => of.0.to_vec(),
            1 | 2 => json!((0..of.next() % 4).map(|_| self.request(&mut of)).collect::<Vec<_>>())
                .to_string()
                .into_bytes(),
            _ => self.request(&mut of).to_string().into_bytes(),
        };
        *self.mood.lock().unwrap() = mood.clone();
        // Quotas go by seconds; a token lives for a day of them, then the day begins again.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.world.clock.set(self.began.plus(Seconds(2 * (turn % 40_000))));
        let mut ask = self.world.raw(body.clone()).path(&path);
        if let Some(person) = &self.callers[who] {
            ask = ask.by(person);
        }
        let answer = ask.send().await;
        self.world.settle().await;
        self.judge(who, &mood, &body, &answer);
        self.world.records().await;
    }

    fn judge(&self, who: usize, mood: &Mood, body: &[u8], answer: &crate::world::Answer) {
        let asked = String::from_utf8_lossy(body);
        let said = || format!("caller {who}, {mood:?}\n{asked}\n{} {}", answer.status, answer.text);
        // Never a panic (it would have ended the run), never a 500: bad bytes are the caller's or the node's fault.
        assert!(
            matches!(answer.status, 200 | 400 | 404 | 413 | 415 | 429 | 502 | 503),
            "{}",
            said()
        );
        // Always an answer of its own: JSON-RPC with one of result and error, or the envelope of an unknown path.
        let rpc = |one: &Value| one["jsonrpc"] == "2.0" && one.get("result").is_some() != one.get("error").is_some();
        let whole = match &answer.body {
            Value::Array(many) => !many.is_empty() && many.iter().all(rpc),
            one => rpc(one) || one.get("error").is_some_and(Value::is_string),
        };
        assert!(whole, "{}", said());
        // The node was asked for nothing the table does not know.
        for call in self.fake.take() {
            assert!(
                ASKED.contains(&call.method.as_str()),
                "{}\nforwarded {}",
                said(),
                call.method
            );
        }
        // Nothing hidden, unless it stood in the question. (A node that lies may put anything into a figure of the chain.)
        if who < 2 && !matches!(mood, Mood::Told(_)) && !asked.to_ascii_lowercase().contains(HIDDEN) {
            assert!(!answer.text.to_ascii_lowercase().contains(HIDDEN), "{}", said());
        }
        if who == 0 && matches!(mood, Mood::Canary) {
            assert!(
                !answer.text.contains("\"logs\"") && !answer.text.contains("\"from\""),
                "{}",
                said()
            );
        }
    }

    /// A request that looks like one.
    fn request(&self, of: &mut Choices<'_>) -> Value {
        let known = Method::ALL;
        let at = usize::from(of.next());
        let method = match known.get(at % (known.len() + 8)) {
            Some(method) => method.as_str(),
            None => BLOCKED[usize::from(of.next()) % BLOCKED.len()],
        };
        // Mostly what the method takes, sometimes anything, sometimes the right thing in a wrong place.
        let mut params = self.params(method, of);
        match of.next() % 8 {
            0 => params = (0..of.next() % 4).map(|_| self.value(of, 2)).collect(),
            1 if !params.is_empty() => {
                let at = usize::from(of.next()) % params.len();
                params[at] = self.value(of, 2);
            }
            _ => {}
        }
        let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        if of.one_in(16) {
            request["visibleTo"] = self.value(of, 1);
        }
        request
    }

    fn params(&self, method: &str, of: &mut Choices<'_>) -> Vec<Value> {
        let hash = |of: &mut Choices<'_>| match of.next() % 3 {
            0 => json!(FakeNode::HEAD_HASH),
            1 => json!(format!("0x{CANARY}{}", "5".repeat(24))),
            _ => json!(B256::repeat_byte(of.next())),
        };
        let slot = |of: &mut Choices<'_>| json!(SLOTS[usize::from(of.next()) % SLOTS.len()]);
        match method {
            "eth_getBalance" | "eth_getTransactionCount" | "eth_getCode" => vec![address(of), tag(of)],
            "eth_getStorageAt" => vec![address(of), slot(of), tag(of)],
            "eth_getProof" => vec![address(of), json!([slot(of)]), tag(of)],
            "eth_call" | "eth_estimateGas" | "eth_createAccessList" => vec![call(of), tag(of)],
            "debug_traceCall" => vec![call(of), tag(of), json!({"tracer": "callTracer"})],
            "debug_traceTransaction" => vec![hash(of), json!({"tracer": "callTracer"})],
            "eth_getLogs" | "eth_newFilter" => {
                let emitter = if of.one_in(2) {
                    address(of)
                } else {
                    json!([address(of), address(of)])
                };
                vec![json!({"address": emitter, "fromBlock": tag(of), "toBlock": tag(of)})]
            }
            "eth_getTransactionByHash" | "eth_getTransactionReceipt" => vec![hash(of)],
            "eth_getBlockByHash" => vec![hash(of), json!(of.one_in(2))],
            "eth_getBlockByNumber" => vec![tag(of), json!(of.one_in(2))],
            "eth_getBlockReceipts" | "eth_getBlockTransactionCountByNumber" => vec![tag(of)],
            "eth_getBlockTransactionCountByHash" => vec![hash(of)],
            "eth_getTransactionByBlockHashAndIndex" => vec![hash(of), json!("0x0")],
            "eth_getTransactionByBlockNumberAndIndex" => vec![tag(of), json!("0x0")],
            "eth_getTransactionBySenderAndNonce" => vec![address(of), json!("0x0")],
            "eth_feeHistory" => vec![json!("0x1"), tag(of), json!([50])],
            "eth_sendTransaction" => vec![call(of)],
            "eth_sendRawTransaction" => vec![json!(self.raws[usize::from(of.next()) % self.raws.len()])],
            "web3_sha3" => vec![json!("0x00")],
            _ => Vec::new(),
        }
    }

    fn value(&self, of: &mut Choices<'_>, depth: u8) -> Value {
        match of.next() % 16 {
            0..=3 => address(of),
            4 => tag(of),
            5 => json!(B256::repeat_byte(of.next())),
            6 => json!(FakeNode::HEAD_HASH),
            7 => json!(format!("0x{}", "0".repeat(24) + CANARY)),
            8 => json!(Bytes::copy_from_slice(&of.take())),
            9 => json!(of.text()),
            10 => json!(u64::from(of.next()) << (of.next() % 56)),
            11 => Value::Null,
            12 if depth > 0 => (0..of.next() % 4).map(|_| self.value(of, depth - 1)).collect(),
            13..=15 if depth > 0 => {
                const MEMBERS: [&str; 24] = [
                    "from",
                    "to",
                    "data",
                    "input",
                    "value",
                    "gas",
                    "gasPrice",
                    "maxFeePerGas",
                    "nonce",
                    "accessList",
                    "address",
                    "topics",
                    "fromBlock",
                    "toBlock",
                    "blockHash",
                    "storageKeys",
                    "tracer",
                    "tracerConfig",
                    "authorizationList",
                    "visibleTo",
                    "blockNumber",
                    "TO",
                    "hash",
                    "requireCanonical",
                ];
                let members = (0..of.next() % 6).map(|_| {
                    let name = MEMBERS[usize::from(of.next()) % MEMBERS.len()].to_owned();
                    (name, self.value(of, depth - 1))
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
            _ => json!(true),
        }
    }
}

impl Mood {
    fn says(self, call: &Received) -> Option<Reply> {
        match self {
            Self::Honest => None,
            Self::Canary => canary(call).map(Reply::Result),
            Self::Told(value) => Some(Reply::Result(value)),
            // What a node says about a send or a simulation that passed its trace goes to the caller: W7.
            Self::Errs(code) => Some(Reply::Error(
                code,
                "insufficient funds of ca9a51e5ca9a51e5",
                Value::Null,
            )),
            Self::Http(status, body) => Some(Reply::Http(status, body)),
        }
    }
}

/// What somebody else did: every address, hash, word and unknown member is hidden from strangers.
fn canary(call: &Received) -> Option<Value> {
    let (address, word) = (format!("0x{CANARY}"), format!("0x{}{CANARY}", "0".repeat(24)));
    let hash = format!("0x{CANARY}{}", "5".repeat(24));
    let transaction = json!({
        "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "transactionIndex": "0x0", "hash": hash, "from": address,
        "to": FOREIGN, "input": word, "value": word, "nonce": "0x1", "gas": "0x5208", "gasPrice": "0x1", "type": "0x2",
        "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x1", "chainId": "0x7a69", "v": "0x0", "r": word, "s": word,
        "yParity": "0x0", "accessList": [{"address": address, "storageKeys": [word]}], "unheard": address
    });
    let log = json!({
        "address": FOREIGN, "topics": [word, word, word], "data": word, "blockNumber": "0x64", "blockHash": FakeNode::HEAD_HASH,
        "transactionHash": hash, "transactionIndex": "0x0", "logIndex": "0x0", "removed": false, "unheard": address
    });
    let receipt = json!({
        "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "transactionIndex": "0x0", "transactionHash": hash,
        "from": address, "to": FOREIGN, "contractAddress": null, "cumulativeGasUsed": "0x5208", "gasUsed": "0x5208",
        "effectiveGasPrice": "0x1", "logs": [log], "logsBloom": format!("0x{}", CANARY.repeat(13)), "status": "0x1",
        "type": "0x2", "root": word, "unheard": address
    });
    // Own, a precompile, the zero address: public to the stranger (spec/20 §10).
    let public = || {
        let public = [account(1).address(), Address::with_last_byte(4), Address::ZERO];
        call.params
            .get(0)
            .is_some_and(|about| public.iter().any(|address| json!(address) == *about))
    };
    let full = call.params.get(1).and_then(Value::as_bool).unwrap_or(false);
    Some(match call.method.as_str() {
        "eth_getBlockByNumber" | "eth_getBlockByHash" => {
            let mut block = block(FakeNode::HEAD, FakeNode::HEAD_HASH);
            block["transactions"] = if full { json!([transaction]) } else { json!([hash]) };
            block["logsBloom"] = json!(format!("0x{}", CANARY.repeat(13)));
            for member in ["stateRoot", "transactionsRoot", "receiptsRoot", "unheard"] {
                block[member] = json!(hash);
            }
            block
        }
        "eth_getTransactionByHash"
        | "eth_getTransactionByBlockHashAndIndex"
        | "eth_getTransactionByBlockNumberAndIndex"
        | "eth_getTransactionBySenderAndNonce" => transaction,
        "eth_getTransactionReceipt" => receipt,
        "eth_getBlockReceipts" => json!([receipt]),
        "eth_getLogs" => json!([log]),
        "eth_getStorageAt" | "eth_getCode" if !public() => json!(word),
        "eth_getProof" => {
            json!({"address": address, "balance": word, "codeHash": hash, "nonce": "0x1", "storageHash": hash,
            "accountProof": [word], "storageProof": [{"key": word, "value": word, "proof": [word]}], "unheard": address})
        }
        "debug_traceCall" => {
            let Reply::Result(mut said) = trace(&call.params) else {
                return None;
            };
            if said.get("type").is_some() {
                said["calls"] = json!([{"type": "STATICCALL", "from": said["to"], "to": FOREIGN, "gas": "0x10", "gasUsed": "0x1",
                    "input": word, "output": word}]);
            }
            said
        }
        "debug_traceTransaction" => {
            json!({"type": "CALL", "from": address, "to": FOREIGN, "input": word, "output": word,
            "gas": "0x1", "gasUsed": "0x1", "value": word})
        }
        "eth_getBalance" if !public() => json!(format!("0x{HIDDEN}{HIDDEN}")),
        _ => return None,
    })
}

/// Where proxies keep what runs, and a slot like any other.
const SLOTS: [&str; 3] = [
    "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
    "0x0000000000000000000000000000000000000000000000000000000000000000",
    "0x0",
];

fn address(of: &mut Choices<'_>) -> Value {
    let known = [
        TOKEN,
        FOREIGN,
        account(0).address(),
        account(1).address(),
        account(2).address(),
        Address::ZERO,
        Address::with_last_byte(4),
        Address::repeat_byte(0x99),
    ];
    match known.get(usize::from(of.next()) % 9) {
        Some(address) => json!(address),
        None => json!(format!("0x{CANARY}")),
    }
}

fn tag(of: &mut Choices<'_>) -> Value {
    const TAGS: [&str; 9] = [
        "latest",
        "0x64",
        "pending",
        "earliest",
        "safe",
        "finalized",
        "0x63",
        "0x0",
        "0x65",
    ];
    json!(TAGS[usize::from(of.next()) % TAGS.len()])
}

/// A call of `balanceOf`, mostly.
fn call(of: &mut Choices<'_>) -> Value {
    let mut call = json!({"to": address(of)});
    match of.next() % 4 {
        0 => {}
        1 => call["data"] = json!(Bytes::copy_from_slice(&of.take())),
        _ => {
            call["data"] = json!(format!(
                "0x70a08231{:0>64}",
                address(of).as_str().unwrap_or_default().trim_start_matches("0x")
            ))
        }
    }
    if of.one_in(2) {
        call["from"] = address(of);
    }
    if of.one_in(8) {
        call["value"] = json!("0x1");
    }
    call
}

/// Bytes as a stream of choices; when they end, every choice is the first.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn one_in(&mut self, many: u8) -> bool {
        self.next().is_multiple_of(many)
    }

    fn take(&mut self) -> Vec<u8> {
        let length = usize::from(self.next() % 70).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken.to_vec()
    }

    /// Letters, digits and some signs: a path takes them all.
    fn text(&mut self) -> String {
        const SIGNS: &[u8; 64] = b"0123456789abcdefxABCDEFXghijklmnopqrstuvwyzGHIJKLMNOPQRSTUVWYZ_-";
        self.take()
            .iter()
            .map(|byte| char::from(SIGNS[usize::from(byte % 64)]))
            .collect()
    }
}

/// Never a panic, never an unopened answer: thousands of requests, the same ones every time.
#[cfg(test)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_request_meets_any_answer() {
    let assault = Assault::start().await;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..160)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[3]
            })
            .collect();
        assault.one(&bytes).await;
    }
}
