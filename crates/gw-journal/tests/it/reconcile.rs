//! Journal and store after one of them fell back, was copied or was taken over (HD24, HD25).

use crate::support::{open, open_with, options, record};
use gw_audit::{Hash, Stream, tree};
use gw_journal::{Journal, Standing, StoredHead, Unsealed};

/// A journal with forty records (and the genesis), of which the store has the first `sealed` entries.
fn sealed_to(dir: &std::path::Path, sealed: usize) -> (Journal, Vec<Unsealed>) {
    let (journal, _) = open(dir);
    (0..40).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.sync().unwrap();
    let all = journal.unsealed(Stream::Access, 1000).unwrap();
    if sealed > 0 {
        journal.mark_sealed(Stream::Access, sealed as u64).unwrap();
    }
    (journal, all)
}

fn head(all: &[Unsealed], size: usize) -> StoredHead {
    StoredHead {
        stream: Stream::Access,
        size: size as u64,
        hash: tree::leaf(&all[size - 1].bytes),
    }
}

fn standing(journal: &Journal, head: StoredHead) -> Standing {
    let standings = journal.reconcile(&[head]).unwrap();
    assert_eq!(standings[0].0, head.stream);
    standings[0].1
}

#[test]
fn hd25_a_store_in_step_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, all) = sealed_to(dir.path(), 25);
    assert_eq!(standing(&journal, head(&all, 25)), Standing::InStep);
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), all[25..]);
}

/// HD25: the store was failed over to an older state; what is kept is sealed again.
#[test]
fn hd25_a_store_that_fell_back_is_sealed_again() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, all) = sealed_to(dir.path(), 25);
    assert_eq!(standing(&journal, head(&all, 10)), Standing::Moved);
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), all[10..]);
    assert_eq!(journal.backlog().records, 31);
    drop(journal);
    let (journal, _) = open(dir.path());
    assert_eq!(
        journal.unsealed(Stream::Access, 1000).unwrap(),
        all[10..],
        "the next start knows as well"
    );
    assert_eq!(standing(&journal, StoredHead::empty(Stream::Access)), Standing::Moved);
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), all);
}

/// Rule 13: a crash between the store's commit and the mark repeats nothing.
#[test]
fn rule_13_a_store_that_is_ahead_of_the_mark_is_not_given_anything_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, all) = sealed_to(dir.path(), 10);
    assert_eq!(standing(&journal, head(&all, 33)), Standing::Moved);
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap(), all[33..]);
    assert_eq!(journal.backlog().records, 8);
}

#[test]
fn hd25_a_store_that_fell_back_too_far_is_told_what_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let small = || gw_journal::Options {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small()).unwrap();
    (0..2000).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.sync().unwrap();
    let all = journal.unsealed(Stream::Access, 3000).unwrap();
    journal.mark_sealed(Stream::Access, all.len() as u64).unwrap();
    let Standing::Missing { from, until } = standing(&journal, head(&all, 2)) else {
        panic!()
    };
    assert_eq!(from, 2);
    assert!((300..=2000).contains(&until), "{until}");
}

/// HD24: a cloned directory: the other writer went on, or sealed something else under the same numbers.
#[test]
fn hd24_a_store_that_somebody_else_writes_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, all) = sealed_to(dir.path(), 25);
    let foreign = Standing::Foreign;
    let ahead = StoredHead {
        size: 60,
        ..head(&all, 41)
    };
    assert_eq!(standing(&journal, ahead), foreign);
    let other = StoredHead {
        hash: Hash::repeat_byte(1),
        ..head(&all, 30)
    };
    assert_eq!(standing(&journal, other), foreign);
    assert_eq!(
        journal.unsealed(Stream::Access, 1000).unwrap(),
        all[25..],
        "the mark did not move"
    );
}

/// HD24: a fenced or cloned writer opens a new shard with its unsealed records.
#[test]
fn hd24_a_new_shard_begins_with_what_was_not_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, all) = sealed_to(dir.path(), 25);
    let before = journal.shard();
    let (journal, _) = journal.into_new_shard().unwrap();
    assert_ne!(journal.shard(), before);
    let moved = journal.unsealed(Stream::Access, 1000).unwrap();
    let content = |record: &Unsealed| {
        let entry = gw_audit::Entry::decode(&record.bytes, &record.openings).unwrap();
        assert!(entry.header.chain.shard == journal.shard() || entry.header.chain.shard == before);
        (entry.content, entry.header.time)
    };
    let (moved, left): (Vec<_>, Vec<_>) = (
        moved[1..].iter().map(content).collect(),
        all[25..].iter().map(content).collect(),
    );
    assert_eq!(
        moved, left,
        "the same records at the same times, behind a genesis of their own"
    );
    let after = journal.shard();
    drop(journal);
    let (journal, _) = open(dir.path());
    assert_eq!(journal.shard(), after);
    assert!(!dir.path().join(before.to_string()).exists());
}
