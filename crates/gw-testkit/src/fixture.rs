//! The parts of one instance that the tests of several crates need: a policy store, the policy feed, the journal and
//! the HTTP context in a temporary directory, with a clock and entropy that the test controls.
//!
//! A fixture contains no router: each crate builds its own on these parts.
#![expect(clippy::expect_used, reason = "a test fixture that fails must end the test")]

use gw_audit::{AccessRecord, Content, Entry, Record, SecurityEvent, Stream};
use gw_http::{
    AccessClaims, AdminGate, AllowedOrigins, Amr, HttpContext, Origin, PolicySource, PrivateNetwork, TokenCodec,
    TokenSecrets, TrustedProxies,
};
use gw_journal::{Journal, JournalConfig};
use gw_node::{HealthCheckConfig, NodeConfig};
use gw_store::{
    Actor, DirectoryLock, Feed, FeedTiming, Location, OutboxGuard, Store, StoreConfig, Tx, Uptime,
    audit::AuditStore,
    record::{AccessInput, NewGroup, NewMembership, NewOrganization, NewUser},
};
use gw_types::{
    Clock, Entropy, ExternalId, GroupId, OrgId, Seconds, Secret, SessionId, TokenId, UserId,
    testing::{ManualClock, SeededEntropy},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// The base URL of every fixture.
pub const BASE_URL: &str = "https://gate.example";
/// `ADMIN_API_TOKEN` of every fixture.
pub const ADMIN_TOKEN: &str = "the-admin-token-of-the-fixture";
/// An unconfirmed policy becomes stale after this many seconds: a slow machine does not make it stale.
const STALE_AFTER: u64 = 60;

/// The values in which fixtures differ.
#[derive(Clone, Debug)]
pub struct FixtureConfig {
    /// The URL of an empty PostgreSQL database for the policy store; without it, the store is an SQLite file.
    pub database: Option<String>,
    /// `FRONTEND_URL`.
    pub frontend: Option<&'static str>,
    /// Whether the environment is production.
    pub production: bool,
    /// The bytes that the journal may take.
    pub journal_bytes: u64,
}

impl Default for FixtureConfig {
    fn default() -> Self {
        Self {
            database: None,
            frontend: None,
            production: true,
            journal_bytes: 64 << 20,
        }
    }
}

/// The policy store, policy feed, journal and HTTP context of one instance.
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
    /// The journal.
    pub journal: Arc<Journal>,
    /// The HTTP context: tokens, allowed origins and the admin gate.
    pub http: Arc<HttpContext>,
    uptime: ManualUptime,
    storage: Arc<Storage>,
}

/// The files that outlive a process.
#[derive(Debug)]
struct Storage {
    config: FixtureConfig,
    directory: Arc<DirectoryLock>,
    _folder: TempDir,
}

/// A user in a group of their own, with an access token.
#[derive(Clone, Debug)]
pub struct TestUser {
    /// The user's id.
    pub id: UserId,
    /// The user's DID.
    pub name: ExternalId,
    /// The group, of which the user is the only member.
    pub group: GroupId,
    /// The access token.
    pub token: String,
    /// The id of the access token.
    pub token_id: TokenId,
}

/// A time since boot that advances only when a test says so; clones share one time.
#[derive(Clone, Debug, Default)]
struct ManualUptime(Arc<AtomicU64>);

impl Uptime for ManualUptime {
    fn now(&self) -> Duration {
        Duration::from_secs(1 + self.0.load(Ordering::SeqCst))
    }
}

impl Fixture {
    /// Creates all parts anew.
    ///
    /// # Panics
    /// If a part cannot be created.
    pub async fn start() -> Self {
        Self::start_with(FixtureConfig::default()).await
    }

