//! Differences between SQLite and PostgreSQL; no other module distinguishes the engines.
//!
//! Both store times as microseconds since 1970 in 64-bit integers and addresses as lower-case hex text, so that rows
//! compare and sort alike.

/// Writes and removes a file. SQLite reuses pages and space in its log: only a separate file shows whether the disk has
/// room.
fn write_and_remove(path: &std::path::Path) -> std::io::Result<()> {
    let result = std::fs::File::create(path).and_then(|mut file| {
        std::io::Write::write_all(&mut file, &[0xa5; ROOM])?;
        file.sync_all()
    });
    std::fs::remove_file(path).and(result)
}

#[cfg(test)]
pub(crate) mod full_disk;
mod liveness;
mod pool;
mod postgres;
pub(crate) mod schema;
mod session;
mod sqlite;
mod transaction;

pub(crate) use pool::{Executor, Pool};
pub(crate) use transaction::Transaction;

use crate::{Conflict, Location, StoreError};
use gw_audit::verify::EXHAUSTED_ID;
use gw_types::{Epoch, Timestamp};
use sea_orm::{
    ConnAcquireErr, ConnectionTrait, DbBackend, DbErr, RuntimeErr, Statement,
    sea_query::{Expr, SimpleExpr},
    sqlx::error::{DatabaseError, ErrorKind},
};
use session::WaitLimits;
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::timeout};
use uuid::Uuid;

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
        Statement::from_string(self.backend(), sql.into())
    }

    pub(crate) fn backend(self) -> DbBackend {
        match self {
            Self::Sqlite => DbBackend::Sqlite,
            Self::Postgres => DbBackend::Postgres,
        }
    }

    /// Whether several processes may use one database at a time (decision 12).
    pub(crate) const fn serves_many(self) -> bool {
        match self {
            Self::Sqlite => false,
            Self::Postgres => true,
        }
    }

    /// Maximum number of parameters of a statement.
    pub(crate) const fn max_parameters(self) -> usize {
        match self {
            Self::Sqlite => sqlite::MAX_PARAMETERS,
            Self::Postgres => postgres::MAX_PARAMETERS,
        }
    }

    /// Returns how many of `remaining` rows with `columns` values the next INSERT carries: a power of four, so that
    /// there are few different statements and drivers find them prepared.
    pub(crate) fn batch_size(self, remaining: usize, columns: usize) -> usize {
        let limit = (self.max_parameters() / columns.max(1)).min(remaining).max(1);
        1 << (limit.ilog2() & !1)
    }

    /// Statements that create the triggers for epoch stamps.
    pub(crate) fn history_triggers(self) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::history_triggers(),
            Self::Postgres => postgres::history_triggers(),
        }
    }

    /// Statement that inserts the one row of `policy_store`; ids of outbox rows continue from the engine's own
    /// sequence.
    pub(crate) const fn insert_policy_store(self) -> &'static str {
        match self {
            Self::Sqlite => sqlite::INSERT_POLICY_STORE,
            Self::Postgres => postgres::INSERT_POLICY_STORE,
        }
    }

    /// Statements that create the triggers which write a `policy_changes` row after each change of a policy table
    /// (E-2).
    pub(crate) fn change_triggers(self, table: &str, key: &str, entity: &str) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::change_triggers(table, key, entity),
            Self::Postgres => postgres::change_triggers(table, key, entity),
        }
    }

    /// The change triggers as step m0001 created them; [`Engine::renew_change_triggers`] fixes them.
    pub(crate) fn first_change_triggers(self, table: &str, key: &str, entity: &str) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::first_change_triggers(table, key, entity),
            Self::Postgres => postgres::change_triggers(table, key, entity),
        }
    }

    /// Statements that replace the triggers of step m0001 by the current ones, where they differ.
    pub(crate) fn renew_change_triggers(self, table: &str, key: &str, entity: &str) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::renew_change_triggers(table, key, entity),
            Self::Postgres => Vec::new(),
        }
    }
}

