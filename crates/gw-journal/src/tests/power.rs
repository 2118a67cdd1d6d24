//! Power cuts: bytes behind the last fsync may be lost, torn or out of order.

use super::{append, files, numbers, open, open_still, record, segment};
use crate::frame::MARKER;
use crate::segment::FIRST_FRAME;
use crate::{OpenError, flush};
use gw_audit::Stream;
use proptest::prelude::*;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Offsets in the segment of [`cut_off`].
struct Offsets {
    /// The marker behind the ten durable records.
    marker: u64,
    /// The bytes of the unsynced records 10 to 19.
    unsynced: Vec<std::ops::Range<u64>>,
}

/// Writes ten durable records and ten more without fsync; then the machine stops.
fn cut_off(dir: &Path) -> Offsets {
    let journal = open_still(dir);
    let end = || journal.shared.writer().unwrap().segment.end;
    append(&journal, 0..10);
    flush::sync(&journal.shared);
    let marker = end() - MARKER as u64;
    let mut append_record = |n| {
        let start = end();
        journal.append(record(n)).unwrap();
        start..end()
    };
    let unsynced = (10..20).map(&mut append_record).collect();
    // The journal is not closed, because closing would sync.
    std::mem::forget(journal);
    Offsets { marker, unsynced }
}

/// A copy of the directory for the next start, because the forgotten journal still holds the lock.
fn after_power_cut(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(dir.join("shard"), copy.path().join("shard")).unwrap();
    let target = copy.path().join(files(dir).file_name().unwrap());
    std::fs::create_dir(&target).unwrap();
    for entry in std::fs::read_dir(files(dir)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
    }
    copy
}

fn damage(path: &Path, offset: u64, bytes: &[u8]) {
    std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .write_all_at(bytes, offset)
        .unwrap();
}

fn reopened_numbers(dir: &Path) -> Vec<u64> {
    numbers(&open(dir).unwrap().0)
}

#[test]
fn hd25_unsynced_records_that_survived_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    cut_off(dir.path());
    let copy = after_power_cut(dir.path());
    let (journal, recovery) = open(copy.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert_eq!(numbers(&journal), (0..20).collect::<Vec<_>>());
}

/// HD22: an fsync that failed before the process died is not repeated; the records it did not cover are written again.
#[test]
fn hd22_records_not_known_to_be_on_disk_are_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = cut_off(dir.path());
    let copy = after_power_cut(dir.path());
    let old_segment = segment(copy.path());
    assert_eq!(reopened_numbers(copy.path()), (0..20).collect::<Vec<_>>());
    // The last ten records were only in the page cache. They are evicted from it and never were on the disk.
    let lost = offsets.unsynced[0].start..offsets.unsynced[9].end;
    damage(
        &old_segment,
        lost.start,
        &vec![0; usize::try_from(lost.end - lost.start).unwrap()],
    );
    let (journal, recovery) = open(copy.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert_eq!(numbers(&journal), (0..20).collect::<Vec<_>>());
}

#[test]
fn rule_12_a_torn_tail_is_cut_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = cut_off(dir.path());
    let copy = after_power_cut(dir.path());
    damage(&segment(copy.path()), offsets.unsynced[9].end - 3, &[0; 3]);
    let (journal, recovery) = open(copy.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (1, 0));
    assert_eq!(numbers(&journal), (0..19).collect::<Vec<_>>());
    let next = journal.append(record(77)).unwrap();
    assert_eq!(next.seq, 20, "after the genesis and nineteen records");
}

#[test]
fn hd25_intact_records_behind_a_torn_one_are_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = cut_off(dir.path());
    let copy = after_power_cut(dir.path());
    // A lost page: records 12 and 13 read as zeros.
    let lost = offsets.unsynced[2].start..offsets.unsynced[3].end;
    damage(
        &segment(copy.path()),
        lost.start,
        &vec![0; usize::try_from(lost.end - lost.start).unwrap()],
    );
    let (journal, recovery) = open(copy.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (2, 6));
    let expected: Vec<u64> = (0..12).chain(14..20).collect();
    assert_eq!(numbers(&journal), expected);
    drop(journal);
    assert_eq!(
        reopened_numbers(copy.path()),
        expected,
        "the next start reads the same records"
    );
}

#[test]
fn hd25_damage_to_durable_records_stops_the_shard() {
    let dir = tempfile::tempdir().unwrap();
    cut_off(dir.path());
    for offset in [4096, 4200, 4096 + 1500] {
        let copy = after_power_cut(dir.path());
        damage(&segment(copy.path()), offset, b"\xff\xff");
        let error = open(copy.path()).unwrap_err();
        assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    }
}

/// The marker alone shows that the records were durable, even if the header was lost in the power cut.
#[test]
fn hd25_damage_before_a_marker_stops_the_shard_without_the_header() {
    let dir = tempfile::tempdir().unwrap();
    cut_off(dir.path());
    let copy = after_power_cut(dir.path());
    let shard = std::fs::read_to_string(copy.path().join("shard"))
        .unwrap()
        .parse::<uuid::Uuid>()
        .unwrap();
    drop(crate::header::Header::create(&files(copy.path()), gw_audit::ShardId(shard)).unwrap());
    damage(&segment(copy.path()), 4200, b"\xff\xff");
    let OpenError::Corrupt { what, .. } = open(copy.path()).unwrap_err() else {
        panic!()
    };
    assert_eq!(what, "a record known to be durable is damaged");
}

