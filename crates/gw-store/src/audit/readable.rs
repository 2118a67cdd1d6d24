//! Reads that skip malformed rows. Otherwise a writer of the database could stop verification with one row.
//! Verification reports the skipped rows.

use super::store::{AuditStore, chain_of, chain_row, head_of};
use crate::{
    StoreError,
    entity::{anchors, chains, checkpoints, discontinuities, entries, hash_tiles},
};
use gw_audit::{ChainId, ShardId};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IdenStatic, Iterable, PrimaryKeyToColumn, QueryFilter, QueryOrder,
    QuerySelect, Select, sea_query::Expr,
};

/// Rows per query while the malformed rows are looked for.
const CHUNK: usize = 200;

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
    /// The ids of the rows with a value of a wrong type.
    pub(super) malformed: Vec<i64>,
}

/// Reads the rows of a query. Rows with a value of a wrong type are left out and listed by id.
pub(super) async fn readable_rows<E: EntityTrait>(
    conn: &impl ConnectionTrait,
    select: Select<E>,
) -> Result<ReadableRows<E::Model>, StoreError> {
    match select.clone().all(conn).await.map_err(StoreError::from) {
        Ok(rows) => {
            return Ok(ReadableRows {
                rows,
                malformed: Vec::new(),
            });
        }
        Err(error) if !error.is_malformed() => return Err(error),
        Err(_) => {}
    }
    let mut readable = ReadableRows {
        rows: Vec::new(),
        malformed: Vec::new(),
    };
    // Every table of the audit store has one key column, the row id, which holds a number in both engines.
    let Some(id) = E::PrimaryKey::iter().next().map(PrimaryKeyToColumn::into_column) else {
        return Ok(readable);
    };
    let ids: Vec<i64> = select.clone().select_only().column(id).into_tuple().all(conn).await?;
    for chunk in ids.chunks(CHUNK) {
        let of_chunk = select.clone().filter(id.is_in(chunk.iter().copied()));
        match of_chunk.all(conn).await.map_err(StoreError::from) {
            Ok(rows) => {
                readable.rows.extend(rows);
                continue;
            }
            Err(error) if !error.is_malformed() => return Err(error),
            Err(_) => {}
        }
        for row_id in chunk {
            match select
                .clone()
                .filter(id.eq(*row_id))
                .all(conn)
                .await
                .map_err(StoreError::from)
            {
                Ok(rows) => readable.rows.extend(rows),
                Err(error) if !error.is_malformed() => return Err(error),
                Err(_) => readable.malformed.push(*row_id),
            }
        }
    }
    Ok(readable)
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
        let read = readable_rows(conn, chains::Entity::find()).await?;
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
