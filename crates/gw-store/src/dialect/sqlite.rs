//! SQLite: one writer connection with BEGIN IMMEDIATE, a read pool, WAL, every commit synced to disk (HD24).

use super::{
    Engine, Pool, Pools,
    liveness::Liveness,
    schema::{IndexCheck, SchemaObject},
};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, QueryResult, RuntimeErr, SqliteTransactionMode,
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
use tokio::{sync::Semaphore, time::Instant};

/// `SQLITE_MAX_VARIABLE_NUMBER` of the bundled library, rounded down.
pub(super) const MAX_PARAMETERS: usize = 32_000;

/// SQLite has no clock of its own: it runs on the same machine.
pub(super) const HEAD: &str = "SELECT epoch, stamp, NULL AS at, TRUE AS is_primary \
     FROM policy_epoch JOIN policy_history USING (epoch)";

/// BEGIN IMMEDIATE already holds the write lock.
pub(super) const LOCK_EPOCH: &str = "SELECT epoch FROM policy_epoch";

pub(super) const INSERT_POLICY_STORE: &str = "INSERT INTO policy_store (id, store_id, last_outbox_id) \
     SELECT 1, randomblob(16), COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'audit_outbox'), 0)";

pub(super) const RAISE_EPOCH: &str = "UPDATE policy_epoch SET epoch = epoch + 1 \
     WHERE EXISTS (SELECT 1 FROM policy_changes WHERE policy_changes.epoch = policy_epoch.epoch + 1) \
     RETURNING epoch";

pub(super) async fn open(file: &Path, connections: u32) -> Result<Pools, DbErr> {
    // recursive_triggers also fires delete triggers for rows that a REPLACE statement removes.
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("recursive_triggers", "ON")
        // Writers of this process queue for their connection; so a lock belongs to another process, and the wait is
        // short.
        .busy_timeout(super::LOCK_WAIT)
        // The driver passes rows from its own thread: a large buffer speeds up loading all policy.
        .row_buffer_size(4096);
    if !file.exists() {
        // New files can return pages that pruning frees (`Pools::give_back`). On an existing file the setting would
        // wait for the current writer, so no later connection sets it.
        let create_options = options.clone().auto_vacuum(SqliteAutoVacuum::Incremental);
        let failed = |cause| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)));
        SqliteConnection::connect_with(&create_options)
            .await
            .map_err(failed)?
            .close()
            .await
            .map_err(failed)?;
    }
    let opened = Arc::new(OpenedFile::from_path(file).map_err(lost_file)?);
    // A missing file is not created again: it would be another, empty database.
    let options = options.create_if_missing(false);
    let writer = connect(options.clone(), 1, PoolUse::Write).await?;
    let reader = connect(options.pragma("query_only", "ON"), connections.max(1), PoolUse::Read).await?;
    Ok(Pools {
        writer,
        reader,
        engine: Engine::Sqlite,
        file: Some(opened),
        turns: Arc::new(Semaphore::new(1)),
    })
}

/// The opened file. Connections keep using it when it is removed or replaced, and their writes are lost with it.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// The inode of the write-ahead log at the last check; 0 before that.
    log: AtomicU64,
    /// Whether its loss was logged.
    is_loss_logged: AtomicBool,
}

impl OpenedFile {
    fn from_path(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        let (device, inode) = (metadata.dev(), metadata.ino());
        Ok(Self {
            path: path.to_owned(),
            device,
            inode,
            log: AtomicU64::new(0),
            is_loss_logged: AtomicBool::new(false),
        })
    }

