//! Bounds the waits of a transaction for its one connection (RL14).
//!
//! [`Liveness`] ends waits for a database that does not answer at all. But a firewall, a proxy or a lost packet can
//! silence one connection while the database answers on all others. Then only the server knows whether it still works
//! on the statement: `pg_stat_activity` on a fresh connection distinguishes a slow statement from a lost answer.

use super::liveness::{Liveness, PROBE};
use sea_orm::{
    DbErr, RuntimeErr,
    sqlx::{self, ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions},
};
use std::{io, pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// How long an answer may be under way after the server has finished or forgotten the statement.
const GRACE: Duration = Duration::from_secs(1);
/// How long the end of a transaction on a silent connection is awaited.
const SETTLE: Duration = Duration::from_secs(2);
/// Time between two looks at a transaction that is about to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// State of the transaction of a session, if it is still open. The start of the transaction distinguishes it from later
/// ones, as a pooler gives a session to many clients.
const STATE: &str = "SELECT COALESCE(state, '') FROM pg_catalog.pg_stat_activity \
     WHERE pid = $1 AND (EXTRACT(EPOCH FROM xact_start) * 1000000)::BIGINT = $2";

/// Ends a session that waits for the next statement of the transaction; a session that is committing is left alone.
const TERMINATE: &str = "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
     WHERE pid = $1 AND (EXTRACT(EPOCH FROM xact_start) * 1000000)::BIGINT = $2 AND state LIKE 'idle in transaction%'";

/// Bounds of the waits on one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitLimits {
    /// How long a wait lasts before the server is asked whether it still works on the statement.
    patience: Duration,
    /// Maximum of a wait, even if the server still works on the statement.
    limit: Duration,
}

impl WaitLimits {
    /// For a commit: the server may wait for its disk or for a standby, but not for a lock.
    pub(super) const COMMIT: Self = Self {
        patience: Duration::from_secs(1),
        limit: Duration::from_secs(5),
    };

    /// For statements that wait for a lock for at most `lock_wait`; the server ends them after its statement timeout.
    pub(super) const fn for_statements(lock_wait: Duration, statement_timeout: Duration) -> Self {
        Self {
            patience: lock_wait.saturating_add(Duration::from_secs(1)),
            limit: statement_timeout.saturating_add(Duration::from_secs(5)),
        }
    }

    /// For work of which the server cannot be asked.
    pub(super) const fn fixed(limit: Duration) -> Self {
        Self { patience: limit, limit }
    }
}

/// A transaction as the server knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    /// Process id of the server process.
    pub(super) pid: i32,
    /// Start of the transaction by the server's clock, in microseconds since 1970.
    pub(super) begun: i64,
}

/// What the server does for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionState {
    /// It executes a statement.
    Executing,
    /// It waits for the next statement.
    Idle,
    /// The transaction has ended.
    Ended,
    /// The server did not tell.
    Unknown,
}

/// How the transaction of a silent connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    /// It has ended by itself: if it committed, the commit is complete.
    Ended,
    /// The server was told to end it: it is rolled back, unless the commit arrived at the same moment.
    Terminated,
    /// It may still be open, and may still commit.
    Open,
}

impl Liveness {
    /// Waits for work on one connection, as [`Liveness::wait_for`]; but no longer than the server works on it.
    ///
    /// # Errors
    /// Those of `work`, or a lost connection if the database or the connection does not answer: then `work` is dropped,
    /// and its outcome is unknown.
    pub(super) async fn wait_in<T>(
        &self,
        session: Option<Session>,
        bound: WaitLimits,
        work: impl Future<Output = Result<T, DbErr>>,
    ) -> Result<T, DbErr> {
        if self.server.is_none() {
            return self.wait_for(work).await;
        }
        let start = Instant::now();
        let mut work = pin!(self.wait_for(work));
        loop {
            let left = bound.limit.saturating_sub(start.elapsed());
            if let Ok(result) = timeout(bound.patience.min(left), &mut work).await {
                return result;
            }
            let state = tokio::select! {
                result = &mut work => return result,
                state = self.state(session) => state,
            };
            if state == SessionState::Executing {
                if start.elapsed() < bound.limit {
                    continue;
                }
            } else if let Ok(result) = timeout(GRACE, &mut work).await {
                return result;
            }
            tracing::warn!(
                waited_ms = start.elapsed().as_millis(),
                ?state,
                "one connection to the database does not answer: it is closed; if this repeats, check firewalls and \
                 proxies between the gateway and the database"
            );
            return Err(silent());
        }
    }

    /// Ends the transaction of a silent connection at the server, so that its locks are released, and waits until it
    /// has ended. A session that is committing is not interrupted: an interrupted commit may be lost in a failover.
    pub(super) async fn settle(&self, session: Session) -> Settlement {
        let Some(server) = &self.server else {
            return Settlement::Ended;
        };
        match timeout(SETTLE, settle(server, session)).await {
            Ok(Ok(settlement)) => settlement,
            Ok(Err(_)) | Err(_) => Settlement::Open,
        }
    }