/// How long a query waits for a connection of the pool: a burst of callers may queue for the one writer. `liveness`
/// detects an unresponsive database long before.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a mutation waits for a lock held by another process or session: longer than any mutation takes, but short
/// enough that callers do not wait for a holder that never releases it.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// How long a transaction on PostgreSQL waits for its start, if a connection is free.
const BEGIN: Duration = Duration::from_secs(5);
/// How long a mutation waits for a connection and its start. The others that queue wait for it.
const BEGIN_MUTATION: Duration = Duration::from_secs(10);
/// Bounds of a single statement on PostgreSQL: by then the pool or the server has ended it, or its connection is
/// silent.
const POOL_BOUND: WaitLimits = WaitLimits::fixed(
    ACQUIRE_TIMEOUT
        .saturating_add(postgres::STATEMENT_TIMEOUT)
        .saturating_add(BEGIN),
);
/// How long the first connection may take when a store is opened.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections to one database.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    /// SQLite: exactly one connection. PostgreSQL: the same pool as `reader`.
    pub(crate) writer: Pool,
    pub(crate) reader: Pool,
    pub(crate) engine: Engine,
    /// The SQLite file.
    pub(super) file: Option<Arc<sqlite::OpenedFile>>,
    /// Mutations of this process queue here before they take a connection: so a mutation waits as long as the earlier
    /// ones take, only one connection waits for a lock of another process, and readers can use the other connections.
    pub(super) turns: Arc<Semaphore>,
}

/// Room that the database must have to count as accepting writes: a mutation with its audit entry needs less.
const ROOM: usize = 64 * 1024;

impl Pools {
    /// Whether the database accepts writes: false after a write failed for lack of room, until a probe succeeds.
    pub(crate) fn have_room(&self) -> bool {
        self.writer.liveness.has_room()
    }

    /// Whether our credential had all privileges when they were last looked up.
    pub(crate) fn may_write(&self) -> bool {
        self.writer.liveness.has_privileges()
    }

    /// Whether the SQLite file is still at its path.
    pub(crate) fn have_file(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.is_there())
    }

    /// Writes data of [`ROOM`] bytes and removes it again.
    pub(crate) async fn probe_room(&self, location: &Location) -> Result<(), StoreError> {
        match location {
            Location::Postgres { .. } => {
                let tx = self.begin_write().await?;
                // A large object needs no table and no special permission.
                let object = format!(
                    "SELECT pg_catalog.lo_from_bytea(0, pg_catalog.decode(pg_catalog.repeat('a5', {ROOM}), 'hex'))"
                );
                tx.execute_unprepared(&object).await?;
                tx.rollback().await?;
            }
            Location::Sqlite { directory, .. } => {
                let path = directory.directory().join("room-probe");
                let probed = tokio::task::spawn_blocking(move || write_and_remove(&path)).await;
                if !matches!(probed, Ok(Ok(()))) {
                    return Err(StoreError::Database(DbErr::Custom("the disk has no room".to_owned())));
                }
            }
            Location::SqliteReadOnly { .. } => return Ok(()),
        }
        self.writer.liveness.note_room();
        Ok(())
    }

    /// Opens a database. On PostgreSQL, `steps` are the names of its migration steps: of several schemas that have a
    /// table of such steps, the one in which most of these were run has our tables.
    pub(crate) async fn open(location: &Location, connections: u32, steps: &[String]) -> Result<Self, StoreError> {
        match location {
            Location::Sqlite { directory, file } => sqlite::open(&directory.directory().join(file), connections).await,
            Location::SqliteReadOnly { file } => sqlite::open_read_only(file).await,
            Location::Postgres {
                url,
                lifetime,
                is_patient,
                ..
            } => postgres::open(url, connections, *lifetime, *is_patient, steps).await,
        }
        .map_err(StoreError::from)
    }

    /// Begins a transaction that may write. On SQLite it holds the write lock from the start.
    pub(crate) async fn begin_write(&self) -> Result<Transaction, DbErr> {
        self.begin_write_within(Duration::MAX, postgres::LOCK_TIMEOUT).await
    }

    async fn begin_write_within(&self, limit: Duration, lock_wait: Duration) -> Result<Transaction, DbErr> {
        let writer = &self.writer;
        if let Some(file) = &self.file
            && let Err(error) = file.check()
        {
            // Saves the content of a removed log into the database while this process still has it open.
            drop(writer.db.execute_unprepared("PRAGMA wal_checkpoint(FULL)").await);
            return Err(error);
        }
        match self.engine {
            Engine::Sqlite => {
                let db = writer.run(sqlite::begin_write(&writer.db)).await?;
                Ok(Transaction::new(db, writer, &self.reader))
            }
            Engine::Postgres => {
                let work = postgres::begin_write(&writer.db);
                let bound = WaitLimits::fixed(postgres::begin_limit(writer).min(limit));
                let db = writer.run_in(None, Some(bound), work).await?;
                Transaction::new(db, writer, &self.reader)
                    .in_session(lock_wait, true)
                    .await
            }
        }
    }

    /// Begins a transaction for a mutation with a waiting caller: it soon gives up on a lock, and does not queue behind
    /// mutations that failed for the same lock (RL14).
    pub(crate) async fn begin_mutation(&self) -> Result<Transaction, DbErr> {
        let mut begin = pin!(async {
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            let turn = turn.map_err(|_| DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed))?;
            let tx = self.begin_write_within(BEGIN_MUTATION, LOCK_WAIT).await?;
            Ok::<_, DbErr>(tx.in_turn(turn))
        });
        loop {
            match timeout(LOCK_WAIT, &mut begin).await {
                Ok(begun) => return begun,
                Err(_) if self.writer.liveness.takes_writes() => {}
                Err(_) => return Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)),
            }
        }
    }

    /// Begins a transaction that sees one state of the database throughout (E-3).
    pub(crate) async fn begin_read(&self) -> Result<Transaction, DbErr> {
        let reader = &self.reader;
        match self.engine {
            Engine::Sqlite => {
                let db = reader.run(sqlite::begin_read(&reader.db)).await?;
                Ok(Transaction::new(db, reader, reader))
            }
            Engine::Postgres => {
                let work = postgres::begin_read(&reader.db);
                let bound = WaitLimits::fixed(postgres::begin_limit(reader));
                let db = reader.run_in(None, Some(bound), work).await?;
                Transaction::new(db, reader, reader)
                    .in_session(postgres::LOCK_TIMEOUT, false)
                    .await
            }
        }
    }

    /// Returns space of deleted rows to the file system, at most `pages` pages. PostgreSQL does so by itself.
    pub(crate) async fn give_back(&self, pages: u32) -> Result<(), DbErr> {
        match self.engine {
            Engine::Sqlite => self
                .writer
                .execute_unprepared(&format!("PRAGMA incremental_vacuum({pages})"))
                .await
                .map(drop),
            Engine::Postgres => Ok(()),
        }
    }

    /// Begins a transaction that may change the schema; one at a time across all instances.
    pub(crate) async fn begin_migration(&self) -> Result<Transaction, DbErr> {
        let writer = &self.writer;
        let db = match self.engine {
            Engine::Sqlite => writer.run(sqlite::begin_write(&writer.db)).await?,
            // Waits for the migration of another instance as long as that takes.
            Engine::Postgres => writer.run_in(None, None, postgres::begin_migration(&writer.db)).await?,
        };
        Ok(Transaction::new(db, writer, &self.reader))
    }
}

