//! SQLite: one writer connection with BEGIN IMMEDIATE, a read pool, WAL, every commit on disk (HD24).

use super::{Engine, Pool, Pools, liveness::Liveness};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, RuntimeErr, SqliteTransactionMode,
    SqlxSqliteConnector, TransactionOptions, TransactionTrait,
    sqlx::{
        self, Connection as _, SqliteConnection,
        sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
    },
};
use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

/// `SQLITE_MAX_VARIABLE_NUMBER` of the bundled library, rounded down.
pub(super) const MAX_PARAMETERS: usize = 32_000;

/// One machine, one clock: the database has none of its own.
pub(super) const HEAD: &str = "SELECT epoch, stamp, NULL AS at, TRUE AS is_primary \
     FROM policy_epoch JOIN policy_history USING (epoch)";

/// BEGIN IMMEDIATE holds the write lock already.
pub(super) const LOCK_EPOCH: &str = "SELECT epoch FROM policy_epoch";

pub(super) const INSERT_POLICY_STORE: &str = "INSERT INTO policy_store (id, store_id, last_outbox_id) \
     SELECT 1, randomblob(16), COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'audit_outbox'), 0)";

pub(super) const RAISE_EPOCH: &str = "UPDATE policy_epoch SET epoch = epoch + 1 \
     WHERE EXISTS (SELECT 1 FROM policy_changes WHERE policy_changes.epoch = policy_epoch.epoch + 1) \
     RETURNING epoch";

pub(super) async fn open(file: &Path, connections: u32) -> Result<Pools, DbErr> {
    // recursive_triggers also fires delete triggers for rows that REPLACE removes, should anybody ever write one.
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("recursive_triggers", "ON")
        // Within this process writers queue for their connection; a lock is another process's, and nobody waits long for it.
        .busy_timeout(super::LOCK_WAIT)
        // The driver hands rows over from a thread of its own: loading all policy is to do so in large lots.
        .row_buffer_size(4096);
    if !file.exists() {
        // For files made from now on: what pruning frees can be given back (`Pools::give_back`). On a file that exists the
        // setting waits for whoever writes, so no later connection has it.
        let made = options.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        let failed = |cause| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)));
        SqliteConnection::connect_with(&made)
            .await
            .map_err(failed)?
            .close()
            .await
            .map_err(failed)?;
    }
    let opened = Arc::new(OpenedFile::of(file).map_err(lost_file)?);
    // From here on a file that is gone is not made anew: it would be another, empty database.
    let options = options.create_if_missing(false);
    let writer = connect(options.clone(), 1, Use::Write).await?;
    let reader = connect(options.pragma("query_only", "ON"), connections.max(1), Use::Read).await?;
    Ok(Pools {
        writer,
        reader,
        engine: Engine::Sqlite,
        file: Some(opened),
        turns: Arc::new(Semaphore::new(1)),
    })
}

/// The file as it was opened. Connections go on with it when somebody removes or replaces it, and what they write is gone
/// with them.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// The inode of the write-ahead log when it was looked at last; 0 before that.
    log: AtomicU64,
    /// Whether the operator was told that it is gone.
    told: AtomicBool,
}

impl OpenedFile {
    fn of(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        let (device, inode) = (found.dev(), found.ino());
        Ok(Self {
            path: path.to_owned(),
            device,
            inode,
            log: AtomicU64::new(0),
            told: AtomicBool::new(false),
        })
    }

    /// Whether its path still leads to it, and that of its write-ahead log to the one in use.
    pub(super) fn is_there(&self) -> bool {
        let found = std::fs::metadata(&self.path);
        found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode)) && self.has_log()
    }

    /// The engine makes a new log when the last connection is closed and another one opened, so a change alone proves nothing:
    /// a log that is in use and has no name any more does.
    fn has_log(&self) -> bool {
        let path = beside(&self.path, "-wal");
        let now = std::fs::metadata(&path).map_or(0, |found| found.ino());
        if now == self.log.load(Ordering::Relaxed) {
            return true;
        }
        let is_lost = has_removed(&path);
        if !is_lost {
            self.log.store(now, Ordering::Relaxed);
        }
        !is_lost
    }

    /// # Errors
    /// The file is not there any more.
    pub(super) fn check(&self) -> Result<(), DbErr> {
        if self.is_there() {
            self.told.store(false, Ordering::Relaxed);
            return Ok(());
        }
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::error!(
                file = %self.path.display(),
                "the database file was removed or replaced while it is in use: nothing is written any more; put the file \
                 back, or stop the service before you restore another"
            );
        }
        Err(lost_file(io::Error::new(
            io::ErrorKind::NotFound,
            "the database file was removed or replaced",
        )))
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether this process has a file open that was removed from this path, or moved away.
fn has_removed(path: &Path) -> bool {
    let Ok(path) = path.canonicalize().or_else(|_| canonical_parent(path)) else {
        return false;
    };
    let removed = beside(&path, " (deleted)");
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return false;
    };
    let mut open = open.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    open.any(|target| target == removed)
}

