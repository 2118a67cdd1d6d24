//! Journal and store after one of them was restored to an older state, copied or taken over (HD24, HD25).

use crate::support::{open, open_with, options, record};
use gw_audit::{Hash, Stream, tree};
use gw_journal::{Journal, StoredHead, StreamComparison, Unsealed};

/// A journal with forty records and the genesis, of which the store has the first `sealed` entries; also entries
/// entries.
fn sealed_to(dir: &std::path::Path, sealed: usize) -> (Journal, Vec<Unsealed>) {
    let (journal, _) = open(dir);
    (0..40).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.sync().unwrap();
    let entries = journal.unsealed(Stream::Access, 1000).unwrap();
    if sealed > 0 {
        journal.mark_sealed(Stream::Access, sealed as u64).unwrap();
    }
    (journal, entries)
}

fn head(entries: &[Unsealed], size: usize) -> StoredHead {
    StoredHead {
        stream: Stream::Access,
        size: size as u64,
        hash: tree::leaf(&entries[size - 1].bytes),
    }
}

fn standing(journal: &Journal, head: StoredHead) -> StreamComparison {
    let standings = journal.reconcile(&[head]).unwrap();
    assert_eq!(standings[0].0, head.stream);
    standings[0].1
}

#[test]
fn hd25_a_store_in_step_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, entries) = sealed_to(dir.path(), 25);
    assert_eq!(standing(&journal, head(&entries, 25)), StreamComparison::InStep);
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), entries[25..]);
}

/// HD25: the store was failed over to an older state; the retained entries are sealed again.
#[test]
fn hd25_a_store_in_an_older_state_is_sealed_again() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, entries) = sealed_to(dir.path(), 25);
    assert_eq!(standing(&journal, head(&entries, 10)), StreamComparison::Moved);
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), entries[10..]);
    assert_eq!(journal.backlog().records, 31);
    drop(journal);
    let (journal, _) = open(dir.path());
    assert_eq!(
        journal.unsealed(Stream::Access, 1000).unwrap(),
        entries[10..],
        "the next start has the same state"
    );
    assert_eq!(
        standing(&journal, StoredHead::empty(Stream::Access)),
        StreamComparison::Moved
    );
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), entries);
}

/// Rule 13: after a crash between the store's commit and the update of the sealed size, no entry is sealed twice.
#[test]
fn rule_13_a_store_ahead_of_the_sealed_size_gets_no_entry_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, entries) = sealed_to(dir.path(), 10);
    assert_eq!(standing(&journal, head(&entries, 33)), StreamComparison::Moved);
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), entries[33..]);
    assert_eq!(journal.backlog().records, 8);
}

#[test]
fn hd25_entries_lost_by_a_store_in_a_much_older_state_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let small = || gw_journal::JournalConfig {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small()).unwrap();
    (0..2000).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.sync().unwrap();
    let entries = journal.unsealed(Stream::Access, 3000).unwrap();
    journal.mark_sealed(Stream::Access, entries.len() as u64).unwrap();
    let StreamComparison::Missing { from, until } = standing(&journal, head(&entries, 2)) else {
        panic!()
    };
    assert_eq!(from, 2);
    assert!((300..=2000).contains(&until), "{until}");
}

/// HD24: a cloned directory, whose other writer sealed further entries, or other entries under the same numbers.
#[test]
fn hd24_a_store_with_entries_of_another_writer_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, entries) = sealed_to(dir.path(), 25);
    let foreign = StreamComparison::Foreign;
    let ahead = StoredHead {
        size: 60,
        ..head(&entries, 41)
    };
    assert_eq!(standing(&journal, ahead), foreign);
    let other_hash = StoredHead {
        hash: Hash::repeat_byte(1),
        ..head(&entries, 30)
    };
    assert_eq!(standing(&journal, other_hash), foreign);
    assert_eq!(
        journal.unsealed(Stream::Access, 1000).unwrap(),
        entries[25..],
        "the sealed size did not change"
    );
}

/// HD24: a fenced or cloned writer opens a new shard with its unsealed records.
#[test]
fn hd24_a_new_shard_starts_with_the_unsealed_records() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, entries) = sealed_to(dir.path(), 25);
    let old_shard = journal.shard();
    let (journal, _) = journal.into_new_shard().unwrap();
    assert_ne!(journal.shard(), old_shard);
    let moved = journal.unsealed(Stream::Access, 1000).unwrap();
    let content = |record: &Unsealed| {
        let entry = gw_audit::Entry::decode(&record.bytes, &record.openings).unwrap();
        assert!(entry.header.chain.shard == journal.shard() || entry.header.chain.shard == old_shard);
        (entry.content, entry.header.time)
    };
    let (moved, unsealed): (Vec<_>, Vec<_>) = (
        moved[1..].iter().map(content).collect(),
        entries[25..].iter().map(content).collect(),
    );
    assert_eq!(
        moved, unsealed,
        "the same records with the same times, behind a new genesis"
    );
    let new_shard = journal.shard();
    drop(journal);
    let (journal, _) = open(dir.path());
    assert_eq!(journal.shard(), new_shard);
    assert!(!dir.path().join(old_shard.to_string()).exists());
}
