//! Stored anchors: one describes the entries that were pruned from the start of a chain (spec/70 rules 23 and 24).

use super::{
    chain_rows::{chain_row, signed, unsigned},
    readable::{MOST_ROWS, readable_rows},
    store::AuditStore,
};
use crate::{
    StoreError,
    entity::{anchors, checkpoints, entries, hash_tiles},
    record::{PruneReason, PruneRecord},
};
use gw_audit::{Anchor, ChainId, Content, Kind, OrgHead, Record, ResourceType, StoredEntry};
use gw_types::{OrgId, Timestamp};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use serde_json::Value;

/// The newest stored anchor of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnchor {
    /// The encoded anchor; [`Anchor::open`] opens it.
    pub bytes: Vec<u8>,
    /// Its signature.
    pub note: String,
    /// Number of pruned entries, from the row's column.
    pub size: u64,
}

/// An anchor and its row's columns, for verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorRow {
    /// The anchor and its signature.
    pub stored: StoredAnchor,
    /// Whether the columns hold values that a prune writes, and continue where the previous anchor ends.
    pub columns_agree: bool,
    /// Whether the sealed entry about the prune agrees with the columns; `None` if there is no such entry.
    pub entry_agrees: Option<bool>,
    /// Whether the columns say that an audit entry about the prune exists.
    pub is_logged: bool,
    /// Time of the prune, from the column.
    pub created_at: Timestamp,
}

impl AuditStore {
    /// Returns the newest anchor of a chain; `None` if nothing was pruned.
    ///
    /// # Errors
    /// If the database fails or the chain does not exist.
    pub async fn anchor(&self, chain: ChainId) -> Result<Option<StoredAnchor>, StoreError> {
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let Some(row) = newest_anchor(&self.pools.reader, chain.id).await? else {
            return Ok(None);
        };
        Ok(Some(StoredAnchor {
            size: unsigned(row.size, "size")?,
            bytes: row.bytes,
            note: row.note,
        }))
    }

    /// Returns the last pruned entry of each organization of a chain, from the newest anchor that can be decoded; the
    /// signature is not checked. A malformed anchor is logged and skipped, so that sealing continues; verification
    /// reports it.
    ///
    /// # Errors
    /// If the database fails.
    pub(super) async fn pruned_orgs(&self, chain: i64) -> Result<Vec<(OrgId, OrgHead)>, StoreError> {
        let rows = anchors::Entity::find().filter(anchors::Column::ChainId.eq(chain));
        let read = readable_rows(&self.pools.reader, rows.order_by_desc(anchors::Column::Size), MOST_ROWS).await?;
        self.report_malformed_rows("anchors", &read.malformed);
        for row in read.rows {
            match Anchor::decode(&row.bytes) {
                Ok(anchor) => return Ok(anchor.orgs),
                Err(_) => self.report_malformed(&row),
            }
        }
        Ok(Vec::new())
    }

    fn report_malformed(&self, row: &anchors::Model) {
        if self.watch.is_first_report_of("anchors") {
            tracing::error!(
                row = row.id,
                "a row of `anchors` in the audit database is malformed: the likely cause is manual SQL; run \
                 `ledger-gateway audit verify`, and restore the row from a backup"
            );
        }
    }

