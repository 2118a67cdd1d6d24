//! Logins with real proofs: the identity network's own wallet library scans the request and posts the proof to the
//! running gateway, which reads the state contract of a real chain (spec/10 sections 2 and 3).
//!
//! Circuit and keys are the test kit's own, because a proof for the official circuit needs the official proving key. A
//! gateway without the test kit's verification key refuses these proofs, which is tested, too.

use crate::harness::{Engine, Gateway, Process, Response, init_code, send};
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
    function setRoot(uint256 requested, GistRootInfo info) external;
    function setNotFound(uint8 how) external;
}

const VERIFIER: &str = "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7";
/// The id of the chain with the state contract of `did:iden3:privado:main`.
const IDENTITY_CHAIN: u64 = 21000;

/// A node of the identity chain with the state contract.
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

    /// Sends a transaction from one of the node's own accounts, waits until it is mined and returns its receipt.
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

/// An open login session.
#[derive(Debug)]
struct Login {
    id: String,
    request: Value,
}

impl Login {
    fn callback(&self) -> &str {
        self.request["body"]["callbackUrl"].as_str().unwrap()
    }

    /// The text of the QR code (ZK-6).
    fn qr(&self) -> String {
        format!("iden3comm://?i_m={}", BASE64_STANDARD.encode(self.request.to_string()))
    }
}

