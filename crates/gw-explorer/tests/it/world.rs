//! The explorer on a chain store of its own.

use crate::chain::{ChainMaker, snapshot};
use axum::{Router, body::Body, extract::ConnectInfo};
use gw_audit::DisclosureRead;
use gw_chain_store::{
    BlockData, ChainStore, ChainStoreConfig, ChainWriter, JobKind, Location, OtherChain, rows::BlockNumHash,
};
use gw_explorer::{
    ActivityCall, ActivityPage, Aliases, BalanceFuture, Balances, BlockValidation, ExplorerState, GrantFault,
    GrantFuture, GrantRefusal, Grants, Impersonation, IndexFollower, IndexStep, IndexerProgress, NodeUnavailable,
    PreviewFuture, SelectionCache, SharedIndex, TokenFuture, TokenQuery, ViewerReads, router,
};
use gw_http::{
    AccessClaims, AdminGate, AllowedOrigins, Amr, ApiError, HttpContext, Origin, PolicySource, PrivateNetwork,
    TokenCodec, TokenSecrets, TrustedProxies,
};
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    access::disclosed_addresses,
    disclosure::{GrantAliases, OpenGrant},
    snapshot::{DisclosureGrant, VisibleState},
    testing::{NOW, did, org_id, user_id},
};
use gw_testkit::{
    Fixture,
    fixture::{ADMIN_TOKEN, BASE_URL},
    postgres,
};
use gw_types::{
    Address, B256, DisclosureGrantId, ExternalId, Seconds, Secret, SessionId, Timestamp, TokenId, U256, UserId,
    testing::{ManualClock, SeededEntropy},
};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// Blocks are validated up to a block that the test names.
#[derive(Debug, Default)]
pub(crate) struct Validated(Mutex<Vec<BlockNumHash>>);

impl Validated {
    pub(crate) fn set(&self, chain: &[BlockData]) {
        *self.0.lock().unwrap() = chain.iter().map(|block| block.block.num_hash()).collect();
    }
}

impl BlockValidation for Validated {
    fn validated_head(&self) -> Option<BlockNumHash> {
        self.0.lock().unwrap().last().copied()
    }

    fn is_validated(&self, block: BlockNumHash) -> bool {
        self.0.lock().unwrap().contains(&block)
    }
}

/// A node on which every address has 77 wei.
#[derive(Debug, Default)]
pub(crate) struct TestNode {
    /// What tokens answer on the visible state; `None` while the node does not answer.
    pub(crate) tokens: Mutex<Option<HashMap<(Address, TokenQuery), U256>>>,
    /// While a test holds it for writing, no balance is answered.
    pub(crate) pause: Arc<tokio::sync::RwLock<()>>,
}

impl Balances for TestNode {
    fn balance(&self, _: Address, _: u64) -> BalanceFuture<'_> {
        Box::pin(async {
            let _answering = self.pause.read().await;
            Some(U256::from(77))
        })
    }

    fn token<'a>(&'a self, token: Address, query: TokenQuery, _: u64, _: &'a VisibleState) -> TokenFuture<'a> {
        let tokens = self.tokens.lock().unwrap();
        let answer = tokens.as_ref().map(|tokens| tokens.get(&(token, query)).copied());
        Box::pin(async move { answer.ok_or(NodeUnavailable) })
    }
}

/// The grants of the policy of a test, all with the same secret; and what was recorded of them.
#[derive(Debug, Default)]
pub(crate) struct TestGrants {
    pub(crate) reads: Mutex<Vec<DisclosureRead>>,
    pub(crate) calls: Mutex<Vec<ActivityCall>>,
    /// Whether the journal takes no record.
    pub(crate) is_full: AtomicBool,
}

/// The names under each grant of a test.
pub(crate) fn grant_names() -> GrantAliases {
    GrantAliases::new(&[5; 32]).unwrap()
}

impl TestGrants {
    fn opened(snapshot: &Snapshot, grant: &Arc<DisclosureGrant>, now: Timestamp) -> OpenGrant {
        OpenGrant {
            grant: Arc::clone(grant),
            owner: Arc::clone(snapshot.user(grant.owner).unwrap()),
            names: grant_names(),
            addresses: disclosed_addresses(snapshot, grant, now),
        }
    }
}