    async fn state(&self, session: Option<Session>) -> SessionState {
        let (Some(server), Some(session)) = (&self.server, session) else {
            return SessionState::Unknown;
        };
        let look = async {
            let mut connection = server.connect().await?;
            let state = state(&mut connection, session).await;
            drop(connection.close().await);
            state
        };
        match timeout(PROBE, look).await {
            Ok(Ok(state)) => state,
            Ok(Err(_)) | Err(_) => SessionState::Unknown,
        }
    }
}

async fn settle(server: &PgConnectOptions, session: Session) -> Result<Settlement, sqlx::Error> {
    let mut connection = timeout(PROBE, server.connect())
        .await
        .map_err(|_| sqlx::Error::PoolTimedOut)??;
    let mut settlement = Settlement::Ended;
    loop {
        match state(&mut connection, session).await? {
            SessionState::Ended => break,
            SessionState::Idle => {
                let terminate = sqlx::query(TERMINATE).persistent(false);
                terminate
                    .bind(session.pid)
                    .bind(session.begun)
                    .execute(&mut connection)
                    .await?;
                settlement = Settlement::Terminated;
            }
            SessionState::Executing | SessionState::Unknown => {}
        }
        sleep(LOOK_INTERVAL).await;
    }
    drop(connection.close().await);
    Ok(settlement)
}

async fn state(connection: &mut PgConnection, session: Session) -> Result<SessionState, sqlx::Error> {
    let query = sqlx::query_scalar::<_, String>(STATE).persistent(false);
    let state = query
        .bind(session.pid)
        .bind(session.begun)
        .fetch_optional(connection)
        .await?;
    Ok(match state.as_deref() {
        None => SessionState::Ended,
        Some("active" | "fastpath function call") => SessionState::Executing,
        Some(state) if state.starts_with("idle in transaction") => SessionState::Idle,
        Some(_) => SessionState::Unknown,
    })
}

/// Whether an error says that the database or the connection did not answer in time.
pub(super) fn is_unanswered(error: &DbErr) -> bool {
    matches!(error, DbErr::Conn(RuntimeErr::SqlxError(cause))
        if matches!(&**cause, sqlx::Error::Io(cause) if cause.kind() == io::ErrorKind::TimedOut))
}

fn silent() -> DbErr {
    let cause = io::Error::new(
        io::ErrorKind::TimedOut,
        "the connection to the database does not answer",
    );
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(sqlx::Error::Io(cause))))
}

#[cfg(test)]
mod tests {
    use crate::{
        Location,
        dialect::{Engine, Pools, session::Settlement},
    };
    use gw_types::Secret;
    use sea_orm::ConnectionTrait;

    async fn lock_timeout(conn: &impl ConnectionTrait) -> String {
        let shown = conn
            .query_one_raw(Engine::Postgres.statement("SHOW lock_timeout"))
            .await;
        shown.unwrap().unwrap().try_get("", "lock_timeout").unwrap()
    }

    /// A caller's change reads outside its transaction, too: every statement has the short wait for locks, and only the
    /// transactions of workers and of migrations have another one.
    #[tokio::test]
    async fn rl14_statements_wait_one_second_for_a_lock() {
        let database = gw_testkit::postgres::database().unwrap_or_else(|cause| panic!("{cause}"));
        let Some(database) = database else { return };
        let pools = Pools::open(&Location::postgres(Secret::new(database.url)), 2, &[])
            .await
            .unwrap();
        assert_eq!(
            lock_timeout(&pools.reader.db).await,
            "1s",
            "a statement without a transaction"
        );
        let read = pools.begin_read().await.unwrap();
        assert_eq!(lock_timeout(&read).await, "1s", "a transaction that reads");
        read.rollback().await.unwrap();
        let mutation = pools.begin_mutation().await.unwrap();
        assert_eq!(lock_timeout(&mutation).await, "1s", "a change");
        mutation.rollback().await.unwrap();
        let worker = pools.begin_write().await.unwrap();
        assert_eq!(lock_timeout(&worker).await, "5s", "a transaction of a worker");
        worker.rollback().await.unwrap();
        assert_eq!(
            lock_timeout(&pools.reader.db).await,
            "1s",
            "the setting ends with the transaction"
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn rl14_a_statement_that_the_server_executes_is_awaited() {
        let database = gw_testkit::postgres::database().unwrap_or_else(|cause| panic!("{cause}"));
        let Some(database) = database else { return };
        let pools = Pools::open(&Location::postgres(Secret::new(database.url)), 2, &[])
            .await
            .unwrap();
        let tx = pools.begin_mutation().await.unwrap();
        tx.execute_unprepared("SELECT pg_sleep(3)").await.unwrap();
        let session = tx.session().unwrap();
        // An open transaction that waits for its next statement is ended, and nothing else.
        assert_eq!(pools.writer.liveness.settle(session).await, Settlement::Terminated);
        assert_eq!(pools.writer.liveness.settle(session).await, Settlement::Ended);
        tx.execute_unprepared("SELECT 1")
            .await
            .expect_err("its session has ended");
        drop(tx);
        let next = pools.begin_mutation().await.unwrap();
        next.execute_unprepared("SELECT 1").await.unwrap();
        next.rollback().await.unwrap();
    }
}
