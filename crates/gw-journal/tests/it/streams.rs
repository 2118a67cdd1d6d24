//! RL4: streams go into the store independently of each other.

use crate::support::{open, open_with, options, record};
use gw_audit::{Hash, SecurityEvent, SecurityKind, Stream, tree};
use gw_journal::{Journal, Options, ReadError, Standing, StoredHead, Unsealed};
use std::path::Path;

fn login() -> SecurityEvent {
    SecurityEvent::new(SecurityKind::Login)
}

/// Twenty records of each stream, in turn.
fn both(dir: &Path) -> (Journal, [Vec<Unsealed>; 2]) {
    let (journal, _) = open(dir);
    for n in 0..20 {
        journal.append(record(n)).unwrap();
        journal.append(login()).unwrap();
    }
    journal.sync().unwrap();
    let all = [Stream::Access, Stream::Security].map(|stream| journal.unsealed(stream, 100).unwrap());
    (journal, all)
}

fn head(entries: &[Unsealed], size: usize) -> StoredHead {
    let last = &entries[size - 1];
    StoredHead {
        stream: last.stream,
        size: size as u64,
        hash: tree::leaf(&last.bytes),
    }
}

fn seqs(journal: &Journal, stream: Stream) -> Vec<u64> {
    journal
        .unsealed(stream, 1000)
        .unwrap()
        .iter()
        .map(|record| record.seq)
        .collect()
}

#[test]
fn rl4_a_stream_that_is_stuck_holds_up_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, [access, security]) = both(dir.path());
    assert_eq!((access.len(), security.len()), (21, 21), "with a genesis each");
    journal.mark_sealed(Stream::Security, 21).unwrap();
    assert_eq!(seqs(&journal, Stream::Security), [0; 0]);
    assert_eq!(
        journal.unsealed(Stream::Access, 100).unwrap(),
        access,
        "the other one is where it was"
    );
    journal.append(login()).unwrap();
    journal.sync().unwrap();
    assert_eq!(seqs(&journal, Stream::Security), [21]);
    let backlog = journal.backlog();
    let of = |stream| *backlog.streams.iter().find(|one| one.stream == stream).unwrap();
    assert_eq!((of(Stream::Access).records, of(Stream::Access).sealed), (21, 0));
    assert_eq!((of(Stream::Security).records, of(Stream::Security).sealed), (1, 21));
    assert_eq!(backlog.records, 22);
    assert_eq!(backlog.oldest, of(Stream::Access).oldest);
    assert!(of(Stream::Security).oldest.is_some());
    // The next start knows of each.
    drop(journal);
    let (journal, _) = open(dir.path());
    assert_eq!(seqs(&journal, Stream::Security), [21]);
    assert_eq!(seqs(&journal, Stream::Access), (0..21).collect::<Vec<_>>());
    journal.mark_sealed(Stream::Access, 21).unwrap();
    journal.mark_sealed(Stream::Security, 22).unwrap();
    let backlog = journal.backlog();
    assert_eq!((backlog.records, backlog.bytes, backlog.oldest), (0, 0, None));
}

#[test]
fn rl4_nothing_is_noted_as_sealed_that_was_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = both(dir.path());
    let refused = journal.mark_sealed(Stream::Access, 22).unwrap_err();
    assert!(
        matches!(
            refused,
            ReadError::NotWritten {
                stream: Stream::Access,
                size: 22
            }
        ),
        "{refused}"
    );
    journal.mark_sealed(Stream::Access, 7).unwrap();
    journal.mark_sealed(Stream::Access, 3).unwrap();
    assert_eq!(seqs(&journal, Stream::Access)[0], 7, "only reconciling moves back");
}

/// RL4: what may be deleted follows the slowest stream, and a level one holds back nothing.
#[test]
fn rl4_segments_stay_as_long_as_one_stream_needs_them() {
    let dir = tempfile::tempdir().unwrap();
    let small = Options {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small).unwrap();
    journal.append(login()).unwrap();
    for n in 0..3000 {
        journal.append(record(n)).unwrap();
    }
    journal.sync().unwrap();
    let first = dir
        .path()
        .join(journal.shard().to_string())
        .join("000000000001.segment");
    journal.mark_sealed(Stream::Access, 3001).unwrap();
    assert!(first.exists(), "a login in it is not sealed");
    assert!(journal.backlog().bytes > 256 << 10);
    assert_eq!(seqs(&journal, Stream::Security), [0, 1]);
    journal.mark_sealed(Stream::Security, 2).unwrap();
    assert!(!first.exists());
    assert_eq!(journal.backlog().bytes, 0);
}

