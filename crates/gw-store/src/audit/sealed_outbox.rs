//! What the audit store holds of a policy store's outbox.

use super::{AuditStore, SealedRow, store::chain_row};
use crate::{StoreError, entity::entries};
use gw_audit::{AdminEntry, ChainId, Content, Kind, OutboxFault, Record, StoreId, StoredEntry};
use gw_types::Timestamp;
use sea_orm::{ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};
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
    /// Its number in the chain.
    pub(super) seq: i64,
    /// The policy store that the mutation changed; entries of before origins were recorded name none.
    pub store: Option<StoreId>,
    /// The id of its outbox row.
    pub id: Option<i64>,
}

impl AuditStore {
    /// The entries sealed under these outbox ids, below the end of their chain. Those that cannot be read are left out:
    /// verification finds them.
    pub async fn sealed_under(
        &self,
        store: StoreId,
        ids: &[i64],
        size: u64,
    ) -> Result<Vec<SealedAdminEntry>, StoreError> {
        let mut found = Vec::new();
        for ids in ids.chunks(10_000) {
            let rows = entries::Entity::find()
                .filter(of_store(store))
                .filter(entries::Column::OutboxId.is_in(ids.iter().copied()))
                .filter(entries::Column::Seq.lt(i64::try_from(size).unwrap_or(i64::MAX)));
            let rows = self.readable(rows).await?;
            found.extend(rows.into_iter().filter_map(sealed));
        }
        Ok(found)
    }

    /// The id in the newest entry of a store's outbox that a mutation wrote, or that stands for a gap.
    pub async fn newest_outbox_id(&self, chain: ChainId, store: StoreId) -> Result<Option<i64>, StoreError> {
        Ok(self
            .newest_mutation(chain, Some(store))
            .await?
            .and_then(|newest| newest.id))
    }

    /// The newest entry of a mutation, or of a gap, of one policy store or of any; read from what was hashed, never from the
    /// columns. Forged rows do not count: their ids were never given out.
    pub async fn newest_mutation(
        &self,
        chain: ChainId,
        store: Option<StoreId>,
    ) -> Result<Option<NewestMutation>, StoreError> {
        let chain = match chain_row(&self.pools.reader, chain, false).await {
            Ok(chain) => chain,
            Err(StoreError::NotFound(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        let mut below = i64::MAX;
        loop {
            let of = match store {
                Some(store) => of_store(store),
                None => Condition::all().add(entries::Column::Kind.eq(Kind::Admin.as_str())),
            };
            let rows = entries::Entity::find()
                .filter(entries::Column::ChainId.eq(chain.id))
                .filter(entries::Column::Seq.lt(below))
                .filter(of)
                .order_by_desc(entries::Column::Seq)
                .limit(NEWEST);
            let seqs = rows.clone().select_only().column(entries::Column::Seq).into_tuple();
            let seqs: Vec<i64> = seqs.all(&self.pools.reader).await?;
            let Some(last) = seqs.last().copied() else {
                return Ok(None);
            };
            for row in self.readable(rows).await? {
                let (column, seq) = (row.outbox_id, row.seq);
                let Some(entry) = admin_entry(row) else { continue };
                match entry.outbox_fault {
                    Some(OutboxFault::Unauthenticated | OutboxFault::Replaced) => {}
                    // Entries of before origins were recorded have the column only.
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
            below = last;
        }
    }

    /// How many different ids of a range were sealed.
    pub async fn count_sealed_ids(&self, store: StoreId, ids: &RangeInclusive<i64>) -> Result<u64, StoreError> {
        let rows = entries::Entity::find()
            .select_only()
            .column(entries::Column::OutboxId)
            .distinct()
            .filter(of_store(store))
            .filter(entries::Column::OutboxId.between(*ids.start(), *ids.end()));
        Ok(rows.count(&self.pools.reader).await?)
    }

    /// Which of these outbox rows, named by id and time, no entry of the chain was made of.
    pub async fn missing_ids(
        &self,
        chain: ChainId,
        store: StoreId,
        rows: &[(i64, Timestamp)],
    ) -> Result<Vec<i64>, StoreError> {
        let mut missing: HashSet<i64> = rows.iter().map(|(id, _)| *id).collect();
        for ids in rows.chunks(10_000) {
            let held: Vec<Option<i64>> = entries::Entity::find()
                .select_only()
                .column(entries::Column::OutboxId)
                .filter(of_store(store))
                .filter(entries::Column::OutboxId.is_in(ids.iter().map(|(id, _)| *id)))
                .into_tuple()
                .all(&self.pools.reader)
                .await?;
            for id in held.into_iter().flatten() {
                missing.remove(&id);
            }
        }
        // The column may say what the entry does not: before an entry counts as lost, the entries themselves are read,
        // back to the time of the row.
        let mut below = self.head(chain).await?.map_or(0, |head| head.size);
        while let Some(since) = rows
            .iter()
            .filter(|(id, _)| missing.contains(id))
            .map(|(_, at)| *at)
            .min()
        {
            let from = below.saturating_sub(PAGE);
            let page: Vec<_> = self
                .rows(chain, from, below - from)
                .await?
                .into_iter()
                .filter_map(stored)
                .collect();
            for id in page.iter().filter_map(|read| outbox_id(read, store)) {
                missing.remove(&id);
            }
            if from == 0 || page.first().is_some_and(|read| read.header.time < since) {
                break;
            }
            below = from;
        }
        Ok(rows
            .iter()
            .map(|(id, _)| *id)
            .filter(|id| missing.contains(id))
            .collect())
    }
}

/// Entries read at once in search of the newest sound one.
const NEWEST: u64 = 16;
/// Entries read at once on the way back.
const PAGE: u64 = 2000;

fn stored(row: SealedRow) -> Option<StoredEntry> {
    StoredEntry::new(row.bytes, row.openings).ok()
}

/// The outbox id that an entry of a store's mutation names.
fn outbox_id(stored: &StoredEntry, store: StoreId) -> Option<i64> {
    match stored.content().ok()? {
        Content::Record(Record::Admin(entry)) if entry.store_id == Some(store) => i64::try_from(entry.outbox_id?).ok(),
        Content::Record(_) | Content::Genesis(_) => None,
    }
}

/// Entries of one policy store's mutations; those of before origins were recorded count as of every store.
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