/// Stamp that distinguishes an epoch from the epoch with the same number in another history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryId(pub(crate) Uuid);

/// Returns the stamp of an epoch, if the database still has it.
pub(crate) async fn stamp(conn: &impl ConnectionTrait, epoch: Epoch) -> Result<Option<HistoryId>, StoreError> {
    let engine = Engine::for_connection(conn);
    let sql = format!("SELECT stamp FROM policy_history WHERE epoch = {epoch}");
    let row = conn.query_one_raw(engine.statement(sql)).await?;
    Ok(row.map(|row| row.try_get("", "stamp")).transpose()?.map(HistoryId))
}

/// The head of policy according to one database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyHead {
    pub(crate) epoch: Epoch,
    pub(crate) stamp: HistoryId,
    /// The database's time, if it has its own clock (E-5).
    pub(crate) at: Option<Timestamp>,
    pub(crate) primary: bool,
}

/// Reads the head of policy.
pub(crate) async fn head(conn: &impl ConnectionTrait) -> Result<PolicyHead, StoreError> {
    let engine = Engine::for_connection(conn);
    let sql = match engine {
        Engine::Sqlite => sqlite::HEAD,
        Engine::Postgres => postgres::HEAD,
    };
    let row = conn
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    let epoch: i64 = row.try_get("", "epoch")?;
    let at: Option<i64> = row.try_get("", "at")?;
    let primary: bool = row.try_get("", "is_primary")?;
    let stamp = HistoryId(row.try_get("", "stamp")?);
    Ok(PolicyHead {
        epoch: to_epoch(epoch)?,
        stamp,
        at: at.map(Timestamp::from_micros),
        primary,
    })
}

