//! Arbitrary requests against a node with arbitrary answers, and the properties that always hold. This test runs fixed
//! seeds; the fuzzer runs for hours (`fuzz/fuzz_targets/pipeline.rs`).

use crate::world::{World, account, scripted_with, signed};
use gw_evm::Method;
use gw_policy::PolicySettings;
use gw_rpc::RpcSettings;
use gw_testkit::{
    FakeNode, TestUser,
    fake_node::{NodeReply, Received, block, trace},
};
use gw_types::{Address, B256, Bytes, Claim, Clock as _, OrgId, Seconds, Timestamp};
use serde_json::{Map, Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// Marks everything that a stranger may not see: an address, and the first bytes of every hidden word.
const CANARY: &str = "ca9a51e5ca9a51e5ca9a51e5ca9a51e5ca9a51e5";
const HIDDEN: &str = "ca9a51e5ca9a51e5";
const TOKEN: Address = Address::repeat_byte(0x11);
const FOREIGN: Address = Address::repeat_byte(0x22);

/// The only methods that may be forwarded to the node.
const FORWARDED: &[&str] = &[
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

/// Names that are never served, and some that are close to served ones.
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

/// The instance under test, its callers, and the scripted node.
pub(crate) struct PipelineFuzz {
    world: World,
    fake: FakeNode,
    callers: Vec<Option<TestUser>>,
    orgs: Vec<OrgId>,
    raws: Vec<String>,
    mood: Arc<Mutex<Mood>>,
    started_at: Timestamp,
    turn: AtomicU32,
}

/// The behaviour of the node.
#[derive(Clone, Debug, Default)]
enum Mood {
    #[default]
    Honest,
    /// A chain that is full of other users' data.
    Canary,
    /// This value, for every request.
    Constant(Value),
    /// A JSON-RPC error with this code.
    Errs(i64),
    /// A response that is not JSON-RPC.
    Http(u16, &'static str),
}

impl PipelineFuzz {
    pub(crate) async fn start() -> Self {
        let settings = RpcSettings {
            batch_max: 8,
            log_params: true,
            ..RpcSettings::default()
        };
        let (world, fake) = scripted_with(settings, PolicySettings::default()).await;
        let (bank, rival) = (
            world.fixture.create_org("bank").await,
            world.fixture.create_org("rival").await,
        );
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
                {"name": "from", "type": "address", "indexed": true},
                    {"name": "to", "type": "address", "indexed": true},
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
        let (mood, started_at) = (Arc::new(Mutex::new(Mood::default())), world.fixture.clock.now());
        let node_mood = Arc::clone(&mood);
        fake.improvise(move |call| node_mood.lock().unwrap().clone().answer(call));
        Self {
            world,
            fake,
            callers: vec![None, Some(stranger), Some(narrow), Some(ops)],
            orgs: vec![bank, rival],
            raws,
            mood,
            started_at,
            turn: AtomicU32::new(0),
        }
    }

    /// Sends one request that is generated from these bytes, and checks the answer.
    pub(crate) async fn one(&self, bytes: &[u8]) {
        let mut choices = Choices(bytes);
        let caller = usize::from(choices.next()) % self.callers.len();
        let path = match choices.next() % 6 {
            0 => "/".to_owned(),
            1 => format!("/rpc/{}", self.orgs[usize::from(choices.next()) % self.orgs.len()]),
            2 => format!("/rpc/x{}", choices.text()),
            _ => "/rpc".to_owned(),
        };
        let mood = match choices.next() % 8 {
            0 | 1 => Mood::Honest,
            2..=4 => Mood::Canary,
            5 => Mood::Constant(self.value(&mut choices, 3)),
            6 => Mood::Errs([3, -32000, -32001, -32005, -32602, 7][usize::from(choices.next()) % 6]),
            _ => [
                Mood::Http(500, "ca9a51e5ca9a51e5"),
                Mood::Http(200, "<html>"),
                Mood::Http(200, "[]"),
                Mood::Http(429, ""),
            ][usize::from(choices.next()) % 4]
                .clone(),
        };
        let body = match choices.next() % 16 {
            0 => choices.0.to_vec(),
            1 | 2 => json!(
                (0..choices.next() % 4)
                    .map(|_| self.request(&mut choices))
                    .collect::<Vec<_>>()
            )
            .to_string()
            .into_bytes(),
            _ => self.request(&mut choices).to_string().into_bytes(),
        };
        *self.mood.lock().unwrap() = mood.clone();
        // Quotas count seconds; a token is valid for a day, then the clock starts the day again.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.world
            .fixture
            .clock
            .set(self.started_at.plus(Seconds(2 * (turn % 40_000))));
        let mut ask = self.world.raw(body.clone()).path(&path);
        if let Some(person) = &self.callers[caller] {
            ask = ask.by(person);
        }
        let answer = ask.send().await;
        self.world.settle().await;
        self.check(caller, &mood, &body, &answer);
        self.world.fixture.records();
    }

    fn check(&self, caller: usize, mood: &Mood, body: &[u8], answer: &crate::world::Answer) {
        let request_text = String::from_utf8_lossy(body);
        let describe = || {
            format!(
                "caller {caller}, {mood:?}\n{request_text}\n{} {}",
                answer.status, answer.text
            )
        };
        // Never a panic (which would end the run), and never a 500: bad bytes are an error of the caller or the node.
        assert!(
            matches!(answer.status, 200 | 400 | 404 | 413 | 415 | 429 | 502 | 503),
            "{}",
            describe()
        );
        // Always a complete answer: JSON-RPC with exactly one of result and error, or the error of an unknown path.
        let rpc = |element: &Value| {
            element["jsonrpc"] == "2.0" && element.get("result").is_some() != element.get("error").is_some()
        };
        let is_complete = match &answer.body {
            Value::Array(many) => !many.is_empty() && many.iter().all(rpc),
            element => rpc(element) || element.get("error").is_some_and(Value::is_string),
        };
        assert!(is_complete, "{}", describe());
        // Only listed methods were forwarded.
        for call in self.fake.take() {
            assert!(
                FORWARDED.contains(&call.method.as_str()),
                "{}\nforwarded {}",
                describe(),
                call.method
            );
        }
        // Nothing hidden, unless the request contained it. (A node that lies may put anything into a chain quantity.)
        if caller < 2 && !matches!(mood, Mood::Constant(_)) && !request_text.to_ascii_lowercase().contains(HIDDEN) {
            assert!(!answer.text.to_ascii_lowercase().contains(HIDDEN), "{}", describe());
        }
        if caller == 0 && matches!(mood, Mood::Canary) {
            assert!(
                !answer.text.contains("\"logs\"") && !answer.text.contains("\"from\""),
                "{}",
                describe()
            );
        }
    }

    /// A plausible request.
    fn request(&self, choices: &mut Choices<'_>) -> Value {
        let known = Method::ALL;
        let at = usize::from(choices.next());
        let method = match known.get(at % (known.len() + 8)) {
            Some(method) => method.as_str(),
            None => BLOCKED[usize::from(choices.next()) % BLOCKED.len()],
        };
        // Mostly valid parameters, sometimes arbitrary ones, sometimes an arbitrary value in one place.
        let mut params = self.params(method, choices);
        match choices.next() % 8 {
            0 => params = (0..choices.next() % 4).map(|_| self.value(choices, 2)).collect(),
            1 if !params.is_empty() => {
                let at = usize::from(choices.next()) % params.len();
                params[at] = self.value(choices, 2);
            }
            _ => {}
        }
        let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        if choices.one_in(16) {
            request["visibleTo"] = self.value(choices, 1);
        }
        request
    }

    fn params(&self, method: &str, choices: &mut Choices<'_>) -> Vec<Value> {
        let hash = |choices: &mut Choices<'_>| match choices.next() % 3 {
            0 => json!(FakeNode::HEAD_HASH),
            1 => json!(format!("0x{CANARY}{}", "5".repeat(24))),
            _ => json!(B256::repeat_byte(choices.next())),
        };
        let slot = |choices: &mut Choices<'_>| json!(SLOTS[usize::from(choices.next()) % SLOTS.len()]);
        match method {
            "eth_getBalance" | "eth_getTransactionCount" | "eth_getCode" => vec![address(choices), tag(choices)],
            "eth_getStorageAt" => vec![address(choices), slot(choices), tag(choices)],
            "eth_getProof" => vec![address(choices), json!([slot(choices)]), tag(choices)],
            "eth_call" | "eth_estimateGas" | "eth_createAccessList" => vec![call(choices), tag(choices)],
            "debug_traceCall" => vec![call(choices), tag(choices), json!({"tracer": "callTracer"})],
            "debug_traceTransaction" => vec![hash(choices), json!({"tracer": "callTracer"})],
            "eth_getLogs" | "eth_newFilter" => {
                let emitter = if choices.one_in(2) {
                    address(choices)
                } else {
                    json!([address(choices), address(choices)])
                };
                vec![json!({"address": emitter, "fromBlock": tag(choices), "toBlock": tag(choices)})]
            }
            "eth_getTransactionByHash" | "eth_getTransactionReceipt" => vec![hash(choices)],
            "eth_getBlockByHash" => vec![hash(choices), json!(choices.one_in(2))],
            "eth_getBlockByNumber" => vec![tag(choices), json!(choices.one_in(2))],
            "eth_getBlockReceipts" | "eth_getBlockTransactionCountByNumber" => vec![tag(choices)],
            "eth_getBlockTransactionCountByHash" => vec![hash(choices)],
            "eth_getTransactionByBlockHashAndIndex" => vec![hash(choices), json!("0x0")],
            "eth_getTransactionByBlockNumberAndIndex" => vec![tag(choices), json!("0x0")],
            "eth_getTransactionBySenderAndNonce" => vec![address(choices), json!("0x0")],
            "eth_feeHistory" => vec![json!("0x1"), tag(choices), json!([50])],
            "eth_sendTransaction" => vec![call(choices)],
            "eth_sendRawTransaction" => vec![json!(self.raws[usize::from(choices.next()) % self.raws.len()])],
            "web3_sha3" => vec![json!("0x00")],
            _ => Vec::new(),
        }
    }

    fn value(&self, choices: &mut Choices<'_>, depth: u8) -> Value {
        match choices.next() % 16 {
            0..=3 => address(choices),
            4 => tag(choices),
            5 => json!(B256::repeat_byte(choices.next())),
            6 => json!(FakeNode::HEAD_HASH),
            7 => json!(format!("0x{}", "0".repeat(24) + CANARY)),
            8 => json!(Bytes::copy_from_slice(&choices.take())),
            9 => json!(choices.text()),
            10 => json!(u64::from(choices.next()) << (choices.next() % 56)),
            11 => Value::Null,
            12 if depth > 0 => (0..choices.next() % 4)
                .map(|_| self.value(choices, depth - 1))
                .collect(),
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
                let members = (0..choices.next() % 6).map(|_| {
                    let name = MEMBERS[usize::from(choices.next()) % MEMBERS.len()].to_owned();
                    (name, self.value(choices, depth - 1))
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
            _ => json!(true),
        }
    }
}

impl Mood {
    fn answer(self, call: &Received) -> Option<NodeReply> {
        match self {
            Self::Honest => None,
            Self::Canary => canary(call).map(NodeReply::Result),
            Self::Constant(value) => Some(NodeReply::Result(value)),
            // W7: the caller gets the node's error about a send or a simulation that passed its trace.
            Self::Errs(code) => Some(NodeReply::Error(
                code,
                "insufficient funds of ca9a51e5ca9a51e5",
                Value::Null,
            )),
            Self::Http(status, body) => Some(NodeReply::Http(status, body)),
        }
    }
}

/// Data of another user: every address, hash, word and unknown field is hidden from strangers.
fn canary(call: &Received) -> Option<Value> {
    let (address, word) = (format!("0x{CANARY}"), format!("0x{}{CANARY}", "0".repeat(24)));
    let hash = format!("0x{CANARY}{}", "5".repeat(24));
    let transaction = json!({
        "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "transactionIndex": "0x0", "hash": hash,
        "from": address,
        "to": FOREIGN, "input": word, "value": word, "nonce": "0x1", "gas": "0x5208", "gasPrice": "0x1", "type": "0x2",
        "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x1", "chainId": "0x7a69", "v": "0x0", "r": word, "s": word,
        "yParity": "0x0", "accessList": [{"address": address, "storageKeys": [word]}], "unheard": address
    });
    let log = json!({
        "address": FOREIGN, "topics": [word, word, word], "data": word, "blockNumber": "0x64",
        "blockHash": FakeNode::HEAD_HASH,
        "transactionHash": hash, "transactionIndex": "0x0", "logIndex": "0x0", "removed": false, "unheard": address
    });
    let receipt = json!({
        "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "transactionIndex": "0x0", "transactionHash": hash,
        "from": address, "to": FOREIGN, "contractAddress": null, "cumulativeGasUsed": "0x5208", "gasUsed": "0x5208",
        "effectiveGasPrice": "0x1", "logs": [log], "logsBloom": format!("0x{}", CANARY.repeat(13)), "status": "0x1",
        "type": "0x2", "root": word, "unheard": address
    });
    // The caller's own address, a precompile and the zero address are public to the stranger (spec/20 §10).
    let public = || {
        let public = [account(1).address(), Address::with_last_byte(4), Address::ZERO];
        call.params
            .get(0)
            .is_some_and(|address_param| public.iter().any(|address| json!(address) == *address_param))
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
            "accountProof": [word], "storageProof": [{"key": word, "value": word, "proof": [word]}],
            "unheard": address})
        }
        "debug_traceCall" => {
            let NodeReply::Result(mut tree) = trace(&call.params) else {
                return None;
            };
            if tree.get("type").is_some() {
                tree["calls"] = json!([{"type": "STATICCALL", "from": tree["to"], "to": FOREIGN, "gas": "0x10",
                    "gasUsed": "0x1",
                    "input": word, "output": word}]);
            }
            tree
        }
        "debug_traceTransaction" => {
            json!({"type": "CALL", "from": address, "to": FOREIGN, "input": word, "output": word,
            "gas": "0x1", "gasUsed": "0x1", "value": word})
        }
        "eth_getBalance" if !public() => json!(format!("0x{HIDDEN}{HIDDEN}")),
        _ => return None,
    })
}

