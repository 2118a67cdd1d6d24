//! SQLite: one writer connection with BEGIN IMMEDIATE, a read pool, WAL.

use super::{Engine, Pool, Pools, failed, lock::LockSource, reachability::Reachability};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, DbErr, SqliteTransactionMode, SqlxSqliteConnector, TransactionOptions,
    TransactionTrait,
    sqlx::{
        self, Connection as _, SqliteConnection,
        sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
    },
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// `SQLITE_MAX_VARIABLE_NUMBER` of the bundled library, rounded down.
pub(super) const MAX_PARAMETERS: usize = 32_000;

pub(super) const SIZE: &str = "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()";

/// Purpose of a pool's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

pub(super) async fn open(file: &Path, connections: u32) -> Result<Pools, DbErr> {
    // NORMAL keeps the file consistent after a power failure, which may undo the last commits: the indexer reads these
    // blocks again.
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(super::LOCK_TIMEOUT)
        .row_buffer_size(1024);
    let writer = connect(options.clone(), 1, Use::Write).await?;
    let reader = connect(options.pragma("query_only", "ON"), connections.max(1), Use::Read).await?;
    Ok(Pools {
        writer,
        reader,
        reachability: Reachability::default(),
        engine: Engine::Sqlite,
        lock: LockSource::for_file(file),
    })
}

async fn connect(options: SqliteConnectOptions, connections: u32, usage: Use) -> Result<Pool, DbErr> {
    let suspect = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&suspect);
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(match usage {
            Use::Read => super::READER_WAIT,
            Use::Write => super::WRITER_WAIT,
        })
        // The connection is a thread of this process: a ping would show nothing.
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
        .after_release(move |connection, _| {
            let failed = noted.swap(false, Ordering::AcqRel);
            Box::pin(async move { Ok(is_sound(connection, usage).await? && !failed) })
        })
        .connect_with(options)
        .await
        .map_err(failed)?;
    let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
    Ok(Pool { db, suspect })
}

/// Whether a released connection has no open transaction. After a full disk SQLite may have rolled back by itself; then
/// the driver's own rollback fails, and the driver keeps counting a transaction that does not exist.
async fn is_sound(connection: &mut SqliteConnection, usage: Use) -> Result<bool, sqlx::Error> {
    // The rollback of a dropped transaction is only queued; the ping returns after it.
    connection.ping().await?;
    if connection.is_in_transaction() {
        return Ok(false);
    }
    // The driver only counts transactions; SQLite knows. A ROLLBACK succeeds only if a transaction was left open.
    Ok(usage == Use::Read || sqlx::query("ROLLBACK").execute(connection).await.is_err())
}

pub(super) async fn begin_write(writer: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    writer.begin_with_options(options).await
}

/// In WAL mode a deferred transaction sees the state at its first read.
pub(super) async fn begin_read(reader: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    reader.begin().await
}
