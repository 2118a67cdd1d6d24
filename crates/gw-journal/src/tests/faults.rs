//! A disk that fails: writes that are refused, fsyncs that fail after writes that seemed to work.

use super::{Counter, append, disk, files, numbers, open, open_still, options, record};
use crate::journal::{Journal, Options};
use crate::segment::Segment;
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

/// Neither a spare nor a new file can be had.
fn refuse(journal: &Journal) -> std::path::PathBuf {
    replace_by(journal, "/dev/full");
    let mut writer = journal.shared.writer().unwrap();
    writer.spare = None;
    let dir = writer.dir.clone();
    writer.dir = dir.join("gone");
    dir
}

#[test]
fn rl12_when_no_other_file_takes_the_records_nothing_is_admitted() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    let first = journal.append(record(0)).unwrap();
    flush::sync(&journal.shared);
    let files = refuse(&journal);
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
        "who waits for too long is told"
    );
    assert_eq!(block_on(journal.durable(first)), Ok(()), "what was durable stays so");
    let unsynced = journal.shared.writer().unwrap().unsynced.len();
    assert!(journal.append(record(3)).is_err());
    assert_eq!(
        journal.shared.writer().unwrap().unsynced.len(),
        unsynced,
        "what is refused is not kept"
    );
    journal.shared.writer().unwrap().dir = files;
}

#[test]
fn rl12_a_healed_disk_loses_nothing_and_the_journal_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    let last = append(&journal, 5..8);
    let mut room = journal.reserve(2).unwrap();
    let waits = journal.durable(last);
    let files = refuse(&journal);
    flush::sync(&journal.shared);
    assert_eq!(
        journal.append_reserved(&mut room, record(8)),
        Err(JournalError::Unavailable)
    );
    assert_eq!(journal.append(record(99)), Err(JournalError::Unavailable));
    assert!(!flush::heal(&journal.shared));
    journal.shared.writer().unwrap().dir = files;
    assert!(flush::heal(&journal.shared));
    assert_eq!(block_on(waits), Ok(()));
    assert!(journal.can_admit() && !journal.backlog().failing);
    journal.append_reserved(&mut room, record(9)).unwrap();
    assert!(journal.append(record(10)).is_ok() && journal.sync().is_ok());
    assert_eq!(
        numbers(&journal),
        (0..11).collect::<Vec<_>>(),
        "with what came into reserved room meanwhile"
    );
    drop((room, journal));
    let (journal, recovery) = open(dir.path()).unwrap();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert_eq!(numbers(&journal), (0..11).collect::<Vec<_>>());
}

/// RL12: the flusher finds out by itself, and whoever waited is answered.
#[test]
fn rl12_the_flusher_heals_the_journal_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path()).unwrap();
    let first = journal.append(record(0)).unwrap();
    assert_eq!(block_on(journal.durable(first)), Ok(()));
    let files = refuse(&journal);
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
fn rl12_tries_that_fail_leave_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    let before = crate::segment::list(&files(dir.path())).unwrap();
    append(&journal, 5..6);
    // Files can be made, but not be filled.
    super::disk::start(None);
    journal.shared.writer().unwrap().spare = None;
    replace_by(&journal, "/dev/full");
    for _ in 0..10 {
        super::disk::start(Some((4, super::disk::Fault::Refuses(1))));
        let refused = journal.append(record(7)).is_err();
        assert!(refused || flush::heal(&journal.shared));
        if !refused {
            break;
        }
        super::disk::start(Some((5, super::disk::Fault::Refuses(1))));
        assert!(!flush::heal(&journal.shared));
    }
    super::disk::stop();
    assert!(crate::segment::list(&files(dir.path())).unwrap().len() <= before.len());
    assert!(flush::heal(&journal.shared));
    assert_eq!(numbers(&journal)[..6], [0, 1, 2, 3, 4, 5]);
}

/// RL12: `/ready` and admission are one test.
#[test]
fn rl12_a_full_journal_admits_no_send() {
    let dir = tempfile::tempdir().unwrap();
    let options = crate::Options {
        max_bytes: 300 << 10,
        ..super::options(dir.path())
    };
    let counter = Arc::new(super::Counter::default());
    let (journal, _) = Journal::open(options, Arc::<super::Counter>::clone(&counter), counter).unwrap();
    assert!(journal.can_admit());
    let mut rooms = Vec::new();
    while let Ok(room) = journal.reserve(3) {
        assert!(journal.can_admit() || journal.reserve(3).is_err());
        rooms.push(room);
    }
    let backlog = journal.backlog();
    assert!(
        !journal.can_admit() && backlog.bytes < backlog.max_bytes,
        "no byte is written, and yet it is full"
    );
    rooms.pop();
    assert!(journal.can_admit());
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

/// RL12: two segments stand there, one with a record and one made in advance. No room for a third one keeps nobody from
/// starting, and what starts admits records.
#[test]
fn rl12_a_start_needs_no_room_for_a_third_segment() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open_still(dir.path());
    append(&journal, 0..5);
    flush::sync(&journal.shared);
    let number = journal.shared.writer().unwrap().wants_spare();
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

/// RL12: where nothing was made in advance, a start takes a smaller segment; with too little room for one it fails and
/// leaves everything as it is.
#[test]
fn rl12_a_start_on_a_nearly_full_disk_takes_a_smaller_segment() {
    let dir = tempfile::tempdir().unwrap();
    let of = |segment_bytes| Options {
        segment_bytes,
        ..options(dir.path())
    };
    let open = |options| {
        let counter = Arc::new(Counter::default());
        counter.0.store(9 << 40, std::sync::atomic::Ordering::Relaxed);
        Journal::open(options, Arc::<Counter>::clone(&counter), counter)
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
    assert!(open(of(8 << 20)).is_err(), "no room for what one call may need");
    disk::start_with_room(1 << 20);
    let (journal, recovery) = open(of(8 << 20)).unwrap();
    disk::stop();
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert!(journal.can_admit() && journal.append(record(5)).is_ok() && journal.sync().is_ok());
    assert_eq!(numbers(&journal), (0..6).collect::<Vec<_>>());
}
