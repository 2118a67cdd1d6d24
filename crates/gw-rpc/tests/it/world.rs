//! One gateway instance for tests: policy in SQLite, a journal, a node, and a router that is called without a socket.

use alloy_consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::TxKind;
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use axum::{Router, body::Body, extract::ConnectInfo};
use gw_audit::{AccessRecord, Record, SendIntent, SendOutcome};
use gw_crypto::KeyCipher;
use gw_evm::CustomMethods;
use gw_node::{AnswerLimits, Node};
use gw_policy::PolicySettings;
use gw_rpc::{
    RpcSettings, RpcState, Upstream, router,
    send::{ComplianceCheck, NoComplianceRules, SendContext},
};
use gw_store::record::{AbiText, AccessInput, NewContract, NewGrant, NewGroup, UserPatch};
use gw_testkit::{Anvil, FakeNode, Fixture, TestUser, anvil::anvil, fixture::unpolled_node};
use gw_types::{Address, B256, Bytes, Claim, ContractId, GroupId, OrgId, Secret, U256};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

/// The response of every denial, for id 1.
pub(crate) const DENIED: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}"#;

/// One instance.
pub(crate) struct World {
    pub(crate) fixture: Fixture,
    pub(crate) app: Router,
    pub(crate) node: Arc<Node>,
    pub(crate) sends: SendContext,
    pub(crate) end: CancellationToken,
    url: String,
    custom_methods: Arc<CustomMethods>,
}

/// An instance with a scripted node that has recorded no request yet.
pub(crate) async fn scripted() -> (World, FakeNode) {
    scripted_with(RpcSettings::default(), PolicySettings::default()).await
}

pub(crate) async fn scripted_with(settings: RpcSettings, policy_settings: PolicySettings) -> (World, FakeNode) {
    scripted_on(Fixture::start().await, settings, policy_settings).await
}

/// An instance on this fixture.
pub(crate) async fn scripted_on(
    fixture: Fixture,
    settings: RpcSettings,
    policy_settings: PolicySettings,
) -> (World, FakeNode) {
    let fake = FakeNode::start().await;
    let world = World::serve(fixture, fake.url(), settings, policy_settings, AnswerLimits::default()).await;
    fake.take();
    (world, fake)
}

/// An instance for this node with these limits for the bytes of answers.
pub(crate) async fn holding(url: &str, settings: RpcSettings, limits: AnswerLimits) -> World {
    let fixture = Fixture::start().await;
    World::serve(fixture, url, settings, PolicySettings::default(), limits).await
}

/// An instance with a real node.
pub(crate) async fn real() -> (World, Anvil) {
    real_with(PolicySettings::default()).await
}

pub(crate) async fn real_with(policy_settings: PolicySettings) -> (World, Anvil) {
    real_on(anvil(), policy_settings).await
}

/// An instance with this node.
pub(crate) async fn real_on(anvil: Anvil, policy_settings: PolicySettings) -> (World, Anvil) {
    let (fixture, settings, limits) = (Fixture::start().await, RpcSettings::default(), AnswerLimits::default());
    let world = World::serve(fixture, anvil.url(), settings, policy_settings, limits).await;
    (world, anvil)
}

/// The cipher of the groups' upstream keys.
pub(crate) fn group_keys() -> KeyCipher {
    KeyCipher::new(&Secret::new("11".repeat(32))).unwrap()
}

impl World {
    async fn serve(
        fixture: Fixture,
        url: &str,
        settings: RpcSettings,
        policy_settings: PolicySettings,
        limits: AnswerLimits,
    ) -> Self {
        let custom_methods = Arc::clone(&settings.custom_methods);
        let config = unpolled_node(url)
            .with_group_keys(Arc::new(group_keys()))
            .with_answer_limits(limits);
        let node = Node::connect(&config).await.unwrap();
        let end = CancellationToken::new();
        let sends = SendContext {
            node: Upstream::new(Arc::clone(&node)),
            store: fixture.store.clone(),
            feed: fixture.feed.clone(),
            journal: Arc::clone(&fixture.journal),
            clock: Arc::new(fixture.clock.clone()),
            policy_settings: Arc::new(policy_settings),
            compliance: Arc::new(NoComplianceRules),
            tasks: TaskTracker::new(),
        };
        let state = RpcState::new(Arc::clone(&fixture.http), sends.clone(), settings, end.clone());
        Self {
            fixture,
            app: router(state),
            node,
            sends,
            end,
            url: url.to_owned(),
            custom_methods,
        }
    }

    /// The next process, on the same store, journal and node.
    pub(crate) async fn restarted(&self) -> Self {
        let policy_settings = PolicySettings::clone(&self.sends.policy_settings);
        let (settings, limits) = (RpcSettings::default(), AnswerLimits::default());
        Self::serve(
            self.fixture.restarted().await,
            &self.url,
            settings,
            policy_settings,
            limits,
        )
        .await
    }