    /// Whether the paths of the file and of its write-ahead log still lead to the open files.
    pub(super) fn is_there(&self) -> bool {
        let metadata = std::fs::metadata(&self.path);
        metadata.is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == (self.device, self.inode)) && self.has_log()
    }

    /// Whether the write-ahead log still has its name. The engine creates a new log when the last connection is closed
    /// and another one opened, so a changed inode proves nothing: a log that is open and has no name proves the loss.
    fn has_log(&self) -> bool {
        let path = with_suffix(&self.path, "-wal");
        let inode = std::fs::metadata(&path).map_or(0, |metadata| metadata.ino());
        if inode == self.log.load(Ordering::Relaxed) {
            return true;
        }
        let is_lost = has_removed(&path);
        if !is_lost {
            self.log.store(inode, Ordering::Relaxed);
        }
        !is_lost
    }

    /// # Errors
    /// If the file is no longer there.
    pub(super) fn check(&self) -> Result<(), DbErr> {
        if self.is_there() {
            self.is_loss_logged.store(false, Ordering::Relaxed);
            return Ok(());
        }
        if !self.is_loss_logged.swap(true, Ordering::Relaxed) {
            tracing::error!(
                file = %self.path.display(),
                "the database file was removed or replaced while it is in use: nothing is written any more; put the \
                 file back, or stop the service before you restore another"
            );
        }
        Err(lost_file(io::Error::new(
            io::ErrorKind::NotFound,
            "the database file was removed or replaced",
        )))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether this process has a file open that was removed from this path.
fn has_removed(path: &Path) -> bool {
    let Ok(path) = path.canonicalize().or_else(|_| canonical_parent(path)) else {
        return false;
    };
    let removed = with_suffix(&path, " (deleted)");
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
    let reader = connect(options, 2, PoolUse::Read).await?;
    let turns = Arc::new(Semaphore::new(1));
    Ok(Pools {
        writer: reader.clone(),
        reader,
        engine: Engine::Sqlite,
        file: None,
        turns,
    })
}

/// Purpose of a pool's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PoolUse {
    Read,
    Write,
}

async fn connect(options: SqliteConnectOptions, connections: u32, usage: PoolUse) -> Result<Pool, DbErr> {
    let suspect = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&suspect);
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(super::ACQUIRE_TIMEOUT)
        // The connection is a thread of this process: a ping would show nothing.
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
    Ok(Pool::new(db, Arc::new(Liveness::new(None, false)), suspect))
}

/// Whether a released connection has no open transaction (RL1). After `SQLITE_FULL` and `SQLITE_IOERR` SQLite may have
/// rolled back by itself; then the driver's own rollback fails, and the driver keeps counting a transaction that does
/// not exist: later ones would be savepoints in a transaction that is never committed.
async fn is_sound(connection: &mut SqliteConnection, usage: PoolUse) -> Result<bool, sqlx::Error> {
    // The rollback of a dropped transaction is only queued; the ping returns after it.
    connection.ping().await?;
    if connection.is_in_transaction() {
        return Ok(false);
    }
    // The driver only counts transactions; SQLite knows. A ROLLBACK succeeds only if a transaction was left open.
    Ok(usage == PoolUse::Read || sqlx::query("ROLLBACK").execute(connection).await.is_err())
}

/// Raises `user_version` in the file's header, which has no other use here: the change is part of the transaction.
pub(super) async fn raise_version(tx: &impl ConnectionTrait) -> Result<i32, DbErr> {
    let next = version(tx).await?.wrapping_add(1);
    tx.execute_unprepared(&format!("PRAGMA user_version = {next}")).await?;
    Ok(next)
}

/// Whether the version has reached `raised`; it may be higher by now, and may have wrapped around.
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

/// In WAL mode a deferred transaction sees the state at its first read.
pub(super) async fn begin_read(reader: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    reader.begin().await
}

/// Converts `UNIQUE constraint failed: t.a, t.b` into PostgreSQL's constraint name `t_a_b_key`.
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

/// Uses `ON CONFLICT`: the conflict policy of the outer statement overrides `OR IGNORE` in a trigger, and a foreign key
/// with SET NULL uses ABORT.
pub(super) fn change_triggers(table: &str, key: &str, entity: &str) -> Vec<String> {
    triggers(table, |row| {
        format!(
            "INSERT INTO policy_changes (epoch, entity, row_id) \
             SELECT epoch + 1, '{entity}', {row}.{key} FROM policy_epoch WHERE TRUE ON CONFLICT DO NOTHING"
        )
    })
}

