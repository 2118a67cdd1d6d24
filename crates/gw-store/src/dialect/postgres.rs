//! PostgreSQL 15 and later: UTC sessions, READ COMMITTED mutations that queue on the epoch row, NOTIFY with the commit.

pub(super) mod indexes;

use super::{
    CHANNEL, Engine, Pool, Pools,
    liveness::{Liveness, within},
    schema::SchemaObject,
    session::Session,
};
use gw_types::Secret;
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, IsolationLevel, QueryResult,
    RuntimeErr, SqlxPostgresConnector, Statement, TransactionTrait,
    sqlx::{
        self, ConnectOptions as _, Connection as _, Executor, PgConnection,
        postgres::{PgConnectOptions, PgPoolOptions},
    },
};
use std::{
    pin::Pin,
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
     (EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000)::BIGINT AS at, \
     NOT pg_catalog.pg_is_in_recovery() AS is_primary FROM policy_epoch JOIN policy_history USING (epoch)";

pub(super) const TIME: &str = "SELECT (EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000)::BIGINT AS at";

pub(super) const LOCK_EPOCH: &str = "SELECT epoch FROM policy_epoch FOR UPDATE";

pub(super) const INSERT_POLICY_STORE: &str = "INSERT INTO policy_store (id, store_id, last_outbox_id) \
     SELECT 1, pg_catalog.gen_random_uuid(), COALESCE(pg_catalog.pg_sequence_last_value( \
     pg_catalog.pg_get_serial_sequence('audit_outbox', 'id')::pg_catalog.REGCLASS), 0)";

// One statement raises and announces the epoch; NOTIFY is delivered with the commit.
pub(super) const RAISE_EPOCH: &str = "WITH raised AS (UPDATE policy_epoch SET epoch = epoch + 1 \
     WHERE EXISTS (SELECT 1 FROM policy_changes WHERE policy_changes.epoch = policy_epoch.epoch + 1) \
     RETURNING epoch) SELECT epoch, pg_catalog.pg_notify('gw_policy', epoch::TEXT)::TEXT AS announced FROM raised";

const _: () = assert!(CHANNEL.len() == "gw_policy".len(), "RAISE_EPOCH announces on CHANNEL");

/// Session settings, sent as a statement because poolers reject unknown start-up options. All waits are limited: a
/// hanging mutation is aborted, and those that queue for the epoch row give up after a while. A change also reads
/// before its transaction, so every statement has its short wait for locks (`super::LOCK_WAIT`). The server ends
/// sessions whose client's machine does not acknowledge its packets for ten seconds; their locks end with them. A
/// commit is on disk before it is answered, and a statement outside a transaction may write, whatever the defaults of
/// the database and the role are. The settings that change what the
/// catalog's functions print, and what a statement means, are those of a new database: the schema is compared as text.
const SESSION: &str = "SET TIME ZONE 'UTC'; SET default_transaction_read_only = off; SET lock_timeout = '1s'; \
     SET idle_in_transaction_session_timeout = '60s'; SET statement_timeout = '120s'; \
     SET tcp_user_timeout = '10s'; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
     SET tcp_keepalives_count = 3; SET quote_all_identifiers = off; SET standard_conforming_strings = on; \
     SET bytea_output = 'hex'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; \
     SET extra_float_digits = 1; \
     SET transform_null_equals = off; SET array_nulls = on; \
     SELECT pg_catalog.set_config('synchronous_commit', 'on', FALSE) \
     WHERE pg_catalog.current_setting('synchronous_commit') = 'off'";

/// Returns the schemas of a search path, quoted, in which our tables can be: first those with a table of migration
/// steps that we may read. Tables are created in the first of the others.
const SCHEMAS: &str = "SELECT pg_catalog.quote_ident(s.name) AS name, s.has_steps FROM ( \
       SELECT s.name, s.place, EXISTS (SELECT 1 FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = s.name AND c.relname = 'seaql_migrations' AND c.relkind = 'r' \
         AND pg_catalog.has_table_privilege(c.oid, 'SELECT')) AS has_steps \
       FROM pg_catalog.unnest($1) WITH ORDINALITY AS s (name, place) \
       WHERE s.name NOT IN ('pg_catalog', 'information_schema') AND s.name NOT LIKE 'pg\\_temp%') AS s \
     ORDER BY NOT s.has_steps, s.place";
/// How long the comparison of two schemas may take.
const SCHEMA_TIMEOUT: &str = "SET statement_timeout = '5s'; SET lock_timeout = '1s'";

/// The `lock_timeout` of transactions that write and for which no caller waits.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// `statement_timeout` of [`SESSION`].
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long the server waits for the next statement of a transaction that writes. Such a transaction is never idle for
/// longer than milliseconds, unless its process is frozen or cut off: then others wait for its locks.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// An arbitrary but fixed lock number, which keeps two starting instances from migrating at once.
const MIGRATION_LOCK: &str = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
     SELECT pg_catalog.pg_advisory_xact_lock(7235419268)";

/// The pool's question whether it keeps a connection.
type ConnectionCheck<'a> = Pin<Box<dyn Future<Output = Result<bool, sqlx::Error>> + Send + 'a>>;

/// Whether a connection stays in the pool: it is young and answers.
fn check_connection<'a>(connection: &'a mut PgConnection, is_young: bool, liveness: &Liveness) -> ConnectionCheck<'a> {
    let limit = liveness.probe_limit();
    Box::pin(async move {
        if is_young {
            within(limit, connection.ping()).await?;
        }
        Ok(is_young)
    })
}

