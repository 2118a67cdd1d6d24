//! Compares the schema of a database with the definition that the migrations make.
//!
//! A writer of the database can add a trigger, exchange an index or disable a rule without changing a row. So every
//! object is compared by its whole definition, and an object that no migration made counts, too.

use super::{Engine, Pools};
use crate::StoreError;
use sea_orm::{ConnectionTrait, DbErr};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// A part of the schema: a table, a column, a constraint, an index, a trigger or a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SchemaObject {
    /// The table to which it belongs; `None` for an object that affects every statement.
    pub(super) table: Option<String>,
    /// Its kind and name, then `: `, then its definition; without line breaks.
    pub(super) line: String,
}

impl SchemaObject {
    pub(super) fn new(table: Option<String>, line: &str) -> Self {
        Self {
            table,
            line: line.trim().replace('\r', "\\r").replace('\n', "\\n"),
        }
    }
}

/// Returns the schema as text, one object per line.
pub(crate) async fn describe(conn: &impl ConnectionTrait) -> Result<String, DbErr> {
    let mut text = String::new();
    for object in objects(conn).await? {
        text.push_str(&object.line);
        text.push('\n');
    }
    Ok(text)
}

/// Whether the indexes of a database agree with its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexCheck {
    /// Every row is in every index of its table.
    Sound,
    /// The faults: rows that an index lacks, or pages that cannot be read. Each names the index; on SQLite in the
    /// engine's words.
    Faulty(Vec<String>),
    /// The check took too long, and found nothing so far.
    Unfinished,
}

/// Returns the names of the objects that differ from the `expected` text of [`describe`], each with the difference.
/// Tables of others are left out.
pub(crate) async fn differences(pools: &Pools, expected: &str) -> Result<Vec<String>, StoreError> {
    // Without the write lock the connections may keep a former schema until the next check.
    if let (Engine::Sqlite, Some(_)) = (pools.engine, &pools.file)
        && let Err(error) = reload(pools).await
    {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "the schema was not read again"
        );
    }
    Ok(compare(&objects(&pools.reader).await?, expected))
}

/// Compares the indexes of the tables of the `expected` schema with their rows, for at most `limit`: an index can lack
/// rows although its definition is right.
pub(crate) async fn check_indexes(pools: &Pools, expected: &str, limit: Duration) -> Result<IndexCheck, StoreError> {
    match pools.engine {
        Engine::Sqlite => Ok(super::sqlite::check_indexes(&pools.reader, limit).await?),
        Engine::Postgres => super::postgres::indexes::check(pools, &tables(expected), limit).await,
    }
}

/// The names of the tables of an expected schema.
pub(crate) fn tables(expected: &str) -> BTreeSet<&str> {
    expected
        .lines()
        .filter_map(|line| name(line).strip_prefix("table "))
        .collect()
}

async fn reload(pools: &Pools) -> Result<(), StoreError> {
    let tx = pools.begin_write().await?;
    super::sqlite::reload_schema(&tx).await?;
    tx.commit().await
}

async fn objects(conn: &impl ConnectionTrait) -> Result<Vec<SchemaObject>, DbErr> {
    match Engine::for_connection(conn) {
        Engine::Sqlite => super::sqlite::objects(conn).await,
        Engine::Postgres => super::postgres::objects(conn).await,
    }
}

fn compare(objects: &[SchemaObject], expected: &str) -> Vec<String> {
    let tables = tables(expected);
    let expected: BTreeSet<&str> = expected.lines().collect();
    let ours = |object: &&SchemaObject| object.table.as_deref().is_none_or(|table| tables.contains(table));
    let actual: BTreeSet<&str> = objects.iter().filter(ours).map(|object| &*object.line).collect();
    let mut differences: BTreeMap<&str, &str> = BTreeMap::new();
    for line in actual.difference(&expected) {
        differences.insert(name(line), "added");
    }
    for line in expected.difference(&actual) {
        let name = name(line);
        let is_changed = differences.contains_key(name);
        differences.insert(name, if is_changed { "changed" } else { "missing" });
    }
    differences
        .into_iter()
        .map(|(name, difference)| format!("{name} ({difference})"))
        .collect()
}

/// The kind and name of an object.
fn name(line: &str) -> &str {
    line.split_once(": ")
        .map_or(line.trim_end_matches(':'), |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named() {
        let object = |table: Option<&str>, line: &str| SchemaObject::new(table.map(str::to_owned), line);
        let expected = "table a: plain\ncolumn a.id: bigint\nindex a_idx on a: CREATE INDEX\n";
        let sound = [
            object(Some("a"), "table a: plain"),
            object(Some("a"), "column a.id: bigint"),
            object(Some("a"), "index a_idx on a: CREATE INDEX"),
            object(Some("b"), "table b: plain"),
        ];
        assert_eq!(compare(&sound, expected), Vec::<String>::new());
        let changed = [
            object(Some("a"), "table a: plain"),
            object(Some("a"), "index a_idx on a: CREATE INDEX\nWHERE false"),
            object(Some("a"), "trigger t on a: CREATE TRIGGER"),
            object(None, "function lower: lies"),
        ];
        assert_eq!(
            compare(&changed, expected),
            [
                "column a.id (missing)",
                "function lower (added)",
                "index a_idx on a (changed)",
                "trigger t on a (added)",
            ]
        );
    }
}