/// A gateway with the test kit's verification key, the identity chain and a wallet.
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

    /// Changes the wallet's global root without publishing it.
    fn advance(&mut self, n: u64) -> U256 {
        self.wallet
            .ask("advance", json!({"id": (1000 + n).to_string(), "state": "1"}));
        self.root()
    }

    /// Makes the contract report `root` as replaced `seconds_ago` seconds before the newest block.
    async fn mark_replaced(&self, root: U256, seconds_ago: u64) {
        let block = self
            .network
            .rpc(&self.gw.http, "eth_getBlockByNumber", json!(["latest", false]))
            .await;
        let now: U256 = block["timestamp"].as_str().unwrap().parse().unwrap();
        let info = GistRootInfo {
            root,
            replacedByRoot: U256::from(7),
            createdAtTimestamp: now - U256::from(10_000),
            replacedAtTimestamp: now - U256::from(seconds_ago),
            createdAtBlock: U256::from(1),
            replacedAtBlock: U256::from(2),
        };
        self.call(setRootCall { requested: root, info }).await;
    }

    fn identity(&mut self, parameters: Value) -> String {
        self.wallet.ask("identity", parameters)["did"]
            .as_str()
            .unwrap()
            .to_owned()
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

    /// The wallet's proof token of `did` for a login. Members of `believe` override those of the request.
    fn token(&mut self, did: &str, login: &Login, believe: Value) -> String {
        let parameters = json!({"did": did, "request": login.request, "believe": believe});
        self.wallet.ask("answer", parameters)["token"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn post(&mut self, login: &Login, token: &str) -> (u64, Value) {
        let response = self
            .wallet
            .ask("post", json!({"callback": login.callback(), "token": token}));
        (response["status"].as_u64().unwrap(), response["body"].clone())
    }

    async fn status(&self, login: &Login) -> Value {
        self.gw
            .request("GET", &format!("/api/v1/auth/session/{}/status", login.id), &[], None)
            .await
            .expect(200)
    }

    /// Posts the token, which must be refused with this status, error text and reason. The login stays open.
    #[track_caller]
    fn assert_refused(&mut self, login: &Login, token: &str, expected: (u64, &str, &str)) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let (status, body) = self.post(login, token);
        let response = self.status(login);
        async move {
            let response = response.await;
            let actual = (
                status,
                body["error"].as_str().unwrap_or_default(),
                response["reason"].as_str().unwrap_or_default(),
            );
            assert_eq!(actual, expected, "{caller}: {body} {response}");
            assert_eq!(
                (&response["completed"], &response["failed"]),
                (&json!(false), &json!(true)),
                "{caller}"
            );
        }
    }
}

/// Asserts that the access token of a token pair works.
async fn assert_usable(gw: &Gateway, pair: &Value) {
    let token = pair["access_token"]
        .as_str()
        .unwrap_or_else(|| panic!("no token in {pair}"));
    let answer: Response = gw.rpc(token, "eth_chainId", json!([])).await;
    assert_eq!(answer.expect(200)["result"], "0x7a69");
    let mangled = gw.rpc(&format!("{token}x"), "eth_chainId", json!([])).await;
    assert_eq!(
        mangled.status, 401,
        "an invalid token is an error, not an anonymous call: {}",
        mangled.body
    );
    let addresses = gw.as_user(token, "GET", "/eth/addresses", None).await;
    assert_eq!(addresses.status, 200, "{}", addresses.body);
}

/// Logs in with an identity at its genesis state, with one of its profiles, and with an identity after a state
/// transition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk10_a_wallet_scans_proves_and_gets_tokens_that_work() {
    let mut w = World::start().await;
    let genesis = w.identity(json!({"seed": 1}));
    let profile = w.identity(json!({"seed": 1, "profile": 5}));
    let transitioned = w.identity(json!({"seed": 2}));
    w.wallet.ask("transit", json!({"did": transitioned}));
    w.publish().await;
    for did in [&genesis, &profile, &transitioned] {
        let login = w.open().await;
        let response = w.wallet.ask("login", json!({"did": did, "request": login.qr()}));
        assert_eq!(response["status"], 200, "{did}: {}", response["body"]);
        assert_usable(&w.gw, &response["body"]).await;

        let status = w.status(&login).await;
        assert_eq!(status["completed"], true, "{status}");
        assert_usable(&w.gw, &status["tokens"]).await;
        assert_ne!(
            status["tokens"]["refresh_token"], response["body"]["refresh_token"],
            "HD19: two families"
        );

        let user =
            w.gw.admin("GET", &format!("/users?search={did}"), None)
                .await
                .expect(200);
        assert_eq!(
            user["data"][0]["external_id"], **did,
            "ZK-41: the subject is the DID that was proved"
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
    w.assert_refused(&second, &token, FAILED).await;

    let altered = w.wallet.ask(
        "alter",
        json!({"token": token, "change": {"thid": second.request["thid"]}}),
    );
    w.assert_refused(&second, altered["token"].as_str().unwrap(), FAILED)
        .await;

    let for_another = w.token(
        &did,
        &second,
        json!({"from": "did:iden3:privado:main:2SiLZgjbQ4JMWBDQXHpxKDpS3PWTmoisoe5uLERhdq"}),
    );
    w.assert_refused(&second, &for_another, FAILED).await;

    let other_thread = w.token(&did, &second, json!({"thid": first.request["thid"]}));
    w.assert_refused(&second, &other_thread, FAILED).await;

    w.assert_refused(&second, "not a token", (400, "invalid token format", "invalid_request"))
        .await;

    // The token that another login refused is accepted once in its own login.
    let (status, pair) = w.post(&first, &token);
    assert_eq!(status, 200, "{pair}");
    assert_usable(&w.gw, &pair).await;
    let (status, replay) = w.post(&first, &token);
    assert_eq!(
        (status, replay["error"].as_str()),
        (401, Some("session not found or expired")),
        "ZK-12"
    );
    w.assert_refused(&second, &token, FAILED).await;

    // A session stays open after a refusal and accepts a valid proof (ZK-10).
    let valid = w.token(&did, &second, json!({}));
    let (status, pair) = w.post(&second, &valid);
    assert_eq!(status, 200, "{pair}");
    assert_eq!(w.status(&second).await["completed"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk50_to_zk52_a_proof_needs_a_recent_root_of_the_state_contract() {
    const FAILED: (u64, &str, &str) = (401, "verification failed", "verification_failed");
    let mut w = World::start().await;
    let did = w.identity(json!({"seed": 1}));

    let login = w.open().await;
    let unknown = w.token(&did, &login, json!({}));
    w.assert_refused(&login, &unknown, FAILED).await;
    w.call(setNotFoundCall { how: 1 }).await;
    w.assert_refused(&login, &unknown, FAILED).await;
    w.call(setNotFoundCall { how: 2 }).await;
    w.assert_refused(
        &login,
        &unknown,
        (503, "verification unavailable", "authentication_failed"),
    )
    .await;
    w.call(setNotFoundCall { how: 0 }).await;

    // The wallet proves against an old root, which the contract has replaced.
    let old = w.advance(1);
    w.mark_replaced(old, 400).await;
    let token = w.token(&did, &login, json!({}));
    w.assert_refused(&login, &token, FAILED).await;

    let recent = w.advance(2);
    w.mark_replaced(recent, 100).await;
    let token = w.token(&did, &login, json!({}));
    let (status, pair) = w.post(&login, &token);
    assert_eq!(status, 200, "a recently replaced root is accepted: {pair}");
    assert_usable(&w.gw, &pair).await;

    // An identity of a network without a configured resolver is refused, although its root is published on the chain
    // that the gateway reads.
    let stranger = w.identity(json!({"seed": 1, "blockchain": "polygon", "network": "amoy"}));
    w.publish().await;
    let login = w.open().await;
    let token = w.token(&stranger, &login, json!({}));
    w.assert_refused(&login, &token, (401, "verification failed", "network_not_supported"))
        .await;
}

/// Only the official verification keys are accepted, unless the configuration names other ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk34_another_verification_key_is_accepted_only_if_configured() {
    let mut w = World::start_with(&[]).await;
    let did = w.identity(json!({"seed": 1}));
    w.publish().await;
    let login = w.open().await;
    let token = w.token(&did, &login, json!({}));
    w.assert_refused(&login, &token, (401, "verification failed", "verification_failed"))
        .await;
}

/// A demo persona can have the DID of a real wallet. The wallet then logs in without the mock login and has the rights
/// of the persona.
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
    let summary = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("Gateway "))
        .expect("the demo prints the line that begins with `Gateway `");
    let words: Vec<&str> = summary.split_whitespace().collect();
    let (url, node, token) = (words[1].to_owned(), words[5].to_owned(), *words.last().unwrap());
    let gw = Gateway::from_process(url, node, process);
    let mut w = World { gw, network, wallet };
    w.publish().await;
    let login = w.open().await;
    let response = w.wallet.ask("login", json!({"did": did, "request": login.qr()}));
    assert_eq!(response["status"], 200, "{}", response["body"]);
    let access = response["body"]["access_token"].as_str().unwrap();
    // The analyst's rights: the token balance of their own address only.
    let addresses = w.gw.as_user(access, "GET", "/eth/addresses", None).await.expect(200);
    let own_address = addresses["addresses"][0]["address"]
        .as_str()
        .unwrap()
        .trim_start_matches("0x")
        .to_owned();
    let balance = |address: &str| json!([{"to": token, "data": format!("0x70a08231{address:0>64}")}, "latest"]);
    assert_eq!(w.gw.rpc(access, "eth_call", balance(&own_address)).await.status, 200);
    assert_eq!(
        w.gw.rpc(access, "eth_call", balance(&"11".repeat(20))).await.status,
        404
    );
    assert_eq!(
        w.gw.process.terminate(),
        Some(0),
        "the demo stops, and stops its node and gateway"
    );
}