#[test]
fn rule_12_removed_segments_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    journal.append(record(1)).unwrap();
    drop(journal);
    let path = segment(dir.path());
    std::fs::remove_file(&path).unwrap();
    let OpenError::Corrupt { what, .. } = open(dir.path()).unwrap_err() else {
        panic!()
    };
    assert_eq!(what, "records known to be durable are missing");
    std::fs::remove_file(dir.path().join("shard")).unwrap();
    std::fs::write(files_of(dir.path()).join("000000000009.segment"), []).unwrap();
    assert!(
        matches!(open(dir.path()).unwrap_err(), OpenError::Corrupt { .. }),
        "records without the file that names the shard"
    );
}

fn files_of(dir: &Path) -> std::path::PathBuf {
    let mut dirs = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    dirs.find(|path| path.is_dir()).unwrap()
}

#[test]
fn hd25_the_second_recovery_reads_the_result_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let offsets = cut_off(dir.path());
    let copy = after_power_cut(dir.path());
    damage(&segment(copy.path()), offsets.unsynced[2].start, &[0xee; 40]);
    let first = open_still(copy.path());
    first.append(record(50)).unwrap();
    let second_copy = after_power_cut(copy.path());
    drop(first);
    let expected: Vec<u64> = (0..12).chain(13..20).chain([50]).collect();
    assert_eq!(reopened_numbers(second_copy.path()), expected);
}

/// The file system wrote a later segment back before an earlier one.
#[test]
fn hd25_salvage_reaches_into_the_next_segment() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..10);
    flush::sync(&journal.shared);
    let first = journal.shared.writer().unwrap().segment.path.clone();
    let damaged_offset = journal.shared.writer().unwrap().segment.end;
    append(&journal, 10..1500);
    assert_ne!(journal.shared.writer().unwrap().segment.path, first);
    std::mem::forget(journal);
    let copy = after_power_cut(dir.path());
    damage(
        &files(copy.path()).join(first.file_name().unwrap()),
        damaged_offset + 20,
        &[0xee; 10],
    );
    let (journal, recovery) = open(copy.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (1, 1489));
    let count = journal.unsealed(Stream::Access, 5000).unwrap().len();
    assert_eq!(count, 1 + 10 + 1489, "with the genesis");
    drop(journal);
    assert_eq!(
        open(copy.path())
            .unwrap()
            .0
            .unsealed(Stream::Access, 5000)
            .unwrap()
            .len(),
        count
    );
}

/// Changes each of `len` bytes.
fn spoil(path: &Path, offset: u64, len: usize, flip: u8) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= flip);
    file.write_all_at(&bytes, offset).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hd25_any_damage_behind_the_last_fsync_loses_only_the_damaged_records(at in any::<prop::sample::Index>(),
        len in 1_usize..900, flip in 1_u8..) {
        let dir = tempfile::tempdir().unwrap();
        let offsets = cut_off(dir.path());
        let copy = after_power_cut(dir.path());
        let unsynced = offsets.unsynced[0].start..offsets.unsynced[9].end;
        let offset = unsynced.start + at.index(usize::try_from(unsynced.end - unsynced.start).unwrap()) as u64;
        spoil(&segment(copy.path()), offset, len, flip);
        let (journal, recovery) = open(copy.path()).unwrap();
        let recovered = numbers(&journal);
        let damaged = offset..offset + len as u64;
        prop_assert_eq!(&recovered[..10], (0..10).collect::<Vec<_>>());
        prop_assert!(recovered.is_sorted_by(|a, b| a < b), "{:?}", recovered);
        for (number, bytes) in (10..).zip(&offsets.unsynced) {
            let is_damaged = bytes.start < damaged.end && damaged.start < bytes.end;
            prop_assert_eq!(recovered.contains(&number), !is_damaged, "{} of {:?}", number, recovered);
        }
        prop_assert!(recovery.torn > 0);
        drop(journal);
        prop_assert_eq!(reopened_numbers(copy.path()), recovered, "a second recovery has the same result");
    }

    #[test]
    fn hd25_any_damage_to_durable_records_stops_the_shard(at in any::<prop::sample::Index>(), len in 1_usize..900,
        flip in 1_u8.., in_head in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let offsets = cut_off(dir.path());
        let copy = after_power_cut(dir.path());
        let records = usize::try_from(offsets.marker - FIRST_FRAME).unwrap();
        let offset = if in_head { at.index(44) as u64 } else { FIRST_FRAME + at.index(records) as u64 };
        spoil(&segment(copy.path()), offset, len, flip);
        let damaged = matches!(open(copy.path()), Err(OpenError::Corrupt { .. }));
        prop_assert!(damaged);
    }
}
