//! The routers on a fixture, with two banks: requests of the first are about its member `owner`.

use axum::{Router, body::Body, extract::ConnectInfo};
use gw_audit::{Chain, ChainId, EncodedRecord, Genesis, Record, ShardId, StoredEntry, Stream};
use gw_cache::Cache;
use gw_crypto::KeyCipher;
use gw_disclosure::{DisclosureSettings, DisclosureState, DocumentKey, admin_router, router};
use gw_store::{
    audit::{AuditStore, ToSeal},
    record::{AccessInput, NewGroup},
};
use gw_testkit::{
    Fixture,
    fixture::{ADMIN_TOKEN, BASE_URL, FixtureConfig, TestUser},
    postgres,
};
use gw_types::{Clock as _, OrgId, Seconds, Secret};
use http::{HeaderMap, Method, Request, StatusCode, header, request::Builder};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// The seed of the key that signs documents.
pub(crate) const SEED: [u8; 32] = [7; 32];

pub(crate) struct World {
    pub(crate) fixture: Fixture,
    pub(crate) audit: AuditStore,
    pub(crate) state: DisclosureState,
    app: Router,
    pub(crate) bank: OrgId,
    pub(crate) rival: OrgId,
    /// A member of the bank, whose data is requested.
    pub(crate) owner: TestUser,
    /// A member of the rival, who shall see the data.
    pub(crate) grantee: TestUser,
    /// An administrator of the bank.
    pub(crate) admin: TestUser,
    /// An administrator of the bank who may only read.
    pub(crate) auditor: TestUser,
    /// An administrator of the rival.
    pub(crate) other: TestUser,
}

/// An answer with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The body, if the status is the expected one.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self.json()
    }

    /// Checks status and error text.
    #[track_caller]
    pub(crate) fn expect_error(&self, status: u16, error: &str) {
        assert_eq!(self.expect(status)["error"], error);
    }
}

