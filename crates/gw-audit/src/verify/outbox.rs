//! Which outbox rows the entries of the admin chain were made of: none may be missing (spec/70 rule 15).

use super::FindingKind;
use crate::entry::StoreId;
use crate::record::{AdminEntry, OutboxFault};
use std::collections::{BTreeMap, HashMap};

/// Gaps remembered of one store; more are one finding each all the same.
const MAX_GAPS: usize = 1000;

/// The outbox ids seen, by policy store. Rows are sealed in their order but for late ones, which fill the gap they left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxIds {
    stores: HashMap<StoreId, Ids>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Ids {
    /// The highest id.
    last: u64,
    /// Missing ids: first to last of each gap, and the entry behind it.
    gaps: BTreeMap<u64, (u64, u64)>,
}

impl OutboxIds {
    /// Takes the row of an entry; what is wrong with it.
    pub fn see(&mut self, seq: u64, entry: &AdminEntry) -> Option<FindingKind> {
        let is_gap = entry.outbox_fault == Some(OutboxFault::Missing);
        let fault = match entry.outbox_fault {
            Some(OutboxFault::Missing) => Some(FindingKind::OutboxGap),
            Some(_) => Some(FindingKind::OutboxFault),
            None => None,
        };
        let Some((store, id)) = entry.store_id.zip(entry.outbox_id) else {
            return fault;
        };
        let Some(ids) = self.stores.get_mut(&store) else {
            // Rows of before ids were recorded are not known, so the first one may have any id.
            self.stores.insert(
                store,
                Ids {
                    last: id,
                    gaps: BTreeMap::new(),
                },
            );
            return fault;
        };
        if id > ids.last {
            // The entry of a gap tells of it.
            if !is_gap && id > ids.last.saturating_add(1) && ids.gaps.len() < MAX_GAPS {
                ids.gaps.insert(ids.last.saturating_add(1), (id - 1, seq));
            }
            ids.last = id;
            return fault;
        }
        let gap = ids
            .gaps
            .range(..=id)
            .next_back()
            .map(|(first, (last, seq))| (*first, *last, *seq));
        match gap.filter(|(_, last, _)| id <= *last) {
            Some((first, last, seq)) => {
                ids.gaps.remove(&first);
                if first < id {
                    ids.gaps.insert(first, (id - 1, seq));
                }
                if id < last {
                    ids.gaps.insert(id + 1, (last, seq));
                }
                fault
            }
            None => fault.or(Some(FindingKind::OutboxFault)),
        }
    }

    /// Rows before were not looked at.
    pub(super) fn forget(&mut self) {
        self.stores.clear();
    }

    /// The gaps that nothing filled, each with the entry behind it.
    pub fn gaps(&self) -> Vec<(FindingKind, u64)> {
        let gaps = self.stores.values().flat_map(|ids| ids.gaps.values());
        let mut found: Vec<_> = gaps.map(|(_, seq)| (FindingKind::OutboxGap, *seq)).collect();
        found.sort_unstable();
        found
    }
}
