//! Reads that skip malformed rows. Otherwise a writer of the database could stop verification with one row.
//! Verification reports the skipped rows.

use super::{
    chain_rows::{MOST_CHAINS, all_chains, chain_of, chain_row, head_of},
    store::AuditStore,
};
use crate::{
    StoreError,
    entity::{
        anchors,
        bounds::{self, Bounded},
        chains, checkpoints, discontinuities, entries, hash_tiles,
    },
};
use gw_audit::{ChainId, ShardId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IdenStatic, Iterable, PrimaryKeyToColumn, QueryFilter, QueryOrder,
    QuerySelect, Select, sea_query::Expr,
};

/// Rows per query while the malformed rows are looked for.
const CHUNK: usize = 200;
/// Most rows per query.
const CHUNK_ROWS: usize = 4096;
/// Most bytes per query.
pub(super) const CHUNK_BYTES: u64 = 16 * 1024 * 1024;
/// Most bytes of the rows of a list that is read whole.
pub(super) const MOST_BYTES: u64 = 512 * 1024 * 1024;
/// Most rows of a list that is read whole and whose rows are rare: anchors, re-anchorings.
pub(super) const MOST_ROWS: u64 = 100_000;

/// A row of `chains` that describes no chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedChain {
    /// The row's id.
    pub id: i64,
    /// The shard, if it can be read.
    pub shard: Option<ShardId>,
}

/// Rows of a table.
#[derive(Debug)]
pub(super) struct ReadableRows<M> {
    /// The readable rows, in the order of the query.
    pub(super) rows: Vec<M>,
    /// The ids of the rows with a value of a wrong type or over its limit.
    pub(super) malformed: Vec<i64>,
    /// The first row that was not read because there are too many.
    pub(super) unread: Option<i64>,
    /// The bytes of the rows.
    pub(super) bytes: u64,
}

/// The length of a row, without its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSize {
    pub(super) id: i64,
    pub(super) bytes: i64,
}

impl RowSize {
    /// Whether no row of ours is so long: its values must not be read.
    pub(super) fn is_oversized<E: Bounded>(&self) -> bool {
        self.bytes > bounds::limit_of_row::<E>()
    }
}

/// Returns the sizes of the first `most` rows of a query. Every table of the audit store and the outbox has one key
/// column, the row id, which holds a number in both engines.
pub(super) async fn row_sizes<E: Bounded>(
    conn: &impl ConnectionTrait,
    select: &Select<E>,
    most: u64,
) -> Result<Vec<RowSize>, StoreError> {
    let Some(id) = id_column::<E>() else {
        return Ok(Vec::new());
    };
    let sizes = select
        .clone()
        .select_only()
        .column(id)
        .expr_as(bounds::size::<E>(conn), "row_bytes");
    let sizes: Vec<(i64, i64)> = sizes.limit(most).into_tuple().all(conn).await?;
    Ok(sizes.into_iter().map(|(id, bytes)| RowSize { id, bytes }).collect())
}

/// Returns how many of the first rows have at most `budget` bytes together; at least one. Oversized rows are not read,
/// so they do not count.
pub(super) fn count_within<E: Bounded>(sizes: &[RowSize], budget: u64) -> usize {
    let mut bytes = 0_u64;
    let mut fits = |size: &&RowSize| {
        if !size.is_oversized::<E>() {
            bytes = bytes.saturating_add(size.bytes.unsigned_abs());
        }
        bytes <= budget
    };
    sizes.iter().take_while(|size| fits(size)).count().max(1)
}

fn id_column<E: EntityTrait>() -> Option<E::Column> {
    E::PrimaryKey::iter().next().map(PrimaryKeyToColumn::into_column)
}

/// Reads the first `most` rows of a query, and no more than [`MOST_BYTES`] bytes of them. Rows with a value of a wrong
/// type or over its limit are left out and listed by id.
pub(super) async fn readable_rows<E: Bounded>(
    conn: &impl ConnectionTrait,
    select: Select<E>,
    most: u64,
) -> Result<ReadableRows<E::Model>, StoreError> {
    let mut readable = ReadableRows {
        rows: Vec::new(),
        malformed: Vec::new(),
        unread: None,
        bytes: 0,
    };
    let Some(id) = id_column::<E>() else {
        return Ok(readable);
    };
    let mut sizes = row_sizes(conn, &select, most.saturating_add(1)).await?;
    let within = count_within::<E>(&sizes, MOST_BYTES).min(usize::try_from(most).unwrap_or(usize::MAX));
    readable.unread = sizes.get(within).map(|size| size.id);
    sizes.truncate(within);
    let oversized = sizes.iter().filter(|size| size.is_oversized::<E>());
    readable.malformed.extend(oversized.map(|size| size.id));
    sizes.retain(|size| !size.is_oversized::<E>());
    readable.bytes = sizes.iter().map(|size| size.bytes.unsigned_abs()).sum();
    while !sizes.is_empty() {
        let rest = sizes.split_off(count_within::<E>(&sizes, CHUNK_BYTES).min(CHUNK_ROWS));
        let ids: Vec<i64> = sizes.iter().map(|size| size.id).collect();
        read_chunk(conn, &select, id, &ids, &mut readable).await?;
        sizes = rest;
    }
    Ok(readable)
}

