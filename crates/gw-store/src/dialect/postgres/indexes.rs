//! Compares the indexes of PostgreSQL with the rows of their tables.
//!
//! An index that was marked "not ready" for a while lacks the rows that were written meanwhile, for ever: the server
//! does not repair it when the mark is removed, and each query that uses the index misses the rows. The server has no
//! check for this without an extension, so the rows are read twice in one snapshot: by the table alone, and in the
//! order of the index by the index alone.

use crate::{
    StoreError,
    dialect::{Engine, Pools, Transaction, schema::IndexCheck},
};
use sea_orm::{ConnectionTrait, DbErr, QueryResult, RuntimeErr};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// The indexes of our tables. The keys are sorted in ascending order by the default operators, as all our indexes are.
/// The copy of an index that is being rebuilt is left out; [`super::objects`] compares its definition.
const INDEXES: &str = "SELECT t.relname::pg_catalog.text AS of, pg_catalog.quote_ident(t.relname) AS quoted_table, \
     i.relname::pg_catalog.text AS name, pg_catalog.quote_ident(i.relname) AS quoted, \
     pg_catalog.pg_get_expr(x.indpred, x.indrelid) AS predicate, \
     (SELECT pg_catalog.string_agg(pg_catalog.pg_get_indexdef(i.oid, n, FALSE), ', ' ORDER BY n) \
       FROM pg_catalog.generate_series(1, x.indnkeyatts) AS n) AS keys, \
     x.indisvalid AND x.indisready AND x.indislive AS in_use \
     FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid \
     JOIN pg_catalog.pg_class t ON t.oid = x.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace \
     JOIN pg_catalog.pg_am a ON a.oid = i.relam \
     WHERE n.nspname = pg_catalog.current_schema() AND t.relkind = 'r' AND a.amname = 'btree' \
     AND (x.indisvalid OR i.relname !~ '_cc(new|old)[0-9]*$') \
     ORDER BY t.relname, i.relname";

/// The settings under which the server reads a table without its indexes.
const BY_TABLE: &str = "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; \
     SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off; \
     SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off";
/// The settings under which the server reads a table in the order of an index by that index.
const BY_INDEX: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; \
     SET LOCAL enable_incremental_sort = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on";

/// An index of one of our tables; the names are quoted where the type says so.
#[derive(Debug)]
struct Index {
    name: String,
    quoted: String,
    quoted_table: String,
    /// The condition of a partial index.
    predicate: Option<String>,
    /// The key columns, separated by commas.
    keys: String,
    /// Whether queries use it and writes maintain it.
    in_use: bool,
}

/// Rows of a table: how many, and a sum over their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    count: i64,
    places: i64,
}

