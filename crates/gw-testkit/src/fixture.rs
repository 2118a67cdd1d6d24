//! The dependencies of an instance in a temporary directory: both stores on SQLite, the policy feed, the journal and
//! the HTTP context, with a clock and entropy that the test controls.
#![expect(clippy::expect_used, reason = "a test fixture that fails must end the test")]

use gw_http::{
    AdminGate, AllowedOrigins, HttpContext, Origin, PolicySource, PrivateNetwork, TokenCodec, TokenSecrets,
    TrustedProxies,
};
use gw_journal::{Journal, JournalConfig};
use gw_store::{
    Actor, DirectoryLock, Feed, FeedTiming, Location, OutboxGuard, Store, StoreConfig, Tx, Uptime, audit::AuditStore,
};
use gw_types::{
    Clock, Entropy, Seconds, Secret,
    testing::{ManualClock, SeededEntropy},
};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;

/// The base URL of every fixture.
pub const BASE_URL: &str = "https://gate.example";
/// `ADMIN_API_TOKEN` of every fixture.
pub const ADMIN_TOKEN: &str = "the-admin-token-of-the-fixture";

/// The stores, policy feed, journal and HTTP context of one instance.
#[derive(Debug)]
pub struct Fixture {
    /// The clock that all parts use.
    pub clock: ManualClock,
    /// The entropy that all parts use.
    pub entropy: Arc<dyn Entropy>,
    /// The policy store, migrated and empty.
    pub store: Store,
    /// The policy feed.
    pub feed: Feed,
    /// The audit store, migrated and empty.
    pub audit: AuditStore,
    /// The journal.
    pub journal: Arc<Journal>,
    /// The HTTP context: tokens, allowed origins and the admin gate.
    pub http: Arc<HttpContext>,
    _folder: TempDir,
}

/// An uptime that does not advance: policy does not become stale.
#[derive(Debug)]
struct Standstill;

impl Uptime for Standstill {
    fn now(&self) -> Duration {
        Duration::from_secs(1)
    }
}

impl Fixture {
    /// Creates all parts anew.
    ///
    /// # Panics
    /// If a part cannot be created.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = Arc::new(DirectoryLock::acquire(folder.path()).expect("a folder of its own"));
        let clock = ManualClock::default();
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::default());
        let config = |file: &str| StoreConfig {
            location: Location::Sqlite {
                directory: Arc::clone(&directory),
                file: file.to_owned(),
            },
            connections: 4,
            clock: Arc::new(clock.clone()),
            entropy: Arc::clone(&entropy),
            outbox: OutboxGuard::default(),
        };
        let store = Store::open(config("gateway.db")).await.expect("a policy store");
        store.migrate().await.expect("its schema");
        let audit = AuditStore::open(config("audit.db")).await.expect("an audit store");
        audit.migrate().await.expect("its schema");
        let timing = FeedTiming {
            poll_alone: Duration::from_secs(3600),
            ..FeedTiming::default()
        };
        let feed = Feed::start(&store, timing, Arc::new(Standstill)).await.expect("a feed");
        let options = JournalConfig {
            dir: folder.path().join("audit"),
            holder: "the test".to_owned(),
            cluster: "test".to_owned(),
            checkpoint_key: [7; 32],
            max_bytes: 64 << 20,
            segment_bytes: 1 << 20,
            retain_bytes: 64 << 20,
            retain_for: Seconds(3600),
        };
        let (journal, _) = Journal::open(options, Arc::new(clock.clone()), Arc::clone(&entropy)).expect("a journal");
        let http = http_context(&feed, &clock, Arc::clone(&entropy));
        Self {
            clock,
            entropy,
            store,
            feed,
            audit,
            journal: Arc::new(journal),
            http,
            _folder: folder,
        }
    }

    /// Changes policy as the platform administrator and commits. The feed has the change when this returns.
    ///
    /// # Panics
    /// If the transaction fails.
    pub async fn change<T>(&self, change: impl AsyncFnOnce(&mut Tx) -> T) -> T {
        let mut tx = self
            .store
            .begin(&Actor::named(Actor::SUPER_ADMIN))
            .await
            .expect("a transaction");
        let result = change(&mut tx).await;
        tx.commit().await.expect("a commit");
        result
    }
}

fn http_context(feed: &Feed, clock: &ManualClock, entropy: Arc<dyn Entropy>) -> Arc<HttpContext> {
    let secrets = |text: &str| TokenSecrets {
        current: Secret::new(text),
        previous: Vec::new(),
    };
    let pinned = feed.clone();
    Arc::new(HttpContext {
        tokens: TokenCodec::new(BASE_URL, &secrets("the access secret"), &secrets("the refresh secret"))
            .expect("a URL"),
        policy: PolicySource::new(move || Some(pinned.pin().snapshot)),
        clock: Arc::new(clock.clone()) as Arc<dyn Clock>,
        entropy,
        origins: Arc::new(AllowedOrigins {
            base: Origin::from_url(BASE_URL).expect("an origin"),
            frontend: None,
            listed: Vec::new(),
            any_localhost: false,
        }),
        proxies: TrustedProxies::default(),
        network: PrivateNetwork::default(),
        admin: AdminGate::new(Secret::new(ADMIN_TOKEN), None, None, true),
        production: true,
    })
}