/// RL4: of a stream with nothing unsealed nothing is read, so it costs nothing, whatever the others hold.
#[test]
fn rl4_a_level_stream_is_not_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = both(dir.path());
    journal.mark_sealed(Stream::Security, 21).unwrap();
    drop(journal);
    let (journal, _) = open(dir.path());
    for file in std::fs::read_dir(dir.path().join(journal.shard().to_string())).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "segment") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(seqs(&journal, Stream::Security), [0; 0]);
    assert_eq!(seqs(&journal, Stream::Compliance), [0; 0]);
    assert!(journal.unsealed(Stream::Access, 1).is_err());
}

#[test]
fn rl4_a_suffix_of_equal_size_with_other_hashes_is_foreign() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, [access, security]) = both(dir.path());
    journal.mark_sealed(Stream::Access, 10).unwrap();
    journal.mark_sealed(Stream::Security, 21).unwrap();
    let changed = |head: StoredHead| StoredHead {
        hash: Hash::repeat_byte(7),
        ..head
    };
    let found = journal
        .reconcile(&[changed(head(&access, 10)), head(&security, 21)])
        .unwrap();
    assert_eq!(
        found,
        [
            (Stream::Access, Standing::Foreign),
            (Stream::Security, Standing::InStep)
        ]
    );
    let found = journal
        .reconcile(&[head(&access, 10), changed(head(&security, 21))])
        .unwrap();
    assert_eq!(
        found,
        [
            (Stream::Access, Standing::InStep),
            (Stream::Security, Standing::Foreign)
        ],
        "at the very end"
    );
    assert_eq!(seqs(&journal, Stream::Access)[0], 10);
}

/// RL4: reconciling runs beside everything else, and moves no stream but the one that is elsewhere.
#[test]
fn rl4_reconciling_runs_live_and_moves_one_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, [access, security]) = both(dir.path());
    journal.mark_sealed(Stream::Access, 15).unwrap();
    journal.mark_sealed(Stream::Security, 21).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..500).for_each(|n| assert!(journal.append(record(n)).is_ok())));
        for size in [3, 20, 1, 15, 15] {
            let expected = if seqs(&journal, Stream::Access)[0] == size as u64 {
                Standing::InStep
            } else {
                Standing::Moved
            };
            let found = journal.reconcile(&[head(&access, size)]).unwrap();
            assert_eq!(found, [(Stream::Access, expected)]);
            assert_eq!(seqs(&journal, Stream::Access)[0], size as u64);
            assert_eq!(seqs(&journal, Stream::Security), [0; 0], "not named, not moved");
        }
    });
    let found = journal
        .reconcile(&[StoredHead::empty(Stream::Access), head(&security, 4)])
        .unwrap();
    assert_eq!(
        found,
        [(Stream::Access, Standing::Moved), (Stream::Security, Standing::Moved)]
    );
    assert_eq!(
        (seqs(&journal, Stream::Access)[0], seqs(&journal, Stream::Security)[0]),
        (0, 4)
    );
    assert_eq!(journal.backlog().records, 521 + 17);
    let foreign = StoredHead {
        size: 600,
        ..head(&access, 3)
    };
    assert_eq!(
        journal.reconcile(&[foreign]).unwrap(),
        [(Stream::Access, Standing::Foreign)]
    );
}

/// RL4, HD24: of each stream what is not sealed goes on in the new shard, however far apart they are.
#[test]
fn rl4_a_new_shard_begins_with_what_each_stream_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, [access, security]) = both(dir.path());
    journal.mark_sealed(Stream::Access, 19).unwrap();
    journal.mark_sealed(Stream::Security, 3).unwrap();
    let (journal, _) = journal.into_new_shard().unwrap();
    let content = |records: &[Unsealed]| -> Vec<_> {
        let decode = |one: &Unsealed| gw_audit::Entry::decode(&one.bytes, &one.openings).unwrap().content;
        records.iter().map(decode).collect()
    };
    let moved = |stream| content(&journal.unsealed(stream, 100).unwrap()[1..]);
    assert_eq!(moved(Stream::Access), content(&access[19..]));
    assert_eq!(moved(Stream::Security), content(&security[3..]));
}
