//! PostgreSQL 15 and later: UTC sessions, READ COMMITTED mutations that queue on the epoch row, NOTIFY with the commit.

use super::{
    CHANNEL, Engine, Pool, Pools,
    liveness::{Liveness, soon},
    session::Session,
};
use gw_types::Secret;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, IsolationLevel, RuntimeErr,
    SqlxPostgresConnector, Statement, TransactionTrait,
    sqlx::{
        self, ConnectOptions as _, Connection as _, Executor,
        postgres::{PgConnectOptions, PgPoolOptions},
    },
};
use std::{
    str::FromStr,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::sync::Semaphore;

/// The code of "the sequence has reached its last value".
pub(super) const SEQUENCE_LIMIT: &str = "2200H";
/// The protocol counts parameters in 16 bits.
pub(super) const MAX_PARAMETERS: usize = 65_000;

pub(super) const HEAD: &str = "SELECT epoch, stamp, \
     (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT AS at, \
     NOT pg_is_in_recovery() AS is_primary FROM policy_epoch JOIN policy_history USING (epoch)";

pub(super) const TIME: &str = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT AS at";

pub(super) const LOCK_EPOCH: &str = "SELECT epoch FROM policy_epoch FOR UPDATE";

pub(super) const INSERT_POLICY_STORE: &str = "INSERT INTO policy_store (id, store_id, last_outbox_id) \
     SELECT 1, gen_random_uuid(), \
     COALESCE(pg_sequence_last_value(pg_get_serial_sequence('audit_outbox', 'id')::REGCLASS), 0)";

// One statement raises and announces the epoch; NOTIFY is delivered with the commit.
pub(super) const RAISE_EPOCH: &str = "WITH raised AS (UPDATE policy_epoch SET epoch = epoch + 1 \
     WHERE EXISTS (SELECT 1 FROM policy_changes WHERE policy_changes.epoch = policy_epoch.epoch + 1) \
     RETURNING epoch) SELECT epoch, pg_notify('gw_policy', epoch::TEXT)::TEXT AS announced FROM raised";

const _: () = assert!(CHANNEL.len() == "gw_policy".len(), "RAISE_EPOCH announces on CHANNEL");

/// Session settings, sent as a statement because poolers reject unknown start-up options. All waits are limited: a
/// hanging mutation is aborted, and those that queue for the epoch row give up after a while. The server ends sessions
/// whose client's machine does not acknowledge its packets for ten seconds; their locks end with them.
const SESSION: &str = "SET TIME ZONE 'UTC'; SET lock_timeout = '5s'; \
     SET idle_in_transaction_session_timeout = '60s'; SET statement_timeout = '120s'; \
     SET tcp_user_timeout = '10s'; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
     SET tcp_keepalives_count = 3";

/// `lock_timeout` of [`SESSION`].
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// `statement_timeout` of [`SESSION`].
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long the server waits for the next statement of a transaction that writes. Such a transaction is never idle for
/// longer than milliseconds, unless its process is frozen or cut off: then others wait for its locks.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// An arbitrary but fixed lock number, which keeps two starting instances from migrating at once.
const MIGRATION_LOCK: &str = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
     SELECT pg_advisory_xact_lock(7235419268)";

pub(super) async fn open(url: &Secret, connections: u32, lifetime: Duration) -> Result<Pools, DbErr> {
    let failed = |cause| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)));
    let options = PgConnectOptions::from_str(url.expose())
        .map_err(failed)?
        .application_name("ledger-gateway");
    // The pool retries until its timeout and reports only that; a separate connection reports the cause (RTO8).
    let first = tokio::time::timeout(super::CONNECT_TIMEOUT, options.connect()).await;
    let first = first.map_err(|_| failed(sqlx::Error::PoolTimedOut))?.map_err(failed)?;
    first.close().await.map_err(failed)?;
    let liveness = Arc::new(Liveness::new(Some(options.clone())));
    let pool = PgPoolOptions::new()
        .max_connections(connections.max(2))
        .max_lifetime(lifetime)
        .acquire_timeout(super::ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(SESSION).await?;
                Ok(())
            })
        })
        // The ping is limited, so that a connection whose packets vanish is closed rather than waited for (RL14).
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(async move { soon(connection.ping()).await.map(|()| true) }))
        .after_release(|connection, _| Box::pin(async move { soon(connection.ping()).await.map(|()| true) }))
        .connect_with(options)
        .await
        .map_err(failed)?;
    let db = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
    let pool = Pool::new(db, liveness, Arc::new(AtomicBool::new(false)));
    let turns = Arc::new(Semaphore::new(1));
    Ok(Pools {
        writer: pool.clone(),
        reader: pool,
        engine: Engine::Postgres,
        file: None,
        turns,
    })
}

