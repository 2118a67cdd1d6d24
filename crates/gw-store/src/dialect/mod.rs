//! What SQLite and PostgreSQL do differently; no other module asks which engine it talks to.
//!
//! Both keep times as microseconds since 1970 in 64-bit integers and addresses as lower-case hex text, so that
//! rows compare and sort alike.

/// SQLite reuses pages and what its log has already taken: only a file of its own tells whether the disk has room.
fn write_and_remove(path: &std::path::Path) -> std::io::Result<()> {
    let written = std::fs::File::create(path).and_then(|mut file| {
        std::io::Write::write_all(&mut file, &[0xa5; ROOM])?;
        file.sync_all()
    });
    std::fs::remove_file(path).and(written)
}

#[cfg(test)]
pub(crate) mod full_disk;
mod liveness;
mod pool;
mod postgres;
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
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::timeout};
use uuid::Uuid;

/// Which engine, for the few statements that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) fn of(conn: &impl ConnectionTrait) -> Self {
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

    /// How many values one statement may carry.
    pub(crate) const fn max_parameters(self) -> usize {
        match self {
            Self::Sqlite => sqlite::MAX_PARAMETERS,
            Self::Postgres => postgres::MAX_PARAMETERS,
        }
    }

    /// How many of `left` rows of `columns` values the next INSERT is to carry: a power of four, so that there are
    /// few different statements and drivers find them prepared.
    pub(crate) fn lot(self, left: usize, columns: usize) -> usize {
        let most = (self.max_parameters() / columns.max(1)).min(left).max(1);
        1 << (most.ilog2() & !1)
    }

    /// Creates what stamps each epoch.
    pub(crate) fn history_triggers(self) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::history_triggers(),
            Self::Postgres => postgres::history_triggers(),
        }
    }

    /// Makes the one row of `policy_store`; ids of outbox rows go on where the engine's own numbering stands.
    pub(crate) const fn insert_policy_store(self) -> &'static str {
        match self {
            Self::Sqlite => sqlite::INSERT_POLICY_STORE,
            Self::Postgres => postgres::INSERT_POLICY_STORE,
        }
    }

    /// Creates what writes a `policy_changes` row after each change of a policy table (E-2).
    pub(crate) fn change_triggers(self, table: &str, key: &str, entity: &str) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::change_triggers(table, key, entity),
            Self::Postgres => postgres::change_triggers(table, key, entity),
        }
    }

    /// The same as step m0001 made them; [`Engine::renew_change_triggers`] mends them.
    pub(crate) fn first_change_triggers(self, table: &str, key: &str, entity: &str) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::first_change_triggers(table, key, entity),
            Self::Postgres => postgres::change_triggers(table, key, entity),
        }
    }

    /// Puts today's triggers in the place of the first ones, where they differ.
    pub(crate) fn renew_change_triggers(self, table: &str, key: &str, entity: &str) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite::renew_change_triggers(table, key, entity),
            Self::Postgres => Vec::new(),
        }
    }

    /// The schema as text, for the golden files: one statement or line per object, sorted.
    pub(crate) async fn describe(self, conn: &impl ConnectionTrait) -> Result<String, DbErr> {
        match self {
            Self::Sqlite => sqlite::describe(conn).await,
            Self::Postgres => postgres::describe(conn).await,
        }
    }
}

/// How long a query waits for a connection of the pool: a burst of callers may queue for the one writer. A database that
/// does not answer is noticed long before, see `liveness`.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a mutation waits for a lock that somebody else holds: longer than any mutation of ours takes, and no caller waits
/// for one who does not let go.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// How long the first connection may take when a store is opened.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Connections to one database.
#[derive(Clone, Debug)]
pub(crate) struct Pools {
    /// SQLite: exactly one connection. PostgreSQL: the same pool as `reader`.
    pub(crate) writer: Pool,
    pub(crate) reader: Pool,
    pub(crate) engine: Engine,
    /// The file of SQLite.
    pub(super) file: Option<Arc<sqlite::OpenedFile>>,
    /// Mutations of this process take turns here, before they take a connection: who waits for one of ours waits as long as
    /// that takes, only one connection waits for a lock of somebody else, and readers find the others.
    pub(super) turns: Arc<Semaphore>,
}

/// So much room a database must have to count as one that takes writes: a mutation with its audit entry needs less.
const ROOM: usize = 64 * 1024;

