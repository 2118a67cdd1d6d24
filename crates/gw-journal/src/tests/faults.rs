//! A disk that fails: failing writes, and fsyncs that fail after writes that seemed to succeed.

use super::{append, disk, files, numbers, open, open_still, options, record, sources};
use crate::journal::{Journal, JournalConfig};
use crate::segment::Segment;
use crate::{JournalError, flush};
use std::fs::{File, OpenOptions};
use std::sync::Arc;

/// Replaces the file of the current segment by a device.
fn replace_segment_file(journal: &Journal, device: &str) {
    let file = OpenOptions::new().read(true).write(true).open(device).unwrap();
    journal.shared.writer().unwrap().segment.file = Arc::new(file);
}

fn durable(journal: &Journal) -> u64 {
    journal.shared.durable_lsn()
}

#[test]
fn hd22_after_a_failed_write_records_go_to_a_new_segment() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    append(&journal, 5..8);
    replace_segment_file(&journal, "/dev/full");
    let position = journal.append(record(8)).unwrap();
    assert_eq!(durable(&journal), position.lsn, "the new segment was synced at once");
    journal.append(record(9)).unwrap();
    assert!(journal.sync().is_ok());
    assert_eq!(numbers(&journal), (0..10).collect::<Vec<_>>());
    drop(journal);
    let (journal, recovery) = open(dir.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert_eq!(numbers(&journal), (0..10).collect::<Vec<_>>());
}

/// The null device accepts every write, stores nothing, and fails at fsync: like a disk that reports false success.
#[test]
fn hd22_after_a_failed_fsync_records_are_written_from_memory() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    replace_segment_file(&journal, "/dev/null");
    let lost = append(&journal, 5..9);
    assert!(durable(&journal) < lost.lsn);
    flush::sync(&journal.shared);
    assert_eq!(durable(&journal), lost.lsn);
    drop(journal);
    let (journal, _) = open(dir.path()).unwrap();
    assert_eq!(numbers(&journal), (0..9).collect::<Vec<_>>());
}

#[test]
fn hd22_a_segment_that_failed_before_its_first_fsync_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    replace_segment_file(&journal, "/dev/null");
    journal.append(record(5)).unwrap();
    flush::sync(&journal.shared);
    drop(journal);
    let (journal, _) = open(dir.path()).unwrap();
    assert_eq!(numbers(&journal), (0..6).collect::<Vec<_>>());
}

/// Makes the disk fail: the current segment cannot be written, there is no spare, and no new file can be created.
/// Returns the directory to be restored.
fn break_disk(journal: &Journal) -> std::path::PathBuf {
    replace_segment_file(journal, "/dev/full");
    let mut writer = journal.shared.writer().unwrap();
    writer.spare = None;
    let dir = writer.dir.clone();
    writer.dir = dir.join("gone");
    dir
}

#[test]
fn rl12_while_no_file_accepts_the_records_nothing_is_admitted() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    let first = journal.append(record(0)).unwrap();
    flush::sync(&journal.shared);
    let files = break_disk(&journal);
    let waits = journal.durable(crate::Position {
        lsn: first.lsn + 1,
        ..first
    });
    assert_eq!(journal.append(record(1)), Err(JournalError::Unavailable));
    assert_eq!(journal.append(record(2)), Err(JournalError::Unavailable));
    assert_eq!(journal.reserve(1).unwrap_err(), JournalError::Unavailable);
    assert!(journal.backlog().failing && !journal.can_admit());
    for _ in 0..20 {
        assert!(!flush::heal(&journal.shared));
    }
    assert_eq!(
        block_on(waits),
        Err(JournalError::Unavailable),
        "a caller that waits for too long gets an error"
    );
    assert_eq!(
        block_on(journal.durable(first)),
        Ok(()),
        "a durable record stays durable"
    );
    let unsynced = journal.shared.writer().unwrap().unsynced.len();
    assert!(journal.append(record(3)).is_err());
    assert_eq!(
        journal.shared.writer().unwrap().unsynced.len(),
        unsynced,
        "a rejected record is not kept"
    );
    journal.shared.writer().unwrap().dir = files;
}

#[test]
fn rl12_after_a_disk_failure_nothing_is_lost_and_the_journal_continues() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    let last = append(&journal, 5..8);
    let mut reservation = journal.reserve(2).unwrap();
    let waits = journal.durable(last);
    let files = break_disk(&journal);
    flush::sync(&journal.shared);
    assert_eq!(reservation.append(record(8)), Err(JournalError::Unavailable));
    assert_eq!(journal.append(record(99)), Err(JournalError::Unavailable));
    assert!(!flush::heal(&journal.shared));
    journal.shared.writer().unwrap().dir = files;
    assert!(flush::heal(&journal.shared));
    assert_eq!(block_on(waits), Ok(()));
    assert!(journal.can_admit() && !journal.backlog().failing);
    reservation.append(record(9)).unwrap();
    assert!(journal.append(record(10)).is_ok() && journal.sync().is_ok());
    assert_eq!(
        numbers(&journal),
        (0..11).collect::<Vec<_>>(),
        "including the records appended to reserved room in the meantime"
    );
    drop((reservation, journal));
    let (journal, recovery) = open(dir.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert_eq!(numbers(&journal), (0..11).collect::<Vec<_>>());
}

