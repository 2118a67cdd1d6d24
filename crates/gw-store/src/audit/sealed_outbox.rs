//! Reads what the audit store contains of a policy store's outbox.

use super::{AuditStore, SealedRow, chain_rows::chain_row, readable::readable_rows};
use crate::{StoreError, entity::entries};
use gw_audit::{AdminEntry, ChainId, Content, Kind, OutboxFault, Record, StoreId, StoredEntry};
use gw_types::Timestamp;
use sea_orm::{ColumnTrait, Condition, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
use std::{collections::HashSet, ops::RangeInclusive};

/// A sealed entry of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedAdminEntry {
    /// The id of its outbox row.
    pub id: i64,
    /// The time in the entry.
    pub time: Timestamp,
    /// The entry.
    pub entry: AdminEntry,
}

/// The newest sealed entry of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestMutation {
    /// Its sequence number in the chain.
    pub(super) seq: i64,
    /// The policy store that the mutation changed; `None` in entries older than this field.
    pub store: Option<StoreId>,
    /// The id of its outbox row.
    pub id: Option<i64>,
}

impl AuditStore {
    /// Returns the entries sealed with these outbox ids, below the end of their chain. Unreadable entries are left out:
    /// verification reports them.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn sealed_under(
        &self,
        store: StoreId,
        ids: &[i64],
        size: u64,
    ) -> Result<Vec<SealedAdminEntry>, StoreError> {
        let mut sealed_entries = Vec::new();
        for ids in ids.chunks(10_000) {
            let rows = entries::Entity::find()
                .filter(of_store(store))
                .filter(entries::Column::OutboxId.is_in(ids.iter().copied()))
                .filter(entries::Column::Seq.lt(i64::try_from(size).unwrap_or(i64::MAX)));
            let rows = self.readable(rows).await?;
            sealed_entries.extend(rows.into_iter().filter_map(sealed));
        }
        Ok(sealed_entries)
    }

    /// Returns the outbox id in a store's newest entry that a mutation wrote or that reports a gap.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn newest_outbox_id(&self, chain: ChainId, store: StoreId) -> Result<Option<i64>, StoreError> {
        Ok(self
            .newest_mutation(chain, Some(store))
            .await?
            .and_then(|newest| newest.id))
    }

    /// Returns the newest entry of a mutation or a gap, of one policy store or of any. The id comes from the hashed
    /// bytes, or from the column for entries that do not contain it. Forged rows do not count: their ids were never
    /// issued.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn newest_mutation(
        &self,
        chain: ChainId,
        store: Option<StoreId>,
    ) -> Result<Option<NewestMutation>, StoreError> {
        let chain = match chain_row(&self.pools.reader, chain, false).await {
            Ok(chain) => chain,
            Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut end = i64::MAX;
        loop {
            let in_store = match store {
                Some(store) => of_store(store),
                None => Condition::all().add(entries::Column::Kind.eq(Kind::Admin.as_str())),
            };
            let rows = entries::Entity::find()
                .filter(entries::Column::ChainId.eq(chain.id))
                .filter(entries::Column::Seq.lt(end))
                .filter(in_store)
                .order_by_desc(entries::Column::Seq);
            let seqs = rows
                .clone()
                .limit(NEWEST)
                .select_only()
                .column(entries::Column::Seq)
                .into_tuple();
            let seqs: Vec<i64> = seqs.all(&self.pools.reader).await?;
            let Some(last) = seqs.last().copied() else {
                return Ok(None);
            };
            for row in readable_rows(&self.pools.reader, rows, NEWEST).await?.rows {
                let (column, seq) = (row.outbox_id, row.seq);
                let Some(entry) = admin_entry(row) else { continue };
                match entry.outbox_fault {
                    Some(OutboxFault::Unauthenticated | OutboxFault::Replaced) => {}
                    // Older entries do not contain the outbox id: only the column has it.
                    None | Some(OutboxFault::IdReused | OutboxFault::Missing) => {
                        let id = entry.outbox_id.map_or(column, |id| i64::try_from(id).ok());
                        return Ok(Some(NewestMutation {
                            seq,
                            store: entry.store_id,
                            id,
                        }));
                    }
                }
            }
            end = last;
        }
    }

    /// Counts the distinct ids of a range that were sealed.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn count_sealed_ids(&self, store: StoreId, ids: &RangeInclusive<i64>) -> Result<u64, StoreError> {
        let rows = entries::Entity::find()
            .select_only()
            .column(entries::Column::OutboxId)
            .distinct()
            .filter(of_store(store))
            .filter(entries::Column::OutboxId.between(*ids.start(), *ids.end()));
        Ok(rows.count(&self.pools.reader).await?)
    }

    /// Returns those of the given outbox rows (id and time) that have no entry in the chain.
    ///
    /// # Errors
    /// [`StoreError::Row`] if a stored row is malformed; any database error.
    pub async fn missing_ids(
        &self,
        chain: ChainId,
        store: StoreId,
        rows: &[(i64, Timestamp)],
    ) -> Result<Vec<i64>, StoreError> {
        let mut missing: HashSet<i64> = rows.iter().map(|(id, _)| *id).collect();
        for ids in rows.chunks(10_000) {
            let sealed_ids: Vec<Option<i64>> = entries::Entity::find()
                .select_only()
                .column(entries::Column::OutboxId)
                .filter(of_store(store))
                .filter(entries::Column::OutboxId.is_in(ids.iter().map(|(id, _)| *id)))
                .into_tuple()
                .all(&self.pools.reader)
                .await?;
            for id in sealed_ids.into_iter().flatten() {
                missing.remove(&id);
            }
        }
        // The column may differ from the entry: before a row counts as lost, the entries themselves are read, back to
        // the time of the row.
        let mut end = self.head(chain).await?.map_or(0, |head| head.size);
        while let Some(since) = rows
            .iter()
            .filter(|(id, _)| missing.contains(id))
            .map(|(_, at)| *at)
            .min()
        {
            let from = end.saturating_sub(PAGE);
            let (mut page, mut next) = (Vec::new(), from);
            while next < end {
                let rows = self.rows(chain, next, end - next).await?;
                let Some(last) = rows.last() else { break };
                next = last.seq.saturating_add(1);
                page.extend(rows.into_iter().filter_map(stored));
            }
            for id in page.iter().filter_map(|entry| outbox_id(entry, store)) {
                missing.remove(&id);
            }
            if from == 0 || page.first().is_some_and(|entry| entry.header.time < since) {
                break;
            }
            end = from;
        }
        Ok(rows
            .iter()
            .map(|(id, _)| *id)
            .filter(|id| missing.contains(id))
            .collect())
    }
}