/// Compares the indexes of `tables` with the rows, for at most `limit`.
pub(in crate::dialect) async fn check(
    pools: &Pools,
    tables: &BTreeSet<&str>,
    limit: Duration,
) -> Result<IndexCheck, StoreError> {
    let end = Instant::now() + limit;
    let mut by_table: BTreeMap<String, Vec<Index>> = BTreeMap::new();
    for row in pools.reader.query_all_raw(Engine::Postgres.statement(INDEXES)).await? {
        let table: String = row.try_get("", "of")?;
        if tables.contains(&*table) {
            by_table.entry(table).or_default().push(Index::from_row(&row)?);
        }
    }
    let (mut faults, mut is_finished) = (Vec::new(), true);
    for (table, indexes) in by_table {
        // One transaction for each table, so that the server can remove dead rows meanwhile.
        match check_table(pools, &table, &indexes, end, &mut faults).await {
            Ok(()) => {}
            Err(StoreError::Database(error)) => match code(&error).as_deref() {
                // The limit of the statement, or a lock that somebody holds for longer.
                Some("57014" | "55P03") => is_finished = false,
                Some("XX001" | "XX002") => {
                    faults.push(format!("table {table} or one of its indexes cannot be read: {error}"))
                }
                _ => return Err(error.into()),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(match (faults.is_empty(), is_finished) {
        (false, _) => IndexCheck::Faulty(faults),
        (true, true) => IndexCheck::Sound,
        (true, false) => IndexCheck::Unfinished,
    })
}

async fn check_table(
    pools: &Pools,
    table: &str,
    indexes: &[Index],
    end: Instant,
    faults: &mut Vec<String>,
) -> Result<(), StoreError> {
    let unused = indexes.iter().filter(|index| !index.in_use);
    faults.extend(unused.map(|index| index.fault(table, "is marked as not valid, not ready or not live")));
    let indexes: Vec<_> = indexes.iter().filter(|index| index.in_use).collect();
    let Some(first) = indexes.first() else { return Ok(()) };
    // A read-only transaction in which all statements see the same rows.
    let tx = pools.begin_read().await?;
    limit_statement(&tx, end).await?;
    tx.execute_unprepared(BY_TABLE).await?;
    let columns = indexes.iter().enumerate().map(|(n, index)| index.columns(n));
    let columns: Vec<_> = columns.collect();
    let sql = format!("SELECT {} FROM ONLY {}", columns.join(", "), first.quoted_table);
    let row = tx.query_one_raw(Engine::Postgres.statement(sql)).await?;
    let row = row.ok_or_else(|| DbErr::Custom("the server counts no rows".to_owned()))?;
    let stored: Vec<_> = (0..indexes.len())
        .map(|n| Rows::from_row(&row, n))
        .collect::<Result<_, _>>()?;
    tx.execute_unprepared(BY_INDEX).await?;
    for (index, stored) in indexes.into_iter().zip(stored) {
        limit_statement(&tx, end).await?;
        let sql = index.ordered_query();
        let plan = tx
            .query_all_raw(Engine::Postgres.statement(format!("EXPLAIN (COSTS OFF) {sql}")))
            .await?;
        let scan = format!(" using {} on ", index.quoted);
        let mut plan = plan.iter().filter_map(|row| row.try_get_by_index::<String>(0).ok());
        if !plan.any(|line| line.contains(&scan)) {
            tracing::warn!(
                table,
                index = index.name,
                "the server reads the rows by another index, so this one was not compared with them: run ANALYZE on \
                 the table, and REINDEX on the index"
            );
            continue;
        }
        let row = tx.query_one_raw(Engine::Postgres.statement(sql)).await?;
        let row = row.ok_or_else(|| DbErr::Custom("the server counts no rows".to_owned()))?;
        let indexed = Rows::from_row(&row, 0)?;
        let misplaced: i64 = row.try_get("", "misplaced")?;
        if indexed.count != stored.count {
            let fault = format!("has {} of {} rows", indexed.count, stored.count);
            faults.push(index.fault(table, &fault));
        } else if indexed != stored || misplaced > 0 {
            faults.push(index.fault(table, "leads to other rows than those of its keys"));
        }
    }
    tx.rollback().await?;
    Ok(())
}

/// Limits the next statements to the time that is left.
async fn limit_statement(tx: &Transaction, end: Instant) -> Result<(), DbErr> {
    let left = end.saturating_duration_since(Instant::now()).as_millis().max(1);
    tx.execute_unprepared(&format!("SET LOCAL statement_timeout = {left}"))
        .await
        .map(drop)
}

fn code(error: &DbErr) -> Option<String> {
    match error {
        DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause)) => {
            cause.as_database_error()?.code().map(|code| code.into_owned())
        }
        _ => None,
    }
}

impl Index {
    fn from_row(row: &QueryResult) -> Result<Self, DbErr> {
        Ok(Self {
            name: row.try_get("", "name")?,
            quoted: row.try_get("", "quoted")?,
            quoted_table: row.try_get("", "quoted_table")?,
            predicate: row.try_get("", "predicate")?,
            keys: row.try_get("", "keys")?,
            in_use: row.try_get("", "in_use")?,
        })
    }

    /// The number of the rows that belong into the index, and the sum over their places, as columns `n`.
    fn columns(&self, n: usize) -> String {
        let filter = self.predicate.as_ref();
        let filter = filter.map_or_else(String::new, |predicate| format!(" FILTER (WHERE {predicate})"));
        format!(
            "pg_catalog.count(*){filter} AS count{n}, \
             COALESCE(pg_catalog.sum(pg_catalog.hashtid(ctid)){filter}, 0)::BIGINT AS places{n}"
        )
    }

    /// Counts the rows in the order of the index, and those whose keys are less than the keys before them.
    fn ordered_query(&self) -> String {
        let Self { keys, quoted_table, .. } = self;
        let condition = self.predicate.as_ref();
        let condition = condition.map_or_else(String::new, |predicate| format!(" WHERE {predicate}"));
        format!(
            "SELECT pg_catalog.count(*) AS count0, \
             COALESCE(pg_catalog.sum(pg_catalog.hashtid(place)), 0)::BIGINT AS places0, \
             pg_catalog.count(*) FILTER (WHERE NOT in_order) AS misplaced \
             FROM (SELECT ctid AS place, COALESCE(pg_catalog.lag(ROW({keys})) OVER sorted <= ROW({keys}), TRUE) \
             AS in_order FROM ONLY {quoted_table}{condition} WINDOW sorted AS (ORDER BY {keys})) AS read"
        )
    }

    fn fault(&self, table: &str, fault: &str) -> String {
        let Self { name, quoted, .. } = self;
        format!("index {name} of table {table} {fault} (repair: REINDEX INDEX {quoted})")
    }
}

impl Rows {
    fn from_row(row: &QueryResult, n: usize) -> Result<Self, DbErr> {
        Ok(Self {
            count: row.try_get("", &format!("count{n}"))?,
            places: row.try_get("", &format!("places{n}"))?,
        })
    }
}