/// Locks the one row for which all mutations queue, and returns the current epoch.
pub(crate) async fn lock_epoch(tx: &Transaction) -> Result<Epoch, StoreError> {
    let engine = Engine::for_connection(tx);
    let sql = match engine {
        Engine::Sqlite => sqlite::LOCK_EPOCH,
        Engine::Postgres => postgres::LOCK_EPOCH,
    };
    let row = tx
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(StoreError::EpochMissing)?;
    to_epoch(row.try_get("", "epoch")?)
}

/// The last statement of a mutation: raises the epoch if any policy row changed, and announces it (E-1). `recorded`
/// lists the tables whose triggers record changes, each with the entity of its change rows.
///
/// # Errors
/// [`StoreError::ChangeUnrecorded`] if a table was changed and its triggers recorded nothing; any database error.
pub(crate) async fn raise_epoch(
    tx: &Transaction,
    recorded: impl Iterator<Item = (&'static str, &'static str)>,
) -> Result<Option<Epoch>, StoreError> {
    let engine = Engine::for_connection(tx);
    let changed = tx.changed_tables();
    let mut unrecorded = Vec::new();
    for (table, entity) in recorded {
        if changed.contains(table) {
            unrecorded.push((table, entity));
        }
    }
    if !unrecorded.is_empty() {
        let sql = "SELECT DISTINCT entity FROM policy_changes WHERE epoch = (SELECT epoch + 1 FROM policy_epoch)";
        for row in tx.query_all_raw(engine.statement(sql)).await? {
            let recorded: String = row.try_get("", "entity")?;
            unrecorded.retain(|(_, entity)| *entity != recorded);
        }
    }
    if let Some((table, _)) = unrecorded.first() {
        return Err(StoreError::ChangeUnrecorded(table));
    }
    let sql = match engine {
        Engine::Sqlite => sqlite::RAISE_EPOCH,
        Engine::Postgres => postgres::RAISE_EPOCH,
    };
    let row = tx.query_one_raw(engine.statement(sql)).await?;
    row.map(|row| to_epoch(row.try_get("", "epoch")?)).transpose()
}

/// Returns the time for leases: the database's, if it has its own clock. Then all instances use one clock, and an
/// instance with a wrong clock neither takes another's lease for expired (HD24) nor holds its own for an hour.
pub(crate) async fn lease_time(conn: &impl ConnectionTrait, local: Timestamp) -> Result<Timestamp, StoreError> {
    let engine = Engine::for_connection(conn);
    let Engine::Postgres = engine else { return Ok(local) };
    let row = conn
        .query_one_raw(engine.statement(postgres::TIME))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(Timestamp::from_micros(row.try_get("", "at")?))
}

fn to_epoch(number: i64) -> Result<Epoch, StoreError> {
    u64::try_from(number).map(Epoch).map_err(|_| StoreError::Row {
        table: "policy_epoch",
        column: "epoch",
        id: number.to_string(),
    })
}

/// Whether our database credential may change or delete rows of a table. SQLite has no credentials: always true.
pub(crate) async fn may_rewrite(conn: &impl ConnectionTrait, table: &str) -> Result<bool, StoreError> {
    let engine = Engine::for_connection(conn);
    let sql = match engine {
        Engine::Sqlite => "SELECT TRUE AS may_rewrite".to_owned(),
        Engine::Postgres => postgres::may_rewrite(table),
    };
    let row = conn
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(row.try_get("", "may_rewrite")?)
}

/// Returns the privileges of these on our tables that our database credential lacks, and remembers whether there are
/// any: then [`Pools::may_write`] is false. SQLite has no credentials.
pub(crate) async fn missing_privileges(pools: &Pools, needed: &[(&str, &str)]) -> Result<Vec<String>, StoreError> {
    let missing = match pools.engine {
        Engine::Sqlite => Vec::new(),
        Engine::Postgres => postgres::missing_privileges(&pools.reader, needed).await?,
    };
    pools.writer.liveness.note_privileges(missing.is_empty());
    Ok(missing)
}

/// Usage of a table's ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdUsage {
    /// The last id that the engine assigned; `None` if it assigned none or our role may not read it.
    pub(crate) given: Option<i64>,
    /// The highest id of a row.
    pub(crate) highest: Option<i64>,
    /// The highest id of a row below [`EXHAUSTED_ID`].
    pub(crate) highest_sound: Option<i64>,
    engine: Engine,
}

