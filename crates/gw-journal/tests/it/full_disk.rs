//! A disk that is too small for all retained segments.

use crate::support::{open, open_with, options, record};
use gw_audit::Stream;
use gw_journal::{Journal, JournalConfig, JournalError};
use gw_testkit::FullDisk;
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Appends records until the journal accepts none; returns their number.
fn fill(journal: &Journal) -> u32 {
    let mut count = 0;
    loop {
        match journal.append(record(count)) {
            Ok(_) => count += 1,
            Err(JournalError::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    journal.sync().unwrap();
    count
}

/// Seals everything that is durable, as the sealer does.
fn seal(journal: &Journal) {
    loop {
        let batch = journal.unsealed(Stream::Access, 1000).unwrap();
        let Some(last) = batch.last() else { return };
        journal.mark_sealed(Stream::Access, last.seq + 1).unwrap();
    }
}

/// Waits for the flush thread.
fn admits_within(journal: &Journal, time: Duration) -> bool {
    let start = Instant::now();
    while !journal.can_admit() {
        if start.elapsed() > time {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn segment_numbers(dir: &Path, journal: &Journal) -> Vec<String> {
    let files = std::fs::read_dir(dir.join(journal.shard().to_string())).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".segment"))
        .collect();
    names.sort();
    names
}

/// HD25: sealed segments are retained only as long as the disk has room for new records. Unsealed ones stay.
#[test]
fn hd25_sealed_segments_give_way_when_the_disk_is_full() {
    let Some(disk) = FullDisk::mount(6) else { return };
    let dir = disk.path().join("journal");
    let (journal, _) = open(&dir);
    let count = fill(&journal);
    let before = segment_numbers(&dir, &journal);
    assert!(
        !admits_within(&journal, Duration::from_secs(1)),
        "unsealed records never give way"
    );
    assert_eq!(segment_numbers(&dir, &journal), before);
    // Another program takes the rest, to the last byte.
    disk.fill().unwrap();
    seal(&journal);
    assert!(
        admits_within(&journal, Duration::from_secs(30)),
        "the journal continues without a restart"
    );
    let after = segment_numbers(&dir, &journal);
    assert!(!after.contains(&before[0]), "the oldest gives way: {after:?}");
    for n in 0..count {
        journal.append(record(n)).unwrap();
        if n % 500 == 0 {
            journal.sync().unwrap();
            seal(&journal);
            assert!(admits_within(&journal, Duration::from_secs(30)), "{n} of {count}");
        }
    }
    journal.sync().unwrap();
    let records = journal.heads().unwrap()[0].1.size;
    drop(journal);
    let (journal, recovery) = open(&dir);
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert_eq!(journal.heads().unwrap()[0].1.size, records);
}

/// The journal shares its disk with the stores: an attempt to create a segment for which there is no room takes nothing
/// from them, not even for a moment.
#[test]
fn a_segment_without_room_takes_no_byte_of_the_disk() {
    let Some(disk) = FullDisk::mount(64) else { return };
    let dir = disk.path().join("journal");
    let large = JournalConfig {
        segment_bytes: 30 << 20,
        ..options(&dir)
    };
    // There is room for one segment, not for two.
    std::fs::write(disk.path().join("store"), vec![1; 20 << 20]).unwrap();
    let (journal, _) = open_with(large).unwrap();
    let _ = fill(&journal);
    let wal = disk.path().join("wal");
    let writes = std::thread::spawn(move || {
        for _ in 0..400 {
            std::fs::write(&wal, vec![1; 1 << 20])?;
        }
        Ok::<(), std::io::Error>(())
    });
    while !writes.is_finished() {
        assert!(!journal.can_admit());
    }
    writes.join().unwrap().unwrap();
}