/// How long the start of a transaction may take. If no connection is free, it first waits for one.
pub(super) fn begin_limit(pool: &Pool) -> Duration {
    let pool = pool.db.get_postgres_connection_pool();
    let is_free = pool.num_idle() > 0 || pool.size() < pool.options().get_max_connections();
    if is_free {
        super::BEGIN
    } else {
        super::ACQUIRE_TIMEOUT.saturating_add(super::BEGIN)
    }
}

/// READ COMMITTED: statements after the lock on the epoch row see everything that the previous holder committed.
pub(super) async fn begin_write(pool: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    pool.begin_with_config(Some(IsolationLevel::ReadCommitted), Some(AccessMode::ReadWrite))
        .await
}

/// Identifies an open transaction; with `lock_wait`, limits its waits for locks and for its next statement.
pub(super) async fn session(tx: &impl ConnectionTrait, lock_wait: Option<Duration>) -> Result<Session, DbErr> {
    let limits = lock_wait.map_or_else(String::new, |lock_wait| {
        format!(
            ", set_config('lock_timeout', '{}ms', TRUE), set_config('idle_in_transaction_session_timeout', '{}ms', \
             TRUE)",
            lock_wait.as_millis(),
            IDLE_TIMEOUT.as_millis()
        )
    });
    let sql = format!(
        "SELECT pg_backend_pid() AS pid, \
         (EXTRACT(EPOCH FROM transaction_timestamp()) * 1000000)::BIGINT AS begun{limits}"
    );
    let row = tx.query_one_raw(Engine::Postgres.statement(sql)).await?;
    let row = row.ok_or_else(|| DbErr::Custom("the server does not identify the session".to_owned()))?;
    Ok(Session {
        pid: row.try_get("", "pid")?,
        begun: row.try_get("", "begun")?,
    })
}

pub(super) async fn begin_read(pool: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    pool.begin_with_config(Some(IsolationLevel::RepeatableRead), Some(AccessMode::ReadOnly))
        .await
}

pub(super) async fn begin_migration(pool: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let tx = pool.begin().await?;
    tx.execute_unprepared(MIGRATION_LOCK).await?;
    Ok(tx)
}

/// Returns the id of a transaction that has written; other connections look up its outcome by it.
pub(super) async fn number(tx: &impl ConnectionTrait) -> Result<Option<String>, DbErr> {
    let sql = "SELECT pg_current_xact_id_if_assigned()::TEXT AS number";
    let row = tx.query_one_raw(Engine::Postgres.statement(sql)).await?;
    row.map_or(Ok(None), |row| row.try_get("", "number"))
}

/// Whether the database is a primary that knows the transaction as committed. A new primary without the transaction
/// rejects its id or reports it as in progress.
pub(super) async fn is_committed(reader: &impl ConnectionTrait, number: &str) -> Result<bool, DbErr> {
    let sql = "SELECT pg_xact_status($1::TEXT::XID8) = 'committed' AND NOT pg_is_in_recovery() AS committed";
    let statement = Statement::from_sql_and_values(Engine::Postgres.backend(), sql, [number.into()]);
    let row = reader.query_one_raw(statement).await?;
    row.map_or(Ok(None), |row| row.try_get::<Option<bool>>("", "committed"))
        .map(|known| known == Some(true))
}

pub(super) fn history_triggers() -> Vec<String> {
    vec![
        "CREATE FUNCTION policy_epoch_changed() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO policy_history (epoch, stamp) VALUES (NEW.epoch, gen_random_uuid()) \
         ON CONFLICT (epoch) DO UPDATE SET stamp = excluded.stamp; RETURN NULL; END $$"
            .to_owned(),
        "CREATE TRIGGER policy_epoch_changed AFTER INSERT OR UPDATE ON policy_epoch \
         FOR EACH ROW EXECUTE FUNCTION policy_epoch_changed()"
            .to_owned(),
    ]
}