/// RL12: the flush thread retries by itself, and waiting callers get an answer.
#[test]
fn rl12_the_flusher_heals_the_journal_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    let first = journal.append(record(0)).unwrap();
    assert_eq!(block_on(journal.durable(first)), Ok(()));
    let files = break_disk(&journal);
    assert_eq!(journal.append(record(1)), Err(JournalError::Unavailable));
    let waits = journal.durable(crate::Position {
        lsn: first.lsn + 1,
        ..first
    });
    assert_eq!(block_on(waits), Err(JournalError::Unavailable));
    journal.shared.writer().unwrap().dir = files;
    while journal.backlog().failing {
        std::thread::yield_now();
    }
    let next = journal.append(record(2)).unwrap();
    assert_eq!(block_on(journal.durable(next)), Ok(()));
    assert_eq!(numbers(&journal), [0, 1, 2]);
}

#[test]
fn rl12_failed_attempts_leave_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    let segments = crate::segment::list(&files(dir.path())).unwrap();
    append(&journal, 5..6);
    // Files can be created, but not written.
    super::disk::start(None);
    journal.shared.writer().unwrap().spare = None;
    replace_segment_file(&journal, "/dev/full");
    for _ in 0..10 {
        super::disk::start(Some((4, super::disk::Fault::DiskError(1))));
        let is_rejected = journal.append(record(7)).is_err();
        assert!(is_rejected || flush::heal(&journal.shared));
        if !is_rejected {
            break;
        }
        super::disk::start(Some((5, super::disk::Fault::DiskError(1))));
        assert!(!flush::heal(&journal.shared));
    }
    super::disk::stop();
    assert!(crate::segment::list(&files(dir.path())).unwrap().len() <= segments.len());
    assert!(flush::heal(&journal.shared));
    assert_eq!(numbers(&journal)[..6], [0, 1, 2, 3, 4, 5]);
}

/// RL12: `/ready` and admission use the same check.
#[test]
fn rl12_a_full_journal_admits_no_send() {
    let dir = tempfile::tempdir().unwrap();
    let options = crate::JournalConfig {
        max_bytes: 300 << 10,
        ..super::options(dir.path())
    };
    let (clock, entropy) = super::sources(0);
    let (journal, _) = Journal::open(options, clock, entropy).unwrap();
    assert!(journal.can_admit());
    let mut reservations = Vec::new();
    while let Ok(reservation) = journal.reserve(3) {
        assert!(journal.can_admit() || journal.reserve(3).is_err());
        reservations.push(reservation);
    }
    let backlog = journal.backlog();
    assert!(
        !journal.can_admit() && backlog.bytes < backlog.max_bytes,
        "the journal is full by reservations alone"
    );
    reservations.pop();
    assert!(journal.can_admit());
}

#[test]
fn hd22_the_result_of_a_sync_is_ignored_after_a_failover() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    journal.append(record(0)).unwrap();
    let job = journal.shared.writer().unwrap().sync_job().unwrap();
    replace_segment_file(&journal, "/dev/full");
    journal.append(record(1)).unwrap();
    let mut writer = journal.shared.writer().unwrap();
    assert!(!writer.finish_sync(&job, Ok(())));
    drop(writer);
    assert_eq!(numbers(&journal), [0, 1]);
}

#[test]
fn rule_11_the_error_names_a_directory_that_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    File::create(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot use `{}`", path.display()));
}

#[test]
fn a_spare_segment_created_too_late_is_returned() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    let mut writer = journal.shared.writer().unwrap();
    writer.spare = None;
    let number = writer.spare_number().unwrap();
    let late = crate::segment::Segment::create(&files(dir.path()), number, 1 << 20).unwrap();
    drop(writer);
    replace_segment_file(&journal, "/dev/full");
    journal.append(record(0)).unwrap();
    assert!(journal.shared.writer().unwrap().offer_spare(late).is_some());
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::yield_now();
    }
}

/// RL12: the journal has one segment with records and one created in advance. A start succeeds without disk space for a
/// third one, and then admits records.
#[test]
fn rl12_a_start_needs_no_room_for_a_third_segment() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    let number = journal.shared.writer().unwrap().spare_number();
    let files = journal.shared.writer().unwrap().dir.clone();
    if let Some(number) = number {
        Segment::create(&files, number, 256 << 10).unwrap();
    }
    drop(journal);
    disk::start_with_room(64 << 10);
    let (journal, recovery) = open(dir.path()).unwrap();
    disk::stop();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert!(journal.can_admit() && journal.append(record(5)).is_ok() && journal.sync().is_ok());
    assert_eq!(numbers(&journal), (0..6).collect::<Vec<_>>());
}

/// RL12: without a segment created in advance, a start creates a smaller segment. If there is too little room for that,
/// the journal opens without room for records.
#[test]
fn rl12_a_start_on_a_nearly_full_disk_creates_a_smaller_segment() {
    let dir = tempfile::tempdir().unwrap();
    let config = |segment_bytes| JournalConfig {
        segment_bytes,
        ..options(dir.path())
    };
    let open = |options| {
        let (clock, entropy) = sources(9 << 40);
        Journal::open(options, clock, entropy)
    };
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    let spare = journal.shared.writer().unwrap().spare.take();
    drop(journal);
    if let Some(spare) = spare {
        std::fs::remove_file(spare.path).unwrap();
    }
    disk::start_with_room(100 << 10);
    let (journal, _) = open(config(8 << 20)).unwrap();
    assert!(
        journal.shared.writer().unwrap().failing,
        "no room for the records of one call"
    );
    assert_eq!(numbers(&journal), (0..5).collect::<Vec<_>>());
    drop(journal);
    disk::start_with_room(1 << 20);
    let (journal, recovery) = open(config(8 << 20)).unwrap();
    disk::stop();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert!(journal.can_admit() && journal.append(record(5)).is_ok() && journal.sync().is_ok());
    assert_eq!(numbers(&journal), (0..6).collect::<Vec<_>>());
}
