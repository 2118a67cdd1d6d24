//! The outbox rows that the entries of the admin chain were made from: none may be missing (spec/70 rule 15).

use super::FindingKind;
use crate::ids::StoreId;
use crate::record::{AdminEntry, OutboxFault};
use std::collections::{BTreeMap, HashMap};

/// The largest number of gaps recorded for one store.
const MAX_GAPS: usize = 1000;

/// The outbox ids of the verified entries, by policy store. Rows are sealed in the order of their ids, except late
/// rows, which fill an earlier gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxIds {
    stores: HashMap<StoreId, Ids>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Ids {
    /// The highest id.
    last: u64,
    /// The gaps: first missing id to last missing id and the number of the entry behind the gap.
    gaps: BTreeMap<u64, (u64, u64)>,
}

impl OutboxIds {
    /// Adds the outbox row of an entry; returns the finding about the row, if there is one.
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
            // Entries from before ids were recorded have none, so the first id of a store may be any.
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
            // An entry about missing rows is itself the finding, so the ids before it are not a further gap.
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

    /// Forgets all ids, because the entries before the next one were not verified.
    pub(super) fn forget(&mut self) {
        self.stores.clear();
    }

    /// The gaps that no late row filled, each with the number of the entry behind it.
    pub fn gaps(&self) -> Vec<(FindingKind, u64)> {
        let gaps = self.stores.values().flat_map(|ids| ids.gaps.values());
        let mut findings: Vec<_> = gaps.map(|(_, seq)| (FindingKind::OutboxGap, *seq)).collect();
        findings.sort_unstable();
        findings
    }
}