/// Entries per query in the search for the newest sound one.
const NEWEST: u64 = 16;
/// Entries per query when reading backwards.
const PAGE: u64 = 2000;

fn stored(row: SealedRow) -> Option<StoredEntry> {
    StoredEntry::new(row.bytes, row.openings).ok()
}

/// Returns the outbox id in an entry of the store's mutations.
fn outbox_id(stored: &StoredEntry, store: StoreId) -> Option<i64> {
    match stored.content().ok()? {
        Content::Record(Record::Admin(entry)) if entry.store_id == Some(store) => i64::try_from(entry.outbox_id?).ok(),
        Content::Record(_) | Content::Genesis(_) => None,
    }
}

/// Condition for entries of one policy store's mutations; older entries without a store id match every store.
fn of_store(store: StoreId) -> Condition {
    use entries::Column as C;
    let store = Condition::any().add(C::StoreId.eq(store.0)).add(C::StoreId.is_null());
    Condition::all()
        .add(C::Kind.eq(Kind::Admin.as_str()))
        .add(C::OutboxId.is_not_null())
        .add(store)
}

fn sealed(row: entries::Model) -> Option<SealedAdminEntry> {
    let id = row.outbox_id?;
    let time = StoredEntry::new(row.bytes.clone(), row.openings.clone())
        .ok()?
        .header
        .time;
    admin_entry(row).map(|entry| SealedAdminEntry { id, time, entry })
}

pub(super) fn admin_entry(row: entries::Model) -> Option<AdminEntry> {
    match StoredEntry::new(row.bytes, row.openings).ok()?.content().ok()? {
        Content::Record(Record::Admin(entry)) => Some(entry),
        Content::Record(_) | Content::Genesis(_) => None,
    }
}
