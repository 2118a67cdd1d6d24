//! Logins with fresh proofs: the identity network's own wallet library scans the request and posts to the running
//! gateway, which reads the state contract of a real chain (spec/10 sections 2 and 3).
//!
//! The circuit and its keys are ours, since nobody can prove under the official ones without the official proving key;
//! a gateway told nothing of our key refuses them, which is tested, too.

use crate::harness::{Answer, Engine, Gateway, Process, init_code, send};
use alloy_primitives::{Bytes, U256};
use alloy_sol_types::{SolCall, sol};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use gw_testkit::{
    Wallet,
    anvil::{Anvil, AnvilOptions},
    wallet::Kit,
};
use http_body_util::Full;
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

sol! {
    struct GistRootInfo {
        uint256 root;
        uint256 replacedByRoot;
        uint256 createdAtTimestamp;
        uint256 replacedAtTimestamp;
        uint256 createdAtBlock;
        uint256 replacedAtBlock;
    }
    function publishRoot(uint256 root) external;
    function setRoot(uint256 asked, GistRootInfo info) external;
    function setNotFound(uint8 how) external;
}

const VERIFIER: &str = "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7";
/// The chain the identities of `did:iden3:privado:main` live on.
const IDENTITY_CHAIN: u64 = 21000;

/// A chain with the state contract.
#[derive(Debug)]
struct Network {
    node: Anvil,
    contract: String,
}

impl Network {
    async fn start(http: &crate::harness::Http) -> Self {
        let node = Anvil::start(&AnvilOptions {
            chain_id: Some(IDENTITY_CHAIN),
            ..AnvilOptions::default()
        });
        let mut network = Self {
            node,
            contract: String::new(),
        };
        let receipt = network.transact(http, None, init_code("IdentityState", &[])).await;
        network.contract = receipt["contractAddress"].as_str().unwrap().to_owned();
        network
    }