pub(super) async fn open(
    url: &Secret,
    connections: u32,
    lifetime: Duration,
    is_patient: bool,
    steps: &[String],
) -> Result<Pools, DbErr> {
    let failed = |cause| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(cause)));
    let options = PgConnectOptions::from_str(url.expose())
        .map_err(failed)?
        .application_name("ledger-gateway");
    // The pool retries until its timeout and reports only that; a separate connection reports the cause (RTO8).
    let first = tokio::time::timeout(super::CONNECT_TIMEOUT, options.connect()).await;
    let mut first = first.map_err(|_| failed(sqlx::Error::PoolTimedOut))?.map_err(failed)?;
    let path = search_path(&mut first, steps).await.map_err(failed)?;
    first.close().await.map_err(failed)?;
    let session: Arc<str> = format!("SET search_path = {path}; {SESSION}").into();
    let liveness = Arc::new(Liveness::new(Some(options.clone()), is_patient));
    let (acquired, released) = (Arc::clone(&liveness), Arc::clone(&liveness));
    let pool = PgPoolOptions::new()
        .max_connections(connections.max(2))
        // The pool's own search for idle and old connections can spin for ever: sqlx 0.9.0 counts idle connections
        // after it offers them, and the count wraps. Ages are checked at each use instead.
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(super::ACQUIRE_TIMEOUT)
        .after_connect(move |connection, _| {
            let session = Arc::clone(&session);
            Box::pin(async move {
                connection
                    .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(&*session)))
                    .await?;
                Ok(())
            })
        })
        // The ping is limited, so that a connection whose packets vanish is closed rather than waited for (RL14).
        .test_before_acquire(false)
        .before_acquire(move |connection, meta| check_connection(connection, meta.age < lifetime, &acquired))
        .after_release(move |connection, meta| check_connection(connection, meta.age < lifetime, &released))
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

/// Returns the search path for all sessions: the objects of the system, then our schema, then temporary tables, which
/// else come first. An owner of the database can change the default path at any time, and then another schema's
/// relations, functions or operators would replace those of the system.
///
/// Somebody may have put another schema before ours that has tables of the same names: ours is the one in which most of
/// our migration `steps` were run, and of equal ones the first.
async fn search_path(connection: &mut PgConnection, steps: &[String]) -> Result<String, sqlx::Error> {
    let default = sqlx::query_scalar("SELECT pg_catalog.current_schemas(FALSE)::pg_catalog.text[]").persistent(false);
    let default: Vec<String> = default.fetch_one(&mut *connection).await?;
    connection.execute("SET search_path = pg_catalog, pg_temp").await?;
    let schemas = sqlx::query_as(SCHEMAS).persistent(false).bind(default);
    let schemas: Vec<(String, bool)> = schemas.fetch_all(&mut *connection).await?;
    let mut ours = schemas.first().map(|(name, _)| name);
    let with_steps = schemas.iter().filter(|(_, has_steps)| *has_steps);
    if with_steps.clone().count() > 1 {
        connection.execute(sqlx::raw_sql(SCHEMA_TIMEOUT)).await?;
        let mut most = 0;
        for (name, _) in with_steps {
            let applied = count_applied(connection, name, steps).await?;
            tracing::warn!(
                schema = name,
                applied,
                "several schemas of the search path have migration steps"
            );
            if applied > most {
                (ours, most) = (Some(name), applied);
            }
        }
    }
    Ok(format!("{}, pg_temp", ours.map_or("public", String::as_str)))
}

