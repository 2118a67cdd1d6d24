use crate::support::{open, open_with, options, record};
use gw_audit::{
    AccessRecord, Action, AdminEntry, Chain, ChainId, Content, Entry, Outcome, Record, ResourceType, SendIntent,
    SendOutcome, Stream,
};
use gw_journal::{Journal, JournalError, OpenError, Unsealed};
use gw_types::{
    B256, Claims, OrgId,
    testing::{ManualClock, SeededEntropy},
};
use std::{collections::HashMap, path::PathBuf, sync::Arc};

/// Reads all durable unsealed access records and marks them as sealed.
fn drain(journal: &Journal) -> Vec<Unsealed> {
    let mut drained = Vec::new();
    loop {
        let batch = journal.unsealed(Stream::Access, 100).unwrap();
        let Some(last) = batch.last() else { return drained };
        journal.mark_sealed(Stream::Access, last.seq + 1).unwrap();
        drained.extend(batch);
    }
}

fn methods(entries: &[Unsealed]) -> Vec<String> {
    let mut methods = Vec::new();
    for entry in entries {
        if let Content::Record(Record::Access(record)) = Entry::decode(&entry.bytes, &entry.openings).unwrap().content {
            methods.push(record.method.into_owned());
        }
    }
    methods
}

fn check_chains(journal: &Journal, entries: &[Unsealed]) {
    let mut chains: HashMap<Stream, Chain> = HashMap::new();
    for entry in entries {
        match chains.get_mut(&entry.stream) {
            Some(chain) => {
                chain.accept(&entry.bytes).unwrap();
            }
            None => {
                let id = ChainId {
                    stream: entry.stream,
                    shard: journal.shard(),
                };
                chains.insert(entry.stream, Chain::replay(id, &entry.bytes).unwrap().0);
            }
        }
    }
}

fn segments(dir: &std::path::Path) -> Vec<PathBuf> {
    let shard = std::fs::read_to_string(dir.join("shard")).unwrap();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir.join(shard))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "segment"))
        .collect();
    paths.sort();
    paths
}

/// 70 rules 11-13: appended records are sealed once and in order, across restarts.
#[tokio::test]
async fn rule_13_records_are_read_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    let mut sealed = Vec::new();
    for round in 0..4 {
        let (journal, recovery) = open(dir.path());
        assert!(recovery.open_intents.is_empty() && recovery.torn == 0);
        let mut last = None;
        for n in 0..500 {
            last = Some(journal.append(record(round * 1000 + n)).unwrap());
            expected.push(format!("eth_call_{}", round * 1000 + n));
        }
        journal.durable(last.unwrap()).await.unwrap();
        if round % 2 == 1 {
            sealed.extend(drain(&journal));
            assert_eq!(journal.backlog().records, 0);
            check_chains(&journal, &sealed);
        }
    }
    assert_eq!(methods(&sealed), expected);
    let (journal, _) = open(dir.path());
    assert!(drain(&journal).is_empty(), "the sealed size survives a restart");
}

/// HD22: a send without outcome is reported at the next start; one with outcome is not.
#[test]
fn hd22_open_intents_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    let mut reservation = journal.reserve(2).unwrap();
    reservation.append(intent(1)).unwrap();
    reservation.append(intent(2)).unwrap();
    let outcome = SendOutcome {
        hash: B256::repeat_byte(1),
        org_id: OrgId::fixed(5),
        outcome: Outcome::Accepted,
        node_code: None,
    };
    journal.append(outcome).unwrap();
    drop((reservation, journal));
    let (_, recovery) = open(dir.path());
    assert_eq!(recovery.open_intents, [intent(2)]);
}

/// HD24: a second process gets an error that names the holder of the directory.
#[test]
fn hd24_the_directory_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let (_journal, _) = open(dir.path());
    match open_with(options(dir.path())) {
        Err(OpenError::Held { holder, .. }) => assert_eq!(holder, "the test"),
        result => panic!("{result:?}"),
    }
}

/// Rule 14, HD22: a full journal rejects records, but not those with reserved room.
#[test]
fn rule_14_a_full_journal_rejects_records_and_reserved_room_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open_with(gw_journal::JournalConfig {
        max_bytes: 300 << 10,
        ..options(dir.path())
    })
    .unwrap();
    let mut reservation = journal.reserve(2).unwrap();
    let mut accepted = 0;
    while journal.append(record(accepted)).is_ok() {
        accepted += 1;
        assert!(accepted < 10_000);
    }
    assert_eq!(journal.append(record(0)), Err(JournalError::Full));
    assert!(journal.reserve(1).is_err());
    reservation.append(record(1)).unwrap();
    reservation.append(record(2)).unwrap();
}

