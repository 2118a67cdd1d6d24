//! A table of transaction parties with a limit in bytes.
//!
//! It has two generations of equal size. New entries go to the young one. When it is full, the old one is emptied and
//! becomes the young one. An entry that is read in the old generation moves to the young one. So an entry stays at
//! least until as many others as one generation holds were added or read after it.

use gw_policy::view::TransactionParties;
use gw_types::B256;
use std::{collections::HashMap, mem};

/// The default limit: about 229,000 transactions.
pub(crate) const DEFAULT_BYTES: usize = 20 * 1024 * 1024;

/// Bytes of one slot of a generation: an entry and the control byte of the hash table. Seven of eight slots are used,
/// so an entry takes 85 bytes.
const SLOT_BYTES: usize = size_of::<(B256, TransactionParties)>() + 1;
const SLOTS_PER_GROUP: usize = 8;
const ENTRIES_PER_GROUP: usize = 7;

type Generation = HashMap<B256, TransactionParties>;

#[derive(Debug, Default)]
pub(super) struct PartyTable {
    /// The most entries of one generation; zero for a table that keeps nothing.
    capacity: usize,
    young: Generation,
    old: Generation,
}

impl PartyTable {
    /// An empty table that never takes more than `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        // The slots of a hash table are a power of two.
        let slots = (bytes / 2 / SLOT_BYTES).checked_ilog2().map_or(0, |log| 1_usize << log);
        Self {
            capacity: slots / SLOTS_PER_GROUP * ENTRIES_PER_GROUP,
            ..Self::default()
        }
    }

    pub(super) fn get(&mut self, hash: &B256) -> Option<TransactionParties> {
        if let Some(parties) = self.young.get(hash) {
            return Some(*parties);
        }
        let parties = *self.old.get(hash)?;
        self.insert(*hash, parties);
        Some(parties)
    }

    pub(super) fn insert(&mut self, hash: B256, parties: TransactionParties) {
        if self.capacity == 0 {
            return;
        }
        if self.young.len() >= self.capacity && !self.young.contains_key(&hash) {
            mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        // Invariant: a generation is allocated at once and never grows, so its size is known.
        if self.young.capacity() == 0 {
            self.young.reserve(self.capacity);
        }
        self.young.insert(hash, parties);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::{Address, U256};

    fn hash(number: usize) -> B256 {
        B256::from(U256::from(number))
    }

    fn parties(number: usize) -> TransactionParties {
        TransactionParties::new(Address::from_word(hash(number)), None)
    }

    fn filled(bytes: usize, entries: usize) -> PartyTable {
        let mut table = PartyTable::new(bytes);
        for number in 0..entries {
            table.insert(hash(number), parties(number));
        }
        table
    }

    #[test]
    fn memory_is_bounded_in_bytes() {
        for bytes in [0, 1, 1000, 1184, 10_000, 1 << 20] {
            let table = filled(bytes, 50_000);
            let slots = |generation: &Generation| generation.capacity() / ENTRIES_PER_GROUP * SLOTS_PER_GROUP;
            assert!(
                (slots(&table.young) + slots(&table.old)) * SLOT_BYTES <= bytes,
                "{bytes}"
            );
            assert!(table.young.len() <= table.capacity && table.old.len() <= table.capacity);
        }
        assert_eq!(SLOT_BYTES, 74);
        assert_eq!(PartyTable::new(DEFAULT_BYTES).capacity, 114_688);
    }

    #[test]
    fn the_newest_entries_stay_and_the_oldest_go() {
        let mut table = filled(10_000, 500);
        let capacity = table.capacity;
        assert_eq!(capacity, 56);
        for number in (500 - capacity)..500 {
            assert_eq!(table.get(&hash(number)), Some(parties(number)), "{number}");
        }
        assert_eq!(table.get(&hash(500 - 3 * capacity)), None);
    }

    #[test]
    fn an_entry_that_is_read_stays() {
        let mut table = filled(10_000, 1);
        for number in 1..1000 {
            table.insert(hash(number), parties(number));
            if number % 50 == 0 {
                assert_eq!(table.get(&hash(0)), Some(parties(0)), "{number}");
            }
        }
        assert_eq!(table.get(&hash(1)), None);
    }

    #[test]
    fn a_table_of_size_zero_keeps_nothing() {
        let mut table = filled(0, 3);
        assert_eq!(table.get(&hash(1)), None);
        assert_eq!(table.young.capacity() + table.old.capacity(), 0);
    }
}
