//! RL4: streams are sealed independently of each other.

use crate::support::{open, open_with, options, record};
use gw_audit::{Hash, SecurityEvent, SecurityKind, Stream, tree};
use gw_journal::{Journal, JournalConfig, ReadError, StoredHead, StreamComparison, Unsealed};
use std::path::Path;

fn login() -> SecurityEvent {
    SecurityEvent::new(SecurityKind::Login)
}

/// A journal with twenty records of each of two streams, alternating; also the entries of each stream.
fn two_streams(dir: &Path) -> (Journal, [Vec<Unsealed>; 2]) {
    let (journal, _) = open(dir);
    for n in 0..20 {
        journal.append(record(n)).unwrap();
        journal.append(login()).unwrap();
    }
    journal.sync().unwrap();
    let entries = [Stream::Access, Stream::Security].map(|stream| journal.unsealed(stream, 100).unwrap());
    (journal, entries)
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
fn rl4_a_stalled_stream_does_not_hold_back_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, [access, security]) = two_streams(dir.path());
    assert_eq!((access.len(), security.len()), (21, 21), "with a genesis each");
    journal.mark_sealed(Stream::Security, 21).unwrap();
    assert_eq!(seqs(&journal, Stream::Security), [0; 0]);
    assert_eq!(
        journal.unsealed(Stream::Access, 100).unwrap(),
        access,
        "the access stream is unchanged"
    );
    journal.append(login()).unwrap();
    journal.sync().unwrap();
    assert_eq!(seqs(&journal, Stream::Security), [21]);
    let backlog = journal.backlog();
    let state = |stream| *backlog.streams.iter().find(|state| state.stream == stream).unwrap();
    assert_eq!((state(Stream::Access).records, state(Stream::Access).sealed), (21, 0));
    assert_eq!(
        (state(Stream::Security).records, state(Stream::Security).sealed),
        (1, 21)
    );
    assert_eq!(backlog.records, 22);
    assert_eq!(backlog.oldest, state(Stream::Access).oldest);
    assert!(state(Stream::Security).oldest.is_some());
    // The next start knows the sealed size of each stream.
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
fn rl4_more_entries_than_were_written_cannot_be_marked_as_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = two_streams(dir.path());
    let error = journal.mark_sealed(Stream::Access, 22).unwrap_err();
    assert!(
        matches!(
            error,
            ReadError::NotWritten {
                stream: Stream::Access,
                size: 22
            }
        ),
        "{error}"
    );
    journal.mark_sealed(Stream::Access, 7).unwrap();
    journal.mark_sealed(Stream::Access, 3).unwrap();
    assert_eq!(
        seqs(&journal, Stream::Access)[0],
        7,
        "only reconciling moves a stream back"
    );
}

/// RL4: segments are deleted up to the slowest stream, and a fully sealed stream does not hold back their deletion.
#[test]
fn rl4_segments_stay_as_long_as_one_stream_needs_them() {
    let dir = tempfile::tempdir().unwrap();
    let small = JournalConfig {
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
    assert!(first.exists(), "a login in this segment is not sealed");
    assert!(journal.backlog().bytes > 256 << 10);
    assert_eq!(seqs(&journal, Stream::Security), [0, 1]);
    journal.mark_sealed(Stream::Security, 2).unwrap();
    assert!(!first.exists());
    assert_eq!(journal.backlog().bytes, 0);
}

/// RL4: for a fully sealed stream no file is read, so it costs nothing, regardless of the backlog of the others.
#[test]
fn rl4_no_file_is_read_for_a_fully_sealed_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = two_streams(dir.path());
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
    let (journal, [access, security]) = two_streams(dir.path());
    journal.mark_sealed(Stream::Access, 10).unwrap();
    journal.mark_sealed(Stream::Security, 21).unwrap();
    let changed = |head: StoredHead| StoredHead {
        hash: Hash::repeat_byte(7),
        ..head
    };
    let standings = journal
        .reconcile(&[changed(head(&access, 10)), head(&security, 21)])
        .unwrap();
    assert_eq!(
        standings,
        [
            (Stream::Access, StreamComparison::Foreign),
            (Stream::Security, StreamComparison::InStep)
        ]
    );
    let standings = journal
        .reconcile(&[head(&access, 10), changed(head(&security, 21))])
        .unwrap();
    assert_eq!(
        standings,
        [
            (Stream::Access, StreamComparison::InStep),
            (Stream::Security, StreamComparison::Foreign)
        ],
        "at the end of the chain"
    );
    assert_eq!(seqs(&journal, Stream::Access)[0], 10);
}

/// RL4: reconciling may run while records are appended, and moves only the stream that differs.
#[test]
fn rl4_reconciling_a_running_journal_moves_one_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, [access, security]) = two_streams(dir.path());
    journal.mark_sealed(Stream::Access, 15).unwrap();
    journal.mark_sealed(Stream::Security, 21).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..500).for_each(|n| assert!(journal.append(record(n)).is_ok())));
        for size in [3, 20, 1, 15, 15] {
            let expected = if seqs(&journal, Stream::Access)[0] == size as u64 {
                StreamComparison::InStep
            } else {
                StreamComparison::Moved
            };
            let standings = journal.reconcile(&[head(&access, size)]).unwrap();
            assert_eq!(standings, [(Stream::Access, expected)]);
            assert_eq!(seqs(&journal, Stream::Access)[0], size as u64);
            assert_eq!(
                seqs(&journal, Stream::Security),
                [0; 0],
                "a stream without a head is not moved"
            );
        }
    });
    let standings = journal
        .reconcile(&[StoredHead::empty(Stream::Access), head(&security, 4)])
        .unwrap();
    assert_eq!(
        standings,
        [
            (Stream::Access, StreamComparison::Moved),
            (Stream::Security, StreamComparison::Moved)
        ]
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
        [(Stream::Access, StreamComparison::Foreign)]
    );
}

/// RL4, HD24: the unsealed records of each stream are moved to the new shard, regardless of the streams' progress.
#[test]
fn rl4_a_new_shard_starts_with_the_unsealed_records_of_each_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, [access, security]) = two_streams(dir.path());
    journal.mark_sealed(Stream::Access, 19).unwrap();
    journal.mark_sealed(Stream::Security, 3).unwrap();
    let (journal, _) = journal.into_new_shard().unwrap();
    let content = |records: &[Unsealed]| -> Vec<_> {
        let decode = |entry: &Unsealed| gw_audit::Entry::decode(&entry.bytes, &entry.openings).unwrap().content;
        records.iter().map(decode).collect()
    };
    let moved = |stream| content(&journal.unsealed(stream, 100).unwrap()[1..]);
    assert_eq!(moved(Stream::Access), content(&access[19..]));
    assert_eq!(moved(Stream::Security), content(&security[3..]));
}