impl IdUsage {
    /// Whether the engine cannot assign the next id, or leaves no room for the ids after it.
    pub(crate) fn is_exhausted(&self) -> bool {
        // SQLite continues after the highest id in any case; PostgreSQL may assign ids that rows already have.
        let is_behind = self.engine == Engine::Postgres && self.given.is_some_and(|given| Some(given) < self.highest);
        is_behind || self.given.max(self.highest).is_some_and(|id| id >= EXHAUSTED_ID)
    }
}

/// Reads the usage of a table's ids.
pub(crate) async fn ids(conn: &impl ConnectionTrait, table: &str) -> Result<IdUsage, StoreError> {
    let engine = Engine::for_connection(conn);
    let given = match engine {
        Engine::Sqlite => format!("SELECT CAST(seq AS integer) FROM sqlite_sequence WHERE name = '{table}'"),
        Engine::Postgres => format!(
            "SELECT last_value FROM pg_catalog.pg_sequences \
             WHERE schemaname = pg_catalog.current_schema() AND sequencename = '{table}_id_seq'"
        ),
    };
    let sql = format!(
        "SELECT ({given}) AS given, (SELECT max(id) FROM {table}) AS highest, \
         (SELECT max(id) FROM {table} WHERE id < {EXHAUSTED_ID}) AS highest_sound"
    );
    let row = conn
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(IdUsage {
        given: row.try_get("", "given")?,
        highest: row.try_get("", "highest")?,
        highest_sound: row.try_get("", "highest_sound")?,
        engine,
    })
}

/// Returns the highest id of a pruned entry.
pub(crate) async fn highest_pruned_id(conn: &impl ConnectionTrait) -> Result<Option<i64>, StoreError> {
    let sql = format!("SELECT max(highest_id) AS highest FROM anchors WHERE highest_id < {EXHAUSTED_ID}");
    let row = conn
        .query_one_raw(Engine::for_connection(conn).statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(row.try_get("", "highest")?)
}

/// Returns the statement with which an operator repairs the sequence of a table.
pub(crate) fn renumber(conn: &impl ConnectionTrait, table: &str) -> String {
    let highest = format!("(SELECT coalesce(max(id), 1) FROM {table} WHERE id < {EXHAUSTED_ID})");
    match Engine::for_connection(conn) {
        Engine::Sqlite => format!("UPDATE sqlite_sequence SET seq = {highest} WHERE name = '{table}'"),
        Engine::Postgres => format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), {highest})"),
    }
}

/// Whether an insert failed because the engine had no id left or assigned one that another row has.
pub(crate) fn is_numbering(error: &DbErr) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause))) = error else {
        return false;
    };
    cause.as_database_error().is_some_and(|cause| {
        cause.code().is_some_and(|code| code == postgres::SEQUENCE_LIMIT)
            || cause.constraint().is_some_and(|name| name.ends_with("_pkey"))
    })
}

/// Whether a session waits to write a table that another session has locked. Always false on SQLite, whose one writer
/// waits itself.
pub(crate) async fn is_write_waiting(conn: &impl ConnectionTrait, table: &str) -> Result<bool, StoreError> {
    let engine = Engine::for_connection(conn);
    let Engine::Postgres = engine else { return Ok(false) };
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_locks WHERE relation = '{table}'::regclass AND NOT granted \
         AND mode = 'RowExclusiveLock') AS waits"
    );
    let row = conn
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(row.try_get("", "waits")?)
}

/// Condition that a column contains these bytes; reads every row, except for values over `limit` bytes.
pub(crate) fn holds_bytes(conn: &impl ConnectionTrait, column: &'static str, bytes: &[u8], limit: u64) -> SimpleExpr {
    let bytes = hex::encode(bytes);
    let holds = match Engine::for_connection(conn) {
        Engine::Sqlite => format!("instr({column}, x'{bytes}') > 0"),
        Engine::Postgres => format!("position(pg_catalog.decode('{bytes}', 'hex') in {column}) > 0"),
    };
    Expr::cust(format!(
        "CASE WHEN octet_length({column}) <= {limit} THEN {holds} ELSE FALSE END"
    ))
}