impl Pools {
    /// Whether the last write that was refused for want of room has been followed by one that found some.
    pub(crate) fn have_room(&self) -> bool {
        self.writer.liveness.has_room()
    }

    /// Whether the file of SQLite is where it was opened.
    pub(crate) fn have_file(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.is_there())
    }

    /// Writes something that needs room, and takes it back.
    pub(crate) async fn probe_room(&self, location: &Location) -> Result<(), StoreError> {
        match location {
            Location::Postgres { .. } => {
                let tx = self.begin_write().await?;
                // A large object needs no table and no right of its own.
                tx.execute_unprepared(&format!("SELECT lo_from_bytea(0, decode(repeat('a5', {ROOM}), 'hex'))"))
                    .await?;
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

    pub(crate) async fn open(location: &Location, connections: u32) -> Result<Self, StoreError> {
        match location {
            Location::Sqlite { directory, file } => sqlite::open(&directory.directory().join(file), connections).await,
            Location::SqliteReadOnly { file } => sqlite::open_read_only(file).await,
            Location::Postgres { url, lifetime, .. } => postgres::open(url, connections, *lifetime).await,
        }
        .map_err(StoreError::from)
    }

    /// A transaction that may write. On SQLite it holds the write lock from here on.
    pub(crate) async fn begin_write(&self) -> Result<Transaction, DbErr> {
        let writer = &self.writer;
        if let Some(file) = &self.file
            && let Err(error) = file.check()
        {
            // What stands in a log that was removed goes into the database while this process still has it.
            drop(writer.db.execute_unprepared("PRAGMA wal_checkpoint(FULL)").await);
            return Err(error);
        }
        let db = match self.engine {
            Engine::Sqlite => writer.run(sqlite::begin_write(&writer.db)).await?,
            Engine::Postgres => writer.run(postgres::begin_write(&writer.db)).await?,
        };
        Ok(Transaction::new(db, writer, &self.reader))
    }

    /// The same for a mutation that somebody waits for: it gives up on a lock soon, and does not queue behind others that
    /// were refused (RL14).
    pub(crate) async fn begin_mutation(&self) -> Result<Transaction, DbErr> {
        let mut begin = pin!(async {
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            let turn = turn.map_err(|_| DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed))?;
            Ok::<_, DbErr>(self.begin_write().await?.in_turn(turn))
        });
        let tx = loop {
            match timeout(LOCK_WAIT, &mut begin).await {
                Ok(begun) => break begun?,
                Err(_) if self.writer.liveness.takes_writes() => {}
                Err(_) => return Err(DbErr::ConnectionAcquire(ConnAcquireErr::Timeout)),
            }
        };
        if self.engine == Engine::Postgres {
            tx.execute_unprepared(&postgres::limit_lock_wait(LOCK_WAIT)).await?;
        }
        Ok(tx)
    }

    /// A transaction that sees one state of the database throughout (E-3).
    pub(crate) async fn begin_read(&self) -> Result<Transaction, DbErr> {
        let reader = &self.reader;
        let db = match self.engine {
            Engine::Sqlite => reader.run(sqlite::begin_read(&reader.db)).await?,
            Engine::Postgres => reader.run(postgres::begin_read(&reader.db)).await?,
        };
        Ok(Transaction::new(db, reader, reader))
    }

    /// Gives space that deleted rows left back to the file system, at most `pages` pages. PostgreSQL does so by itself.
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

    /// A transaction that may change the schema; one at a time over all instances.
    pub(crate) async fn begin_migration(&self) -> Result<Transaction, DbErr> {
        let writer = &self.writer;
        let db = match self.engine {
            Engine::Sqlite => writer.run(sqlite::begin_write(&writer.db)).await?,
            Engine::Postgres => writer.run(postgres::begin_migration(&writer.db)).await?,
        };
        Ok(Transaction::new(db, writer, &self.reader))
    }
}

/// Tells an epoch from another history's epoch of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) Uuid);

/// The stamp of an epoch, if the database knows that epoch still.
pub(crate) async fn stamp(conn: &impl ConnectionTrait, epoch: Epoch) -> Result<Option<Stamp>, StoreError> {
    let engine = Engine::of(conn);
    let sql = format!("SELECT stamp FROM policy_history WHERE epoch = {epoch}");
    let row = conn.query_one_raw(engine.statement(sql)).await?;
    Ok(row.map(|row| row.try_get("", "stamp")).transpose()?.map(Stamp))
}

/// The head of policy as one database tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) epoch: Epoch,
    pub(crate) stamp: Stamp,
    /// The database's clock, if it has one of its own (E-5).
    pub(crate) at: Option<Timestamp>,
    pub(crate) primary: bool,
}

