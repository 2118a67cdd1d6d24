//! Checks that a row is unchanged since it was sealed, before it is shown (spec/70 section 7).
//!
//! Values are read from the hashed bytes. A row is shown only if its bytes produce the stored hash, name the chain and
//! sequence number of the row, match their openings, and agree with the row's columns. Any other row is shown as
//! tampered, without content. Verification checks whether the hash itself was signed.

use super::{
    columns::Columns,
    readable::{RowSize, row_sizes},
    store::AuditStore,
    watch::TamperedRead,
};
use crate::{
    StoreError,
    entity::entries,
    read::{Paging, Weigh, portion},
};
use gw_audit::{ChainId, Content, Hash, Header, Record, StoredEntry};
use gw_types::Timestamp;
use sea_orm::{ColumnTrait, QueryFilter, QuerySelect, Select};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A row of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRow<T> {
    /// A row that is as it was sealed.
    Entry(T),
    /// A row that was changed or cannot be read.
    Tampered(TamperedRow),
}

impl<T> LogRow<T> {
    /// Applies `read` to an entry; a tampered row stays tampered.
    pub(super) fn and_then<U>(self, read: impl FnOnce(T) -> LogRow<U>) -> LogRow<U> {
        match self {
            Self::Entry(entry) => read(entry),
            Self::Tampered(row) => LogRow::Tampered(row),
        }
    }

    /// Returns the entry; `None` if the row was tampered with.
    pub fn entry(self) -> Option<T> {
        match self {
            Self::Entry(entry) => Some(entry),
            Self::Tampered(_) => None,
        }
    }
}

/// What is known about a tampered row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TamperedRow {
    /// The row's id, which may also have been changed.
    pub id: i64,
    /// The hash of its bytes, if they could be read.
    pub hash: Option<Hash>,
    /// When the entry was made; only if its bytes still produce the stored hash.
    pub created_at: Option<Timestamp>,
}

/// A row as read from the database; an unreadable row has only its id.
#[derive(Debug)]
pub(super) enum RowCheck {
    Row(Box<entries::Model>),
    Unreadable(i64),
}

impl RowCheck {
    pub(super) fn row(&self) -> Option<&entries::Model> {
        match self {
            Self::Row(row) => Some(row),
            Self::Unreadable(_) => None,
        }
    }
}

/// The values of a row that is as it was sealed.
#[derive(Debug)]
pub(super) struct SoundRow {
    pub(super) id: i64,
    pub(super) outbox_id: Option<i64>,
    pub(super) header: Header,
    pub(super) hash: Hash,
    pub(super) record: Record,
}

impl AuditStore {
    /// Reads the rows of a page. A column value of a wrong type makes its own row unreadable, not the page.
    pub(super) async fn read_page(
        &self,
        select: Select<entries::Entity>,
        paging: Paging,
        budget: usize,
    ) -> Result<Vec<RowCheck>, StoreError> {
        let conn = &self.pools.reader;
        let sizes = row_sizes(conn, &select.clone().offset(paging.offset), paging.limit).await?;
        if !sizes.iter().any(RowSize::is_oversized::<entries::Entity>) {
            match portion(conn, select, paging, budget).await {
                Ok(rows) => return Ok(rows.into_iter().map(|row| RowCheck::Row(Box::new(row))).collect()),
                Err(error) if !error.is_malformed() => return Err(error),
                Err(_) => {}
            }
        }
        let (mut checks, mut bytes) = (Vec::with_capacity(sizes.len()), 0_usize);
        for size in sizes {
            let id = size.id;
            if size.is_oversized::<entries::Entity>() {
                checks.push(RowCheck::Unreadable(id));
                continue;
            }
            match entries::Entity::find_by_id(id)
                .one(conn)
                .await
                .map_err(StoreError::from)
            {
                Ok(Some(row)) => {
                    bytes = bytes.saturating_add(row.weight());
                    if bytes > budget && !checks.is_empty() {
                        break;
                    }
                    checks.push(RowCheck::Row(Box::new(row)));
                }
                // The row was pruned since its id was read.
                Ok(None) => {}
                Err(error) if !error.is_malformed() => return Err(error),
                Err(_) => checks.push(RowCheck::Unreadable(id)),
            }
        }
        Ok(checks)
    }