    /// This world with other settings.
    pub(crate) fn with(self, settings: RpcSettings) -> Self {
        let custom_methods = Arc::clone(&settings.custom_methods);
        let state = RpcState::new(
            Arc::clone(&self.fixture.http),
            self.sends.clone(),
            settings,
            self.end.clone(),
        );
        Self {
            app: router(state),
            custom_methods,
            ..self
        }
    }

    /// This world with a compliance check.
    pub(crate) fn under(mut self, compliance: Arc<dyn ComplianceCheck>) -> Self {
        self.sends.compliance = compliance;
        let settings = RpcSettings {
            custom_methods: Arc::clone(&self.custom_methods),
            ..RpcSettings::default()
        };
        self.with(settings)
    }

    // ── policy ──

    /// A user with KYC, the only member of a new group with these rights.
    pub(crate) async fn person(&self, name: &str, org: OrgId, methods: &[&str], claims: &[Claim]) -> TestUser {
        let access = AccessInput {
            allowed_methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            claims: claims.iter().copied().collect(),
            custom_methods: Arc::clone(&self.custom_methods),
            ..AccessInput::default()
        };
        let slug = format!("did-test-{name}");
        self.fixture
            .create_user(name, NewGroup::plain(org, slug.clone(), slug), access)
            .await
    }

    /// Registers a contract and grants it without restriction.
    pub(crate) async fn contract(
        &self,
        org: OrgId,
        address: Address,
        abi: Option<&Value>,
        to: &[GroupId],
    ) -> ContractId {
        let new = NewContract {
            abi: abi.map(|abi| AbiText::parse(abi.to_string()).unwrap()),
            ..NewContract::plain(org, address, "a contract")
        };
        self.fixture
            .change(async |tx| {
                let id = tx.create_contract(new).await.unwrap().id;
                for group in to {
                    tx.create_grant(NewGrant::full(id, *group)).await.unwrap();
                }
                id
            })
            .await
    }

    /// Links an address with a proof of its owner.
    pub(crate) async fn link(&self, person: &TestUser, address: Address) {
        use gw_store::record::LinkProof;
        self.fixture
            .change(async |tx| tx.link_address(person.id, address, LinkProof::Challenge).await.unwrap())
            .await;
    }

    pub(crate) async fn update(&self, person: &TestUser, patch: UserPatch) {
        self.fixture
            .change(async |tx| tx.update_user(person.id, patch).await.unwrap())
            .await;
    }

    // ── asking ──

    pub(crate) fn ask(&self, caller: Option<&TestUser>, method: &str, params: Value) -> Ask<'_> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let ask = self.raw(body.to_string());
        match caller {
            Some(person) => ask.by(person),
            None => ask,
        }
    }

    pub(crate) fn raw(&self, body: impl Into<Body>) -> Ask<'_> {
        Ask {
            world: self,
            request: Request::post("/rpc"),
            body: body.into(),
            path: None,
        }
    }

    /// The result of a call that must have one.
    #[track_caller]
    pub(crate) fn result(&self, person: &TestUser, method: &str, params: Value) -> impl Future<Output = Value> {
        let ask = self.ask(Some(person), method, params);
        let method = method.to_owned();
        async move {
            let answer = ask.send().await;
            assert_eq!(answer.status, 200, "{method}: {}", answer.text);
            assert!(answer.body.get("result").is_some(), "{method}: {}", answer.text);
            answer.body["result"].clone()
        }
    }

    // ── what is kept ──

    /// The only access record since the last call of `records`.
    pub(crate) fn record(&self) -> AccessRecord {
        let mut records = self.fixture.access_records();
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }

    pub(crate) fn sends_recorded(&self) -> (Vec<SendIntent>, Vec<SendOutcome>, Vec<AccessRecord>) {
        let (mut intents, mut outcomes, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for record in self.fixture.records() {
            match record {
                Record::SendIntent(intent) => intents.push(intent),
                Record::SendOutcome(outcome) => outcomes.push(outcome),
                Record::Access(call) => calls.push(call),
                Record::Admin(_) | Record::Security(_) | Record::Disclosure(_) => {}
            }
        }
        (intents, outcomes, calls)
    }

    /// Waits for the tasks in progress.
    pub(crate) async fn settle(&self) {
        self.sends.tasks.close();
        self.sends.tasks.wait().await;
        self.sends.tasks.reopen();
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    // ── the real chain, past the gateway ──

    /// Deploys an unregistered contract from a key of the node, and waits until it is mined.
    pub(crate) async fn deploy(&self, init_code: &[u8]) -> Address {
        let from = account(3).address();
        let nonce = self.node.mined_nonce(from).await.unwrap();
        self.node.refresh_head().await.unwrap();
        let before = self.node.head().unwrap().number;
        let send = json!([{"from": from, "input": Bytes::copy_from_slice(init_code), "gas": "0x7a1200"}]);
        self.anvil("eth_sendTransaction", send).await;
        self.mined(before + 1).await;
        from.create(nonce)
    }

    /// Calls the node directly.
    pub(crate) async fn anvil(&self, method: &'static str, params: Value) {
        let call = gw_evm::wire::UpstreamCall {
            method: method.into(),
            params: params.to_string(),
        };
        let answer = self.node.call(&call, gw_node::RequestBudget::Fact).await.unwrap();
        assert!(matches!(answer, gw_node::Answer::Result(_)), "{method}");
    }

    /// The node's response to a direct request: the attack without the gateway.
    pub(crate) async fn bare(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
        let request = Request::post(&self.url)
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap();
        let answer = client
            .request(request)
            .await
            .unwrap()
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes();
        serde_json::from_slice(&answer).unwrap()
    }

    /// Renews the head until it has reached this number.
    pub(crate) async fn mined(&self, number: u64) {
        while self.node.head().unwrap().number < number {
            self.node.refresh_head().await.unwrap();
        }
    }
}

/// A request under construction.
pub(crate) struct Ask<'a> {
    world: &'a World,
    request: http::request::Builder,
    body: Body,
    path: Option<String>,
}