impl Grants for TestGrants {
    fn find(
        &self,
        snapshot: &Snapshot,
        grantee: &ExternalId,
        grant: DisclosureGrantId,
        now: Timestamp,
    ) -> Result<OpenGrant, GrantRefusal> {
        let grant = snapshot
            .find_disclosure(grant)
            .filter(|grant| grant.grantee == *grantee);
        let grant = grant.ok_or(GrantRefusal::Unknown)?;
        if grant.revoked_at.is_some() {
            Err(GrantRefusal::Revoked)
        } else if !grant.is_active(now) {
            Err(GrantRefusal::Expired)
        } else {
            Ok(Self::opened(snapshot, grant, now))
        }
    }

    fn list(&self, snapshot: &Snapshot, grantee: &ExternalId, now: Timestamp) -> Vec<OpenGrant> {
        let grants = snapshot
            .disclosures_to(grantee)
            .iter()
            .filter(|grant| grant.is_active(now));
        grants.map(|grant| Self::opened(snapshot, grant, now)).collect()
    }

    fn activity<'a>(&'a self, _: &'a OpenGrant, limit: u64, offset: u64) -> GrantFuture<'a, ActivityPage> {
        let calls = self.calls.lock().unwrap().clone();
        let total = calls.len() as u64;
        let page = calls
            .into_iter()
            .skip(usize::try_from(offset).unwrap_or(usize::MAX))
            .take(usize::try_from(limit).unwrap());
        let calls = page.collect();
        Box::pin(async move { Ok(ActivityPage { calls, total }) })
    }

    fn preview<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        owner: UserId,
        request: &'a str,
        _: &'a [u8],
    ) -> PreviewFuture<'a> {
        let grants = snapshot.disclosures_to(&did(request));
        let grant = grants.iter().find(|grant| grant.owner == owner);
        let grant = grant.map(|grant| Self::opened(snapshot, grant, NOW));
        Box::pin(async move { grant.ok_or_else(|| ApiError::not_found("request not found")) })
    }

    fn record(&self, reads: Vec<DisclosureRead>) -> GrantFuture<'_, ()> {
        Box::pin(async move {
            if self.is_full.load(Ordering::SeqCst) {
                return Err(GrantFault::Unrecorded);
            }
            self.reads.lock().unwrap().extend(reads);
            Ok(())
        })
    }
}

/// An alias of every address under every grant, which contains nothing of the address.
#[derive(Debug)]
pub(crate) struct TestAliases;

impl Aliases for TestAliases {
    fn alias(&self, grant: DisclosureGrantId, address: Address) -> Option<String> {
        let mut mixed = [0_u64; 2];
        for (n, byte) in address.iter().chain(grant.to_string().as_bytes()).enumerate() {
            mixed[n % 2] = mixed[n % 2].wrapping_mul(1_000_003).wrapping_add(u64::from(*byte));
        }
        Some(format!("Address-{:x}{:x}", mixed[0], mixed[1]))
    }
}

#[derive(Debug)]
struct NoProgress;

impl IndexerProgress for NoProgress {
    fn latest_chain_block(&self) -> Option<u64> {
        None
    }
}

/// The database of the explorer.
#[derive(Debug)]
pub(crate) enum Engine {
    Sqlite,
    Postgres(postgres::Database),
}

impl Engine {
    /// Every engine that the tests run on.
    pub(crate) fn all() -> Vec<Self> {
        let postgres = postgres::database().unwrap().map(Self::Postgres);
        std::iter::once(Self::Sqlite).chain(postgres).collect()
    }

    /// SQLite, or the last engine that the tests run on.
    pub(crate) fn first_or_last(is_last: bool) -> Self {
        let mut engines = Self::all();
        if is_last {
            engines.reverse();
        }
        engines.remove(0)
    }

    fn url(&self, file: &std::path::Path) -> String {
        match self {
            Self::Sqlite => format!("sqlite://{}", file.display()),
            Self::Postgres(database) => database.url.clone(),
        }
    }