/// The credentials of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller<'a> {
    Nobody,
    Super,
    User(&'a TestUser),
    /// Holds a disclosure token.
    Token(&'a str),
}

/// Runs a test on SQLite and, if it is installed, on PostgreSQL.
pub(crate) async fn on_both_engines(test: impl AsyncFn(World)) {
    test(World::start(None).await).await;
    if let Some(database) = postgres::database().unwrap() {
        test(World::start(Some(database.url.clone())).await).await;
    }
}

async fn member(fixture: &Fixture, org: OrgId, name: &str, is_admin: bool, is_readonly: bool) -> TestUser {
    let group = NewGroup {
        is_org_admin: is_admin,
        is_org_readonly_admin: is_readonly,
        ..NewGroup::plain(org, name, name)
    };
    fixture.create_user(name, group, AccessInput::default()).await
}

impl World {
    pub(crate) async fn start(database: Option<String>) -> Self {
        Self::start_with(database, DisclosureSettings::default()).await
    }

    pub(crate) async fn start_with(database: Option<String>, settings: DisclosureSettings) -> Self {
        let config = FixtureConfig {
            database,
            ..FixtureConfig::default()
        };
        let fixture = Fixture::start_with(config).await;
        let audit = fixture.open_audit_store().await;
        let state = DisclosureState {
            http_context: Arc::clone(&fixture.http),
            store: fixture.store.clone(),
            feed: fixture.feed.clone(),
            audit: audit.clone(),
            journal: Arc::clone(&fixture.journal),
            cache: Cache::in_process(Arc::new(fixture.clock.clone())),
            key_cipher: Arc::new(KeyCipher::new(&Secret::new("11".repeat(32))).unwrap()),
            document_key: Arc::new(DocumentKey::from_seed(&SEED)),
            policy_settings: Arc::default(),
            settings,
            base_url: BASE_URL.into(),
            tasks: TaskTracker::new(),
        };
        let (bank, rival) = (fixture.create_org("bank").await, fixture.create_org("rival").await);
        Self {
            app: router(state.clone()).merge(admin_router(state.clone())),
            owner: member(&fixture, bank, "owner", false, false).await,
            grantee: member(&fixture, rival, "grantee", false, false).await,
            admin: member(&fixture, bank, "admin", true, false).await,
            auditor: member(&fixture, bank, "auditor", false, true).await,
            other: member(&fixture, rival, "other", true, false).await,
            fixture,
            audit,
            state,
            bank,
            rival,
        }
    }

    pub(crate) async fn send(&self, caller: Caller<'_>, request: Builder, body: Body) -> Answer {
        let request = match caller {
            Caller::Nobody => request,
            Caller::Super => request.header("x-admin-token", ADMIN_TOKEN),
            Caller::User(user) => request.header(header::AUTHORIZATION, format!("Bearer {}", user.token)),
            Caller::Token(token) => request.header("x-disclosure-token", token),
        };
        let mut request = request.body(body).unwrap();
        request
            .extensions_mut()
            .insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 40_000))));
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Answer {
            status,
            headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, caller: Caller<'_>, path: &str) -> Answer {
        let request = Request::builder().uri(format!("/api/v1{path}"));
        self.send(caller, request, Body::empty()).await
    }

    pub(crate) async fn post(&self, caller: Caller<'_>, path: &str, body: Value) -> Answer {
        self.post_text(caller, path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, caller: Caller<'_>, path: &str, body: String) -> Answer {
        let request = Request::builder().method(Method::POST).uri(format!("/api/v1{path}"));
        self.send(caller, request, Body::from(body)).await
    }

    pub(crate) async fn delete(&self, caller: Caller<'_>, path: &str) -> Answer {
        let request = Request::builder().method(Method::DELETE).uri(format!("/api/v1{path}"));
        self.send(caller, request, Body::empty()).await
    }

    /// The body of a request of the bank for the owner's data, with this scope.
    pub(crate) fn request_body(&self, scope: Value) -> Value {
        json!({
            "target_user_id": self.owner.id, "requester_did": self.grantee.name.as_str(), "org_id": self.bank,
            "reason": "an audit", "legal_basis": "Art. 6", "scope": scope,
        })
    }

    /// Requests the owner's data with this scope. Returns the id of the request.
    pub(crate) async fn request(&self, scope: Value) -> String {
        let body = self.request_body(scope);
        let created = self
            .post(Caller::User(&self.admin), "/admin/disclosure/requests", body)
            .await;
        created.expect(201)["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn approve(&self, request: &str, body: Value) -> Answer {
        let path = format!("/me/disclosure/requests/{request}/approve");
        self.post(Caller::User(&self.owner), &path, body).await
    }

    /// A grant with this scope, for 24 hours. Returns the ids of the request and of the grant.
    pub(crate) async fn grant(&self, scope: Value) -> (String, String) {
        let request = self.request(scope).await;
        let approved = self.approve(&request, json!({})).await.expect(200);
        let grant = approved["grant"]["id"].as_str().unwrap().to_owned();
        (request, grant)
    }

    /// The stored status of a request.
    pub(crate) async fn status_of(&self, request: &str) -> String {
        let path = format!("/admin/disclosure/requests/{request}");
        let found = self.get(Caller::Super, &path).await.expect(200);
        found["request"]["status"].as_str().unwrap().to_owned()
    }

    /// Moves records into the audit store, as the sealer of an instance does; each call makes a chain of its own.
    pub(crate) async fn seal(&self, stream: Stream, records: Vec<Record>) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let shard = ShardId(uuid::Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()));
        let id = ChainId { stream, shard };
        let claim = self.audit.claim(id, "the test", Seconds(600)).await.unwrap();
        let mut bytes = Vec::new();
        let genesis = Genesis::new(shard, "test", [3; 32]);
        let (mut chain, _) = Chain::begin(id, &genesis, self.fixture.clock.now(), &mut bytes);
        let mut tail = vec![ToSeal {
            entry: StoredEntry::new(bytes, Vec::new()).unwrap(),
        }];
        for record in records {
            let draft = EncodedRecord::new(&record, &*self.fixture.entropy);
            let entry = chain.entry(draft, self.fixture.clock.now()).unwrap();
            tail.push(ToSeal { entry });
        }
        self.audit.insert_sealed(&claim, &tail).await.unwrap();
    }

    /// Moves the reads that are in the journal into the audit store. Returns their actions.
    pub(crate) async fn seal_reads(&self) -> Vec<&'static str> {
        let records = self.fixture.records().into_iter();
        let reads: Vec<Record> = records
            .filter(|record| matches!(record, Record::Disclosure(_)))
            .collect();
        let actions = reads.iter().filter_map(|read| match read {
            Record::Disclosure(read) => Some(read.action.as_str()),
            _ => None,
        });
        let actions = actions.collect();
        self.seal(Stream::Disclosure, reads).await;
        actions
    }
}
