//! Test databases with a repeatable clock and entropy.

use gw_chain_store::{BlockData, ChainReader, ChainStore, ChainStoreConfig, ChainWriter, Location, OtherChain};
use gw_testkit::postgres;
use gw_types::testing::{ManualClock, SeededEntropy};
use gw_types::{Clock, Secret};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, QueryResult, Statement, TransactionTrait,
};
use std::{collections::BTreeMap, sync::Arc};

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

/// The tables with rows of the chain and what was read about them, without the queue.
pub(crate) const TABLES: [&str; 10] = [
    "balances",
    "blocks",
    "contracts",
    "frames",
    "logs",
    "proxy_changes",
    "token_balances",
    "token_transfers",
    "tokens",
    "transactions",
];

/// The rows of all tables, as text.
pub(crate) type Dump = BTreeMap<&'static str, Vec<String>>;

/// A migrated database for one test.
pub(crate) struct World {
    pub(crate) engine: &'static str,
    pub(crate) store: ChainStore,
    pub(crate) clock: Arc<ManualClock>,
    location: Location,
    /// A connection that bypasses the store: to tamper, or to inspect what it wrote.
    raw: DatabaseConnection,
    /// Removed when the world is dropped.
    _place: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let place = tempfile::tempdir().unwrap();
        let location = Location::Sqlite {
            file: place.path().join("explorer.db"),
        };
        Self::at("sqlite", location, Some(place)).await
    }

    pub(crate) async fn postgres() -> Option<Self> {
        let database = postgres::database().unwrap_or_else(|cause| panic!("{cause}"))?;
        let location = Location::Postgres {
            url: Secret::new(database.url),
        };
        Some(Self::at("postgres", location, None).await)
    }

    /// Another empty database on the same engine.
    pub(crate) async fn another(&self) -> Self {
        match self.engine {
            "sqlite" => Self::sqlite().await,
            _ => Self::postgres().await.unwrap(),
        }
    }

    async fn at(engine: &'static str, location: Location, place: Option<tempfile::TempDir>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = ChainStore::open(config(&location, &clock, 1)).await.unwrap();
        let url = match &location {
            Location::Postgres { url } => url.expose().to_owned(),
            Location::Sqlite { file } => format!("sqlite://{}", file.display()),
        };
        let mut options = ConnectOptions::new(url);
        options.max_connections(1);
        Self {
            engine,
            store,
            clock,
            location,
            raw: Database::connect(options).await.unwrap(),
            _place: place,
        }
    }

    /// The configuration of another instance on the same database.
    pub(crate) fn config(&self, seed: u64) -> ChainStoreConfig {
        config(&self.location, &self.clock, seed)
    }

    pub(crate) async fn writer(&self) -> ChainWriter {
        self.store.writer("test").await.unwrap()
    }

    pub(crate) async fn reader(&self) -> ChainReader {
        self.store.reader().await.unwrap()
    }

    pub(crate) async fn generation(&self) -> u64 {
        self.reader().await.progress().generation
    }

    /// Runs statements that bypass the store, in one transaction.
    pub(crate) async fn tamper(&self, statements: &[&str]) {
        let tx = self.raw.begin().await.unwrap();
        for sql in statements {
            tx.execute_unprepared(sql).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    /// Takes the lock of the writer's process away from its holder, and waits until it is free.
    pub(crate) async fn lose_lock(&self) {
        if let Location::Sqlite { file } = &self.location {
            let mut lock = file.clone().into_os_string();
            lock.push("-writer");
            std::fs::remove_file(lock).unwrap();
            return;
        }
        let of_locks = "FROM pg_locks WHERE locktype = 'advisory' AND granted \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        loop {
            let ended = self
                .query(&format!("SELECT pg_terminate_backend(pid) {of_locks}"))
                .await;
            if ended.is_empty() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn query(&self, sql: &str) -> Vec<QueryResult> {
        let statement = Statement::from_string(self.raw.get_database_backend(), sql);
        self.raw.query_all_raw(statement).await.unwrap()
    }

    /// All rows of the chain's tables.
    pub(crate) async fn dump(&self) -> Dump {
        self.dump_of(&TABLES).await
    }

    /// The rows of tables, sorted.
    pub(crate) async fn dump_of(&self, tables: &[&'static str]) -> Dump {
        let mut dump = Dump::new();
        for table in tables {
            let row = match self.engine {
                "sqlite" => {
                    let columns = self
                        .query(&format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid"))
                        .await;
                    let columns = columns
                        .iter()
                        .map(|row| format!("quote({})", row.try_get::<String>("", "name").unwrap()));
                    columns.collect::<Vec<_>>().join(" || '|' || ")
                }
                _ => format!("{table}::TEXT"),
            };
            let rows = self
                .query(&format!("SELECT {row} AS text FROM {table} ORDER BY 1"))
                .await;
            let rows = rows.iter().map(|row| row.try_get("", "text").unwrap());
            dump.insert(table, rows.collect());
        }
        dump
    }
}

fn config(location: &Location, clock: &Arc<ManualClock>, seed: u64) -> ChainStoreConfig {
    ChainStoreConfig {
        location: location.clone(),
        connections: 4,
        chain_id: 1337,
        other_chain: OtherChain::Refuse,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        entropy: Arc::new(SeededEntropy::new(seed << 32)),
    }
}

pub(crate) async fn append_all(writer: &ChainWriter, blocks: &[BlockData]) {
    for block in blocks {
        writer.append(block, &[]).await.unwrap();
    }
}