/// Returns how many of the `steps` were run in a schema; none if its table is not one of migration steps.
async fn count_applied(connection: &mut PgConnection, schema: &str, steps: &[String]) -> Result<i64, sqlx::Error> {
    let sql =
        format!("SELECT pg_catalog.count(DISTINCT version) FROM {schema}.seaql_migrations WHERE version = ANY ($1)");
    let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .persistent(false)
        .bind(steps);
    match count.fetch_one(connection).await {
        // A column is missing or of another type.
        Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| code.starts_with("42")) => Ok(0),
        result => result,
    }
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
            ", pg_catalog.set_config('lock_timeout', '{}ms', TRUE), \
             pg_catalog.set_config('idle_in_transaction_session_timeout', '{}ms', TRUE)",
            lock_wait.as_millis(),
            IDLE_TIMEOUT.as_millis()
        )
    });
    let sql = format!(
        "SELECT pg_catalog.pg_backend_pid() AS pid, \
         (EXTRACT(EPOCH FROM pg_catalog.transaction_timestamp()) * 1000000)::BIGINT AS begun{limits}"
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
    let sql = "SELECT pg_catalog.pg_current_xact_id_if_assigned()::TEXT AS number";
    let row = tx.query_one_raw(Engine::Postgres.statement(sql)).await?;
    row.map_or(Ok(None), |row| row.try_get("", "number"))
}