/// The implementation slot of proxies, and an ordinary slot.
const SLOTS: [&str; 3] = [
    "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
    "0x0000000000000000000000000000000000000000000000000000000000000000",
    "0x0",
];

fn address(choices: &mut Choices<'_>) -> Value {
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
    match known.get(usize::from(choices.next()) % 9) {
        Some(address) => json!(address),
        None => json!(format!("0x{CANARY}")),
    }
}

fn tag(choices: &mut Choices<'_>) -> Value {
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
    json!(TAGS[usize::from(choices.next()) % TAGS.len()])
}

/// Mostly a call of `balanceOf`.
fn call(choices: &mut Choices<'_>) -> Value {
    let mut call = json!({"to": address(choices)});
    match choices.next() % 4 {
        0 => {}
        1 => call["data"] = json!(Bytes::copy_from_slice(&choices.take())),
        _ => {
            call["data"] = json!(format!(
                "0x70a08231{:0>64}",
                address(choices).as_str().unwrap_or_default().trim_start_matches("0x")
            ))
        }
    }
    if choices.one_in(2) {
        call["from"] = address(choices);
    }
    if choices.one_in(8) {
        call["value"] = json!("0x1");
    }
    call
}

/// Bytes as a stream of choices; after their end every choice is the first.
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

    /// Letters, digits and some signs, all of which a path may contain.
    fn text(&mut self) -> String {
        const SIGNS: &[u8; 64] = b"0123456789abcdefxABCDEFXghijklmnopqrstuvwyzGHIJKLMNOPQRSTUVWYZ_-";
        self.take()
            .iter()
            .map(|byte| char::from(SIGNS[usize::from(byte % 64)]))
            .collect()
    }
}

/// Thousands of requests, the same ones in every run, cause no panic and leak no unopened answer.
#[cfg(test)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arbitrary_requests_and_answers_keep_the_properties() {
    let assault = PipelineFuzz::start().await;
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
