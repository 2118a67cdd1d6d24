//! PostgreSQL 15 and later: one writer connection, readers in REPEATABLE READ.

use super::{Engine, Pool, Pools, failed, lock::LockSource, reachability::Reachability};
use gw_types::Secret;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, IsolationLevel, SqlxPostgresConnector,
    TransactionTrait,
    sqlx::{
        self, ConnectOptions as _, Connection as _, Executor as _, PgConnection,
        postgres::{PgConnectOptions, PgPool, PgPoolOptions},
    },
};
use std::{
    pin::Pin,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// The protocol counts parameters in 16 bits.
pub(super) const MAX_PARAMETERS: usize = 65_000;

pub(super) const TIME: &str = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT AS at";

pub(super) const SIZE: &str = "SELECT pg_database_size(current_database()) AS bytes";

/// Maximum lifetime of a connection, so that a changed address of the server is noticed.
const LIFETIME: Duration = Duration::from_secs(300);

/// How long a released connection may take for its answer to a ping.
const PING: Duration = Duration::from_millis(500);

/// An arbitrary but fixed lock number, which keeps two starting instances from migrating at once.
const MIGRATION_LOCK: &str = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
     SELECT pg_advisory_xact_lock(7235419269)";

/// Session settings, sent as a statement because poolers reject unknown start-up options. The server ends sessions
/// whose client does not acknowledge its packets for ten seconds, and frozen writers; their locks end with them. A
/// statement outside a transaction may write, whatever the defaults of the database and the role are.
fn session(statement_timeout: Duration) -> String {
    format!(
        "SET TIME ZONE 'UTC'; SET default_transaction_read_only = off; SET lock_timeout = {lock}; \
         SET statement_timeout = {statement}; \
         SET idle_in_transaction_session_timeout = '60s'; SET tcp_user_timeout = '10s'; \
         SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3",
        lock = super::LOCK_TIMEOUT.as_millis(),
        statement = statement_timeout.as_millis(),
    )
}

pub(super) async fn open(url: &Secret, connections: u32) -> Result<Pools, DbErr> {
    let options = PgConnectOptions::from_str(url.expose())
        .map_err(failed)?
        .application_name("ledger-gateway explorer");
    // The pool retries until its timeout and reports only that; a separate connection reports the cause.
    let first = timeout(super::CONNECT_TIMEOUT, options.connect()).await;
    let first = first.map_err(|_| super::timed_out())?.map_err(failed)?;
    first.close().await.map_err(failed)?;
    Ok(Pools {
        writer: connect(options.clone(), 1, super::WRITER_WAIT, super::WRITE_TIMEOUT).await?,
        reader: connect(
            options.clone(),
            connections.max(1),
            super::READER_WAIT,
            super::READ_TIMEOUT,
        )
        .await?,
        reachability: Reachability::default(),
        engine: Engine::Postgres,
        lock: LockSource::Session(Box::new(options)),
    })
}

/// Makes the first connection of a pool. It may take longer than a request waits for one.
async fn first_connection(pool: &PgPool) -> Result<(), sqlx::Error> {
    let end = Instant::now() + super::CONNECT_TIMEOUT;
    loop {
        match pool.acquire().await {
            Err(sqlx::Error::PoolTimedOut) if Instant::now() < end => {}
            result => return result.map(drop),
        }
    }
}

/// The pool's question whether it keeps a connection.
type ConnectionCheck<'a> = Pin<Box<dyn Future<Output = Result<bool, sqlx::Error>> + Send + 'a>>;

/// Whether a connection stays in the pool: it is in order and answers.
fn check_connection(connection: &mut PgConnection, is_in_order: bool) -> ConnectionCheck<'_> {
    Box::pin(async move { Ok(is_in_order && timeout(PING, connection.ping()).await.is_ok_and(|ping| ping.is_ok())) })
}

async fn connect(
    options: PgConnectOptions,
    connections: u32,
    wait: Duration,
    statement_timeout: Duration,
) -> Result<Pool, DbErr> {
    let suspect = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&suspect);
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        // The pool's own search for idle and old connections can spin for ever: sqlx 0.9.0 counts idle connections
        // after it offers them, and the count wraps. Ages are checked at each use instead.
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(wait)
        .after_connect(move |connection, _| {
            let session = session(statement_timeout);
            Box::pin(async move {
                connection.execute(sqlx::AssertSqlSafe(session)).await?;
                Ok(())
            })
        })
        // The ping has a limit, so that a connection whose packets vanish is closed rather than waited for.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| check_connection(connection, meta.age < LIFETIME))
        .after_release(move |connection, meta| {
            let failed = noted.swap(false, Ordering::AcqRel);
            check_connection(connection, !failed && meta.age < LIFETIME)
        })
        .connect_lazy_with(options);
    first_connection(&pool).await.map_err(failed)?;
    let db = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
    Ok(Pool { db, suspect })
}

/// READ COMMITTED: statements after the lock on the lease see everything that the previous holder committed.
pub(super) async fn begin_write(writer: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    writer
        .begin_with_config(Some(IsolationLevel::ReadCommitted), Some(AccessMode::ReadWrite))
        .await
}

pub(super) async fn begin_read(reader: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    reader
        .begin_with_config(Some(IsolationLevel::RepeatableRead), Some(AccessMode::ReadOnly))
        .await
}

pub(super) async fn begin_migration(writer: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let tx = writer.begin().await?;
    tx.execute_unprepared(MIGRATION_LOCK).await?;
    Ok(tx)
}
