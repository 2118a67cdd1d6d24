//! Whether a row that is about to be shown is what was sealed (spec/70 section 7).
//!
//! What is shown is read from the hashed bytes. A row is shown only if its bytes make the stored hash, stand in the chain
//! and at the number under which they are stored, open what they committed to, and say what the columns say by which the
//! row was found. Any other row is shown as tampered and says nothing. Whether the hash itself was ever signed is for a
//! verification to say.

use super::{
    columns::Columns,
    store::{AuditStore, chain_of},
    watch::TamperedRead,
};
use crate::{
    StoreError,
    entity::{chains, entries},
    read::{Paging, Weigh, portion},
};
use gw_audit::{ChainId, Content, Hash, Header, Record, StoredEntry};
use gw_types::Timestamp;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, Select};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A row of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRow<T> {
    /// As it was sealed.
    Entry(T),
    /// Not as it was sealed, or not to be read.
    Tampered(TamperedRow),
}

impl<T> LogRow<T> {
    /// The same row, read further; what was tampered with stays so.
    pub(super) fn and_then<U>(self, read: impl FnOnce(T) -> LogRow<U>) -> LogRow<U> {
        match self {
            Self::Entry(entry) => read(entry),
            Self::Tampered(row) => LogRow::Tampered(row),
        }
    }

    /// The entry; `None` if the row was tampered with.
    pub fn entry(self) -> Option<T> {
        match self {
            Self::Entry(entry) => Some(entry),
            Self::Tampered(_) => None,
        }
    }
}

/// What can be said of a row that is not what was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TamperedRow {
    /// The row's id, which may have been changed, too.
    pub id: i64,
    /// The hash of its bytes, where they could be read.
    pub hash: Option<Hash>,
    /// When the entry was made; only where its bytes still make the stored hash.
    pub created_at: Option<Timestamp>,
}

/// A row as the database gave it: some cannot even be read as a row.
#[derive(Debug)]
pub(super) enum Found {
    Row(Box<entries::Model>),
    Unreadable(i64),
}

impl Found {
    fn row(&self) -> Option<&entries::Model> {
        match self {
            Self::Row(row) => Some(row),
            Self::Unreadable(_) => None,
        }
    }
}

/// What a row holds that is as it was sealed.
#[derive(Debug)]
pub(super) struct SoundRow {
    pub(super) id: i64,
    pub(super) outbox_id: Option<i64>,
    pub(super) header: Header,
    pub(super) hash: Hash,
    pub(super) record: Record,
}

impl AuditStore {
    /// The rows of a page. A value of a type that no row of ours has costs its own row, not the page.
    pub(super) async fn found(
        &self,
        select: Select<entries::Entity>,
        paging: Paging,
        budget: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let conn = &self.pools.reader;
        match portion(conn, select.clone(), paging, budget).await {
            Ok(rows) => return Ok(rows.into_iter().map(|row| Found::Row(Box::new(row))).collect()),
            Err(error) if !error.is_malformed() => return Err(error),
            Err(_) => {}
        }
        let ids = select
            .select_only()
            .column(entries::Column::Id)
            .limit(paging.limit)
            .offset(paging.offset);
        let ids: Vec<i64> = ids.into_tuple().all(conn).await?;
        let (mut found, mut bytes) = (Vec::with_capacity(ids.len()), 0_usize);
        for id in ids {
            match entries::Entity::find_by_id(id)
                .one(conn)
                .await
                .map_err(StoreError::from)
            {
                Ok(Some(row)) => {
                    bytes = bytes.saturating_add(row.weight());
                    if bytes > budget && !found.is_empty() {
                        break;
                    }
                    found.push(Found::Row(Box::new(row)));
                }
                // Pruned meanwhile.
                Ok(None) => {}
                Err(error) if !error.is_malformed() => return Err(error),
                Err(_) => found.push(Found::Unreadable(id)),
            }
        }
        Ok(found)
    }

