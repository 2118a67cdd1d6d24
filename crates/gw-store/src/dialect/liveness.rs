//! Whether the database answers at all, told apart from "many wait for it" (spec/85 §6 rule 4).
//!
//! A statement may wait long for good reasons: for a connection of the pool, for the lock on the epoch row, for a slow
//! disk. None of that shows in the statement itself. So whoever has waited for [`PATIENCE`] while nobody else got an
//! answer either asks on a fresh connection; if that is not answered, the wait ends.

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

/// So long a statement may take before anybody doubts the database.
const PATIENCE: Duration = Duration::from_millis(400);
/// So long at most between two doubts of one statement: the wait doubles with each that was unfounded.
const MOST_PATIENCE: Duration = Duration::from_secs(3);
/// So long a fresh connection and one answer on it may take.
const PROBE: Duration = Duration::from_millis(500);

/// So long a refused mutation speaks for those that nobody tried.
const REFUSAL_COUNTS: Duration = Duration::from_secs(10);

/// Watches over one database; shared by its pools.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// How to ask; `None` for a file, which is never away.
    server: Option<PgConnectOptions>,
    start: Instant,
    /// When the database last answered anybody, in milliseconds since `start`.
    answered: AtomicU64,
    /// A write was refused for want of room, or by the disk, and no probe succeeded since.
    lacks_room: AtomicBool,
    /// When it was last asked, and whether it answered. Held while asking: all who wait share one question.
    probe: Mutex<Option<(Instant, bool)>>,
    /// When a mutation was refused last, in milliseconds since `start` and one; 0 if one was taken since.
    refused: AtomicU64,
}

impl Liveness {
    pub(super) fn new(server: Option<PgConnectOptions>) -> Self {
        Self {
            server,
            start: Instant::now(),
            answered: AtomicU64::new(0),
            lacks_room: AtomicBool::new(false),
            probe: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// A mutation was refused for the database's own state.
    pub(crate) fn note_refusal(&self) {
        self.refused
            .store(self.millis(Instant::now()).saturating_add(1), Ordering::Relaxed);
    }

    /// A mutation was taken.
    pub(crate) fn note_taken(&self) {
        self.refused.store(0, Ordering::Relaxed);
    }

    /// Whether mutations get their lock, as far as was tried: a refusal counts for a while, as nobody may try meanwhile.
    pub(crate) fn takes_writes(&self) -> bool {
        let refused = self.refused.load(Ordering::Relaxed);
        let counts = u64::try_from(REFUSAL_COUNTS.as_millis()).unwrap_or(u64::MAX);
        refused == 0 || refused.saturating_add(counts) < self.millis(Instant::now())
    }

    /// Waits for `work` as long as the database answers.
    ///
    /// # Errors
    /// Those of `work`, or a lost connection if the database does not answer: then `work` is dropped, and whether it took
    /// place is unknown.
    pub(super) async fn wait_for<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        let done = self.wait_while_it_answers(work).await;
        if let Err(error) = &done
            && is_refused_write(error)
            && !self.lacks_room.swap(true, Ordering::Relaxed)
        {
            tracing::error!(
                %error,
                "the database takes no writes: this instance is not ready until it does; look for room on its disk"
            );
        }
        done
    }

    /// Whether no write was refused for want of room since one was seen to find some.
    pub(crate) fn has_room(&self) -> bool {
        !self.lacks_room.load(Ordering::Relaxed)
    }

    /// A write that needed room of its own succeeded.
    pub(crate) fn note_room(&self) {
        if self.lacks_room.swap(false, Ordering::Relaxed) {
            tracing::info!("the database takes writes again");
        }
    }

    async fn wait_while_it_answers<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        let Some(server) = &self.server else { return work.await };
        let mut work = pin!(work);
        let mut patience = PATIENCE;
        loop {
            let done = match timeout(patience, &mut work).await {
                Ok(done) => done,
                Err(_) => {
                    let doubted = Instant::now();
                    tokio::select! {
                        done = &mut work => done,
                        alive = self.answers(server, doubted) => match alive {
                            true => {
                                patience = patience.saturating_mul(2).min(MOST_PATIENCE);
                                continue;
                            }
                            false => return Err(no_answer()),
                        },
                    }
                }
            };
            if !matches!(&done, Err(error) if is_lost(error)) {
                self.answered.fetch_max(self.millis(Instant::now()), Ordering::Relaxed);
            }
            return done;
        }
    }

    /// Whether it answered anybody lately, or does now.
    async fn answers(&self, server: &PgConnectOptions, doubted: Instant) -> bool {
        let lately = || {
            let patience = u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX);
            self.answered.load(Ordering::Relaxed).saturating_add(patience) > self.millis(Instant::now())
        };
        if lately() {
            return true;
        }
        let mut last = self.probe.lock().await;
        if let Some((asked, alive)) = *last
            && asked >= doubted
        {
            return alive;
        }
        let asked = Instant::now();
        let alive = matches!(timeout(PROBE, ask(server)).await, Ok(true)) || lately();
        if !alive {
            tracing::warn!("the database does not answer: what waits for it is given up");
        }
        *last = Some((asked, alive));
        alive
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }
}

/// A refusal in words is an answer, too: a server without free connections is there.
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

/// Whether the engine has no room for what is to be written, or the disk refuses it.
fn is_refused_write(error: &DbErr) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(cause))
    | DbErr::Query(RuntimeErr::SqlxError(cause))
    | DbErr::Conn(RuntimeErr::SqlxError(cause))) = error
    else {
        return false;
    };
    let code = cause.as_database_error().and_then(|error| error.code());
    // SQLite: full, read-only, and what fails of writing, syncing, resizing; PostgreSQL: disk_full, io_error.
    matches!(
        code.as_deref(),
        Some("13" | "8" | "778" | "1034" | "1290" | "1546" | "4874" | "53100" | "58030")
    )
}

fn no_answer() -> DbErr {
    let cause = io::Error::new(io::ErrorKind::TimedOut, "the database does not answer");
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(sqlx::Error::Io(cause))))
}

/// The answer of a connection within a moment; a lost one is not waited for.
pub(super) async fn soon(ping: impl Future<Output = Result<(), sqlx::Error>>) -> Result<(), sqlx::Error> {
    match timeout(PROBE, ping).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(
            io::ErrorKind::TimedOut,
            "the connection does not answer",
        ))),
    }
}