impl Ask<'_> {
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        Self {
            request: self.request.header(name, value),
            ..self
        }
    }

    pub(crate) fn by(self, person: &TestUser) -> Self {
        self.bearer(&person.token)
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn path(self, path: &str) -> Self {
        Self {
            path: Some(path.to_owned()),
            ..self
        }
    }

    /// Sends the request. The future owns all it needs.
    pub(crate) fn answering(self) -> impl Future<Output = Answer> + Send + 'static {
        let opening = self.opening();
        async move { Answer::read(opening.await).await }
    }

    /// Sends the request, and returns the response before its body is read.
    pub(crate) fn opening(self) -> impl Future<Output = http::Response<Body>> + Send + 'static {
        let request = match self.path {
            Some(path) => self.request.uri(path),
            None => self.request,
        };
        let mut request = request.body(self.body).unwrap();
        request
            .extensions_mut()
            .insert(ConnectInfo(SocketAddr::from(([198, 51, 100, 1], 4711))));
        let app = self.world.app.clone();
        async move { app.oneshot(request).await.unwrap() }
    }

    pub(crate) async fn send(self) -> Answer {
        self.answering().await
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Answer {
    /// Reads the body.
    pub(crate) async fn read(response: http::Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text,
            body,
        }
    }

    /// Status and code of an error.
    pub(crate) fn error(&self) -> (u16, i64) {
        (self.status, self.body["error"]["code"].as_i64().unwrap_or_default())
    }

    #[track_caller]
    pub(crate) fn assert_denied(&self) {
        assert_eq!(
            (self.status, self.text.as_str()),
            (StatusCode::NOT_FOUND.as_u16(), DENIED)
        );
    }
}

// ── accounts ──

/// A key of anvil with initial funds.
pub(crate) fn account(number: usize) -> PrivateKeySigner {
    const KEYS: [&str; 7] = [
        "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
        "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
        "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
        "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    ];
    KEYS[number].parse().unwrap()
}

/// A signed transaction and its hash.
pub(crate) fn signed(
    by: &PrivateKeySigner,
    nonce: u64,
    to: Option<Address>,
    value: u64,
    input: Bytes,
) -> (String, B256) {
    signed_with(
        by,
        TxEip1559 {
            chain_id: 31337,
            nonce,
            gas_limit: 3_000_000,
            max_fee_per_gas: 20_000_000_000,
            max_priority_fee_per_gas: 1_000_000_000,
            to: to.map_or(TxKind::Create, TxKind::Call),
            value: U256::from(value),
            access_list: Default::default(),
            input,
        },
    )
}

/// Any signed transaction and its hash.
pub(crate) fn signed_with(by: &PrivateKeySigner, transaction: TxEip1559) -> (String, B256) {
    let signature = by.sign_hash_sync(&transaction.signature_hash()).unwrap();
    let signed = TxEnvelope::from(transaction.into_signed(signature));
    (Bytes::from(signed.encoded_2718()).to_string(), *signed.tx_hash())
}

/// Bytecode and ABI of a contract in `contracts/artifacts`.
pub(crate) fn artifact(name: &str) -> (Bytes, Value) {
    let path = format!(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../contracts/artifacts/{}.json"),
        name
    );
    let artifact: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    (
        artifact["bytecode"].as_str().unwrap().parse().unwrap(),
        artifact["abi"].clone(),
    )
}
