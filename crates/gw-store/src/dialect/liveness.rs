//! Tells an unreachable database from a busy one (spec/85 §6 rule 4).
//!
//! A statement may wait long for good reasons: for a connection of the pool, for the lock on the epoch row, for a slow
//! disk. None of that shows in the statement itself. So a task that has waited for [`PATIENCE`] while no other task got
//! an answer probes the database on a fresh connection; if the probe fails, the wait ends. `session` ends the waits for
//! a single connection that is silent while the database answers.

use sea_orm::{
    DbErr, RuntimeErr,
    sqlx::{self, ConnectOptions as _, Connection as _, postgres::PgConnectOptions},
};
use std::{
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

/// How long a statement may take before the database is probed.
const PATIENCE: Duration = Duration::from_millis(400);
/// Maximum time between two probes of one statement: the wait doubles after each successful probe.
const MOST_PATIENCE: Duration = Duration::from_secs(3);
/// Timeout for a fresh connection and one answer on it.
pub(super) const PROBE: Duration = Duration::from_millis(500);

/// The same timeout in commands and before the gateway serves: no request waits then, and a busy server needs seconds.
const PATIENT_PROBE: Duration = Duration::from_secs(10);

/// How long a rejected mutation counts as the state of the database while no other mutation is tried.
const REFUSAL_COUNTS: Duration = Duration::from_secs(10);

/// Liveness of one database; shared by its pools.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// The server to probe; `None` for a file, which is always reachable.
    pub(super) server: Option<PgConnectOptions>,
    start: Instant,
    /// When the database last answered any task, in milliseconds since `start`.
    answered: AtomicU64,
    /// Whether a write failed for lack of room or because of the disk, and no probe succeeded since.
    lacks_room: AtomicBool,
    /// Whether our credential lacked a privilege when they were last looked up.
    lacks_privileges: AtomicBool,
    /// Time and result of the last probe. Locked during a probe: all waiting tasks share one.
    probe: Mutex<Option<(Instant, bool)>>,
    /// Whether no request waits for answers.
    is_patient: AtomicBool,
    /// When a mutation was last rejected, in milliseconds since `start` plus one; 0 if one succeeded since.
    refused: AtomicU64,
}

impl Liveness {
    pub(super) fn new(server: Option<PgConnectOptions>, is_patient: bool) -> Self {
        Self {
            server,
            is_patient: AtomicBool::new(is_patient),
            start: Instant::now(),
            answered: AtomicU64::new(0),
            lacks_room: AtomicBool::new(false),
            lacks_privileges: AtomicBool::new(false),
            probe: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// From now on requests wait for answers.
    pub(crate) fn end_patience(&self) {
        self.is_patient.store(false, Ordering::Relaxed);
    }

    /// How long a fresh connection or a ping may take.
    pub(super) fn probe_limit(&self) -> Duration {
        if self.is_patient.load(Ordering::Relaxed) {
            PATIENT_PROBE
        } else {
            PROBE
        }
    }

    /// Records that a mutation was rejected because of the database's state.
    pub(crate) fn note_refusal(&self) {
        self.refused
            .store(self.millis(Instant::now()).saturating_add(1), Ordering::Relaxed);
    }

    /// Records that a mutation was accepted.
    pub(crate) fn note_taken(&self) {
        self.refused.store(0, Ordering::Relaxed);
    }

    /// Whether mutations get their lock, as far as known: a rejection counts for a while, as no mutation may be tried
    /// meanwhile.
    pub(crate) fn takes_writes(&self) -> bool {
        let refused = self.refused.load(Ordering::Relaxed);
        let counts = u64::try_from(REFUSAL_COUNTS.as_millis()).unwrap_or(u64::MAX);
        refused == 0 || refused.saturating_add(counts) < self.millis(Instant::now())
    }

    /// Waits for `work` as long as the database answers.
    ///
    /// # Errors
    /// Those of `work`, or a lost connection if the database does not answer: then `work` is dropped, and its outcome
    /// is unknown.
    pub(super) async fn wait_for<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        let result = self.wait_while_it_answers(work).await;
        if let Err(error) = &result
            && is_refused_write(error)
            && !self.lacks_room.swap(true, Ordering::Relaxed)
        {
            tracing::error!(
                %error,
                "the database rejects writes: this instance is not ready until they succeed; the likely cause is a \
                 full disk: free space on the database's disk"
            );
        }
        result
    }

    /// Whether no write failed for lack of room since the last successful probe.
    pub(crate) fn has_room(&self) -> bool {
        !self.lacks_room.load(Ordering::Relaxed)
    }

    /// Records whether our credential has all privileges.
    pub(crate) fn note_privileges(&self, has_all: bool) {
        self.lacks_privileges.store(!has_all, Ordering::Relaxed);
    }

    pub(crate) fn has_privileges(&self) -> bool {
        !self.lacks_privileges.load(Ordering::Relaxed)
    }

    /// Records that a write that needed new space succeeded.
    pub(crate) fn note_room(&self) {
        if self.lacks_room.swap(false, Ordering::Relaxed) {
            tracing::info!("the database accepts writes again");
        }
    }

    async fn wait_while_it_answers<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        let Some(server) = &self.server else { return work.await };
        let mut work = pin!(work);
        let mut patience = PATIENCE;
        loop {
            let result = match timeout(patience, &mut work).await {
                Ok(result) => result,
                Err(_) => {
                    let doubted_at = Instant::now();
                    tokio::select! {
                        result = &mut work => result,
                        alive = self.answers(server, doubted_at) => match alive {
                            true => {
                                patience = patience.saturating_mul(2).min(MOST_PATIENCE);
                                continue;
                            }
                            false => return Err(no_answer()),
                        },
                    }
                }
            };
            if !matches!(&result, Err(error) if is_lost(error)) {
                self.answered.fetch_max(self.millis(Instant::now()), Ordering::Relaxed);
            }
            return result;
        }
    }