/// Expression for a column as bytes, whatever type SQLite stored. A value over `limit` bytes reads as no bytes.
pub(crate) fn as_bytes(conn: &impl ConnectionTrait, column: &'static str, limit: u64) -> SimpleExpr {
    let (bytes, none) = match Engine::for_connection(conn) {
        Engine::Sqlite => (format!("CAST({column} AS blob)"), "x''"),
        Engine::Postgres => (column.to_owned(), "''::bytea"),
    };
    Expr::cust(format!(
        "CASE WHEN octet_length({column}) <= {limit} THEN {bytes} ELSE {none} END"
    ))
}

/// Condition that a column holds an integer, as every row of ours does.
pub(crate) fn is_number(conn: &impl ConnectionTrait, column: &'static str) -> SimpleExpr {
    match Engine::for_connection(conn) {
        Engine::Sqlite => Expr::cust(format!("typeof({column}) = 'integer'")),
        Engine::Postgres => Expr::cust("TRUE"),
    }
}

/// The channel on which PostgreSQL announces epochs.
pub(crate) const CHANNEL: &str = "gw_policy";

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        match violation(&error) {
            Some(violation) => violation,
            None => Self::Database(error),
        }
    }
}

/// Maps a constraint violation by the constraint's name.
fn violation(error: &DbErr) -> Option<StoreError> {
    let (DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause))) = error else {
        return None;
    };
    let cause = cause.as_database_error()?;
    match cause.kind() {
        ErrorKind::UniqueViolation => Some(StoreError::Conflict(conflict(cause))),
        ErrorKind::ForeignKeyViolation => Some(StoreError::Rule("foreign_key")),
        ErrorKind::CheckViolation => Some(StoreError::Rule("check")),
        ErrorKind::NotNullViolation => Some(StoreError::Rule("not_null")),
        _ => None,
    }
}

fn conflict(cause: &dyn DatabaseError) -> Conflict {
    // PostgreSQL names the constraint; SQLite lists the columns, from which the same name is made.
    let name = cause
        .constraint()
        .map(str::to_owned)
        .unwrap_or_else(|| sqlite::constraint(cause.message()));
    match name.as_str() {
        "organizations_slug_key" => Conflict::OrganizationSlug,
        "groups_org_id_slug_key" => Conflict::GroupSlug,
        "groups_org_id_name_key_key" => Conflict::GroupName,
        "users_external_id_key" => Conflict::ExternalId,
        "memberships_user_id_group_id_key" => Conflict::Membership,
        "contracts_address_key" => Conflict::ContractAddress,
        "contract_grants_contract_id_group_id_key" => Conflict::Grant,
        "address_links_user_id_address_key" => Conflict::Link,
        "refresh_tokens_hash_key" => Conflict::Token,
        "directory_tenants_tenant_id_key" => Conflict::Tenant,
        "shared_infrastructure_address_key" => Conflict::SharedInfra,
        "approved_code_code_hash_key" => Conflict::ApprovedCode,
        "disclosure_grants_request_id_key" => Conflict::DisclosureGrant,
        _ => Conflict::Other,
    }
}

/// Whether a row exists but has a value of a wrong type; every other error concerns the database.
pub(crate) fn is_malformed(error: &DbErr) -> bool {
    match error {
        DbErr::Type(_) | DbErr::Json(_) | DbErr::TryIntoErr { .. } => true,
        DbErr::Query(RuntimeErr::SqlxError(cause)) | DbErr::Exec(RuntimeErr::SqlxError(cause)) => {
            matches!(
                &**cause,
                sea_orm::sqlx::Error::ColumnDecode { .. } | sea_orm::sqlx::Error::Decode(_)
            )
        }
        _ => false,
    }
}

/// Returns a LIKE pattern for "contains", for `lower(column) LIKE pattern ESCAPE '\'`.
pub(crate) fn contains(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for c in text.chars().flat_map(char::to_lowercase) {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_sizes_are_powers_of_four_within_the_limit() {
        let mut remaining = 5000;
        let mut batches = Vec::new();
        while remaining > 0 {
            let size = Engine::Postgres.batch_size(remaining, 20);
            assert!(size <= remaining && size * 20 <= Engine::Postgres.max_parameters());
            remaining -= size;
            batches.push(size);
        }
        assert_eq!(batches, [1024, 1024, 1024, 1024, 256, 256, 256, 64, 64, 4, 4]);
        assert_eq!(Engine::Sqlite.batch_size(1, 1_000_000), 1);
    }

    #[test]
    fn a_search_text_is_no_pattern() {
        assert_eq!(contains("A_b%\\"), "%a\\_b\\%\\\\%");
    }
}