fn canonical_parent(path: &Path) -> io::Result<PathBuf> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let (parent, name) = (
        path.parent().ok_or_else(missing)?,
        path.file_name().ok_or_else(missing)?,
    );
    Ok(parent.canonicalize()?.join(name))
}

fn lost_file(error: io::Error) -> DbErr {
    DbErr::Conn(RuntimeErr::SqlxError(Arc::new(sqlx::Error::Io(error))))
}

/// Opens an existing file for reading; every write through these pools fails.
pub(super) async fn open_read_only(file: &Path) -> Result<Pools, DbErr> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(false)
        .read_only(true)
        .busy_timeout(Duration::from_secs(10))
        .row_buffer_size(4096);
    let reader = connect(options, 2, Use::Read).await?;
    let turns = Arc::new(Semaphore::new(1));
    Ok(Pools {
        writer: reader.clone(),
        reader,
        engine: Engine::Sqlite,
        file: None,
        turns,
    })
}

/// What a pool's connections are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

async fn connect(options: SqliteConnectOptions, connections: u32, usage: Use) -> Result<Pool, DbErr> {
    let suspect = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&suspect);
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(super::ACQUIRE_TIMEOUT)
        // A thread of this process, which ends with the connection: there is nothing to find out by asking.
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
        .after_release(move |connection, _| {
            let failed = noted.swap(false, Ordering::AcqRel);
            Box::pin(async move {
                let sound = is_sound(connection, usage).await? && !failed;
                if !sound {
                    tracing::warn!(
                        "a connection to the database file is closed after a failure; a fresh one takes its place"
                    );
                }
                Ok(sound)
            })
        })
        .connect_with(options)
        .await
        .map_err(|cause| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause))))?;
    let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
    Ok(Pool::new(db, Arc::new(Liveness::new(None)), suspect))
}

/// Whether a connection that comes back holds no open transaction (RL1). After `SQLITE_FULL` and `SQLITE_IOERR` SQLite may
/// have rolled back by itself; the driver's own rollback fails then, and it goes on counting a transaction that is not
/// there: later ones would be savepoints in one that nobody commits.
async fn is_sound(connection: &mut SqliteConnection, usage: Use) -> Result<bool, sqlx::Error> {
    // The rollback of a dropped transaction is only queued; this answers after it.
    connection.ping().await?;
    if connection.is_in_transaction() {
        return Ok(false);
    }
    // The driver counts; SQLite knows. There is nothing to roll back but what was left open.
    Ok(usage == Use::Read || sqlx::query("ROLLBACK").execute(connection).await.is_err())
}

/// Raises the number in the file's header, which nothing else uses: it is part of the transaction.
pub(super) async fn raise_version(tx: &impl ConnectionTrait) -> Result<i32, DbErr> {
    let next = version(tx).await?.wrapping_add(1);
    tx.execute_unprepared(&format!("PRAGMA user_version = {next}")).await?;
    Ok(next)
}

/// Whether the number has been raised so far; it may have gone on since, and past its end.
pub(super) async fn has_version(reader: &impl ConnectionTrait, raised: i32) -> Result<bool, DbErr> {
    Ok(version(reader).await?.wrapping_sub(raised) >= 0)
}

async fn version(conn: &impl ConnectionTrait) -> Result<i32, DbErr> {
    let row = conn
        .query_one_raw(Engine::Sqlite.statement("PRAGMA user_version"))
        .await?;
    row.map_or(Ok(0), |row| row.try_get_by_index(0))
}

pub(super) async fn begin_write(writer: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    writer.begin_with_options(options).await
}

/// In WAL mode a deferred transaction keeps the state of its first read.
pub(super) async fn begin_read(reader: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    reader.begin().await
}