async fn read_chunk<E: Bounded>(
    conn: &impl ConnectionTrait,
    select: &Select<E>,
    id: E::Column,
    ids: &[i64],
    readable: &mut ReadableRows<E::Model>,
) -> Result<(), StoreError> {
    let rows_of = |ids: &[i64]| select.clone().filter(id.is_in(ids.iter().copied())).all(conn);
    match rows_of(ids).await.map_err(StoreError::from) {
        Ok(rows) => {
            readable.rows.extend(rows);
            return Ok(());
        }
        Err(error) if !error.is_malformed() => return Err(error),
        Err(_) => {}
    }
    for chunk in ids.chunks(CHUNK) {
        match rows_of(chunk).await.map_err(StoreError::from) {
            Ok(rows) => {
                readable.rows.extend(rows);
                continue;
            }
            Err(error) if !error.is_malformed() => return Err(error),
            Err(_) => {}
        }
        for row_id in chunk {
            match rows_of(&[*row_id]).await.map_err(StoreError::from) {
                Ok(rows) => readable.rows.extend(rows),
                Err(error) if !error.is_malformed() => return Err(error),
                Err(_) => readable.malformed.push(*row_id),
            }
        }
    }
    Ok(())
}

/// A statement that names every column of a table and returns no row.
fn probe<E: EntityTrait>() -> (&'static str, String) {
    let columns: Vec<_> = E::Column::iter()
        .map(|column| format!("\"{}\"", column.as_str()))
        .collect();
    let table = E::default().table_name();
    (
        table,
        format!("SELECT {} FROM \"{table}\" WHERE 1 = 0", columns.join(", ")),
    )
}

impl AuditStore {
    /// Logs each malformed row of a table once.
    pub(super) fn report_malformed_rows(&self, table: &'static str, rows: &[i64]) {
        for row in rows {
            if self.watch.is_first_report_of(&format!("{table}.{row}")) {
                tracing::error!(
                    table,
                    row,
                    "a row of the audit database is malformed and left out: the likely cause is manual SQL; run \
                     `ledger-gateway audit verify`; remove the row if it was inserted, or restore it from a backup"
                );
            }
        }
    }

    /// Returns the tables that cannot be read now, each with the reason: the table or a column is missing, it is
    /// locked, or the role may not read it. Values are not read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn unreadable_tables(&self) -> Result<Vec<(&'static str, StoreError)>, StoreError> {
        let conn = &self.pools.reader;
        let probes = [
            probe::<chains::Entity>(),
            probe::<entries::Entity>(),
            probe::<checkpoints::Entity>(),
            probe::<discontinuities::Entity>(),
            probe::<anchors::Entity>(),
            probe::<hash_tiles::Entity>(),
        ];
        let mut unreadable = Vec::new();
        for (table, sql) in probes {
            if let Err(error) = conn.query_all_raw(self.pools.engine.statement(sql)).await {
                self.ping().await?;
                unreadable.push((table, error.into()));
            }
        }
        Ok(unreadable)
    }

    /// Returns the rows of `chains` that describe no chain.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn malformed_chains(&self) -> Result<Vec<MalformedChain>, StoreError> {
        use chains::Column as C;
        let conn = &self.pools.reader;
        let read = readable_rows(conn, all_chains(), MOST_CHAINS).await?;
        let mut malformed: Vec<_> = read
            .rows
            .iter()
            .filter(|row| chain_of(row).and_then(|_| head_of(row)).is_err())
            .map(|row| MalformedChain {
                id: row.id,
                shard: Some(ShardId(row.shard)),
            })
            .collect();
        for id in read.malformed {
            let shard = chains::Entity::find_by_id(id)
                .select_only()
                .column(C::Shard)
                .into_tuple();
            let shard: Option<uuid::Uuid> = match shard.one(conn).await.map_err(StoreError::from) {
                Ok(shard) => shard,
                Err(error) if error.is_malformed() => None,
                Err(error) => return Err(error),
            };
            malformed.push(MalformedChain {
                id,
                shard: shard.map(ShardId),
            });
        }
        Ok(malformed)
    }

    /// Returns the ids of entries whose number is not one of the sealed part of their chain: negative, at or beyond the
    /// stored end of the chain, or no number. The writer inserts an entry and moves the end in one transaction, so it
    /// did not write these rows.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn stray_entries(&self, chain: ChainId, limit: u64) -> Result<Vec<i64>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?.id;
        // One statement, so that the end is that of the moment of reading. SQLite sorts text and bytes after numbers.
        let is_stray = format!("(seq < 0 OR seq >= (SELECT c.size FROM chains c WHERE c.id = {chain}))");
        let ids = entries::Entity::find()
            .select_only()
            .column(entries::Column::Id)
            .filter(entries::Column::ChainId.eq(chain))
            .filter(Expr::cust(is_stray))
            .order_by_asc(entries::Column::Id)
            .limit(limit);
        Ok(ids.into_tuple().all(&self.pools.reader).await?)
    }

    /// Returns the chains with a stored anchor.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn anchored_chains(&self) -> Result<Vec<ChainId>, StoreError> {
        let ids = anchors::Entity::find()
            .select_only()
            .column(anchors::Column::ChainId)
            .distinct();
        let ids: Vec<i64> = ids.into_tuple().all(&self.pools.reader).await?;
        let rows = self.chain_rows().await?;
        let is_anchored = rows.iter().filter(|row| ids.contains(&row.id));
        Ok(is_anchored.filter_map(|row| chain_of(row).ok()).collect())
    }
}