/// Rule 11: the order of appends is the order in the file and in the chain.
#[test]
fn rule_11_records_of_many_threads_have_one_order() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let journal = &journal;
            scope.spawn(move || {
                for n in 0..200 {
                    journal.append(record(thread * 1000 + n)).unwrap();
                }
            });
        }
    });
    drop(journal);
    let (journal, _) = open(dir.path());
    let records = drain(&journal);
    check_chains(&journal, &records);
    assert_eq!(methods(&records).len(), 1600);
    assert!(records.windows(2).all(|pair| pair[0].lsn + 1 == pair[1].lsn));
}

/// Rule 13: records are sealed while other threads append, and segments are created and deleted.
#[test]
fn rule_13_sealing_continues_while_others_append() {
    const WRITERS: u32 = 3;
    const RECORDS: u32 = 3000;
    let dir = tempfile::tempdir().unwrap();
    let small = gw_journal::JournalConfig {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small).unwrap();
    let mut records = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let journal = &journal;
            scope.spawn(move || {
                (0..RECORDS).for_each(|n| assert!(journal.append(record(writer * RECORDS + n)).is_ok()))
            });
        }
        while records.len() < (WRITERS * RECORDS) as usize + 1 {
            records.extend(drain(&journal));
        }
    });
    check_chains(&journal, &records);
    let mut methods = methods(&records);
    methods.sort_unstable();
    methods.dedup();
    assert_eq!(methods.len(), (WRITERS * RECORDS) as usize);
    assert_eq!(journal.backlog().bytes, 0);
}

/// HD25: sealed segments are retained and then deleted.
#[test]
fn hd25_sealed_segments_are_deleted_after_their_retention() {
    let dir = tempfile::tempdir().unwrap();
    let small = gw_journal::JournalConfig {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small).unwrap();
    for n in 0..3000 {
        journal.append(record(n)).unwrap();
    }
    assert!(segments(dir.path()).len() > 3);
    drop(journal);
    let (journal, _) = open_with(gw_journal::JournalConfig {
        retain_bytes: 1,
        ..options(dir.path())
    })
    .unwrap();
    assert_eq!(methods(&drain(&journal)).len(), 3000);
    assert!(segments(dir.path()).len() <= 2, "the current segment and the spare one");
    drop(journal);
    let (journal, _) = open(dir.path());
    let position = journal.append(record(1)).unwrap();
    assert_eq!(
        position.seq, 3001,
        "the chain continues, although its earlier segments are deleted"
    );
}

fn intent(n: u8) -> SendIntent {
    SendIntent {
        hash: B256::repeat_byte(n),
        subject: None,
        org_id: OrgId::fixed(5),
        sender: None,
        nonce: 1,
        visible_to: vec!["did:test:auditor".parse().unwrap()],
        claims: Claims::NONE,
        creates: Vec::new(),
    }
}

/// HD22: an open send is still known after the segment with its intent was deleted.
#[test]
fn hd22_open_intents_survive_the_deletion_of_their_segment() {
    let dir = tempfile::tempdir().unwrap();
    let small = || gw_journal::JournalConfig {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small()).unwrap();
    journal.append(intent(7)).unwrap();
    for n in 0..3000 {
        journal.append(record(n)).unwrap();
    }
    let paths = segments(dir.path());
    journal.sync().unwrap();
    drain(&journal);
    assert!(
        !paths.iter().take(2).any(|path| path.exists()),
        "the segment of the intent is deleted"
    );
    drop(journal);
    for _ in 0..2 {
        let (_, recovery) = open_with(small()).unwrap();
        assert_eq!(recovery.open_intents, [intent(7)]);
    }
}

/// Decision 10: a record that no caller waits for becomes durable within 20 ms and the time of one fsync.
#[test]
fn decision_10_records_become_durable_without_a_waiting_caller() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    journal.append(record(1)).unwrap();
    let start = std::time::Instant::now();
    // Only durable records are returned.
    while journal.unsealed(Stream::Access, 10).unwrap().len() < 2 {
        assert!(
            start.elapsed() < std::time::Duration::from_secs(10),
            "not durable after 10 s"
        );
        std::thread::yield_now();
    }
}