    async fn rpc(&self, http: &crate::harness::Http, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = http::Request::post(self.node.url())
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .unwrap();
        let answer = send(http, request).await.json();
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends from one of the node's own accounts; mined when this returns.
    async fn transact(&self, http: &crate::harness::Http, to: Option<&str>, input: Bytes) -> Value {
        let from = self.rpc(http, "eth_accounts", json!([])).await[0].clone();
        let hash = self
            .rpc(
                http,
                "eth_sendTransaction",
                json!([{"from": from, "to": to, "input": input}]),
            )
            .await;
        for _ in 0..100 {
            let receipt = self.rpc(http, "eth_getTransactionReceipt", json!([hash])).await;
            if receipt.is_object() {
                assert_eq!(receipt["status"], "0x1");
                return receipt;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("{hash} was not mined");
    }
}

/// An open login.
#[derive(Debug)]
struct Login {
    id: String,
    request: Value,
}

impl Login {
    fn callback(&self) -> &str {
        self.request["body"]["callbackUrl"].as_str().unwrap()
    }

    /// What the QR code says (ZK-6).
    fn qr(&self) -> String {
        format!("iden3comm://?i_m={}", BASE64_STANDARD.encode(self.request.to_string()))
    }
}

/// A gateway that believes our key, the chain it asks, and a wallet.
#[derive(Debug)]
struct World {
    gw: Gateway,
    network: Network,
    wallet: Wallet,
}

impl World {
    async fn start() -> Self {
        let keys = Kit::prepare().verification_keys().display().to_string();
        Self::start_with(&[("IDP_VERIFICATION_KEYS_DIR", &keys)]).await
    }

    async fn start_with(extra: &[(&str, &str)]) -> Self {
        let http = crate::harness::client();
        let network = Network::start(&http).await;
        let settings = [
            ("VERIFIER_ID", VERIFIER),
            ("IDP_RPC_URL", network.node.url()),
            ("IDP_STATE_CONTRACT", &network.contract),
        ];
        let settings: Vec<_> = settings.iter().chain(extra).copied().collect();
        let gw = Gateway::start_with(Engine::Sqlite, &settings).await;
        Self {
            gw,
            network,
            wallet: Wallet::start(),
        }
    }

    async fn call(&self, call: impl SolCall) {
        self.network
            .transact(&self.gw.http, Some(&self.network.contract), call.abi_encode().into())
            .await;
    }

    /// Makes the wallet's global root the contract's current one.
    async fn publish(&mut self) -> U256 {
        let root = self.root();
        self.call(publishRootCall { root }).await;
        root
    }

    fn root(&mut self) -> U256 {
        self.wallet.ask("root", json!({}))["root"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Moves the wallet's global root on, without telling the contract.
    fn advance(&mut self, n: u64) -> U256 {
        self.wallet
            .ask("advance", json!({"id": (1000 + n).to_string(), "state": "1"}));
        self.root()
    }

    /// The contract's answer for `root`: replaced so many seconds before its newest block.
    async fn replaced(&self, root: U256, ago: u64) {
        let block = self
            .network
            .rpc(&self.gw.http, "eth_getBlockByNumber", json!(["latest", false]))
            .await;
        let now: U256 = block["timestamp"].as_str().unwrap().parse().unwrap();
        let info = GistRootInfo {
            root,
            replacedByRoot: U256::from(7),
            createdAtTimestamp: now - U256::from(10_000),
            replacedAtTimestamp: now - U256::from(ago),
            createdAtBlock: U256::from(1),
            replacedAtBlock: U256::from(2),
        };
        self.call(setRootCall { asked: root, info }).await;
    }

    fn identity(&mut self, asked: Value) -> String {
        self.wallet.ask("identity", asked)["did"].as_str().unwrap().to_owned()
    }

    async fn open(&self) -> Login {
        let opened = self
            .gw
            .request("POST", "/auth/request", &[], Some(json!({})))
            .await
            .expect(200);
        Login {
            id: opened["session_id"].as_str().unwrap().to_owned(),
            request: opened["auth_request"].clone(),
        }
    }

    /// A token of `did` for a login, and what the wallet believed of the request beside what it says.
    fn token(&mut self, did: &str, login: &Login, believe: Value) -> String {
        let asked = json!({"did": did, "request": login.request, "believe": believe});
        self.wallet.ask("answer", asked)["token"].as_str().unwrap().to_owned()
    }

    fn post(&mut self, login: &Login, token: &str) -> (u64, Value) {
        let said = self
            .wallet
            .ask("post", json!({"callback": login.callback(), "token": token}));
        (said["status"].as_u64().unwrap(), said["body"].clone())
    }

    async fn status(&self, login: &Login) -> Value {
        self.gw
            .request("GET", &format!("/api/v1/auth/session/{}/status", login.id), &[], None)
            .await
            .expect(200)
    }

    /// The token is refused in this login, with this status, text and reason, and the login stays open.
    #[track_caller]
    fn refused(&mut self, login: &Login, token: &str, expected: (u64, &str, &str)) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let (status, body) = self.post(login, token);
        let said = self.status(login);
        async move {
            let said = said.await;
            let seen = (
                status,
                body["error"].as_str().unwrap_or_default(),
                said["reason"].as_str().unwrap_or_default(),
            );
            assert_eq!(seen, expected, "{caller}: {body} {said}");
            assert_eq!(
                (&said["completed"], &said["failed"]),
                (&json!(false), &json!(true)),
                "{caller}"
            );
        }
    }
}

async fn works(gw: &Gateway, pair: &Value) {
    let token = pair["access_token"]
        .as_str()
        .unwrap_or_else(|| panic!("no token in {pair}"));
    let answer: Answer = gw.rpc(token, "eth_chainId", json!([])).await;
    assert_eq!(answer.expect(200)["result"], "0x7a69");
    let mangled = gw.rpc(&format!("{token}x"), "eth_chainId", json!([])).await;
    assert_eq!(
        mangled.status, 401,
        "a token that is none is not overlooked: {}",
        mangled.body
    );
    let own = gw.as_user(token, "GET", "/eth/addresses", None).await;
    assert_eq!(own.status, 200, "{}", own.body);
}

/// An identity nobody published, one of its profiles, and one whose state has moved on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk10_a_wallet_scans_proves_and_gets_tokens_that_work() {
    let mut w = World::start().await;
    let genesis = w.identity(json!({"seed": 1}));
    let profile = w.identity(json!({"seed": 1, "profile": 5}));
    let moved = w.identity(json!({"seed": 2}));
    w.wallet.ask("transit", json!({"did": moved}));
    w.publish().await;
    for did in [&genesis, &profile, &moved] {
        let login = w.open().await;
        let said = w.wallet.ask("login", json!({"did": did, "request": login.qr()}));
        assert_eq!(said["status"], 200, "{did}: {}", said["body"]);
        works(&w.gw, &said["body"]).await;

        let status = w.status(&login).await;
        assert_eq!(status["completed"], true, "{status}");
        works(&w.gw, &status["tokens"]).await;
        assert_ne!(
            status["tokens"]["refresh_token"], said["body"]["refresh_token"],
            "HD19: two families"
        );

        let user =
            w.gw.admin("GET", &format!("/users?search={did}"), None)
                .await
                .expect(200);
        assert_eq!(
            user["data"][0]["external_id"], **did,
            "ZK-41: the subject is the name that was proved"
        );
        assert_eq!(user["data"][0]["kyc"], false, "ZK-80");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk40_to_zk48_an_answer_counts_for_its_own_request_only() {
    const FAILED: (u64, &str, &str) = (401, "verification failed", "verification_failed");
    let mut w = World::start().await;
    let did = w.identity(json!({"seed": 1}));
    w.publish().await;

    let (first, second) = (w.open().await, w.open().await);
    let token = w.token(&did, &first, json!({}));
    w.refused(&second, &token, FAILED).await;

    let altered = w.wallet.ask(
        "alter",
        json!({"token": token, "change": {"thid": second.request["thid"]}}),
    );
    w.refused(&second, altered["token"].as_str().unwrap(), FAILED).await;

    let for_another = w.token(
        &did,
        &second,
        json!({"from": "did:iden3:privado:main:2SiLZgjbQ4JMWBDQXHpxKDpS3PWTmoisoe5uLERhdq"}),
    );
    w.refused(&second, &for_another, FAILED).await;

    let other_thread = w.token(&did, &second, json!({"thid": first.request["thid"]}));
    w.refused(&second, &other_thread, FAILED).await;

    w.refused(&second, "not a token", (400, "invalid token format", "invalid_request"))
        .await;

    // What was refused elsewhere still counts where it belongs, once.
    let (status, pair) = w.post(&first, &token);
    assert_eq!(status, 200, "{pair}");
    works(&w.gw, &pair).await;
    let (status, again) = w.post(&first, &token);
    assert_eq!(
        (status, again["error"].as_str()),
        (401, Some("session not found or expired")),
        "ZK-12"
    );
    w.refused(&second, &token, FAILED).await;

    // A refused session stays open for a proof that holds (ZK-10).
    let valid = w.token(&did, &second, json!({}));
    let (status, pair) = w.post(&second, &valid);
    assert_eq!(status, 200, "{pair}");
    assert_eq!(w.status(&second).await["completed"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk50_to_zk52_the_state_contract_has_the_last_word() {
    const FAILED: (u64, &str, &str) = (401, "verification failed", "verification_failed");
    let mut w = World::start().await;
    let did = w.identity(json!({"seed": 1}));

    let login = w.open().await;
    let unknown = w.token(&did, &login, json!({}));
    w.refused(&login, &unknown, FAILED).await;
    w.call(setNotFoundCall { how: 1 }).await;
    w.refused(&login, &unknown, FAILED).await;
    w.call(setNotFoundCall { how: 2 }).await;
    w.refused(
        &login,
        &unknown,
        (503, "verification unavailable", "authentication_failed"),
    )
    .await;
    w.call(setNotFoundCall { how: 0 }).await;

    // The wallet proves against the tree of its day; the chain has moved on since.
    let old = w.advance(1);
    w.replaced(old, 400).await;
    let token = w.token(&did, &login, json!({}));
    w.refused(&login, &token, FAILED).await;

    let recent = w.advance(2);
    w.replaced(recent, 100).await;
    let token = w.token(&did, &login, json!({}));
    let (status, pair) = w.post(&login, &token);
    assert_eq!(status, 200, "replaced a moment ago still counts: {pair}");
    works(&w.gw, &pair).await;

    // No resolver, no question: the root is published on the one chain that is asked, and the answer is still no.
    let stranger = w.identity(json!({"seed": 1, "blockchain": "polygon", "network": "amoy"}));
    w.publish().await;
    let login = w.open().await;
    let token = w.token(&stranger, &login, json!({}));
    w.refused(&login, &token, (401, "verification failed", "network_not_supported"))
        .await;
}

/// Only the official keys count, unless a developer says otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk34_a_key_of_ones_own_counts_only_where_it_was_named() {
    let mut w = World::start_with(&[]).await;
    let did = w.identity(json!({"seed": 1}));
    w.publish().await;
    let login = w.open().await;
    let token = w.token(&did, &login, json!({}));
    w.refused(&login, &token, (401, "verification failed", "verification_failed"))
        .await;
}

/// The demo's personas log in without the mock: whoever gives one of them a DID of their own logs in with their wallet
/// and may do what the persona may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk10_a_demo_persona_logs_in_with_a_wallet() {
    let http = crate::harness::client();
    let network = Network::start(&http).await;
    let mut wallet = Wallet::start();
    let did = wallet.ask("identity", json!({"seed": 11}))["did"]
        .as_str()
        .unwrap()
        .to_owned();
    let keys = Kit::prepare().verification_keys().display().to_string();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_ledger-gateway-dev"))
        .args(["demo", "--ephemeral", "--seed-only", "--did", &format!("analyst={did}")])
        .env("IDP_VERIFICATION_KEYS_DIR", keys)
        .env("VERIFIER_ID", VERIFIER)
        .env("IDP_RPC_URL", network.node.url())
        .env("IDP_STATE_CONTRACT", &network.contract)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let process = Process(demo);
    // `Gateway http://localhost:… node behind it http://… token contract 0x…`
    let told = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("Gateway "))
        .expect("the demo says where it is");
    let words: Vec<&str> = told.split_whitespace().collect();
    let (url, node, token) = (words[1].to_owned(), words[5].to_owned(), *words.last().unwrap());
    let gw = Gateway::found(url, node, process);
    let mut w = World { gw, network, wallet };
    w.publish().await;
    let login = w.open().await;
    let said = w.wallet.ask("login", json!({"did": did, "request": login.qr()}));
    assert_eq!(said["status"], 200, "{}", said["body"]);
    let access = said["body"]["access_token"].as_str().unwrap();
    // The analyst's rights: the own balance through the token, nobody else's.
    let own = w.gw.as_user(access, "GET", "/eth/addresses", None).await.expect(200);
    let own = own["addresses"][0]["address"]
        .as_str()
        .unwrap()
        .trim_start_matches("0x")
        .to_owned();
    let balance = |of: &str| json!([{"to": token, "data": format!("0x70a08231{of:0>64}")}, "latest"]);
    assert_eq!(w.gw.rpc(access, "eth_call", balance(&own)).await.status, 200);
    assert_eq!(
        w.gw.rpc(access, "eth_call", balance(&"11".repeat(20))).await.status,
        404
    );
    assert_eq!(
        w.gw.process.terminate(),
        Some(0),
        "the demo ends and takes its parts with it"
    );
}