/// Reads the head.
pub(crate) async fn head(conn: &impl ConnectionTrait) -> Result<Head, StoreError> {
    let engine = Engine::of(conn);
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
    let stamp = Stamp(row.try_get("", "stamp")?);
    Ok(Head {
        epoch: to_epoch(epoch)?,
        stamp,
        at: at.map(Timestamp::from_micros),
        primary,
    })
}

/// Takes the one row that all mutations queue for, and says where policy stands.
pub(crate) async fn lock_epoch(tx: &Transaction) -> Result<Epoch, StoreError> {
    let engine = Engine::of(tx);
    let sql = match engine {
        Engine::Sqlite => sqlite::LOCK_EPOCH,
        Engine::Postgres => postgres::LOCK_EPOCH,
    };
    let row = tx
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    to_epoch(row.try_get("", "epoch")?)
}

/// The last statement of a mutation: raises the epoch if any policy row changed, and announces it (E-1).
pub(crate) async fn raise_epoch(tx: &Transaction) -> Result<Option<Epoch>, StoreError> {
    let engine = Engine::of(tx);
    let sql = match engine {
        Engine::Sqlite => sqlite::RAISE_EPOCH,
        Engine::Postgres => postgres::RAISE_EPOCH,
    };
    let row = tx.query_one_raw(engine.statement(sql)).await?;
    row.map(|row| to_epoch(row.try_get("", "epoch")?)).transpose()
}

/// The time by which leases are given and judged: the database's, if it has a clock of its own. All instances go by one
/// clock then, and none with a wrong one takes another's lease for ended (HD24), or holds its own for an hour.
pub(crate) async fn lease_time(conn: &impl ConnectionTrait, local: Timestamp) -> Result<Timestamp, StoreError> {
    let engine = Engine::of(conn);
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

/// Whether our own credential may change or delete rows of a table. A file has no credentials.
pub(crate) async fn may_rewrite(conn: &impl ConnectionTrait, table: &str) -> Result<bool, StoreError> {
    let engine = Engine::of(conn);
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

/// How far the ids of a table are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    /// The last id that the engine gave; `None` if it gave none, or does not tell our role.
    pub(crate) given: Option<i64>,
    /// The highest id of a row.
    pub(crate) highest: Option<i64>,
    /// The highest id of a row below [`EXHAUSTED_ID`].
    pub(crate) highest_sound: Option<i64>,
    engine: Engine,
}

impl Ids {
    /// Whether the engine cannot number the next row, or leaves no room for those behind it.
    pub(crate) fn is_exhausted(&self) -> bool {
        // A file takes the id after the highest one whatever it gave; a server gives ids that rows may have already.
        let is_behind = self.engine == Engine::Postgres && self.given.is_some_and(|given| Some(given) < self.highest);
        is_behind || self.given.max(self.highest).is_some_and(|id| id >= EXHAUSTED_ID)
    }
}

/// How far the ids of a table are used.
pub(crate) async fn ids(conn: &impl ConnectionTrait, table: &str) -> Result<Ids, StoreError> {
    let engine = Engine::of(conn);
    let given = match engine {
        Engine::Sqlite => format!("SELECT CAST(seq AS integer) FROM sqlite_sequence WHERE name = '{table}'"),
        Engine::Postgres => format!(
            "SELECT last_value FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = '{table}_id_seq'"
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
    Ok(Ids {
        given: row.try_get("", "given")?,
        highest: row.try_get("", "highest")?,
        highest_sound: row.try_get("", "highest_sound")?,
        engine,
    })
}

/// The highest id of an entry that was pruned.
pub(crate) async fn highest_pruned_id(conn: &impl ConnectionTrait) -> Result<Option<i64>, StoreError> {
    let sql = format!("SELECT max(highest_id) AS highest FROM anchors WHERE highest_id < {EXHAUSTED_ID}");
    let row = conn
        .query_one_raw(Engine::of(conn).statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(row.try_get("", "highest")?)
}

/// The statement by which an operator puts the numbering of a table right.
pub(crate) fn renumber(conn: &impl ConnectionTrait, table: &str) -> String {
    let highest = format!("(SELECT coalesce(max(id), 1) FROM {table} WHERE id < {EXHAUSTED_ID})");
    match Engine::of(conn) {
        Engine::Sqlite => format!("UPDATE sqlite_sequence SET seq = {highest} WHERE name = '{table}'"),
        Engine::Postgres => format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), {highest})"),
    }
}

/// Whether a row was refused because the engine had no id for it, or gave it one that another row has.
pub(crate) fn is_numbering(error: &DbErr) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause))) = error else {
        return false;
    };
    cause.as_database_error().is_some_and(|cause| {
        cause.code().is_some_and(|code| code == postgres::SEQUENCE_LIMIT)
            || cause.constraint().is_some_and(|name| name.ends_with("_pkey"))
    })
}