    /// Whether the database answered any task recently, or answers a probe now.
    async fn answers(&self, server: &PgConnectOptions, doubted_at: Instant) -> bool {
        let answered_recently = || {
            let patience = u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX);
            self.answered.load(Ordering::Relaxed).saturating_add(patience) > self.millis(Instant::now())
        };
        if answered_recently() {
            return true;
        }
        let mut last = self.probe.lock().await;
        if let Some((probed_at, alive)) = *last
            && probed_at >= doubted_at
        {
            return alive;
        }
        let probed_at = Instant::now();
        let alive = matches!(timeout(self.probe_limit(), ask(server)).await, Ok(true)) || answered_recently();
        if !alive {
            tracing::warn!(
                "the database does not answer in time: waiting requests are answered 503; check the database \
                 server, the network, and whether this machine is overloaded"
            );
        }
        *last = Some((probed_at, alive));
        alive
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Probes the server. A refusal by the server is an answer too: a server without free connections is alive.
async fn ask(server: &PgConnectOptions) -> bool {
    match server.connect().await {
        Ok(mut connection) => {
            let alive = connection.ping().await.is_ok();
            drop(connection.close().await);
            alive
        }
        Err(sqlx::Error::Database(_)) => true,
        Err(_) => false,
    }
}

fn is_lost(error: &DbErr) -> bool {
    let (DbErr::Conn(cause) | DbErr::Exec(cause) | DbErr::Query(cause)) = error else {
        return true;
    };
    !matches!(cause, RuntimeErr::SqlxError(cause) if matches!(**cause, sqlx::Error::Database(_)))
}

/// Whether the write failed because the engine lacks room or the disk refused it.
fn is_refused_write(error: &DbErr) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(cause))
    | DbErr::Query(RuntimeErr::SqlxError(cause))
    | DbErr::Conn(RuntimeErr::SqlxError(cause))) = error
    else {
        return false;
    };
    let code = cause.as_database_error().and_then(|error| error.code());
    // SQLite: full, read-only, and failures to write, sync, truncate; PostgreSQL: disk_full, io_error.
    matches!(
        code.as_deref(),
        Some("13" | "8" | "778" | "1034" | "1290" | "1546" | "4874" | "53100" | "58030")
    )
}

fn no_answer() -> DbErr {
    let cause = io::Error::new(io::ErrorKind::TimedOut, "the database did not answer in time");
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(sqlx::Error::Io(cause))))
}

/// Awaits a ping for at most this long; a lost connection is an error.
pub(super) async fn within(
    limit: Duration,
    ping: impl Future<Output = Result<(), sqlx::Error>>,
) -> Result<(), sqlx::Error> {
    match timeout(limit, ping).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(
            io::ErrorKind::TimedOut,
            "the connection does not answer",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sea_orm::sqlx::postgres::PgSslMode;
    use std::{future::pending, net::TcpListener};
    use tokio::task::JoinSet;

    /// Promised in docs/reliability.md for changes that begin while the database does not answer.
    const PROMISED: Duration = Duration::from_secs(1);

    /// A server that accepts connections and never answers: the kernel accepts, and no process reads.
    fn silent_server() -> (TcpListener, PgConnectOptions) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(listener.local_addr().unwrap().port())
            .ssl_mode(PgSslMode::Disable);
        (listener, server)
    }

    /// Starts and commands wait for a busy server; requests do not.
    #[tokio::test(start_paused = true)]
    async fn a_start_waits_for_seconds_until_requests_wait() {
        let (_listener, server) = silent_server();
        let liveness = Liveness::new(Some(server), true);
        let waited = async || {
            let start = Instant::now();
            let result = liveness.wait_for(pending::<Result<(), DbErr>>()).await;
            assert!(result.as_ref().is_err_and(is_lost), "{result:?}");
            start.elapsed()
        };
        assert!(waited().await >= PATIENT_PROBE);
        liveness.end_patience();
        assert!(waited().await <= PROMISED);
    }

    /// The clock is paused: it moves only when every task waits, so the machine's load decides nothing.
    #[tokio::test(start_paused = true)]
    async fn rl14_waits_for_a_database_that_does_not_answer_end_within_a_second() {
        let (_listener, server) = silent_server();
        let liveness = Arc::new(Liveness::new(Some(server), false));
        let mut waits = JoinSet::new();
        for _ in 0..12 {
            let liveness = Arc::clone(&liveness);
            waits.spawn(async move {
                let start = Instant::now();
                let result = liveness.wait_for(pending::<Result<(), DbErr>>()).await;
                (result, start.elapsed())
            });
        }
        while let Some(wait) = waits.join_next().await {
            let (result, elapsed) = wait.unwrap();
            assert!(result.as_ref().is_err_and(is_lost), "{result:?}");
            assert!(elapsed <= PROMISED, "{elapsed:?}");
        }
    }
}