    /// Tells the rows that are as they were sealed from the others; in the same order.
    pub(super) async fn judged(&self, found: Vec<Found>) -> Result<Vec<LogRow<SoundRow>>, StoreError> {
        let rows: Vec<_> = found.iter().filter_map(Found::row).collect();
        let misplaced = self.misplaced(&rows).await?;
        let chains = chains::Entity::find().all(&self.pools.reader).await?;
        // A chain whose row is malformed has no sound entry.
        let chains: HashMap<i64, ChainId> = chains
            .iter()
            .filter_map(|row| Some((row.id, chain_of(row).ok()?)))
            .collect();
        let judge = |found| match found {
            Found::Unreadable(id) => {
                self.watch.note_tampered(TamperedRead { chain: None, seq: None });
                LogRow::Tampered(TamperedRow {
                    id,
                    hash: None,
                    created_at: None,
                })
            }
            Found::Row(row) => {
                let judged = sound(&row, chains.get(&row.chain_id), misplaced.contains(&row.id));
                if let LogRow::Tampered(_) = &judged {
                    let chain = chains.get(&row.chain_id).copied();
                    self.watch.note_tampered(TamperedRead {
                        chain,
                        seq: u64::try_from(row.seq).ok(),
                    });
                }
                judged
            }
        };
        Ok(found.into_iter().map(judge).collect())
    }

    /// The rows whose ids do not grow with their numbers: ids order what is shown, and no hash covers them.
    async fn misplaced(&self, rows: &[&entries::Model]) -> Result<BTreeSet<i64>, StoreError> {
        let mut asked: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for row in rows {
            asked.entry(row.chain_id).or_default().extend([
                row.seq.saturating_sub(1),
                row.seq,
                row.seq.saturating_add(1),
            ]);
        }
        let mut ids: HashMap<(i64, i64), i64> = HashMap::new();
        for (chain, seqs) in asked {
            let seqs: Vec<_> = seqs.into_iter().collect();
            for some in seqs.chunks(1000) {
                let found: Vec<(i64, i64)> = entries::Entity::find()
                    .select_only()
                    .column(entries::Column::Seq)
                    .column(entries::Column::Id)
                    .filter(entries::Column::ChainId.eq(chain))
                    .filter(entries::Column::Seq.is_in(some.iter().copied()))
                    .into_tuple()
                    .all(&self.pools.reader)
                    .await?;
                ids.extend(found.into_iter().map(|(seq, id)| ((chain, seq), id)));
            }
        }
        let mut misplaced = BTreeSet::new();
        for row in rows {
            let before = ids.get(&(row.chain_id, row.seq.saturating_sub(1))).copied();
            let after = ids.get(&(row.chain_id, row.seq.saturating_add(1))).copied();
            if is_misplaced(before, row.id, after) {
                misplaced.insert(row.id);
            }
        }
        Ok(misplaced)
    }
}

/// Whether it is this id that is out of order, rather than the one before or after it.
fn is_misplaced(before: Option<i64>, id: i64, after: Option<i64>) -> bool {
    let in_order = before.is_none_or(|before| before < id) && after.is_none_or(|after| id < after);
    let without = before.zip(after).is_none_or(|(before, after)| before < after);
    !in_order && without
}

fn sound(row: &entries::Model, chain: Option<&ChainId>, misplaced: bool) -> LogRow<SoundRow> {
    let tampered = |hash, created_at| {
        LogRow::Tampered(TamperedRow {
            id: row.id,
            hash,
            created_at,
        })
    };
    let Ok(entry) = StoredEntry::new(row.bytes.clone(), row.openings.clone()) else {
        return tampered(None, None);
    };
    if entry.hash.as_slice() != row.hash {
        return tampered(Some(entry.hash), None);
    }
    let (header, hash) = (entry.header, entry.hash);
    let placed =
        chain == Some(&header.chain) && header.chain.can_be() && i64::try_from(header.seq) == Ok(row.seq) && !misplaced;
    let agrees = placed && Columns::of(&entry).is_ok_and(|columns| columns.stand_in(row));
    match entry.content() {
        Ok(Content::Record(record)) if agrees => LogRow::Entry(SoundRow {
            id: row.id,
            outbox_id: row.outbox_id,
            header,
            hash,
            record,
        }),
        _ => tampered(Some(hash), Some(header.time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rl10_the_id_that_moved_is_told_from_its_neighbours() {
        // 10 20 30 40 50, with 20 and 50 exchanged: 10 50 30 40 20.
        let ids = [10, 50, 30, 40, 20];
        let at = |n: usize| ids.get(n).copied();
        let found: Vec<_> = (0..ids.len())
            .map(|n| is_misplaced(n.checked_sub(1).and_then(at), ids[n], at(n + 1)))
            .collect();
        assert_eq!(found, [false, true, false, false, true]);
        assert!(
            is_misplaced(None, 2, Some(1)) && is_misplaced(Some(2), 1, None),
            "two neighbours: both are in doubt"
        );
        assert!(!is_misplaced(Some(1), 2, Some(3)) && !is_misplaced(None, 2, None));
    }
}