/// Whether the database is a primary that knows the transaction as committed. A new primary without the transaction
/// rejects its id or reports it as in progress.
pub(super) async fn is_committed(reader: &impl ConnectionTrait, number: &str) -> Result<bool, DbErr> {
    let sql = "SELECT pg_catalog.pg_xact_status($1::TEXT::XID8) = 'committed' \
         AND NOT pg_catalog.pg_is_in_recovery() AS committed";
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

/// Returns the privileges of these that our credential lacks, such as `INSERT on users`.
pub(super) async fn missing_privileges(
    conn: &impl ConnectionTrait,
    needed: &[(&str, &str)],
) -> Result<Vec<String>, DbErr> {
    // The names are those of our own schema and of SQL.
    let needed: Vec<_> = needed
        .iter()
        .map(|(table, privilege)| format!("('{table}', '{privilege}')"))
        .collect();
    let sql = format!(
        "SELECT n.privilege || ' on ' || n.name AS missing FROM (VALUES {}) AS n (name, privilege) \
         JOIN pg_catalog.pg_class c ON c.relname = n.name \
         JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace AND s.nspname = pg_catalog.current_schema() \
         WHERE NOT pg_catalog.has_table_privilege(c.oid, n.privilege) ORDER BY n.name, n.privilege",
        needed.join(", ")
    );
    let rows = conn.query_all_raw(Engine::Postgres.statement(sql)).await?;
    rows.iter().map(|row| row.try_get("", "missing")).collect()
}

pub(super) fn may_rewrite(table: &str) -> String {
    format!("SELECT pg_catalog.has_table_privilege('{table}', 'UPDATE, DELETE, TRUNCATE') AS may_rewrite")
}

/// Every object of our schema: tables with their columns, constraints, indexes, triggers, rules, policies and
/// sequences, and the functions and operators, which could replace those of the system in a statement. Reads the
/// catalog alone, so that each role sees every object. Leaves out what differs between versions of the server (NOT NULL
/// constraints since version 18; the columns tell), objects that an administrator's extension brought, and the copy of
/// an index that is being rebuilt. An index that queries do not use or writes do not maintain differs.
const OBJECTS: &str = "\
    WITH ours AS (SELECT n.oid, pg_catalog.quote_ident(n.nspname) || '.' AS prefix \
        FROM pg_catalog.pg_namespace n WHERE n.nspname = pg_catalog.current_schema()), \
      tables AS (SELECT c.*, c.relname::pg_catalog.text AS name, ours.prefix \
        FROM pg_catalog.pg_class c JOIN ours ON ours.oid = c.relnamespace \
        WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p')), \
      foreigners AS (SELECT d.classid, d.objid FROM pg_catalog.pg_depend d WHERE d.deptype = 'e') \
    SELECT t.name AS of, 1 AS rank, 0 AS place, \
      CASE t.relkind WHEN 'r' THEN 'table ' WHEN 'f' THEN 'foreign table ' WHEN 'p' THEN 'partitioned table ' \
        ELSE 'view ' END || t.name || ': ' \
      || CASE t.relpersistence WHEN 'p' THEN 'logged' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END AS line \
    FROM tables t \
    UNION ALL SELECT t.name, 1, 1, 'row security of ' || t.name FROM tables t \
      WHERE t.relrowsecurity OR t.relforcerowsecurity \
    UNION ALL SELECT t.name, 1, 2, 'policy ' || p.polname || ' on ' || t.name \
      FROM tables t JOIN pg_catalog.pg_policy p ON p.polrelid = t.oid \
    UNION ALL SELECT t.name, 1, 3, 'rule ' || r.rulename || ' on ' || t.name || ': ' || r.ev_enabled::pg_catalog.text \
      || ' ' || pg_catalog.pg_get_ruledef(r.oid) \
      FROM tables t JOIN pg_catalog.pg_rewrite r ON r.ev_class = t.oid WHERE t.relkind NOT IN ('v', 'm') \
    UNION ALL SELECT DISTINCT t.name, 1, 4, 'inheritance of ' || t.name \
      FROM tables t JOIN pg_catalog.pg_inherits i ON t.oid IN (i.inhrelid, i.inhparent) \
    UNION ALL SELECT t.name, 2, a.attnum, 'column ' || t.name || '.' || a.attname || ': ' \
      || pg_catalog.format_type(a.atttypid, a.atttypmod) \
      || CASE WHEN a.attcollation <> y.typcollation THEN ' collate ' || a.attcollation::pg_catalog.regcollation \
        ELSE '' END \
      || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END \
      || COALESCE(' default ' || pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') \
      || CASE a.attidentity WHEN '' THEN '' ELSE ' identity ' || a.attidentity::pg_catalog.text END \
      || CASE a.attgenerated WHEN '' THEN '' ELSE ' generated' END \
      FROM tables t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid \
      JOIN pg_catalog.pg_type y ON y.oid = a.atttypid \
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum \
      WHERE a.attnum > 0 AND NOT a.attisdropped AND t.relkind <> 'v' \
    UNION ALL SELECT t.name, 3, 0, 'constraint ' || t.name || '.' || c.conname \
      || CASE WHEN c.conrelid = t.oid THEN ': ' ELSE ' of ' || c.conrelid::pg_catalog.regclass || ': ' END \
      || pg_catalog.replace(pg_catalog.pg_get_constraintdef(c.oid), ' REFERENCES ' || t.prefix, ' REFERENCES ') \
      || CASE WHEN c.convalidated THEN '' ELSE ' not validated' END \
      FROM tables t JOIN pg_catalog.pg_constraint c ON c.conrelid = t.oid OR (c.confrelid = t.oid AND NOT EXISTS \
        (SELECT 1 FROM tables o WHERE o.oid = c.conrelid)) WHERE c.contype NOT IN ('n', 't') \
    UNION ALL SELECT t.name, 4, 0, CASE WHEN NOT x.indisvalid AND i.relname ~ copy.suffix AND EXISTS ( \
          SELECT 1 FROM pg_catalog.pg_index o JOIN pg_catalog.pg_class n ON n.oid = o.indexrelid \
          WHERE o.indrelid = t.oid AND o.indisvalid \
          AND n.relname = pg_catalog.regexp_replace(i.relname, copy.suffix, '')) \
        THEN pg_catalog.regexp_replace(line.line, '_cc(new|old)[0-9]*', '', 'g') \
        ELSE line.line || CASE WHEN x.indisvalid THEN '' ELSE ' not valid' END \
          || CASE WHEN x.indisready THEN '' ELSE ' not ready' END \
          || CASE WHEN x.indislive THEN '' ELSE ' not live' END END \
      FROM tables t JOIN pg_catalog.pg_index x ON x.indrelid = t.oid \
      JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid CROSS JOIN LATERAL (SELECT 'index ' || i.relname || ' on ' \
        || t.name || ': ' || pg_catalog.replace(pg_catalog.pg_get_indexdef(i.oid), ' ON ' || t.prefix, ' ON ') \
        AS line) line CROSS JOIN (SELECT '_cc(new|old)[0-9]*$' AS suffix) copy \
    UNION ALL SELECT t.name, 5, 0, 'trigger ' || g.tgname || ' on ' || t.name || ': ' \
      || pg_catalog.replace(pg_catalog.replace(pg_catalog.pg_get_triggerdef(g.oid), ' ON ' || t.prefix, ' ON '), \
        ' FUNCTION ' || t.prefix, ' FUNCTION ') \
      || CASE g.tgenabled WHEN 'O' THEN '' WHEN 'D' THEN ' disabled' \
        ELSE ' enabled ' || g.tgenabled::pg_catalog.text END \
      FROM tables t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal OR g.tgenabled <> 'O' \
    UNION ALL SELECT t.name, 6, 0, 'sequence ' || c.relname || ' of ' || t.name || ': ' \
      || pg_catalog.concat_ws(' ', pg_catalog.format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, \
        s.seqmax, s.seqcache, s.seqcycle) \
      FROM tables t JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
        AND d.refobjid = t.oid AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype IN ('a', 'i') \
      JOIN pg_catalog.pg_sequence s ON s.seqrelid = d.objid JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid \
    UNION ALL SELECT NULL, 7, 0, 'function ' || p.proname || '(' \
      || pg_catalog.pg_get_function_identity_arguments(p.oid) || '): ' \
      || pg_catalog.concat_ws(' ', l.lanname, p.prokind, p.provolatile, p.proparallel, \
        CASE WHEN p.proisstrict THEN 'strict' END, CASE WHEN p.prosecdef THEN 'security definer' END, \
        p.proconfig, p.probin, pg_catalog.pg_get_function_result(p.oid), p.prosrc) \
      FROM pg_catalog.pg_proc p JOIN ours ON ours.oid = p.pronamespace \
      JOIN pg_catalog.pg_language l ON l.oid = p.prolang JOIN pg_catalog.pg_roles r ON r.oid = p.proowner \
      WHERE NOT (r.rolsuper AND EXISTS (SELECT 1 FROM foreigners f \
        WHERE f.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND f.objid = p.oid)) \
    UNION ALL SELECT NULL, 8, 0, 'operator ' || o.oprname || '(' || o.oprleft::pg_catalog.regtype || ', ' \
      || o.oprright::pg_catalog.regtype || ')' \
      FROM pg_catalog.pg_operator o JOIN ours ON ours.oid = o.oprnamespace \
      JOIN pg_catalog.pg_roles r ON r.oid = o.oprowner \
      WHERE NOT (r.rolsuper AND EXISTS (SELECT 1 FROM foreigners f \
        WHERE f.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND f.objid = o.oid))";

pub(super) async fn objects(conn: &impl ConnectionTrait) -> Result<Vec<SchemaObject>, DbErr> {
    let sql = format!(
        "SELECT of, line FROM ({OBJECTS}) AS objects ORDER BY of COLLATE pg_catalog.\"C\" NULLS LAST, rank, place, \
         line COLLATE pg_catalog.\"C\""
    );
    let rows = conn.query_all_raw(Engine::Postgres.statement(sql)).await?;
    let read = |row: QueryResult| {
        let line: String = row.try_get("", "line")?;
        Ok(SchemaObject::new(row.try_get("", "of")?, &line))
    };
    rows.into_iter().map(read).collect()
}