/// The triggers as step m0001 created them: a transaction failed if it changed a row and then removed a reference from
/// it.
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

/// The row events, and the row's name in each trigger.
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

/// Every row of the schema, whatever its type is called: SQLite compares types and names without case, and reads the
/// text alone.
const OBJECTS: &str = "SELECT CAST(type AS text) AS kind, CAST(name AS text) AS name, CAST(tbl_name AS text) AS of, \
     COALESCE(CAST(sql AS text), '') AS sql FROM sqlite_master ORDER BY tbl_name, type DESC, name";

/// Makes every connection read the schema again. Otherwise a connection keeps the triggers and indexes that it read at
/// first, although the text that described them was exchanged since.
pub(super) async fn reload_schema(tx: &impl ConnectionTrait) -> Result<(), DbErr> {
    let row = tx
        .query_one_raw(Engine::Sqlite.statement("PRAGMA schema_version"))
        .await?;
    let version: i32 = row.map_or(Ok(0), |row| row.try_get_by_index(0))?;
    let next = version.wrapping_add(1);
    tx.execute_unprepared(&format!("PRAGMA schema_version = {next}"))
        .await
        .map(drop)
}

/// Faults listed by one check.
const MOST_FAULTS: u32 = 16;
/// Steps of the engine between two looks at the clock.
const STEPS: i32 = 100_000;

/// Compares every row with the indexes of its table, on a connection of its own, for at most `limit`.
pub(super) async fn check_indexes(pool: &Pool, limit: Duration) -> Result<IndexCheck, DbErr> {
    let options = pool.db.get_sqlite_connection_pool().connect_options();
    let mut connection = match SqliteConnection::connect_with(&options).await {
        Ok(connection) => connection,
        Err(cause) => return check_of_error(cause),
    };
    let end = Instant::now() + limit;
    let checked = async {
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEPS, move || Instant::now() < end);
        drop(handle);
        let check = format!("PRAGMA integrity_check({MOST_FAULTS})");
        let check = sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(check)).persistent(false);
        check.fetch_all(&mut connection).await
    }
    .await;
    drop(connection.close().await);
    match checked {
        Ok(lines) if lines.iter().all(|line| line == "ok") => Ok(IndexCheck::Sound),
        Ok(lines) => Ok(IndexCheck::Faulty(lines)),
        Err(cause) => check_of_error(cause),
    }
}

fn check_of_error(cause: sqlx::Error) -> Result<IndexCheck, DbErr> {
    let class = cause
        .as_database_error()
        .and_then(|error| error.code()?.parse::<u32>().ok())
        .map(|code| code & 0xff);
    match class {
        // INTERRUPT: by the handler above.
        Some(9) => Ok(IndexCheck::Unfinished),
        // CORRUPT, NOTADB.
        Some(11 | 26) => Ok(IndexCheck::Faulty(vec![cause.to_string()])),
        _ => Err(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)))),
    }
}

pub(super) async fn objects(conn: &impl ConnectionTrait) -> Result<Vec<SchemaObject>, DbErr> {
    let rows = conn.query_all_raw(Engine::Sqlite.statement(OBJECTS)).await?;
    let read = |row: QueryResult| {
        let text = |column| row.try_get::<Option<String>>("", column).map(Option::unwrap_or_default);
        let (kind, name, table, sql) = (text("kind")?, text("name")?, text("of")?, text("sql")?);
        let is_table = kind == "table" && name == table;
        let owner = if is_table {
            String::new()
        } else {
            format!(" on {table}")
        };
        // A plain table has no effect on others. The text of any other row decides to which table it belongs.
        let is_plain = is_table && sql.starts_with("CREATE TABLE ")
            || kind == "index" && sql.is_empty() && name.starts_with(&format!("sqlite_autoindex_{table}_"));
        let owned_by = is_plain.then(|| table.to_lowercase());
        Ok(SchemaObject::new(owned_by, &format!("{kind} {name}{owner}: {sql}")))
    };
    rows.into_iter().map(read).collect()
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