/// Whether somebody waits to write a table that another session holds. A file has one writer, which waits itself.
pub(crate) async fn is_write_waiting(conn: &impl ConnectionTrait, table: &str) -> Result<bool, StoreError> {
    let engine = Engine::of(conn);
    let Engine::Postgres = engine else { return Ok(false) };
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = '{table}'::regclass AND NOT granted \
         AND mode = 'RowExclusiveLock') AS waits"
    );
    let row = conn
        .query_one_raw(engine.statement(sql))
        .await?
        .ok_or(StoreError::Schema("missing"))?;
    Ok(row.try_get("", "waits")?)
}

/// The condition that a column of bytes holds these somewhere; reads every row.
pub(crate) fn holds_bytes(conn: &impl ConnectionTrait, column: &'static str, bytes: &[u8]) -> SimpleExpr {
    let bytes = hex::encode(bytes);
    Expr::cust(match Engine::of(conn) {
        Engine::Sqlite => format!("instr({column}, x'{bytes}') > 0"),
        Engine::Postgres => format!("position(decode('{bytes}', 'hex') in {column}) > 0"),
    })
}

/// A column of bytes, whatever a file that holds its values to no type has in it.
pub(crate) fn as_bytes(conn: &impl ConnectionTrait, column: &'static str) -> SimpleExpr {
    match Engine::of(conn) {
        Engine::Sqlite => Expr::cust(format!("CAST({column} AS blob)")),
        Engine::Postgres => Expr::cust(column),
    }
}

/// Whether a column holds a number, as every row of ours does.
pub(crate) fn is_number(conn: &impl ConnectionTrait, column: &'static str) -> SimpleExpr {
    match Engine::of(conn) {
        Engine::Sqlite => Expr::cust(format!("typeof({column}) = 'integer'")),
        Engine::Postgres => Expr::cust("TRUE"),
    }
}

/// What is attached to these tables, or stands in their place, that no migration made, each by its name. `tracked` tables
/// have the triggers that write the change rows.
pub(crate) async fn foreign_objects(
    conn: &impl ConnectionTrait,
    tables: &[&str],
    tracked: &[&str],
) -> Result<Vec<String>, StoreError> {
    let list = |names: &[&str]| format!("('{}')", names.join("', '"));
    let (tables, tracked) = (list(tables), list(tracked));
    let engine = Engine::of(conn);
    let sql = match engine {
        Engine::Sqlite => sqlite::foreign_objects(&tables, &tracked),
        Engine::Postgres => postgres::foreign_objects(&tables, &tracked),
    };
    let rows = conn.query_all_raw(engine.statement(sql)).await?;
    rows.into_iter().map(|row| Ok(row.try_get("", "object")?)).collect()
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

/// A constraint violation, told by the constraint's name.
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
        _ => Conflict::Other,
    }
}

/// Whether a row is there and holds what its columns cannot: every other error is the database's.
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

/// A LIKE pattern for "contains", for `lower(column) LIKE pattern ESCAPE '\'`.
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
    fn lots_are_powers_of_four_within_the_limit() {
        let mut left = 5000;
        let mut lots = Vec::new();
        while left > 0 {
            let lot = Engine::Postgres.lot(left, 20);
            assert!(lot <= left && lot * 20 <= Engine::Postgres.max_parameters());
            left -= lot;
            lots.push(lot);
        }
        assert_eq!(lots, [1024, 1024, 1024, 1024, 256, 256, 256, 64, 64, 4, 4]);
        assert_eq!(Engine::Sqlite.lot(1, 1_000_000), 1);
    }

    #[test]
    fn a_search_text_is_no_pattern() {
        assert_eq!(contains("A_b%\\"), "%a\\_b\\%\\\\%");
    }
}
