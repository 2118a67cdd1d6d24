//! Test databases with a repeatable clock and entropy.

use gw_store::{Actor, AuditStore, DirectoryLock, Location, OutboxGuard, Store, StoreConfig, Tx, audit::OutboxKey};
use gw_testkit::postgres;
use gw_types::testing::{ManualClock, SeededEntropy};
use gw_types::{Clock, ExternalId, Secret};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, QueryResult, Statement, TransactionTrait,
};
use std::sync::Arc;

/// Runs each test on both engines.
macro_rules! on_both_engines {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        mod sqlite {
            $($(#[$doc])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&crate::world::World::sqlite().await).await;
            })*
        }

        mod postgres {
            $($(#[$doc])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(world) = crate::world::World::postgres().await {
                    super::$name(&world).await;
                }
            })*
        }
    };
}
pub(crate) use on_both_engines;

/// A migrated database for one test.
pub(crate) struct World {
    pub(crate) engine: &'static str,
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    location: Location,
    /// Location of the audit store; never the policy database.
    audit: Location,
    /// Removed when the world is dropped.
    _place: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let world = Self::unmigrated_sqlite().await;
        world.store.migrate().await.unwrap();
        world
    }

    pub(crate) async fn postgres() -> Option<Self> {
        let world = Self::unmigrated_postgres().await?;
        world.store.migrate().await.unwrap();
        Some(world)
    }

    pub(crate) async fn unmigrated_sqlite() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = Arc::new(DirectoryLock::acquire(place.path()).unwrap());
        let file = |name: &str| Location::Sqlite {
            directory: Arc::clone(&directory),
            file: name.to_owned(),
        };
        Self::at("sqlite", file("gateway.db"), file("audit.db"), Some(place)).await
    }

    pub(crate) async fn unmigrated_postgres() -> Option<Self> {
        let database = postgres::database().unwrap_or_else(|cause| panic!("{cause}"))?;
        let audit = postgres::database().unwrap_or_else(|cause| panic!("{cause}"))?;
        let [location, audit] =
            [database, audit].map(|database| Location::postgres(Secret::new(database.url)).patient());
        Some(Self::at("postgres", location, audit, None).await)
    }

    async fn at(engine: &'static str, location: Location, audit: Location, place: Option<tempfile::TempDir>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = Store::open(config(&location, &clock, 1)).await.unwrap();
        Self {
            engine,
            store,
            clock,
            location,
            audit,
            _place: place,
        }
    }

    /// Opens another instance's store on the same database.
    pub(crate) async fn another_store(&self, seed: u64) -> Store {
        Store::open(config(&self.location, &self.clock, seed)).await.unwrap()
    }

    /// Opens the same SQLite file as a process that only reads.
    pub(crate) async fn read_only_store(&self) -> Store {
        let Location::Sqlite { directory, file } = &self.location else {
            panic!("a server has no file")
        };
        let location = Location::SqliteReadOnly {
            file: directory.directory().join(file),
        };
        Store::open(config(&location, &self.clock, 9)).await.unwrap()
    }

    pub(crate) async fn begin(&self) -> Tx {
        self.store.begin(&Actor::named(Actor::SUPER_ADMIN)).await.unwrap()
    }

    /// Opens and migrates the audit store.
    pub(crate) async fn audit(&self) -> AuditStore {
        let audit = AuditStore::open(config(&self.audit, &self.clock, 3)).await.unwrap();
        audit.migrate().await.unwrap();
        audit
    }

    /// Opens the audit store of a PostgreSQL world with another role.
    pub(crate) async fn audit_as(&self, role: &str) -> AuditStore {
        let Location::Postgres { url, .. } = &self.audit else {
            panic!("a file has no roles")
        };
        let url = url.expose().replace("//gateway@", &format!("//{role}@"));
        AuditStore::open(config(&Location::postgres(Secret::new(url)), &self.clock, 4))
            .await
            .unwrap()
    }

    /// Runs a statement on the audit database, bypassing the audit store.
    pub(crate) async fn tamper_audit(&self, sql: &str) {
        raw(&self.audit).await.execute_unprepared(sql).await.unwrap();
    }

    /// Holds a lock of the audit database until the transaction ends.
    pub(crate) async fn lock_audit(&self, sql: &str) -> sea_orm::DatabaseTransaction {
        let tx = raw(&self.audit).await.begin().await.unwrap();
        tx.execute_unprepared(sql).await.unwrap();
        tx
    }

    /// Lets leases age. If they use the database's clock, their ends are moved instead.
    pub(crate) async fn pass_for_leases(&self, seconds: i64) {
        self.clock.pass(seconds);
        if self.engine == "postgres" {
            let micros = seconds * 1_000_000;
            self.tamper(&[&format!("UPDATE instances SET expires_at = expires_at - {micros}")])
                .await;
            let claims = format!(
                "UPDATE chains SET leased_until = leased_until - {micros}; \
                 UPDATE leases SET leased_until = leased_until - {micros}"
            );
            // Not every test has an audit store.
            let _ = raw(&self.audit).await.execute_unprepared(&claims).await;
        }
    }

    /// Opens a connection that bypasses the store.
    pub(crate) async fn connection(&self) -> DatabaseConnection {
        let mut options = match &self.location {
            Location::Postgres { url, .. } => ConnectOptions::new(url.expose()),
            Location::Sqlite { directory, file } => {
                ConnectOptions::new(format!("sqlite://{}", directory.directory().join(file).display()))
            }
            Location::SqliteReadOnly { .. } => panic!("it only reads"),
        };
        options.max_connections(1);
        Database::connect(options).await.unwrap()
    }

    /// Runs statements that bypass the store, in one transaction.
    pub(crate) async fn tamper(&self, statements: &[&str]) {
        let tx = raw(&self.location).await.begin().await.unwrap();
        for sql in statements {
            tx.execute_unprepared(sql).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Returns one column of numbers.
    pub(crate) async fn rows(&self, sql: &str, column: &str) -> Vec<i64> {
        self.query(sql)
            .await
            .iter()
            .map(|row| row.try_get("", column).unwrap())
            .collect()
    }

    /// Returns one column of texts.
    pub(crate) async fn texts(&self, sql: &str, column: &str) -> Vec<String> {
        self.query(sql)
            .await
            .iter()
            .map(|row| row.try_get("", column).unwrap())
            .collect()
    }

    async fn query(&self, sql: &str) -> Vec<QueryResult> {
        let raw = raw(&self.location).await;
        raw.query_all_raw(Statement::from_string(raw.get_database_backend(), sql))
            .await
            .unwrap()
    }
}

/// Opens a connection that bypasses the store: to tamper, or to inspect what it wrote.
async fn raw(location: &Location) -> DatabaseConnection {
    let url = match location {
        Location::Postgres { url, .. } => url.expose().to_owned(),
        Location::Sqlite { directory, file } => format!("sqlite://{}", directory.directory().join(file).display()),
        Location::SqliteReadOnly { file } => format!("sqlite://{}", file.display()),
    };
    Database::connect(url).await.unwrap()
}

pub(crate) fn config(location: &Location, clock: &Arc<ManualClock>, seed: u64) -> StoreConfig {
    StoreConfig {
        location: location.clone(),
        connections: 4,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        entropy: Arc::new(SeededEntropy::new(seed << 32)),
        outbox: OutboxGuard {
            key: Some(OutboxKey::derive(&[7; 32])),
            witness: None,
        },
    }
}

pub(crate) fn did(name: &str) -> ExternalId {
    ExternalId::new(&format!("did:test:{name}")).unwrap()
}
