//! The lock of the writer's process: the operating system or the database server releases it when the process ends,
//! however it ends. So another instance need not wait for the end of the lease of a writer that was killed.
//!
//! The lock only shortens the wait. What keeps two instances from writing is the lease: every transaction that writes
//! checks it.

use super::LOCK_TIMEOUT;
use sea_orm::sqlx::{
    self, ConnectOptions as _, Connection as _, Executor as _, PgConnection, postgres::PgConnectOptions,
};
use std::{
    fs::{File, OpenOptions},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};
use tokio::time::timeout;

/// In a transaction, so that a pooler keeps the connection for it. A transaction of this kind has no snapshot between
/// its statements and keeps no row from being cleaned up. The server ends it when the host of the client vanished.
const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL tcp_user_timeout = '10s'; \
     SET LOCAL tcp_keepalives_idle = 5; SET LOCAL tcp_keepalives_interval = 2; SET LOCAL tcp_keepalives_count = 3";
/// An arbitrary but fixed number, and the schema: a database may have one explorer in each.
const LOCK: &str = "SELECT pg_try_advisory_xact_lock(723541927, hashtext(coalesce(current_schema(), '')))";

/// Where the lock is taken.
#[derive(Clone, Debug)]
pub(crate) enum LockSource {
    /// A file beside the database.
    File(PathBuf),
    /// A connection of its own.
    Session(Box<PgConnectOptions>),
}

/// A lock that is held until it is dropped or its process ends.
#[derive(Debug)]
pub(crate) enum ProcessLock {
    File(File),
    Session(PgConnection),
}

impl LockSource {
    pub(crate) fn for_file(database: &Path) -> Self {
        let mut file = database.as_os_str().to_owned();
        file.push("-writer");
        Self::File(file.into())
    }

    /// Takes the lock; `None` if another process holds it, or it cannot be used.
    pub(crate) async fn try_lock(&self) -> Option<ProcessLock> {
        match self {
            Self::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path).ok()?;
                file.try_lock().ok()?;
                Some(ProcessLock::File(file))
            }
            Self::Session(options) => {
                let session = timeout(LOCK_TIMEOUT, lock_session(options)).await;
                session.ok()?.ok()?.map(ProcessLock::Session)
            }
        }
    }
}

async fn lock_session(options: &PgConnectOptions) -> Result<Option<PgConnection>, sqlx::Error> {
    let mut connection = options.connect().await?;
    connection.execute(BEGIN).await?;
    let is_taken: bool = sqlx::query_scalar(LOCK).fetch_one(&mut connection).await?;
    if is_taken {
        return Ok(Some(connection));
    }
    connection.close().await?;
    Ok(None)
}

impl ProcessLock {
    /// Whether the lock is still held: a database server that restarted, for example, released it.
    pub(crate) async fn is_held(&mut self) -> bool {
        match self {
            // After the file is removed, other processes lock a new one.
            Self::File(file) => file.metadata().is_ok_and(|file| file.nlink() > 0),
            Self::Session(connection) => {
                let ping = timeout(LOCK_TIMEOUT, connection.ping()).await;
                ping.is_ok_and(|ping| ping.is_ok())
            }
        }
    }
}