    /// Returns every anchor of a chain with its row's columns, oldest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn anchor_rows(&self, chain: ChainId) -> Result<Vec<AnchorRow>, StoreError> {
        let id = chain_row(&self.pools.reader, chain, false).await?.id;
        let rows = anchors::Entity::find().filter(anchors::Column::ChainId.eq(id));
        let read = readable_rows(&self.pools.reader, rows.order_by_asc(anchors::Column::Size), MOST_ROWS).await?;
        if let Some(malformed) = read.malformed.first().or(read.unread.as_ref()) {
            return Err(StoreError::Row {
                table: "anchors",
                column: "bytes",
                id: malformed.to_string(),
            });
        }
        let rows = read.rows;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let prunes = self.sealed_prunes(chain).await?;
        let lowest_id: Option<i64> = entries::Entity::find()
            .select_only()
            .column(entries::Column::Id)
            .filter(entries::Column::ChainId.eq(id))
            .order_by_asc(entries::Column::Seq)
            .into_tuple()
            .one(&self.pools.reader)
            .await?;
        let mut anchor_rows = Vec::with_capacity(rows.len());
        let (mut size, mut highest) = (0, i64::MIN);
        for row in rows {
            let covered = checkpoints::Entity::find()
                .filter(checkpoints::Column::ChainId.eq(id))
                .filter(checkpoints::Column::Size.eq(row.checkpoint_size))
                .one(&self.pools.reader)
                .await?;
            // Ids grow with sequence numbers, and no two entries share an id.
            let ids = row.lowest_id > highest
                && row.highest_id.saturating_sub(row.lowest_id)
                    >= row.size.saturating_sub(row.first_seq).saturating_sub(1)
                && lowest_id.is_none_or(|id| row.highest_id < id);
            let columns_agree =
                ids && is_bound(&row) && row.first_seq == size && row.checkpoint_size >= row.size && covered.is_some();
            let entry = prunes.iter().find(|entry| is_about(entry, &row));
            let entry_agrees = entry.map(|entry| prune_record(&row).is_ok_and(|record| record.matches_image(entry)));
            (size, highest) = (row.size, row.highest_id);
            anchor_rows.push(AnchorRow {
                columns_agree,
                entry_agrees,
                is_logged: row.logged,
                created_at: Timestamp::from_micros(row.created_at),
                stored: StoredAnchor {
                    size: unsigned(row.size, "size")?,
                    bytes: row.bytes,
                    note: row.note,
                },
            });
        }
        Ok(anchor_rows)
    }

    /// Returns the `new_value` of the sealed entries about prunes of a chain.
    async fn sealed_prunes(&self, chain: ChainId) -> Result<Vec<Value>, StoreError> {
        let rows = entries::Entity::find()
            .filter(entries::Column::Kind.eq(Kind::Admin.as_str()))
            .filter(entries::Column::ResourceType.eq(ResourceType::Audit.as_str()))
            .filter(entries::Column::ResourceId.eq(chain.to_string()));
        let rows = self.readable(rows).await?;
        let prune = |row: entries::Model| match StoredEntry::new(row.bytes, row.openings).ok()?.content().ok()? {
            Content::Record(Record::Admin(entry)) => serde_json::from_str(&entry.new_value?).ok(),
            Content::Record(_) | Content::Genesis(_) => None,
        };
        Ok(rows.into_iter().filter_map(prune).collect())
    }

    /// Returns whether the stored tiles hold one hash for each of the `pruned` entries, without gaps.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn keeps_hashes_of(&self, chain: ChainId, pruned: u64) -> Result<bool, StoreError> {
        use hash_tiles::Column as C;
        let chain = chain_row(&self.pools.reader, chain, false).await?;
        let tiles: Vec<(i64, i64)> = hash_tiles::Entity::find()
            .select_only()
            .column(C::Tile)
            .expr_as(Expr::cust("CAST(length(hashes) AS bigint)"), "length")
            .filter(C::ChainId.eq(chain.id))
            .order_by_asc(C::Tile)
            .into_tuple()
            .all(&self.pools.reader)
            .await?;
        let due = (0..pruned.div_ceil(TILE)).map(|tile| {
            let hashes = (pruned - tile * TILE).min(TILE);
            (signed(tile), signed(hashes.saturating_mul(HASH as u64)))
        });
        Ok(tiles.into_iter().eq(due))
    }

    /// Returns prunes that have no audit entry yet, oldest first. Malformed rows are logged and skipped.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn unlogged_prunes(&self) -> Result<Vec<PruneRecord>, StoreError> {
        let rows = anchors::Entity::find()
            .filter(anchors::Column::Logged.eq(false))
            .order_by_asc(anchors::Column::Id);
        let read = readable_rows(&self.pools.reader, rows, MOST_ROWS).await?;
        self.report_malformed_rows("anchors", &read.malformed);
        let record = |row: &anchors::Model| prune_record(row).inspect_err(|_| self.report_malformed(row)).ok();
        Ok(read.rows.iter().filter_map(record).collect())
    }

    /// Marks a prune as having an audit entry.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn mark_prune_logged(&self, prune: &PruneRecord) -> Result<(), StoreError> {
        anchors::Entity::update_many()
            .col_expr(anchors::Column::Logged, Expr::value(true))
            .filter(anchors::Column::Id.eq(prune.anchor))
            .exec(&self.pools.writer)
            .await?;
        Ok(())
    }
}

/// Hashes per row of `hash_tiles` (tlog-tiles, height 8).
pub(super) const TILE: u64 = 256;
pub(super) const HASH: usize = 32;

pub(super) async fn newest_anchor(
    conn: &impl ConnectionTrait,
    chain: i64,
) -> Result<Option<anchors::Model>, StoreError> {
    let newest = anchors::Entity::find().filter(anchors::Column::ChainId.eq(chain));
    Ok(newest.order_by_desc(anchors::Column::Size).one(conn).await?)
}

fn prune_record(row: &anchors::Model) -> Result<PruneRecord, StoreError> {
    let bad = |column| StoreError::Row {
        table: "anchors",
        column,
        id: row.id.to_string(),
    };
    let anchor = Anchor::decode(&row.bytes).map_err(|_| bad("bytes"))?;
    let reason = prune_reason(&row.reason);
    Ok(PruneRecord {
        anchor: row.id,
        chain: anchor.chain,
        reason: reason.ok_or_else(|| bad("reason"))?,
        bound: row.bound.clone(),
        first_seq: unsigned(row.first_seq, "first_seq")?,
        size: anchor.head.size,
        lowest_id: row.lowest_id,
        highest_id: row.highest_id,
        anchor_hash: anchor.head.hash,
        cutoff: anchor.head.time,
    })
}

/// Whether the row has a known reason and a bound in the format of that reason.
fn is_bound(row: &anchors::Model) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match prune_reason(&row.reason) {
        Some(PruneReason::Ttl) => row.bound.strip_suffix('h').is_some_and(digits),
        Some(PruneReason::Fifo) => digits(&row.bound),
        None => false,
    }
}

fn prune_reason(text: &str) -> Option<PruneReason> {
    [PruneReason::Ttl, PruneReason::Fifo]
        .into_iter()
        .find(|reason| reason.as_str() == text)
}

/// Whether the entry is about the prune that produced this anchor.
fn is_about(entry: &Value, row: &anchors::Model) -> bool {
    let Ok(anchor) = Anchor::decode(&row.bytes) else {
        return false;
    };
    entry.get("new_anchor_hash").and_then(Value::as_str) == Some(anchor.head.hash.to_string().as_str())
}