    fn location(&self, file: &std::path::Path) -> Location {
        match self {
            Self::Sqlite => Location::Sqlite {
                file: file.to_path_buf(),
            },
            Self::Postgres(database) => Location::Postgres {
                url: Secret::new(database.url.clone()),
            },
        }
    }
}

/// TestCaller asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestCaller {
    Nobody,
    User(&'static str),
    /// `root` looks at what this member of `a` sees.
    RootAs(&'static str),
}

pub(crate) const EVERYBODY: [TestCaller; 7] = [
    TestCaller::Nobody,
    TestCaller::User("alice"),
    TestCaller::User("bob"),
    TestCaller::User("carol"),
    TestCaller::User("root"),
    TestCaller::RootAs("alice"),
    TestCaller::RootAs("bob"),
];

impl TestCaller {
    pub(crate) fn viewer<'s>(self, snapshot: &'s Snapshot, settings: &'s PolicySettings) -> Viewer<'s> {
        let viewer = |user: Option<&str>| Viewer::new(snapshot, user.map(user_id), NOW, settings);
        match self {
            Self::Nobody => viewer(None),
            Self::User(name) => viewer(Some(name)),
            Self::RootAs(name) => viewer(Some(name))
                .scoped_to_org(Some(org_id("a")))
                .restricted_to(user_id("root")),
        }
    }
}

/// A response with its whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

pub(crate) struct World {
    pub(crate) chain: Vec<BlockData>,
    pub(crate) writer: ChainWriter,
    pub(crate) validated: Arc<Validated>,
    pub(crate) follower: IndexFollower,
    pub(crate) node: Arc<TestNode>,
    pub(crate) grants: Arc<TestGrants>,
    pub(crate) fixture: Fixture,
    /// The address of the chain store.
    database: String,
    policy: Arc<Mutex<Option<Arc<Snapshot>>>>,
    state: ExplorerState,
    app: Router,
    _folder: tempfile::TempDir,
}

impl World {
    /// A loaded explorer of a random chain.
    pub(crate) async fn random(seed: u64, settings: PolicySettings) -> Self {
        Self::random_on(Engine::Sqlite, seed, settings).await
    }

    pub(crate) async fn random_on(engine: Engine, seed: u64, settings: PolicySettings) -> Self {
        let chain = ChainMaker::new(seed).blocks(1, B256::ZERO, 24);
        Self::loaded_on(engine, chain, settings).await
    }

    /// A loaded explorer of this chain.
    pub(crate) async fn loaded(chain: Vec<BlockData>, settings: PolicySettings) -> Self {
        Self::loaded_on(Engine::Sqlite, chain, settings).await
    }

    pub(crate) async fn loaded_on(engine: Engine, chain: Vec<BlockData>, settings: PolicySettings) -> Self {
        let snapshot = snapshot(&chain);
        let mut world = Self::open(Some(snapshot), settings, engine).await;
        world.append(chain).await;
        world.follow().await;
        world
    }

    /// An explorer without blocks.
    pub(crate) async fn with(snapshot: Snapshot, settings: PolicySettings) -> Self {
        Self::with_on(Engine::Sqlite, snapshot, settings).await
    }

    pub(crate) async fn with_on(engine: Engine, snapshot: Snapshot, settings: PolicySettings) -> Self {
        Self::open(Some(snapshot), settings, engine).await
    }

    /// An explorer without blocks, with the policy of the fixture's store.
    pub(crate) async fn on_policy_store(settings: PolicySettings) -> Self {
        Self::open(None, settings, Engine::Sqlite).await
    }

    async fn open(snapshot: Option<Snapshot>, settings: PolicySettings, engine: Engine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fixture = Fixture::start().await;
        let (clock, entropy) = (Arc::new(ManualClock::at(NOW)), Arc::new(SeededEntropy::new(5)));
        let file = folder.path().join("explorer.db");
        let store = ChainStore::open(ChainStoreConfig {
            location: engine.location(&file),
            connections: 4,
            chain_id: 1337,
            other_chain: OtherChain::Refuse,
            clock: clock.clone(),
            entropy: entropy.clone(),
        })
        .await
        .unwrap();
        let writer = store.writer("test").await.unwrap();
        let is_stored = snapshot.is_none();
        let policy = Arc::new(Mutex::new(snapshot.map(Arc::new)));
        let secrets = |text: &str| TokenSecrets {
            current: Secret::new(text),
            previous: Vec::new(),
        };
        let pinned = Arc::clone(&policy);
        let http_context = Arc::new(HttpContext {
            tokens: TokenCodec::new(BASE_URL, &secrets("the access secret"), &secrets("the refresh secret")).unwrap(),
            policy: PolicySource::new(move || pinned.lock().unwrap().clone()),
            clock,
            entropy,
            origins: Arc::new(AllowedOrigins {
                base: Origin::from_url(BASE_URL).unwrap(),
                frontend: None,
                listed: Vec::new(),
                any_localhost: false,
            }),
            proxies: TrustedProxies::default(),
            network: PrivateNetwork::default(),
            admin: AdminGate::new(Secret::new(ADMIN_TOKEN), None, None, true),
            production: true,
        });
        let http_context = if is_stored {
            Arc::clone(&fixture.http)
        } else {
            http_context
        };
        let (node, grants) = (Arc::new(TestNode::default()), Arc::new(TestGrants::default()));
        let (validated, index) = (Arc::new(Validated::default()), SharedIndex::new());
        let state = ExplorerState {
            http_context,
            policy_store: fixture.store.clone(),
            feed: fixture.feed.clone(),
            store: store.clone(),
            index: index.clone(),
            validation: validated.clone(),
            selections: Arc::new(SelectionCache::new(1 << 20)),
            reads: Arc::new(ViewerReads::new(4)),
            journal: Arc::clone(&fixture.journal),
            policy_settings: Arc::new(settings),
            aliases: Arc::new(TestAliases),
            grant_time_bucket: Seconds(0),
            balances: node.clone(),
            grants: grants.clone(),
            indexer: Arc::new(NoProgress),
            chain_id: 1337,
            tasks: TaskTracker::new(),
        };
        Self {
            chain: Vec::new(),
            writer,
            follower: IndexFollower::new(store, validated.clone(), index),
            validated,
            node,
            grants,
            fixture,
            database: engine.url(&file),
            policy,
            app: router(state.clone()),
            state,
            _folder: folder,
        }
    }

    /// Sets `DISCLOSURE_TIME_BUCKET_SECONDS`.
    pub(crate) fn with_grant_time_bucket(mut self, seconds: u32) -> Self {
        self.state.grant_time_bucket = Seconds(seconds);
        self.app = router(self.state.clone());
        self
    }

    /// Stores and validates blocks.
    pub(crate) async fn append(&mut self, blocks: Vec<BlockData>) {
        self.append_unread(blocks).await;
        for kind in JobKind::ALL {
            let tasks = self.writer.take_tasks(kind, u32::MAX, Seconds(1)).await.unwrap();
            self.writer.finish_tasks(&tasks).await.unwrap();
        }
    }

    /// Appends blocks whose balances the indexer does not read yet.
    pub(crate) async fn append_unread(&mut self, blocks: Vec<BlockData>) {
        for block in &blocks {
            self.writer.append(block, &[]).await.unwrap();
        }
        self.chain.extend(blocks);
        self.validated.set(&self.chain);
    }

    /// Puts back a database with these blocks, whose generation is this one.
    pub(crate) async fn put_back(&mut self, blocks: Vec<BlockData>, generation: u64) {
        self.writer.wipe().await.unwrap();
        self.chain.clear();
        self.append(blocks).await;
        self.tamper(&format!("UPDATE chain_state SET generation = {generation}"))
            .await;
    }

    pub(crate) async fn generation(&self) -> u64 {
        self.state.store.reader().await.unwrap().progress().generation
    }

    /// Replaces the blocks from this one on.
    pub(crate) async fn reorganize(&mut self, from: u64, blocks: Vec<BlockData>) {
        self.chain.retain(|block| block.block.number < from);
        let last = self.chain.last().unwrap().block.number;
        self.writer.revert_to(last).await.unwrap();
        self.append(blocks).await;
    }

    /// Runs a statement on the chain store, behind its back.
    pub(crate) async fn tamper(&self, sql: &str) {
        let database = sea_orm::Database::connect(&self.database).await.unwrap();
        let changed = sea_orm::ConnectionTrait::execute_unprepared(&database, sql)
            .await
            .unwrap();
        assert!(changed.rows_affected() > 0, "{sql}");
    }

    /// Brings the index up to date.
    pub(crate) async fn follow(&mut self) {
        while self.follower.step().await.unwrap() == IndexStep::More {}
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.policy.lock().unwrap().clone().unwrap()
    }

    pub(crate) fn settings(&self) -> PolicySettings {
        self.state.policy_settings.as_ref().clone()
    }

    pub(crate) fn set_policy(&self, snapshot: Option<Snapshot>) {
        *self.policy.lock().unwrap() = snapshot.map(Arc::new);
    }

    pub(crate) fn token(&self, name: &str) -> String {
        let claims = AccessClaims {
            subject: did(name),
            token: TokenId(self.state.http_context.entropy.uuid()),
            session: SessionId(self.state.http_context.entropy.uuid()),
            issued_at: NOW,
            expires_at: NOW.plus(Seconds(300)),
            kyc: true,
            amr: Amr::Zk,
        };
        self.state.http_context.tokens.sign_access(&claims).expose().to_owned()
    }

    pub(crate) async fn get(&self, who: TestCaller, path: &str) -> Response {
        self.request(Method::GET, who, path).await
    }

    pub(crate) async fn post_as(&self, who: TestCaller, path: &str) -> Response {
        self.request(Method::POST, who, path).await
    }

    async fn request(&self, method: Method, who: TestCaller, path: &str) -> Response {
        let mut request = Request::builder().method(method).uri(format!("/api/v1/explorer{path}"));
        if let TestCaller::User(name) = who {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.token(name)));
        }
        let mut request = request.body(Body::empty()).unwrap();
        if let TestCaller::RootAs(name) = who {
            request.extensions_mut().insert(Impersonation {
                target: user_id(name),
                impersonator: user_id("root"),
                org: org_id("a"),
            });
        }
        self.send(request).await
    }

    pub(crate) async fn get_with(&self, authorization: &str, path: &str) -> Response {
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("/api/v1/explorer{path}"))
            .header(header::AUTHORIZATION, authorization);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], path: &str, body: impl Into<Body>) -> Response {
        let mut request = Request::post(format!("/api/v1/explorer{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn send(&self, mut request: Request<Body>) -> Response {
        request
            .extensions_mut()
            .insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 40_000))));
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Response {
            status,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// All rows of a list, by its cursors. Every page but the last one is full.
    pub(crate) async fn walk(&self, who: TestCaller, path: &str, member: &str, limit: usize) -> ListPages {
        let (mut rows, mut total, mut cursor): (Vec<Value>, _, _) = (Vec::new(), None, String::new());
        let separator = if path.contains('?') { '&' } else { '?' };
        loop {
            let page = format!("{path}{separator}limit={limit}{cursor}");
            let response = self.get(who, &page).await;
            assert_eq!(response.status, StatusCode::OK, "{who:?} {page}: {}", response.text);
            let body = response.json();
            let data = body[member]
                .as_array()
                .unwrap_or_else(|| panic!("{page}: {body}"))
                .clone();
            if total.is_none() {
                total = body["total"].as_u64();
            }
            rows.extend(data.iter().cloned());
            match body["next_cursor"].as_str() {
                Some(next) => {
                    assert_eq!(data.len(), limit, "{who:?} {page}: a page is full unless the list ends");
                    cursor = format!("&cursor={next}");
                }
                None => return ListPages { rows, total },
            }
        }
    }
}

/// A list that was read to its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListPages {
    pub(crate) rows: Vec<Value>,
    /// By its first page.
    pub(crate) total: Option<u64>,
}

impl ListPages {
    pub(crate) fn texts(&self, member: &str) -> Vec<String> {
        self.rows
            .iter()
            .map(|row| row[member].as_str().unwrap().to_owned())
            .collect()
    }
}
