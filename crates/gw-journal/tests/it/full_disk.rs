//! A disk that is too small for all retained segments.

use crate::support::{open, open_with, options, record};
use gw_audit::{AccessRecord, Content, Entry, Record, SecurityEvent, SecurityKind, Stream};
use gw_journal::{AccessRecorder, Journal, JournalConfig, JournalError, Unsealed, WhenFull};
use gw_testkit::FullDisk;
use std::{
    path::Path,
    sync::Arc,
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

/// HD25: a process is killed and started again while its journal's disk is full of records that no store takes. Every
/// start succeeds, every record can be sealed, and the journal admits records again once they are.
#[test]
fn hd25_starts_on_a_disk_full_of_unsealed_records_succeed_and_make_room() {
    let Some(disk) = FullDisk::mount(6) else { return };
    let dir = disk.path().join("journal");
    let mut records = 0;
    for cycle in 0..12 {
        let (journal, recovery) = open(&dir);
        assert_eq!((recovery.torn, recovery.salvaged), (0, 0), "cycle {cycle}");
        while journal.append(record(records)).is_ok() {
            records += 1;
        }
        let _ = journal.sync();
        journal.note_start().unwrap();
        drop(journal);
        if cycle % 2 == 1 {
            // Another program takes the rest, to the last byte.
            disk.fill().unwrap();
            let (journal, _) = open(&dir);
            journal.note_start().unwrap();
            drop(journal);
            disk.free().unwrap();
        }
    }
    disk.fill().unwrap();
    let (journal, _) = open(&dir);
    let mut sealed = 0;
    loop {
        let batch = journal.unsealed(Stream::Access, 1000).unwrap();
        let Some(last) = batch.last() else { break };
        sealed = last.seq + 1;
        journal.mark_sealed(Stream::Access, sealed).unwrap();
    }
    // The first entry of a chain is its genesis.
    assert_eq!(
        sealed,
        u64::from(records) + 1,
        "every acknowledged record can be sealed"
    );
    assert!(
        admits_within(&journal, Duration::from_secs(30)),
        "sealed records make room"
    );
    journal.append(record(records)).unwrap();
    journal.sync().unwrap();
}

/// HD25: a finding of the start, such as `journal_torn`, does not stop the start on a full disk. It is recorded when
/// there is room.
#[tokio::test]
async fn hd25_a_finding_of_the_start_waits_for_room() {
    let Some(disk) = FullDisk::mount(6) else { return };
    let dir = disk.path().join("journal");
    let (journal, _) = open(&dir);
    fill(&journal);
    drop(journal);
    disk.fill().unwrap();
    let (journal, _) = open(&dir);
    let journal = Arc::new(journal);
    let torn = SecurityEvent {
        count: Some(7),
        ..SecurityEvent::new(SecurityKind::JournalTorn)
    };
    assert_eq!(journal.append_or_keep(torn), Ok(false), "the disk is full");
    disk.free().unwrap();
    seal(&journal);
    assert!(admits_within(&journal, Duration::from_secs(30)));
    let mut call = AccessRecorder::open(&journal, AccessRecord::new("call", 0), WhenFull::Refuse).unwrap();
    call.finish(200, true).await.unwrap();
    journal.sync().unwrap();
    let entries = journal.unsealed(Stream::Security, 10).unwrap();
    let is_torn = |entry: &Unsealed| match Entry::decode(&entry.bytes, &entry.openings).unwrap().content {
        Content::Record(Record::Security(event)) => event.kind == SecurityKind::JournalTorn && event.count == Some(7),
        _ => false,
    };
    assert_eq!(entries.iter().filter(|entry| is_torn(entry)).count(), 1);
    // Where there is room, an event is written at once.
    let written = journal.append_or_keep(SecurityEvent::new(SecurityKind::JournalLost));
    assert_eq!(written, Ok(true));
}

/// A disk that another program filled completely, with only one segment of the journal on it.
#[test]
fn hd25_a_start_on_a_full_disk_with_one_sealed_segment_makes_room() {
    let Some(disk) = FullDisk::mount(6) else { return };
    let dir = disk.path().join("journal");
    let (journal, _) = open(&dir);
    for n in 0..1000 {
        journal.append(record(n)).unwrap();
    }
    journal.sync().unwrap();
    journal.note_start().unwrap();
    drop(journal);
    // Only the segment with records stays, without its unused rest, and another program fills the disk.
    let shard = dir.join(std::fs::read_to_string(dir.join("shard")).unwrap().trim());
    for file in std::fs::read_dir(&shard).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|suffix| suffix == "segment") {
            match std::fs::read(&file).unwrap().iter().rposition(|byte| *byte != 0) {
                None => std::fs::remove_file(file).unwrap(),
                Some(last) => {
                    let segment = std::fs::OpenOptions::new().write(true).open(file).unwrap();
                    segment.set_len(last as u64 + 16).unwrap();
                }
            }
        }
    }
    disk.fill().unwrap();
    let (journal, _) = open(&dir);
    assert!(!journal.can_admit() && journal.append(record(0)).is_err());
    journal.note_start().unwrap();
    seal(&journal);
    assert!(
        admits_within(&journal, Duration::from_secs(30)),
        "sealed records make room"
    );
    journal.append(record(0)).unwrap();
    journal.sync().unwrap();
    drop(journal);
    let (journal, recovery) = open(&dir);
    assert_eq!((recovery.torn, recovery.salvaged), (0, 0));
    assert_eq!(journal.heads().unwrap()[0].1.size, 1002);
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
