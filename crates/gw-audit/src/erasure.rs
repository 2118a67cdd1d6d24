//! Erasure of personal values: the record that allows it, and what it covers (spec/70 rule 5).
//!
//! Openings lie beside the hashed bytes, so anybody with the database can take them away. What was taken away on
//! purpose is named by an entry of the admin stream, which is hashed and signed; a missing opening that no such entry
//! covers is a finding.

use crate::cbor::{Reader, Writer};
use crate::entry::{ChainId, EntryError, ShardId};
use crate::record::{Action, AdminEntry, ResourceType};
use core::ops::Range;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most ranges of one record: its JSON must fit the value of an audit entry.
pub(crate) const MAX_RANGES: usize = 256;

/// Which entries of one chain lost personal values on purpose: the `new_value` of an admin entry with action `delete` and
/// resource type `audit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasureRecord {
    /// What was erased.
    pub erased: Erased,
    /// Why.
    pub reason: String,
}

/// Entries of one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erased {
    /// `<stream>/<shard>`.
    pub chain: String,
    /// First and last number of each run of entries.
    pub seqs: Vec<(u64, u64)>,
}

impl ErasureRecord {
    /// Records that name these entries of a chain, as few as have room for them.
    pub fn of(chain: ChainId, seqs: impl IntoIterator<Item = u64>, reason: &str) -> Vec<Self> {
        let mut all = Erasures::default();
        for seq in seqs {
            all.insert(chain, seq..seq.saturating_add(1));
        }
        let ranges: Vec<_> = all
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

    /// The record in an admin entry; `None` if it holds none, or none that can be trusted.
    pub fn read(entry: &AdminEntry) -> Option<Self> {
        let is_record = entry.action == Action::Delete
            && entry.resource_type == ResourceType::Audit
            && entry.outbox_fault.is_none();
        serde_json::from_str(entry.new_value.as_deref().filter(|_| is_record)?).ok()
    }

    /// The chain it names, if it names one.
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
    /// Disjoint runs of numbers by chain: start to end, the end not in it.
    runs: BTreeMap<ChainId, BTreeMap<u64, u64>>,
}

/// What the records among these admin entries cover. Collect it over the whole admin chain, and over what its anchor
/// carries, before other chains are judged.
pub fn erasures<'a>(entries: impl IntoIterator<Item = &'a AdminEntry>) -> Erasures {
    let mut erasures = Erasures::default();
    entries.into_iter().for_each(|entry| erasures.take(entry));
    erasures
}

impl Erasures {
    /// Adds what the record in an entry covers, if it holds one.
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
        // Runs that touch become one.
        while let Some((from, to)) = runs.range(..=end).next_back().map(|(from, to)| (*from, *to)) {
            if to < start {
                break;
            }
            runs.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        runs.insert(start, end);
    }

    /// Whether a record covers the entry with this number.
    pub fn covers(&self, chain: ChainId, seq: u64) -> bool {
        let before = self.runs.get(&chain).and_then(|runs| runs.range(..=seq).next_back());
        before.is_some_and(|(_, end)| seq < *end)
    }

    /// The runs of one chain, in order.
    pub fn ranges(&self, chain: ChainId) -> impl Iterator<Item = Range<u64>> {
        self.runs
            .get(&chain)
            .into_iter()
            .flatten()
            .map(|(start, end)| *start..*end)
    }

    /// The chains that records name.
    pub fn chains(&self) -> impl Iterator<Item = ChainId> {
        self.runs.keys().copied()
    }

    /// Adds all that another one covers.
    pub fn extend(&mut self, other: &Self) {
        for chain in other.chains() {
            for range in other.ranges(chain) {
                self.insert(chain, range);
            }
        }
    }
}

/// The openings without those whose value `is_concerned`; chain and proofs stay as they are. The second is how many went.
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

/// Whether a text names this external id, alone or among other text; not as the beginning or end of another one.
pub fn names(text: &str, external_id: &str) -> bool {
    let continues = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '_' | '-' | '%');
    !external_id.is_empty()
        && text.match_indices(external_id).any(|(at, found)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at + found.len()..).and_then(|after| after.chars().next());
            !before.is_some_and(continues) && !after.is_some_and(continues)
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
        let records = ErasureRecord::of(chain(1), [7, 3, 4, 5, 9], "request 12");
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].erased.seqs, [(3, 5), (7, 7), (9, 9)]);
        let text = serde_json::to_string(&records[0]).unwrap();
        let kept = erasures([&entry(Action::Delete, Some(text.clone()))]);
        for seq in 0..12 {
            assert_eq!(kept.covers(chain(1), seq), [3, 4, 5, 7, 9].contains(&seq), "{seq}");
            assert!(!kept.covers(chain(2), seq));
        }
        let unsure = AdminEntry {
            outbox_fault: Some(crate::OutboxFault::Unauthenticated),
            ..entry(Action::Delete, Some(text.clone()))
        };
        let other = AdminEntry {
            resource_type: ResourceType::User,
            ..entry(Action::Delete, Some(text.clone()))
        };
        for no_record in [
            unsure,
            other,
            entry(Action::Update, Some(text)),
            entry(Action::Delete, None),
        ] {
            assert_eq!(erasures([&no_record]), Erasures::default(), "{no_record:?}");
        }
    }

    #[test]
    fn rl10_many_entries_need_several_records_of_bounded_length() {
        let records = ErasureRecord::of(chain(1), (0..600).map(|n| u64::MAX / 2 + n * 2), "request 12");
        assert_eq!(records.len(), 3);
        for record in records {
            assert!(serde_json::to_string(&record).unwrap().len() < 16 * 1024);
        }
    }

    #[test]
    fn rl10_only_openings_that_name_the_person_go() {
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
            let (mut erasures, mut all) = (Erasures::default(), BTreeSet::new());
            for (start, length) in ranges {
                erasures.insert(chain(1), start..start + length);
                all.extend(start..start + length);
            }
            for seq in 0..80 {
                prop_assert_eq!(erasures.covers(chain(1), seq), all.contains(&seq));
            }
            let ranges: Vec<_> = erasures.ranges(chain(1)).collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", ranges);
        }
    }
}