/// One function per table, which reads only the key of the row.
pub(super) fn change_triggers(table: &str, key: &str, entity: &str) -> Vec<String> {
    vec![
        format!(
            "CREATE FUNCTION {table}_changed() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO policy_changes (epoch, entity, row_id) \
             SELECT epoch + 1, '{entity}', COALESCE(NEW.{key}, OLD.{key}) FROM policy_epoch \
             ON CONFLICT DO NOTHING; RETURN NULL; END $$"
        ),
        format!(
            "CREATE TRIGGER {table}_changed AFTER INSERT OR UPDATE OR DELETE ON {table} \
             FOR EACH ROW EXECUTE FUNCTION {table}_changed()"
        ),
    ]
}

pub(super) fn may_rewrite(table: &str) -> String {
    format!("SELECT has_table_privilege('{table}', 'UPDATE, DELETE, TRUNCATE') AS may_rewrite")
}

/// Two tables with the same name reveal a search path that leads to another schema's tables before ours.
pub(super) fn foreign_objects(tables: &str, tracked: &str) -> String {
    format!(
        "WITH ours AS ( \
           SELECT c.oid, c.relname::TEXT AS relname, c.relkind, n.nspname::TEXT AS nspname, \
             c.relrowsecurity OR c.relforcerowsecurity AS secured \
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
           WHERE c.relname IN {tables} AND c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname = ANY \
             (current_schemas(TRUE)) ) \
         SELECT CASE relkind WHEN 'v' THEN 'view ' WHEN 'm' THEN 'view ' WHEN 'f' THEN 'foreign table ' \
             ELSE 'partitioned table ' END || relname AS object FROM ours WHERE relkind <> 'r' \
         UNION ALL SELECT 'table ' || nspname || '.' || relname FROM ours \
           WHERE relname IN (SELECT relname FROM ours GROUP BY relname HAVING count(*) > 1) \
         UNION ALL SELECT 'row security of ' || relname FROM ours WHERE secured \
         UNION ALL SELECT 'rule ' || r.rulename || ' on ' || relname FROM ours JOIN pg_rewrite r ON r.ev_class = \
           ours.oid WHERE relkind NOT IN ('v', 'm') \
         UNION ALL SELECT 'trigger ' || t.tgname || ' on ' || relname FROM ours JOIN pg_trigger t ON t.tgrelid = \
           ours.oid WHERE NOT t.tgisinternal AND NOT (relname IN {tracked} AND t.tgname = relname || '_changed') \
         UNION ALL SELECT DISTINCT 'inheritance of ' || relname FROM ours \
           JOIN pg_inherits i ON ours.oid IN (i.inhrelid, i.inhparent) \
         ORDER BY object"
    )
}

const DESCRIBE: &str = "\
    SELECT line FROM ( \
      SELECT 1 AS rank, table_name AS of, ordinal_position::INT AS place, \
        'column ' || table_name || '.' || column_name || ' ' || data_type \
        || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END \
        || COALESCE(' default ' || column_default, '') \
        || CASE is_identity WHEN 'YES' THEN ' identity' ELSE '' END AS line \
      FROM information_schema.columns WHERE table_schema = current_schema() \
    UNION ALL \
      SELECT 2, conrelid::REGCLASS::TEXT, 0, \
        'constraint ' || conrelid::REGCLASS::TEXT || '.' || conname || ' ' || pg_get_constraintdef(oid) \
      FROM pg_constraint WHERE connamespace = current_schema()::REGNAMESPACE AND conrelid <> 0 \
    UNION ALL \
      SELECT 3, tablename, 0, 'index ' || regexp_replace(indexdef, ' ON [a-z_]+\\.', ' ON ') \
      FROM pg_indexes WHERE schemaname = current_schema() \
        AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE connamespace = current_schema()::REGNAMESPACE) \
    UNION ALL \
      SELECT 4, tgrelid::REGCLASS::TEXT, 0, \
        'trigger ' || regexp_replace(pg_get_triggerdef(oid), ' ON [a-z_]+\\.', ' ON ') \
      FROM pg_trigger WHERE NOT tgisinternal \
    UNION ALL \
      SELECT 5, proname, 0, 'function ' || proname || ' ' || prosrc \
      FROM pg_proc WHERE pronamespace = current_schema()::REGNAMESPACE \
    ) AS objects ORDER BY of COLLATE \"C\", rank, place, line COLLATE \"C\"";

pub(super) async fn describe(conn: &impl ConnectionTrait) -> Result<String, DbErr> {
    let rows = conn.query_all_raw(Engine::Postgres.statement(DESCRIBE)).await?;
    let mut text = String::new();
    for row in rows {
        let line: String = row.try_get("", "line")?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}
