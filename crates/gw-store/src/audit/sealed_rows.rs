//! Reads sealed entries of a chain, also those that cannot be read as a whole.

use super::{
    chain_rows::{chain_row, column_value, unsigned},
    columns::Columns,
    readable::{CHUNK_BYTES, count_within, readable_rows, row_sizes},
    store::AuditStore,
};
use crate::{
    StoreError, dialect,
    entity::{bounds, entries},
};
use gw_audit::{ChainId, Hash, Header, OrgHead, StoredEntry};
use gw_types::OrgId;
use sea_orm::{
    ColumnTrait, QueryFilter, QueryOrder, QuerySelect, Select,
    sea_query::{Expr, Query},
};
use std::collections::BTreeSet;

/// Most entries that one query returns.
const MOST_ENTRIES: u64 = 1_000_000;

/// A sealed entry as stored.
#[derive(Clone, Debug)]
pub struct SealedRow {
    /// The row's id; within a chain ids grow with sequence numbers.
    pub id: i64,
    /// The sequence number of the row.
    pub seq: u64,
    /// The stored hash; zero if none can be read.
    pub hash: Hash,
    /// Whether the row has a readable hash.
    pub hash_readable: bool,
    /// The entry.
    pub bytes: Vec<u8>,
    /// The openings stored next to the entry.
    pub openings: Vec<u8>,
    /// Whether the query columns agree with the entry.
    pub columns_agree: bool,
}

/// Id, sequence number, hash, bytes and openings of an entry.
type RawRow = (i64, i64, Vec<u8>, Vec<u8>, Vec<u8>);

