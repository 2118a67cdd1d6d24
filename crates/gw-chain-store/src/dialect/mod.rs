//! Differences between SQLite and PostgreSQL; besides `config`, no other module distinguishes the engines.

mod lock;
mod postgres;
mod reachability;
mod sqlite;
mod transaction;

pub(crate) use lock::ProcessLock;
#[cfg(test)]
pub(crate) use transaction::STATEMENTS;
pub(crate) use transaction::Transaction;

use crate::{ChainStoreError, Location};
use gw_types::Timestamp;
use lock::LockSource;
use reachability::Reachability;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, RuntimeErr, Statement, sqlx};
use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// How long the writer waits for its connection.
const WRITER_WAIT: Duration = Duration::from_secs(30);
/// How long a reader waits for a connection of the pool: a user waits for its answer.
const READER_WAIT: Duration = Duration::from_secs(2);
/// How long the first connection of a pool may take. No user waits for it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a statement of a reader may take.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a statement of the writer may take: a reorganization or a completed trace may change many rows.
const WRITE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a statement of the writer waits for the lock of another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The most rows or values of a statement, so that no block makes one without bound.
const MAX_ROWS: usize = 1_000;

/// The engine, for the few statements that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) fn for_connection(conn: &impl ConnectionTrait) -> Self {
        match conn.get_database_backend() {
            DbBackend::Postgres => Self::Postgres,
            _ => Self::Sqlite,
        }
    }

    pub(crate) fn statement(self, sql: impl Into<String>) -> Statement {
        let backend = match self {
            Self::Sqlite => DbBackend::Sqlite,
            Self::Postgres => DbBackend::Postgres,
        };
        Statement::from_string(backend, sql.into())
    }

    /// The most rows with this number of values in one statement.
    pub(crate) fn batch_size(self, columns: usize) -> usize {
        let parameters = match self {
            Self::Sqlite => sqlite::MAX_PARAMETERS,
            Self::Postgres => postgres::MAX_PARAMETERS,
        };
        (parameters / columns.max(1)).clamp(1, MAX_ROWS)
    }

    /// The statement that removes all rows of these tables.
    pub(crate) fn clear(self, tables: &[&str]) -> Vec<String> {
        match self {
            Self::Sqlite => tables.iter().map(|table| format!("DELETE FROM {table}")).collect(),
            Self::Postgres => vec![format!("TRUNCATE {}", tables.join(", "))],
        }
    }
}

/// Connections of one kind to one database.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    db: DatabaseConnection,
    /// Set when a statement failed: the next released connection is closed, as it may hold an open transaction.
    suspect: Arc<AtomicBool>,
}

/// Connections to one database.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    /// Exactly one connection.
    writer: Pool,
    reader: Pool,
    reachability: Reachability,
    engine: Engine,
    lock: LockSource,
}

impl Pools {
    pub(crate) async fn open(location: &Location, connections: u32) -> Result<Self, DbErr> {
        match location {
            Location::Sqlite { file } => sqlite::open(file, connections).await,
            Location::Postgres { url } => postgres::open(url, connections).await,
        }
    }

    /// Connects to a database that exists, to read it; `None` if its file is missing. A missing PostgreSQL database is
    /// an error.
    pub(crate) async fn open_existing(location: &Location) -> Result<Option<Self>, DbErr> {
        match location {
            Location::Sqlite { file } if !file.exists() => Ok(None),
            location => Self::open(location, 1).await.map(Some),
        }
    }

    /// Takes the lock of the writer's process; `None` if another process holds it, or it cannot be used.
    pub(crate) async fn try_lock(&self) -> Option<ProcessLock> {
        self.lock.try_lock().await
    }

    /// Begins a transaction that may write. On SQLite it holds the write lock from the start.
    pub(crate) async fn begin_write(&self) -> Result<Transaction, DbErr> {
        let db = match self.engine {
            Engine::Sqlite => sqlite::begin_write(&self.writer.db).await?,
            Engine::Postgres => postgres::begin_write(&self.writer.db).await?,
        };
        Ok(Transaction::new(db, &self.writer.suspect, Some(WRITE_TIMEOUT)))
    }

    /// Begins a transaction that sees one state of the database throughout.
    pub(crate) async fn begin_read(&self) -> Result<Transaction, DbErr> {
        let begin = async {
            match self.engine {
                Engine::Sqlite => sqlite::begin_read(&self.reader.db).await,
                Engine::Postgres => postgres::begin_read(&self.reader.db).await,
            }
        };
        let db = self.reachability.begin(begin).await?;
        Ok(Transaction::new(db, &self.reader.suspect, Some(READ_TIMEOUT)))
    }

    /// Whether the last reader reached the database.
    pub(crate) fn is_reachable(&self) -> bool {
        self.reachability.is_reachable()
    }

    /// Begins a transaction that may change the schema; one at a time across all instances.
    pub(crate) async fn begin_migration(&self) -> Result<Transaction, DbErr> {
        let db = match self.engine {
            Engine::Sqlite => sqlite::begin_write(&self.writer.db).await?,
            Engine::Postgres => postgres::begin_migration(&self.writer.db).await?,
        };
        Ok(Transaction::new(db, &self.writer.suspect, None))
    }
}

/// Returns the time for leases: the database's, if it has a clock. Then all instances use one clock.
pub(crate) async fn lease_time(tx: &Transaction, local: Timestamp) -> Result<Timestamp, ChainStoreError> {
    let engine = Engine::for_connection(tx);
    let Engine::Postgres = engine else { return Ok(local) };
    let row = tx
        .query_one_raw(engine.statement(postgres::TIME))
        .await?
        .ok_or(ChainStoreError::Schema("missing"))?;
    Ok(Timestamp::from_micros(row.try_get("", "at")?))
}

/// The size of the database in bytes.
pub(crate) async fn size(tx: &Transaction) -> Result<u64, ChainStoreError> {
    let engine = Engine::for_connection(tx);
    let sql = match engine {
        Engine::Sqlite => sqlite::SIZE,
        Engine::Postgres => postgres::SIZE,
    };
    let row = tx
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(ChainStoreError::Schema("missing"))?;
    let bytes: i64 = row.try_get("", "bytes")?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

fn failed(cause: sqlx::Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)))
}

fn timed_out() -> DbErr {
    failed(sqlx::Error::Io(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_batch_exceeds_the_parameters_of_the_engine() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            for columns in 1..100 {
                assert!(engine.batch_size(columns) * columns <= 65_535);
                assert!(engine.batch_size(columns) <= MAX_ROWS);
            }
        }
        assert!(Engine::Sqlite.batch_size(40) * 40 <= 32_766);
        assert_eq!(Engine::Sqlite.batch_size(1_000_000), 1);
    }
}