    /// Separates tampered rows from sound ones; keeps the order.
    pub(super) async fn check_rows(&self, checks: Vec<RowCheck>) -> Result<Vec<LogRow<SoundRow>>, StoreError> {
        let rows: Vec<_> = checks.iter().filter_map(RowCheck::row).collect();
        let misplaced = self.misplaced(&rows).await?;
        // A chain whose row is malformed has no sound entry.
        let chains = self.chains_by_id(rows.iter().map(|row| row.chain_id).collect()).await?;
        let check_row = |check| match check {
            RowCheck::Unreadable(id) => {
                self.watch.note_tampered(TamperedRead { chain: None, seq: None });
                LogRow::Tampered(TamperedRow {
                    id,
                    hash: None,
                    created_at: None,
                })
            }
            RowCheck::Row(row) => {
                let result = sound(&row, chains.get(&row.chain_id), misplaced.contains(&row.id));
                if let LogRow::Tampered(_) = &result {
                    let chain = chains.get(&row.chain_id).copied();
                    self.watch.note_tampered(TamperedRead {
                        chain,
                        seq: u64::try_from(row.seq).ok(),
                    });
                }
                result
            }
        };
        Ok(checks.into_iter().map(check_row).collect())
    }

    /// Returns the ids of rows whose id order contradicts their sequence numbers. Ids order the listing, and no hash
    /// covers them.
    async fn misplaced(&self, rows: &[&entries::Model]) -> Result<BTreeSet<i64>, StoreError> {
        let mut seqs_by_chain: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for row in rows {
            seqs_by_chain.entry(row.chain_id).or_default().extend([
                row.seq.saturating_sub(1),
                row.seq,
                row.seq.saturating_add(1),
            ]);
        }
        let mut ids: HashMap<(i64, i64), i64> = HashMap::new();
        for (chain, seqs) in seqs_by_chain {
            let seqs: Vec<_> = seqs.into_iter().collect();
            for chunk in seqs.chunks(1000) {
                let rows: Vec<(i64, i64)> = entries::Entity::find()
                    .select_only()
                    .column(entries::Column::Seq)
                    .column(entries::Column::Id)
                    .filter(entries::Column::ChainId.eq(chain))
                    .filter(entries::Column::Seq.is_in(chunk.iter().copied()))
                    .into_tuple()
                    .all(&self.pools.reader)
                    .await?;
                ids.extend(rows.into_iter().map(|(seq, id)| ((chain, seq), id)));
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

/// Whether this id is out of order, rather than the id before or after it.
fn is_misplaced(before: Option<i64>, id: i64, after: Option<i64>) -> bool {
    let in_order = before.is_none_or(|before| before < id) && after.is_none_or(|after| id < after);
    let neighbours_in_order = before.zip(after).is_none_or(|(before, after)| before < after);
    !in_order && neighbours_in_order
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
    let is_in_place =
        chain == Some(&header.chain) && header.chain.can_be() && i64::try_from(header.seq) == Ok(row.seq) && !misplaced;
    let agrees = is_in_place && Columns::from_entry(&entry).is_ok_and(|columns| columns.stand_in(row));
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
        let misplaced: Vec<_> = (0..ids.len())
            .map(|n| is_misplaced(n.checked_sub(1).and_then(at), ids[n], at(n + 1)))
            .collect();
        assert_eq!(misplaced, [false, true, false, false, true]);
        assert!(
            is_misplaced(None, 2, Some(1)) && is_misplaced(Some(2), 1, None),
            "two neighbours: both are in doubt"
        );
        assert!(!is_misplaced(Some(1), 2, Some(3)) && !is_misplaced(None, 2, None));
    }
}