    /// Creates all parts anew, with these values.
    ///
    /// # Panics
    /// If a part cannot be created.
    pub async fn start_with(config: FixtureConfig) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = Arc::new(DirectoryLock::acquire(folder.path()).expect("a folder of its own"));
        let clock = ManualClock::default();
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::default());
        let journal = JournalConfig {
            dir: folder.path().join("audit"),
            holder: "the test".to_owned(),
            cluster: "test".to_owned(),
            checkpoint_key: [7; 32],
            max_bytes: config.journal_bytes,
            // The reservations of hundreds of parallel requests fit into a segment.
            segment_bytes: 8 << 20,
            retain_bytes: 64 << 20,
            retain_for: Seconds(3600),
        };
        let (journal, _) = Journal::open(journal, Arc::new(clock.clone()), Arc::clone(&entropy)).expect("a journal");
        let storage = Arc::new(Storage {
            config,
            directory,
            _folder: folder,
        });
        Self::open(storage, clock, entropy, Arc::new(journal)).await
    }

    /// The next process on the same store and journal, with the same clock and entropy.
    ///
    /// # Panics
    /// If a part cannot be created.
    pub async fn restarted(&self) -> Self {
        let (storage, journal) = (Arc::clone(&self.storage), Arc::clone(&self.journal));
        Self::open(storage, self.clock.clone(), Arc::clone(&self.entropy), journal).await
    }

    async fn open(storage: Arc<Storage>, clock: ManualClock, entropy: Arc<dyn Entropy>, journal: Arc<Journal>) -> Self {
        let location = match &storage.config.database {
            Some(url) => Location::postgres(Secret::new(url.clone())).patient(),
            None => storage.file("gateway.db"),
        };
        let store = Store::open(store_config(location, &clock, &entropy))
            .await
            .expect("a policy store");
        store.migrate().await.expect("its schema");
        let timing = FeedTiming {
            stale_after: Duration::from_secs(STALE_AFTER),
            poll_alone: Duration::from_secs(3600),
            // The manual clock is years behind the clock of a PostgreSQL server.
            max_skew: Duration::from_secs(u32::MAX.into()),
            ..FeedTiming::default()
        };
        let uptime = ManualUptime::default();
        let feed = Feed::start(&store, timing, Arc::new(uptime.clone()))
            .await
            .expect("a feed");
        let http = http_context(&storage.config, &feed, &clock, Arc::clone(&entropy));
        Self {
            clock,
            entropy,
            store,
            feed,
            journal,
            http,
            uptime,
            storage,
        }
    }

    /// Opens the audit store, migrated.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub async fn open_audit_store(&self) -> AuditStore {
        let config = store_config(self.storage.file("audit.db"), &self.clock, &self.entropy);
        let audit = AuditStore::open(config).await.expect("an audit store");
        audit.migrate().await.expect("its schema");
        audit
    }

    /// Starts a transaction of the platform administrator.
    ///
    /// # Panics
    /// If the store cannot start it.
    pub async fn begin(&self) -> Tx {
        let actor = Actor::named(Actor::SUPER_ADMIN);
        self.store.begin(&actor).await.expect("a transaction")
    }

    /// Changes policy as the platform administrator and commits. The feed has the change when this returns.
    ///
    /// # Panics
    /// If the transaction fails.
    pub async fn change<T>(&self, change: impl AsyncFnOnce(&mut Tx) -> T) -> T {
        let mut tx = self.begin().await;
        let result = change(&mut tx).await;
        tx.commit().await.expect("a commit");
        result
    }

    /// Makes the policy stale until the feed reads it again, as it does for the next change.
    pub fn make_policy_stale(&self) {
        self.uptime.0.fetch_add(STALE_AFTER + 1, Ordering::SeqCst);
    }

    /// Creates an organization.
    ///
    /// # Panics
    /// If the transaction fails.
    pub async fn create_org(&self, slug: &str) -> OrgId {
        let new = NewOrganization {
            slug: slug.to_owned(),
            name: slug.to_owned(),
            settings: Default::default(),
        };
        self.change(async |tx| tx.create_organization(new).await.expect("an organization").id)
            .await
    }

    /// Creates the user `did:test:<name>`, with KYC, as the only member of a new group with this access.
    ///
    /// # Panics
    /// If the transaction fails.
    pub async fn create_user(&self, name: &str, group: NewGroup, access: AccessInput) -> TestUser {
        let name = ExternalId::new(&format!("did:test:{name}")).expect("a DID");
        let user = NewUser {
            external_id: name.clone(),
            kyc: true,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        let (id, group) = self
            .change(async |tx| {
                let user = tx.create_user(user).await.expect("a user").id;
                let group = tx.create_group(group).await.expect("a group").id;
                tx.set_access(group, access).await.expect("its access");
                let membership = NewMembership {
                    user,
                    group,
                    expires_at: None,
                };
                tx.add_membership(membership).await.expect("a membership");
                (user, group)
            })
            .await;
        let (token, token_id) = self.issue_token(&name);
        TestUser {
            id,
            name,
            group,
            token,
            token_id,
        }
    }

    /// Issues an access token for a day. Returns it with its id.
    pub fn issue_token(&self, subject: &ExternalId) -> (String, TokenId) {
        let (token, session) = (TokenId(self.entropy.uuid()), SessionId(self.entropy.uuid()));
        (self.sign_token(subject, token, session), token)
    }

    /// Signs an access token for a day.
    pub fn sign_token(&self, subject: &ExternalId, token: TokenId, session: SessionId) -> String {
        let issued_at = self.clock.now();
        let claims = AccessClaims {
            subject: subject.clone(),
            token,
            session,
            issued_at,
            expires_at: issued_at.plus(Seconds(86_400)),
            kyc: true,
            amr: Amr::Zk,
        };
        self.http.tokens.sign_access(&claims).expose().to_owned()
    }

    /// The records since the last call, in the order in which they were written. Marks them as sealed.
    ///
    /// # Panics
    /// If the journal cannot be read.
    pub fn records(&self) -> Vec<Record> {
        self.journal.sync().expect("a synced journal");
        let mut entries = Vec::new();
        for stream in Stream::ALL.iter().copied() {
            let unsealed = self.journal.unsealed(stream, usize::MAX).expect("the records");
            if let Some(last) = unsealed.last() {
                self.journal.mark_sealed(stream, last.seq + 1).expect("a mark");
            }
            entries.extend(unsealed);
        }
        entries.sort_by_key(|entry| entry.lsn);
        let contents = entries
            .iter()
            .map(|entry| Entry::decode(&entry.bytes, &entry.openings).expect("an entry").content);
        let record = |content| match content {
            Content::Record(record) => Some(record),
            Content::Genesis(_) => None,
        };
        contents.filter_map(record).collect()
    }

    /// The access records among [`Fixture::records`].
    pub fn access_records(&self) -> Vec<AccessRecord> {
        let access = |record| {
            if let Record::Access(access) = record {
                Some(access)
            } else {
                None
            }
        };
        self.records().into_iter().filter_map(access).collect()
    }

    /// The security events among [`Fixture::records`].
    pub fn security_events(&self) -> Vec<SecurityEvent> {
        let event = |record| {
            if let Record::Security(event) = record {
                Some(event)
            } else {
                None
            }
        };
        self.records().into_iter().filter_map(event).collect()
    }
}

