//! A disk that fails: writes that are refused, fsyncs that fail after writes that seemed to work.

use super::{append, files, numbers, open, open_still, record};
use crate::journal::Journal;
use crate::{JournalError, flush};
use std::fs::{File, OpenOptions};
use std::sync::Arc;

/// From here on the segment being written is this device.
fn replace_by(journal: &Journal, device: &str) {
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
    replace_by(&journal, "/dev/full");
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

/// The null device takes every write and keeps nothing, and its fsync fails: a disk that lied.
#[test]
fn hd22_after_a_failed_fsync_records_come_from_memory() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    replace_by(&journal, "/dev/null");
    let lost = append(&journal, 5..9);
    assert!(durable(&journal) < lost.lsn);
    flush::sync(&journal.shared);
    assert_eq!(durable(&journal), lost.lsn);
    drop(journal);
    let (journal, _) = open(dir.path()).unwrap();
    assert_eq!(numbers(&journal), (0..9).collect::<Vec<_>>());
}

#[test]
fn hd22_a_segment_that_failed_before_its_first_fsync_counts_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    replace_by(&journal, "/dev/null");
    journal.append(record(5)).unwrap();
    flush::sync(&journal.shared);
    drop(journal);
    let (journal, _) = open(dir.path()).unwrap();
    assert_eq!(numbers(&journal), (0..6).collect::<Vec<_>>());
}

#[test]
fn hd22_when_no_other_file_takes_the_records_the_service_stops() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    let first = journal.append(record(0)).unwrap();
    flush::sync(&journal.shared);
    replace_by(&journal, "/dev/full");
    // Neither a spare nor a new file can be had.
    let mut writer = journal.shared.writer().unwrap();
    writer.spare = None;
    writer.dir = dir.path().join("gone");
    drop(writer);
    let waits = journal.durable(crate::Position { lsn: first.lsn + 1, ..first });
    assert_eq!(journal.append(record(1)), Err(JournalError::Unavailable));
    assert_eq!(journal.append(record(2)), Err(JournalError::Unavailable));
    assert_eq!(journal.reserve(1).unwrap_err(), JournalError::Unavailable);
    assert_eq!(block_on(waits), Err(JournalError::Unavailable), "who waits is told");
    assert_eq!(block_on(journal.durable(first)), Ok(()), "what was durable stays so");
    assert!(journal.backlog().dead);
}

#[test]
fn hd22_a_sync_that_failed_over_meanwhile_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    journal.append(record(0)).unwrap();
    let job = journal.shared.writer().unwrap().sync_job().unwrap();
    replace_by(&journal, "/dev/full");
    journal.append(record(1)).unwrap();
    let mut writer = journal.shared.writer().unwrap();
    assert!(!writer.synced(&job, Ok(())));
    drop(writer);
    assert_eq!(numbers(&journal), [0, 1]);
}

#[test]
fn rule_11_a_directory_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    File::create(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot use `{}`", path.display()));
}

#[test]
fn a_spare_made_too_late_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    let mut writer = journal.shared.writer().unwrap();
    writer.spare = None;
    let number = writer.wants_spare().unwrap();
    let late = crate::segment::Segment::create(&files(dir.path()), number, 1 << 20).unwrap();
    drop(writer);
    replace_by(&journal, "/dev/full");
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
