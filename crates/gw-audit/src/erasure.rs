//! Erasure of personal values: the records that authorize it, and the entries they cover (spec/70 rule 5).
//!
//! Openings are not part of the hashed bytes, so write access to the database is enough to remove them. An intended
//! erasure is recorded by an entry of the admin stream, which is hashed and signed. A missing opening that no such
//! entry covers is a finding.

use crate::cbor::{Reader, Writer};
use crate::entry::ChainId;
use crate::entry_error::EntryError;
use crate::ids::ShardId;
use crate::record::{Action, AdminEntry, ResourceType};
use core::ops::Range;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest number of ranges in one record, so that its JSON fits the value of an audit entry.
pub(crate) const MAX_RANGES: usize = 256;

/// Which entries of one chain had personal values erased. Stored as the `new_value` of an admin entry with action
/// `delete` and resource type `audit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasureRecord {
    /// The entries whose personal values were erased.
    pub erased: Erased,
    /// Why they were erased.
    pub reason: String,
}

/// A set of entries of one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erased {
    /// `<stream>/<shard>`.
    pub chain: String,
    /// First and last number of each run of entries.
    pub seqs: Vec<(u64, u64)>,
}

impl ErasureRecord {
    /// The records for the erasure of these entries of a chain, as few as the size limit allows.
    pub fn for_entries(chain: ChainId, seqs: impl IntoIterator<Item = u64>, reason: &str) -> Vec<Self> {
        let mut erasures = Erasures::default();
        for seq in seqs {
            erasures.insert(chain, seq..seq.saturating_add(1));
        }
        let ranges: Vec<_> = erasures
            .ranges(chain)
            .map(|range| (range.start, range.end.saturating_sub(1)))
            .collect();
        let record = |seqs: &[(u64, u64)]| Self {
            erased: Erased {
                chain: chain_text(chain),
                seqs: seqs.to_vec(),
            },
            reason: reason.to_owned(),
        };
        ranges.chunks(MAX_RANGES).map(record).collect()
    }

    /// Reads the record in an admin entry; `None` if the entry holds none, or if its outbox row had a fault.
    pub fn read(entry: &AdminEntry) -> Option<Self> {
        let is_record = entry.action == Action::Delete
            && entry.resource_type == ResourceType::Audit
            && entry.outbox_fault.is_none();
        serde_json::from_str(entry.new_value.as_deref().filter(|_| is_record)?).ok()
    }

    /// The chain of the erased entries; `None` if its name cannot be parsed.
    pub fn chain(&self) -> Option<ChainId> {
        let (stream, shard) = self.erased.chain.split_once('/')?;
        Some(ChainId {
            stream: stream.parse().ok()?,
            shard: ShardId(shard.parse().ok()?),
        })
    }
}

fn chain_text(chain: ChainId) -> String {
    format!("{}/{}", chain.stream, chain.shard)
}

/// The entries that erasure records cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erasures {
    /// Disjoint runs of entry numbers by chain: start to exclusive end.
    runs: BTreeMap<ChainId, BTreeMap<u64, u64>>,
}

/// Collects what the erasure records among these admin entries cover. Before other chains are verified, the whole admin
/// chain must have been read and the erasures of its anchor added.
pub fn erasures<'a>(entries: impl IntoIterator<Item = &'a AdminEntry>) -> Erasures {
    let mut erasures = Erasures::default();
    entries.into_iter().for_each(|entry| erasures.take(entry));
    erasures
}

impl Erasures {
    /// Adds what the erasure record in an entry covers, if the entry holds one.
    pub fn take(&mut self, entry: &AdminEntry) {
        let Some(record) = ErasureRecord::read(entry) else {
            return;
        };
        let Some(chain) = record.chain() else { return };
        for (first, last) in record.erased.seqs {
            self.insert(chain, first..last.saturating_add(1));
        }
    }

    /// Adds a run of entries.
    pub fn insert(&mut self, chain: ChainId, seqs: Range<u64>) {
        if seqs.is_empty() {
            return;
        }
        let runs = self.runs.entry(chain).or_default();
        let (mut start, mut end) = (seqs.start, seqs.end);
        // Overlapping and adjacent runs are merged.
        while let Some((run_start, run_end)) = runs.range(..=end).next_back().map(|(start, end)| (*start, *end)) {
            if run_end < start {
                break;
            }
            runs.remove(&run_start);
            (start, end) = (start.min(run_start), end.max(run_end));
        }
        runs.insert(start, end);
    }

    /// Whether a record covers the entry with this number.
    pub fn covers(&self, chain: ChainId, seq: u64) -> bool {
        let run = self.runs.get(&chain).and_then(|runs| runs.range(..=seq).next_back());
        run.is_some_and(|(_, end)| seq < *end)
    }

    /// The covered runs of one chain, in ascending order.
    pub fn ranges(&self, chain: ChainId) -> impl Iterator<Item = Range<u64>> {
        self.runs
            .get(&chain)
            .into_iter()
            .flatten()
            .map(|(start, end)| *start..*end)
    }

    /// The chains with at least one covered entry.
    pub fn chains(&self) -> impl Iterator<Item = ChainId> {
        self.runs.keys().copied()
    }

    /// Adds everything that `other` covers.
    pub fn extend(&mut self, other: &Self) {
        for chain in other.chains() {
            for range in other.ranges(chain) {
                self.insert(chain, range);
            }
        }
    }
}

