//! Databases of both engines, and comparison of their tables.

use gw_chain_store::{ChainStore, ChainStoreConfig, Location, OtherChain};
use gw_testkit::{anvil, postgres};
use gw_types::{
    Secret,
    testing::{ManualClock, SeededEntropy},
};
use sea_orm::{
    ConnectionTrait as _, Database as Connector, DatabaseConnection, FromQueryResult as _, JsonValue, Statement,
};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// The rows of each table.
pub(crate) type Tables = BTreeMap<&'static str, Vec<Value>>;

/// The tables with facts of the chain, each with the columns that depend on when something was read.
const TABLES: [(&str, &[&str]); 10] = [
    ("balances", &["block_number"]),
    ("blocks", &[]),
    ("contracts", &[]),
    ("frames", &[]),
    ("logs", &[]),
    ("proxy_changes", &[]),
    ("token_balances", &["block_number"]),
    ("token_transfers", &[]),
    ("tokens", &["metadata_block", "supply_block"]),
    ("transactions", &[]),
];

/// An empty database, removed when dropped.
pub(crate) struct Database {
    location: Location,
    url: String,
    pub(crate) clock: ManualClock,
    _directory: Option<tempfile::TempDir>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("chain.db");
        Self {
            url: format!("sqlite://{}", file.display()),
            location: Location::Sqlite { file },
            clock: ManualClock::default(),
            _directory: Some(directory),
        }
    }

    /// `None` if the tests run without PostgreSQL.
    pub(crate) fn postgres() -> Option<Self> {
        let database = postgres::database().unwrap()?;
        Some(Self {
            location: Location::Postgres {
                url: Secret::new(database.url.clone()),
            },
            url: database.url,
            clock: ManualClock::default(),
            _directory: None,
        })
    }

    /// A pair of databases of each engine.
    pub(crate) fn pairs() -> Vec<(Self, Self)> {
        let postgres = Self::postgres().zip(Self::postgres());
        std::iter::once((Self::sqlite(), Self::sqlite()))
            .chain(postgres)
            .collect()
    }

    pub(crate) async fn open(&self) -> ChainStore {
        let entropy = SeededEntropy::new(u64::from(rand_seed()));
        ChainStore::open(ChainStoreConfig {
            location: self.location.clone(),
            connections: 4,
            chain_id: anvil::CHAIN_ID,
            other_chain: OtherChain::Refuse,
            clock: Arc::new(self.clock.clone()),
            entropy: Arc::new(entropy),
        })
        .await
        .unwrap()
    }

    async fn connect(&self) -> DatabaseConnection {
        Connector::connect(&self.url).await.unwrap()
    }

    async fn rows(&self, sql: &str) -> Vec<Value> {
        let connection = self.connect().await;
        let statement = Statement::from_string(connection.get_database_backend(), sql.to_owned());
        let rows = JsonValue::find_by_statement(statement).all(&connection).await.unwrap();
        connection.close().await.unwrap();
        rows
    }

    pub(crate) async fn tables(&self) -> Tables {
        let mut tables = Tables::new();
        for (table, volatile) in TABLES {
            let mut rows = self.rows(&format!("SELECT * FROM {table}")).await;
            for row in &mut rows {
                let row = row.as_object_mut().unwrap();
                row.retain(|column, _| !volatile.contains(&column.as_str()));
            }
            // An address whose only payment a reorganization removed has a row with nothing.
            if table == "balances" || table == "token_balances" {
                rows.retain(|row| !hex(&row["balance"]).trim_start_matches(['0', 'x']).is_empty());
            }
            rows.sort_by_cached_key(Value::to_string);
            tables.insert(table, rows);
        }
        tables
    }

    pub(crate) async fn newest_block(&self) -> Option<(u64, String)> {
        let rows = self
            .rows("SELECT number, hash FROM blocks ORDER BY number DESC LIMIT 1")
            .await;
        let row = rows.first()?;
        Some((row["number"].as_u64().unwrap(), hex(&row["hash"])))
    }

    pub(crate) async fn count(&self, sql: &str) -> usize {
        self.rows(sql).await.len()
    }

    pub(crate) async fn tasks(&self) -> usize {
        self.count("SELECT kind FROM tasks").await
    }

    /// Changes rows behind the back of the store.
    pub(crate) async fn tamper(&self, sql: &str) {
        let connection = self.connect().await;
        let changed = connection.execute_unprepared(sql).await.unwrap();
        assert!(changed.rows_affected() > 0, "{sql}");
        connection.close().await.unwrap();
    }

    /// Ends the lease of a writer that was killed.
    pub(crate) async fn end_lease(&self) {
        let connection = self.connect().await;
        connection
            .execute_unprepared("UPDATE writer_lease SET holder = NULL")
            .await
            .unwrap();
        connection.close().await.unwrap();
    }
}

/// Each store has entropy of its own: two writers must not have one id.
fn rand_seed() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Bytes of a column as hexadecimal digits.
pub(crate) fn hex(column: &Value) -> String {
    let bytes = bytes(column).unwrap_or_else(|| panic!("no bytes: {column}"));
    bytes
        .iter()
        .fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Bytes of a column as text; `None` for `NULL`.
pub(crate) fn text(column: &Value) -> Option<String> {
    bytes(column).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// SeaORM converts a column of bytes to an array of numbers, and one of exactly 16 bytes to the text of a UUID.
fn bytes(column: &Value) -> Option<Vec<u8>> {
    let number = |byte: &Value| u8::try_from(byte.as_u64().unwrap()).unwrap();
    match column {
        Value::Null => None,
        Value::Array(bytes) => Some(bytes.iter().map(number).collect()),
        Value::String(uuid) => {
            let digits: Vec<u8> = uuid.bytes().filter(|byte| *byte != b'-').collect();
            let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
            Some(digits.chunks(2).map(byte).collect())
        }
        other => panic!("no bytes: {other}"),
    }
}

/// Asserts that all tables are equal; names the first row that differs.
#[track_caller]
pub(crate) fn assert_equal(tables: &Tables, expected: &Tables) {
    for (table, rows) in expected {
        let others = &tables[table];
        let missing = rows.iter().find(|row| !others.contains(row));
        let extra = others.iter().find(|row| !rows.contains(row));
        assert!(
            rows == others,
            "{table}: {} rows, expected {}\nmissing: {missing:?}\nextra: {extra:?}",
            others.len(),
            rows.len()
        );
    }
}
