//! Which transaction a transfer, frame or log belongs to.

use crate::rows::RowId;
use roaring::RoaringTreemap;
use std::ops::Range;

/// Above this share of all transactions, one pass over all of them costs less than a look-up for each.
const MERGE_SHARE: u64 = 64;

/// The transactions that have rows in one space, and the first row of each. Both sets have the same size, so the n-th
/// transaction owns the rows from the n-th first row on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowOwners {
    owners: RoaringTreemap,
    first_rows: RoaringTreemap,
}

impl RowOwners {
    /// Notes that rows from `first_row` on belong to `transaction`, which has no rows yet.
    pub(crate) fn push(&mut self, transaction: u64, first_row: u64) {
        self.owners.insert(transaction);
        self.first_rows.insert(first_row);
    }

    /// About how many bytes of memory it takes besides itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.owners.serialized_size() + self.first_rows.serialized_size()
    }

    /// Removes transactions and rows from these ids on.
    pub(crate) fn truncate(&mut self, transactions: u64, rows: u64) {
        self.owners.remove_range(transactions..);
        self.first_rows.remove_range(rows..);
    }

    /// The transaction of a row; `None` if no transaction has rows before it.
    pub(crate) fn owner(&self, row: RowId) -> Option<RowId> {
        let rank = self.first_rows.rank(row.0);
        self.owners.select(rank.checked_sub(1)?).map(RowId)
    }

    /// The rows of a transaction, when the space has `end` rows in all.
    pub(crate) fn rows(&self, transaction: RowId, end: u64) -> Range<u64> {
        if !self.owners.contains(transaction.0) {
            return 0..0;
        }
        let position = self.owners.rank(transaction.0);
        let first = position
            .checked_sub(1)
            .and_then(|position| self.first_rows.select(position));
        let Some(first) = first else { return 0..0 };
        first..self.first_rows.select(position).unwrap_or(end)
    }

    /// All rows of these transactions, when the space has `end` rows in all.
    pub(crate) fn rows_of(&self, transactions: &RoaringTreemap, end: u64) -> RoaringTreemap {
        let mut rows = RoaringTreemap::new();
        let owners = transactions & &self.owners;
        if owners.len() < self.owners.len() / MERGE_SHARE {
            for transaction in &owners {
                rows.insert_range(self.rows(RowId(transaction), end));
            }
            return rows;
        }
        let ends = self.first_rows.iter().skip(1).chain(std::iter::once(end));
        for ((owner, first), end) in self.owners.iter().zip(&self.first_rows).zip(ends) {
            if owners.contains(owner) {
                rows.insert_range(first..end);
            }
        }
        rows
    }

    /// The transactions of these rows, when the space has `end` rows in all.
    pub(crate) fn owners_of(&self, rows: &RoaringTreemap, end: u64) -> RoaringTreemap {
        if rows.len() < self.owners.len() / MERGE_SHARE {
            let owners = rows.iter().filter_map(|row| self.owner(RowId(row)));
            return owners.map(|owner| owner.0).collect();
        }
        let ends = self.first_rows.iter().skip(1).chain(std::iter::once(end));
        let all = self.owners.iter().zip(&self.first_rows).zip(ends);
        all.filter(|((_, first), end)| rows.range_cardinality(*first..*end) > 0)
            .map(|((owner, _), _)| owner)
            .collect()
    }

    /// These rows, as far as they belong to these transactions, when the space has `end` rows in all.
    pub(crate) fn retain_rows_of(
        &self,
        rows: RoaringTreemap,
        transactions: &RoaringTreemap,
        end: u64,
    ) -> RoaringTreemap {
        if rows.len() < self.owners.len() / MERGE_SHARE {
            let is_kept = |row: &u64| {
                self.owner(RowId(*row))
                    .is_some_and(|transaction| transactions.contains(transaction.0))
            };
            return rows.iter().filter(is_kept).collect();
        }
        rows & self.rows_of(transactions, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_belongs_to_the_transaction_that_was_noted_last_before_it() {
        let mut owners = RowOwners::default();
        owners.push(2, 0);
        owners.push(5, 3);
        owners.push(6, 4);
        let transaction = |row| owners.owner(RowId(row)).map(|id| id.0);
        assert_eq!(
            [0, 2, 3, 4, 9].map(transaction),
            [Some(2), Some(2), Some(5), Some(6), Some(6)]
        );
        assert_eq!(owners.rows(RowId(2), 7), 0..3);
        assert_eq!(owners.rows(RowId(6), 7), 4..7);
        assert_eq!(owners.rows(RowId(3), 7), 0..0);
        let rows: RoaringTreemap = [1, 2, 5].into_iter().collect();
        let transactions: RoaringTreemap = [2, 3].into_iter().collect();
        assert_eq!(
            owners.retain_rows_of(rows, &transactions, 7).iter().collect::<Vec<_>>(),
            [1, 2]
        );
        let transactions: RoaringTreemap = [3, 5, 6].into_iter().collect();
        assert_eq!(
            owners.rows_of(&transactions, 7).iter().collect::<Vec<_>>(),
            [3, 4, 5, 6]
        );
        owners.truncate(6, 4);
        assert_eq!(owners.owner(RowId(4)), Some(RowId(5)));
    }
}
