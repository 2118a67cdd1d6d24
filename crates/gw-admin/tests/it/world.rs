//! An admin API on a fixture, with a scripted node.

use axum::{Router, body::Body, extract::ConnectInfo, response::IntoResponse as _};
use gw_admin::{
    AdminSettings, AdminState, ExplorerFuture, ExplorerView, ImpersonatedExplorer, InstanceFacts, LoginSession,
    LoginSessions, SessionFuture, router,
};
use gw_audit::{AccessRecord, Chain, ChainId, EncodedRecord, Genesis, Record, ShardId, StoredEntry, Stream};
use gw_crypto::KeyCipher;
use gw_http::{
    AuthError, DeliveryNetworks,
    simulation::{
        CallSimulator, ImpersonatedCall, ImpersonatedResult, SenderRequired, SimulationFuture, TestCall, TestResult,
    },
};
use gw_node::Node;
use gw_store::{
    audit::{AuditStore, Claim, ToSeal},
    record::{AccessInput, NewGroup},
};
use gw_testkit::{
    FakeNode, Fixture,
    fixture::{ADMIN_TOKEN, FixtureConfig, unpolled_node},
};
use gw_types::{OrgId, Seconds, Secret};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::{net::SocketAddr, sync::Arc};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use uuid::Uuid;

pub(crate) struct World {
    pub(crate) fixture: Fixture,
    audit: AuditStore,
    app: Router,
    _node: FakeNode,
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) location: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

/// The credentials of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller<'a> {
    Nobody,
    Super,
    User(&'a str),
}

/// A session store without sessions.
#[derive(Debug)]
struct NoSessions;

impl LoginSessions for NoSessions {
    fn list(&self) -> SessionFuture<'_, Vec<LoginSession>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn find(&self, _: Uuid) -> SessionFuture<'_, Option<LoginSession>> {
        Box::pin(async { Ok(None) })
    }
    fn end(&self, _: Uuid) -> SessionFuture<'_, bool> {
        Box::pin(async { Ok(false) })
    }
}

/// An explorer without routes.
#[derive(Debug)]
struct NoExplorer;

impl ImpersonatedExplorer for NoExplorer {
    fn route(&self, _: &str) -> Option<String> {
        None
    }
    fn read(&self, _: ExplorerView, _: Request<Body>) -> ExplorerFuture<'_> {
        Box::pin(async { StatusCode::NOT_FOUND.into_response() })
    }
}

/// No call is made here: no token is valid, and an impersonated call never ends.
#[derive(Debug)]
struct NoCalls;

impl CallSimulator for NoCalls {
    fn test_call(&self, _: TestCall) -> SimulationFuture<'_, Result<TestResult, AuthError>> {
        Box::pin(async { Err(AuthError::Invalid) })
    }
    fn simulate_as(&self, _: ImpersonatedCall) -> SimulationFuture<'_, Result<ImpersonatedResult, SenderRequired>> {
        Box::pin(std::future::pending())
    }
}

/// The sealed access log, as the sealer of an instance writes it.
pub(crate) struct AccessLog<'a> {
    fixture: &'a Fixture,
    audit: &'a AuditStore,
    claim: Claim,
    chain: Chain,
    tail: Vec<ToSeal>,
}

impl AccessLog<'_> {
    /// Seals records, each at a moment of its own.
    pub(crate) async fn seal(&mut self, records: Vec<AccessRecord>) {
        for record in records {
            self.fixture.clock.pass(1);
            let draft = EncodedRecord::new(&Record::from(record), &*self.fixture.entropy);
            let now = gw_types::Clock::now(&self.fixture.clock);
            let entry = self.chain.entry(draft, now).unwrap();
            self.tail.push(ToSeal { entry });
        }
        self.audit.insert_sealed(&self.claim, &self.tail).await.unwrap();
        self.tail.clear();
    }
}

impl World {
    pub(crate) async fn access_log(&self) -> AccessLog<'_> {
        let fixture = &self.fixture;
        let id = ChainId {
            stream: Stream::Access,
            shard: ShardId(Uuid::from_u128(1)),
        };
        let claim = self.audit.claim(id, "the test", Seconds(600)).await.unwrap();
        let mut bytes = Vec::new();
        let genesis = Genesis::new(id.shard, "test", [3; 32]);
        let (chain, _) = Chain::begin(id, &genesis, gw_types::Clock::now(&fixture.clock), &mut bytes);
        let entry = StoredEntry::new(bytes, Vec::new()).unwrap();
        AccessLog {
            fixture,
            audit: &self.audit,
            claim,
            chain,
            tail: vec![ToSeal { entry }],
        }
    }

    pub(crate) async fn start() -> Self {
        Self::start_on(None).await
    }

    /// With the policy store in this PostgreSQL database, if any.
    pub(crate) async fn start_on(database: Option<String>) -> Self {
        let config = FixtureConfig {
            database,
            ..FixtureConfig::default()
        };
        let (fixture, fake) = (Fixture::start_with(config).await, FakeNode::start().await);
        let audit = fixture.open_audit_store().await;
        let node = Node::connect(&unpolled_node(fake.url())).await.unwrap();
        let app = router(AdminState {
            http_context: Arc::clone(&fixture.http),
            store: fixture.store.clone(),
            feed: fixture.feed.clone(),
            audit: audit.clone(),
            journal: Arc::clone(&fixture.journal),
            node,
            key_cipher: Some(Arc::new(KeyCipher::new(&Secret::new("11".repeat(32))).unwrap())),
            delivery_networks: Arc::new(DeliveryNetworks::new(Vec::new(), true)),
            sessions: Arc::new(NoSessions),
            explorer: Arc::new(NoExplorer),
            calls: Arc::new(NoCalls),
            custom_methods: Arc::default(),
            policy_settings: Arc::default(),
            settings: AdminSettings::default(),
            facts: InstanceFacts {
                port: 8080,
                node_origins: Vec::new(),
            },
            clock: Arc::new(fixture.clock.clone()),
            entropy: Arc::clone(&fixture.entropy),
            tasks: TaskTracker::new(),
        });
        Self {
            fixture,
            audit,
            app,
            _node: fake,
        }
    }

    pub(crate) async fn ask(&self, caller: Caller<'_>, method: Method, path: &str, body: Option<Value>) -> Response {
        let mut request = Request::builder().method(method).uri(format!("/api/v1/admin{path}"));
        request = match caller {
            Caller::Nobody => request,
            Caller::Super => request.header("x-admin-token", ADMIN_TOKEN),
            Caller::User(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
        };
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = request
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .unwrap();
        request
            .extensions_mut()
            .insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 40_000))));
        let response = self.app.clone().oneshot(request).await.unwrap();
        let location = response
            .headers()
            .get(header::LOCATION)
            .map(|path| path.to_str().unwrap().to_owned());
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Response {
            status,
            location,
            headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, caller: Caller<'_>, path: &str) -> Response {
        self.ask(caller, Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, caller: Caller<'_>, path: &str, body: Value) -> Response {
        self.ask(caller, Method::POST, path, Some(body)).await
    }

    /// An organization with an administrator, and the administrator's token.
    pub(crate) async fn org_with_admin(&self, slug: &str) -> (OrgId, String) {
        let org = self.fixture.create_org(slug).await;
        let group = NewGroup {
            is_org_admin: true,
            ..NewGroup::plain(org, "admins", "admins")
        };
        let name = format!("{slug}-admin");
        let admin = self.fixture.create_user(&name, group, AccessInput::default()).await;
        (org, admin.token)
    }
}