impl AuditStore {
    /// Returns the sealed entries of a chain from a sequence number on, in order: at least one if there is any, and
    /// fewer than `limit` if they are long. An entry with unreadable columns is included with its bytes and
    /// `columns_agree: false`; a value over its limit reads as no bytes.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn rows(&self, chain: ChainId, from: u64, limit: u64) -> Result<Vec<SealedRow>, StoreError> {
        let Some(from) = column_value(from) else {
            return Ok(Vec::new());
        };
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let select = entries::Entity::find()
            .filter(entries::Column::ChainId.eq(chain.id))
            .filter(entries::Column::Seq.gte(from))
            .order_by_asc(entries::Column::Seq);
        let mut sizes = row_sizes(&self.pools.reader, &select, limit).await?;
        sizes.truncate(count_within::<entries::Entity>(&sizes, CHUNK_BYTES));
        let select = select.limit(u64::try_from(sizes.len()).unwrap_or(limit));
        let oversized: BTreeSet<i64> = sizes
            .iter()
            .filter(|size| size.is_oversized::<entries::Entity>())
            .map(|size| size.id)
            .collect();
        if !oversized.is_empty() {
            return self.malformed_rows(select, &oversized).await;
        }
        match select.clone().all(&self.pools.reader).await.map_err(StoreError::from) {
            Ok(rows) => rows.into_iter().map(sealed_row).collect(),
            Err(error) if error.is_malformed() => self.malformed_rows(select, &oversized).await,
            Err(error) => Err(error),
        }
    }

    /// Like [`rows`](Self::rows), for a range in which a column has a value of a wrong type or over its limit.
    async fn malformed_rows(
        &self,
        select: Select<entries::Entity>,
        oversized: &BTreeSet<i64>,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let conn = &self.pools.reader;
        let raw = select
            .select_only()
            .columns([entries::Column::Id, entries::Column::Seq])
            .column_as(dialect::as_bytes(conn, "hash", bounds::HASH), "hash")
            .column_as(dialect::as_bytes(conn, "bytes", bounds::ENTRY), "bytes")
            .column_as(dialect::as_bytes(conn, "openings", bounds::ENTRY), "openings")
            // A row without a valid sequence number appears as a gap.
            .filter(dialect::is_number(conn, "seq"));
        let raw: Vec<RawRow> = raw.into_tuple().all(conn).await?;
        let mut rows = Vec::with_capacity(raw.len());
        for (id, seq, hash, bytes, openings) in raw {
            let read = if oversized.contains(&id) {
                Err(malformed_entry(id))
            } else {
                entries::Entity::find_by_id(id)
                    .one(conn)
                    .await
                    .map_err(StoreError::from)
            };
            rows.push(match read {
                Ok(Some(row)) => sealed_row(row)?,
                // The row was pruned since its id was read.
                Ok(None) => continue,
                Err(error) if error.is_about_row() => {
                    tracing::error!(
                        row = id,
                        entry = seq,
                        "a row of `entries` in the audit database is malformed: the likely cause is manual SQL; run \
                         `ledger-gateway audit verify` to find its chain, and restore the row from a backup"
                    );
                    let hash = Hash::try_from(hash.as_slice()).ok();
                    SealedRow {
                        id,
                        seq: unsigned(seq, "seq")?,
                        hash: hash.unwrap_or(Hash::ZERO),
                        hash_readable: hash.is_some(),
                        bytes,
                        openings,
                        columns_agree: false,
                    }
                }
                Err(error) => return Err(error),
            });
        }
        Ok(rows)
    }

    /// Returns the readable rows; verification reports the others.
    ///
    /// # Errors
    /// [`StoreError::Row`] if there are more rows than can be read at once; any database error.
    pub(super) async fn readable(&self, select: Select<entries::Entity>) -> Result<Vec<entries::Model>, StoreError> {
        let read = readable_rows(&self.pools.reader, select, MOST_ENTRIES).await?;
        match read.unread {
            Some(unread) => Err(malformed_entry(unread)),
            None => Ok(read.rows),
        }
    }

    /// Returns the last entry of each organization in a chain, including pruned ones; new entries continue from them.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn org_heads(&self, chain: ChainId) -> Result<Vec<(OrgId, OrgHead)>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let newest = Query::select()
            .expr(entries::Column::Seq.max())
            .from(entries::Entity)
            .and_where(entries::Column::ChainId.eq(chain.id))
            // Verification reports rows at and beyond the end of the chain.
            .and_where(entries::Column::Seq.lt(chain.size))
            .and_where(entries::Column::OrgId.is_not_null())
            .add_group_by([Expr::col(entries::Column::OrgId)])
            .take();
        // Reads no other column: an unreadable one must not stop the chain.
        let rows: Vec<(i64, Vec<u8>, Vec<u8>)> = entries::Entity::find()
            .select_only()
            .column(entries::Column::Id)
            .expr_as(bounds::value::<entries::Entity>(entries::Column::Bytes), "bytes")
            .expr_as(bounds::value::<entries::Entity>(entries::Column::Hash), "hash")
            .filter(entries::Column::ChainId.eq(chain.id))
            .filter(entries::Column::Seq.in_subquery(newest))
            .into_tuple()
            .all(&self.pools.reader)
            .await?;
        let mut heads = Vec::with_capacity(rows.len());
        for (id, bytes, hash) in rows {
            let bad = |column| StoreError::Row {
                table: "entries",
                column,
                id: id.to_string(),
            };
            let (header, _) = Header::read(&bytes).map_err(|_| bad("bytes"))?;
            let org = header.org.ok_or_else(|| bad("org_id"))?;
            let hash = Hash::try_from(hash.as_slice()).map_err(|_| bad("hash"))?;
            heads.push((
                org.id,
                OrgHead {
                    size: org.seq.saturating_add(1),
                    hash,
                },
            ));
        }
        for (org, head) in self.pruned_orgs(chain.id).await? {
            if !heads.iter().any(|(listed, _)| *listed == org) {
                heads.push((org, head));
            }
        }
        Ok(heads)
    }
}

/// The error of an entry that cannot be read.
fn malformed_entry(id: i64) -> StoreError {
    StoreError::Row {
        table: "entries",
        column: "bytes",
        id: id.to_string(),
    }
}

/// A row of `entries`, compared with its columns.
fn sealed_row(row: entries::Model) -> Result<SealedRow, StoreError> {
    // The verifier reports an unreadable row; reading it must not fail.
    let hash = Hash::try_from(row.hash.as_slice()).ok();
    let entry = StoredEntry::new(row.bytes.clone(), row.openings.clone());
    let columns = entry.and_then(|entry| Columns::from_entry(&entry));
    let columns_agree = columns.is_ok_and(|columns| columns.stand_in(&row));
    Ok(SealedRow {
        id: row.id,
        seq: unsigned(row.seq, "seq")?,
        hash: hash.unwrap_or(Hash::ZERO),
        hash_readable: hash.is_some(),
        bytes: row.bytes,
        openings: row.openings,
        columns_agree,
    })
}