impl Storage {
    fn file(&self, name: &str) -> Location {
        Location::Sqlite {
            directory: Arc::clone(&self.directory),
            file: name.to_owned(),
        }
    }
}

/// The configuration of a node that is not polled: its head and health are read once, at the start.
///
/// # Panics
/// If the URL is not valid.
pub fn unpolled_node(url: &str) -> NodeConfig {
    let hour = Duration::from_secs(3600);
    NodeConfig::new(url)
        .expect("a URL")
        .with_health_checks(HealthCheckConfig {
            head: hour,
            probe: hour,
            ..HealthCheckConfig::default()
        })
}

fn store_config(location: Location, clock: &ManualClock, entropy: &Arc<dyn Entropy>) -> StoreConfig {
    StoreConfig {
        location,
        connections: 4,
        clock: Arc::new(clock.clone()),
        entropy: Arc::clone(entropy),
        outbox: OutboxGuard::default(),
    }
}

fn http_context(
    config: &FixtureConfig,
    feed: &Feed,
    clock: &ManualClock,
    entropy: Arc<dyn Entropy>,
) -> Arc<HttpContext> {
    let secrets = |text: &str| TokenSecrets {
        current: Secret::new(text),
        previous: Vec::new(),
    };
    let feed = feed.clone();
    Arc::new(HttpContext {
        tokens: TokenCodec::new(BASE_URL, &secrets("the access secret"), &secrets("the refresh secret"))
            .expect("a URL"),
        policy: PolicySource::new(move || {
            let pinned = feed.pin();
            pinned.fresh.then_some(pinned.snapshot)
        }),
        clock: Arc::new(clock.clone()) as Arc<dyn Clock>,
        entropy,
        origins: Arc::new(AllowedOrigins {
            base: Origin::from_url(BASE_URL).expect("an origin"),
            frontend: config.frontend.map(|url| Origin::from_url(url).expect("an origin")),
            listed: Vec::new(),
            any_localhost: false,
        }),
        proxies: TrustedProxies::default(),
        network: PrivateNetwork::default(),
        admin: AdminGate::new(Secret::new(ADMIN_TOKEN), None, None, true),
        production: config.production,
    })
}
