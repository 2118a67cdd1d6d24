//! Rows of table `chains`: the chains of the store, their ends, and the numbers that their writers issued.

use super::{readable::readable_rows, store::AuditStore};
use crate::{Missing, StoreError, entity::chains};
use gw_audit::{ChainId, Hash, Head, ShardId, Stream};
use gw_types::Timestamp;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select, sea_query::Expr,
};
use std::collections::{BTreeSet, HashMap};

/// Most rows of `chains` that are read. Each start of an instance with an empty journal makes at most five.
pub(super) const MOST_CHAINS: u64 = 10_000;

impl AuditStore {
    /// Returns the end of a chain's sealed part; `None` if nothing is sealed.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn head(&self, chain: ChainId) -> Result<Option<Head>, StoreError> {
        match chain_row(&self.pools.reader, chain, false).await {
            Ok(row) => head_of(&row),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns every chain. A malformed row is logged and left out, so that the other chains can be read.
    /// [`AuditStore::malformed_chains`] names it.
    ///
    /// # Errors
    /// Any database error.
    pub async fn chains(&self) -> Result<Vec<(ChainId, Option<Head>)>, StoreError> {
        let rows = self.chain_rows().await?;
        let parse_row = |row: &chains::Model| Ok((chain_of(row)?, head_of(row)?));
        Ok(rows.iter().filter_map(|row| intact(row, parse_row(row))).collect())
    }

    /// Returns the rows of `chains`. A row with a value of a wrong type is logged once and left out.
    pub(super) async fn chain_rows(&self) -> Result<Vec<chains::Model>, StoreError> {
        let mut read = readable_rows(&self.pools.reader, all_chains(), MOST_CHAINS).await?;
        self.report_malformed_rows("chains", &read.malformed);
        if read.unread.is_some() && self.watch.is_first_report_of("chains") {
            tracing::error!(
                read = MOST_CHAINS,
                "table `chains` of the audit database has more rows than any deployment makes; the rest is not read: \
                 the likely cause is manual SQL; remove the rows that no instance wrote"
            );
        }
        read.rows.sort_by(|a, b| (&a.stream, a.id).cmp(&(&b.stream, b.id)));
        Ok(read.rows)
    }

    /// Returns the chains with these row ids; those of malformed rows are left out.
    pub(super) async fn chains_by_id(&self, ids: BTreeSet<i64>) -> Result<HashMap<i64, ChainId>, StoreError> {
        let select = chains::Entity::find().filter(chains::Column::Id.is_in(ids));
        let read = readable_rows(&self.pools.reader, select, MOST_CHAINS).await?;
        self.report_malformed_rows("chains", &read.malformed);
        let chain = |row: &chains::Model| Some((row.id, chain_of(row).ok()?));
        Ok(read.rows.iter().filter_map(chain).collect())
    }

    /// Returns the highest sequence number that a writer of the chain is known to have issued (HD25).
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn issued(&self, chain: ChainId) -> Result<Option<u64>, StoreError> {
        Ok(u64::try_from(chain_row(&self.pools.reader, chain, false).await?.issued).ok())
    }

    /// Sets the issued numbers of a chain back to its entries: its writer continues the missing records in another
    /// chain.
    ///
    /// # Errors
    /// Any database error.
    pub async fn settle_issued(&self, chain: ChainId) -> Result<(), StoreError> {
        chains::Entity::update_many()
            .col_expr(chains::Column::Issued, Expr::cust("size - 1"))
            .filter(chains::Column::Stream.eq(chain.stream.as_str()))
            .filter(chains::Column::Shard.eq(chain.shard.0))
            .exec(&self.pools.writer)
            .await?;
        Ok(())
    }
}

/// All rows of `chains`. Instances assign positive ids, so the rows of others come last.
pub(super) fn all_chains() -> Select<chains::Entity> {
    chains::Entity::find()
        .order_by_desc(chains::Column::Id.gt(0))
        .order_by_asc(chains::Column::Id)
}

/// The row of a chain, locked until the transaction ends if `lock` is set.
pub(super) async fn chain_row(
    conn: &impl ConnectionTrait,
    chain: ChainId,
    lock: bool,
) -> Result<chains::Model, StoreError> {
    let mut query = chains::Entity::find()
        .filter(chains::Column::Stream.eq(chain.stream.as_str()))
        .filter(chains::Column::Shard.eq(chain.shard.0));
    if lock {
        query = query.lock_exclusive();
    }
    query.one(conn).await?.ok_or(StoreError::NotFound(Missing::Chain))
}

/// Expression for the highest issued number, raised to at least `issued`; it never falls.
pub(super) fn raised(issued: u64) -> sea_orm::sea_query::SimpleExpr {
    let issued = signed(issued);
    Expr::case(chains::Column::Issued.lt(issued), issued)
        .finally(Expr::col(chains::Column::Issued))
        .into()
}

/// The chain that a row describes.
pub(super) fn chain_of(row: &chains::Model) -> Result<ChainId, StoreError> {
    let stream: Stream = row.stream.parse().map_err(|_| bad_chain(row, "stream"))?;
    Ok(ChainId {
        stream,
        shard: ShardId(row.shard),
    })
}

/// Returns the value read from a chain's row; logs a malformed row and returns `None`.
pub(super) fn intact<T>(row: &chains::Model, read: Result<T, StoreError>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            tracing::error!(
                row = row.id,
                shard = %row.shard,
                error = &error as &dyn core::error::Error,
                "a row of `chains` in the audit database is malformed, so this chain is not sealed; the other chains \
                 are: the likely cause is manual SQL; run `ledger-gateway audit verify`, and restore the row from a \
                 backup"
            );
            None
        }
    }
}

/// The end of the sealed part as a row has it; `None` if nothing is sealed.
pub(super) fn head_of(row: &chains::Model) -> Result<Option<Head>, StoreError> {
    let size = unsigned(row.size, "size")?;
    let hash = Hash::try_from(row.head_hash.as_slice()).map_err(|_| bad_chain(row, "head_hash"))?;
    Ok((size > 0).then_some(Head {
        size,
        hash,
        time: Timestamp::from_micros(row.head_time),
    }))
}

/// The error of a row of `chains` that has a malformed value.
fn bad_chain(row: &chains::Model, column: &'static str) -> StoreError {
    StoreError::Row {
        table: "chains",
        column,
        id: row.id.to_string(),
    }
}

/// The column value of a number to read from; `None` if no row can have this number or a higher one. Reading from the
/// highest number instead would return its row again and again.
pub(super) fn column_value(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

/// A number as a column value; one that no column can hold becomes the highest.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column value as a number; a negative one is malformed.
pub(super) fn unsigned(number: i64, column: &'static str) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| StoreError::Row {
        table: "chains",
        column,
        id: number.to_string(),
    })
}