/// `UNIQUE constraint failed: t.a, t.b` becomes PostgreSQL's name for it, `t_a_b_key`.
pub(super) fn constraint(message: &str) -> String {
    let columns = message.rsplit_once(": ").map_or("", |(_, columns)| columns);
    let mut name = String::new();
    for column in columns.split(", ") {
        let (table, column) = column.split_once('.').unwrap_or(("", column));
        if name.is_empty() {
            name.push_str(table);
        }
        name.push('_');
        name.push_str(column);
    }
    name + "_key"
}

pub(super) fn history_triggers() -> Vec<String> {
    ["INSERT", "UPDATE"]
        .into_iter()
        .map(|event| {
            format!(
                "CREATE TRIGGER policy_epoch_after_{} AFTER {event} ON policy_epoch BEGIN \
                 INSERT INTO policy_history (epoch, stamp) VALUES (NEW.epoch, randomblob(16)) \
                 ON CONFLICT (epoch) DO UPDATE SET stamp = excluded.stamp; END",
                event.to_lowercase()
            )
        })
        .collect()
}

/// `OR IGNORE` in a trigger gives way to what the statement around it wants, and a foreign key that sets NULL wants an
/// error; `ON CONFLICT` does not.
pub(super) fn change_triggers(table: &str, key: &str, entity: &str) -> Vec<String> {
    triggers(table, |row| {
        format!(
            "INSERT INTO policy_changes (epoch, entity, row_id) \
             SELECT epoch + 1, '{entity}', {row}.{key} FROM policy_epoch WHERE TRUE ON CONFLICT DO NOTHING"
        )
    })
}

/// As step m0001 made them: a row that was changed and then lost a reference in one transaction failed it.
pub(super) fn first_change_triggers(table: &str, key: &str, entity: &str) -> Vec<String> {
    triggers(table, |row| {
        format!(
            "INSERT OR IGNORE INTO policy_changes (epoch, entity, row_id) \
             SELECT epoch + 1, '{entity}', {row}.{key} FROM policy_epoch"
        )
    })
}

pub(super) fn renew_change_triggers(table: &str, key: &str, entity: &str) -> Vec<String> {
    let drop = EVENTS.map(|(event, _)| format!("DROP TRIGGER {table}_after_{event}"));
    drop.into_iter().chain(change_triggers(table, key, entity)).collect()
}

/// What may happen to a row, and the name of the row then.
const EVENTS: [(&str, &str); 3] = [("insert", "NEW"), ("update", "NEW"), ("delete", "OLD")];

fn triggers(table: &str, note: impl Fn(&str) -> String) -> Vec<String> {
    EVENTS
        .into_iter()
        .map(|(event, row)| {
            format!(
                "CREATE TRIGGER {table}_after_{event} AFTER {event} ON {table} BEGIN {}; END",
                note(row)
            )
        })
        .collect()
}

/// Names are compared as SQLite does, whatever their case.
pub(super) fn foreign_objects(tables: &str, tracked: &str) -> String {
    format!(
        "SELECT type || ' ' || name || CASE type WHEN 'trigger' THEN ' on ' || tbl_name ELSE '' END AS object \
         FROM (SELECT * FROM sqlite_master UNION ALL SELECT * FROM sqlite_temp_master) \
         WHERE (lower(name) IN {tables} AND (type <> 'table' OR sql LIKE 'CREATE VIRTUAL%')) \
         OR (type = 'trigger' AND lower(tbl_name) IN {tables} AND NOT (tbl_name IN {tracked} AND \
         name IN (tbl_name || '_after_insert', tbl_name || '_after_update', tbl_name || '_after_delete'))) \
         ORDER BY object"
    )
}

pub(super) async fn describe(conn: &impl ConnectionTrait) -> Result<String, DbErr> {
    let rows = conn
        .query_all_raw(
            Engine::Sqlite
                .statement("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"),
        )
        .await?;
    let mut text = String::new();
    for row in rows {
        let sql: String = row.try_get("", "sql")?;
        text.push_str(sql.trim());
        text.push_str(";\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_column_list_names_the_constraint() {
        let message = "UNIQUE constraint failed: groups.org_id, groups.slug";
        assert_eq!(super::constraint(message), "groups_org_id_slug_key");
        assert_eq!(super::constraint("UNIQUE constraint failed: users.id"), "users_id_key");
    }
}