/// Rule 11: one fsync serves many waiting callers, and each of them gets an answer.
#[tokio::test(flavor = "current_thread")]
async fn rule_11_every_waiting_caller_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    let waits: Vec<_> = (0..300)
        .map(|n| journal.durable(journal.append(record(n)).unwrap()))
        .collect();
    for wait in waits {
        wait.await.unwrap();
    }
    assert_eq!(journal.unsealed(Stream::Access, 1000).unwrap().len(), 301);
}

/// HD22: dropping a reservation releases its unused room.
#[test]
fn hd22_unused_room_is_released() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open_with(gw_journal::JournalConfig {
        max_bytes: 64 << 10,
        ..options(dir.path())
    })
    .unwrap();
    let mut reservations = Vec::new();
    while let Ok(reservation) = journal.reserve(1) {
        reservations.push(reservation);
        assert!(reservations.len() < 1000);
    }
    assert_eq!(journal.append(record(0)), Err(JournalError::Full));
    reservations[0].append(record(0)).unwrap();
    drop(reservations);
    assert_eq!(journal.backlog().reserved, 0);
    journal.append(record(1)).unwrap();
}

/// Decision 46: entries of mutations are stored in the outbox of the policy store, never in the journal.
#[test]
fn decision_46_entries_of_mutations_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    let entry = AdminEntry::new(Action::Create, ResourceType::Group);
    assert_eq!(journal.append(entry), Err(JournalError::NotJournaled));
    let long = AccessRecord {
        request_params: Some("x".repeat(70_000)),
        ..record(0)
    };
    assert_eq!(journal.append(long), Err(JournalError::TooLong));
    assert_eq!(
        journal.append(record(0)).unwrap().seq,
        1,
        "rejected records use no number"
    );
}

/// RL12: if the directory is removed or moved while the journal runs, a later start does not find its records.
/// Therefore nothing is reported as durable, not even in the spare segment. The journal continues when the directory
/// exists again.
#[tokio::test]
async fn rl12_a_removed_or_moved_directory_counts_as_a_failed_disk() {
    for removed in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = open(dir.path());
        // The flush thread created the spare segment before.
        journal.durable(journal.append(record(0)).unwrap()).await.unwrap();
        assert_eq!(segments(dir.path()).len(), 2);
        let (files, aside) = (dir.path().join(journal.shard().to_string()), dir.path().join("aside"));
        std::fs::rename(&files, &aside).unwrap();
        if removed {
            std::fs::remove_dir_all(&aside).unwrap();
        }
        // The background sync may fail first; then the record is rejected.
        let appended = journal.append(record(1)).map(drop);
        assert_eq!(
            appended.and_then(|()| journal.sync()),
            Err(JournalError::Unavailable),
            "removed: {removed}"
        );
        assert!(!journal.can_admit(), "removed: {removed}");
        std::fs::create_dir(&files).unwrap();
        let is_healed = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            journal.can_admit()
        });
        assert!(is_healed, "removed: {removed}");
        journal.append(record(2)).unwrap();
        journal.sync().unwrap();
    }
}

/// HD24: every start has the next number and an id of its own, and a damaged file is not taken for a new journal.
#[test]
fn hd24_starts_are_counted_in_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    assert_eq!(journal.newest_start().unwrap(), None);
    let first = journal.note_start().unwrap();
    let second = journal.note_start().unwrap();
    assert_eq!((first.number, second.number), (1, 2));
    assert_ne!(first.id, second.id);
    let shard = journal.shard().to_string();
    drop(journal);
    let (journal, _) = open(dir.path());
    assert_eq!(journal.newest_start().unwrap(), Some(second));
    std::fs::write(dir.path().join(shard).join("start"), "7").unwrap();
    assert!(matches!(journal.newest_start(), Err(OpenError::Corrupt { .. })));
    drop(journal);
    // Other ids than those that exist already.
    let clock = Arc::new(ManualClock::default());
    let (journal, _) = Journal::open(options(dir.path()), clock, Arc::new(SeededEntropy::new(100))).unwrap();
    let (journal, _) = journal.into_new_shard().unwrap();
    assert_eq!(journal.newest_start().unwrap(), None, "another shard");
}