/// Erases the openings whose value satisfies `is_concerned`, and returns the remaining openings and the number of
/// erased ones. Chain and proofs do not change.
///
/// # Errors
/// The openings are malformed.
pub fn erased_where(openings: &[u8], is_concerned: impl Fn(&str) -> bool) -> Result<(Vec<u8>, u32), EntryError> {
    let mut reader = Reader::new(openings);
    let (mut kept, mut count) = (Vec::with_capacity(openings.len()), 0);
    while !reader.is_empty() {
        let mut item = reader;
        let bytes = reader.skip().map_err(EntryError::Openings)?;
        let concerned = !item.null() && {
            let _length = item.array().map_err(EntryError::Openings)?;
            let _salt = item.bytes().map_err(EntryError::Openings)?;
            is_concerned(item.text().map_err(EntryError::Openings)?)
        };
        if concerned {
            count += 1;
            Writer::new(&mut kept).null();
        } else {
            Writer::new(&mut kept).raw(bytes);
        }
    }
    Ok((kept, count))
}

/// Whether a text contains this external id, not counting occurrences within a longer id.
pub fn names(text: &str, external_id: &str) -> bool {
    let continues = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '_' | '-' | '%');
    !external_id.is_empty()
        && text.match_indices(external_id).any(|(at, matched)| {
            let previous = text.get(..at).and_then(|prefix| prefix.chars().next_back());
            let next = text.get(at + matched.len()..).and_then(|suffix| suffix.chars().next());
            !previous.is_some_and(continues) && !next.is_some_and(continues)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stream;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use uuid::Uuid;

    fn chain(n: u128) -> ChainId {
        ChainId {
            stream: Stream::Access,
            shard: ShardId(Uuid::from_u128(n)),
        }
    }

    fn entry(action: Action, value: Option<String>) -> AdminEntry {
        AdminEntry {
            new_value: value,
            ..AdminEntry::new(action, ResourceType::Audit)
        }
    }

    #[test]
    fn rl10_an_erasure_record_covers_what_it_names_and_nothing_else() {
        let records = ErasureRecord::for_entries(chain(1), [7, 3, 4, 5, 9], "request 12");
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].erased.seqs, [(3, 5), (7, 7), (9, 9)]);
        let text = serde_json::to_string(&records[0]).unwrap();
        let erasures_read = erasures([&entry(Action::Delete, Some(text.clone()))]);
        for seq in 0..12 {
            assert_eq!(
                erasures_read.covers(chain(1), seq),
                [3, 4, 5, 7, 9].contains(&seq),
                "{seq}"
            );
            assert!(!erasures_read.covers(chain(2), seq));
        }
        let unauthenticated = AdminEntry {
            outbox_fault: Some(crate::OutboxFault::Unauthenticated),
            ..entry(Action::Delete, Some(text.clone()))
        };
        let other_resource = AdminEntry {
            resource_type: ResourceType::User,
            ..entry(Action::Delete, Some(text.clone()))
        };
        for no_record in [
            unauthenticated,
            other_resource,
            entry(Action::Update, Some(text)),
            entry(Action::Delete, None),
        ] {
            assert_eq!(erasures([&no_record]), Erasures::default(), "{no_record:?}");
        }
    }

    #[test]
    fn rl10_many_entries_need_several_records_of_bounded_length() {
        let records = ErasureRecord::for_entries(chain(1), (0..600).map(|n| u64::MAX / 2 + n * 2), "request 12");
        assert_eq!(records.len(), 3);
        for record in records {
            assert!(serde_json::to_string(&record).unwrap().len() < 16 * 1024);
        }
    }

    #[test]
    fn rl10_only_openings_that_name_the_person_are_erased() {
        let mut openings = Vec::new();
        let mut writer = Writer::new(&mut openings);
        for value in ["did:test:ann", "10.0.0.1"] {
            writer.array(2);
            writer.bytes(&[1; 16]);
            writer.text(value);
        }
        writer.null();
        let (kept, count) = erased_where(&openings, |value| names(value, "did:test:ann")).unwrap();
        assert_eq!(count, 1);
        assert!(kept.windows(8).any(|w| w == b"10.0.0.1") && !kept.windows(8).any(|w| w == b"test:ann"));
        assert_eq!(
            erased_where(&kept, |value| names(value, "did:test:ann")).unwrap(),
            (kept.clone(), 0)
        );
        assert_eq!(
            erased_where(&openings, |_| true).unwrap().0,
            crate::erased(&openings).unwrap()
        );
        assert!(erased_where(&openings[1..], |_| true).is_err());
    }

    #[test]
    fn a_name_is_not_found_within_another() {
        assert!(names("did:a:b", "did:a:b") && names(r#"{"external_id":"did:a:b"}"#, "did:a:b"));
        assert!(!names("did:a:bc", "did:a:b") && !names("xdid:a:b", "did:a:b") && !names("did:a:b:c", "did:a:b"));
        assert!(names("did:a:bc, did:a:b", "did:a:b") && !names("anything", ""));
    }

    proptest! {
        #[test]
        fn runs_cover_what_was_put_in(ranges in proptest::collection::vec((0_u64..60, 0_u64..9), 0..20)) {
            let (mut erasures, mut expected) = (Erasures::default(), BTreeSet::new());
            for (start, length) in ranges {
                erasures.insert(chain(1), start..start + length);
                expected.extend(start..start + length);
            }
            for seq in 0..80 {
                prop_assert_eq!(erasures.covers(chain(1), seq), expected.contains(&seq));
            }
            let ranges: Vec<_> = erasures.ranges(chain(1)).collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", ranges);
        }
    }
}
