use crate::support::{open, open_with, options, record};
use gw_audit::{
    AccessRecord, Action, AdminEntry, Chain, ChainId, Content, Entry, Outcome, Record, ResourceType, SendIntent,
    SendOutcome, Stream,
};
use gw_journal::{Journal, JournalError, OpenError, Unsealed};
use gw_types::{B256, Claims, OrgId};
use std::{collections::HashMap, path::PathBuf};

/// Everything unsealed, synced first, marked as it is taken.
fn drain(journal: &Journal) -> Vec<Unsealed> {
    let mut all = Vec::new();
    loop {
        let batch = journal.unsealed(Stream::Access, 100).unwrap();
        let Some(last) = batch.last() else { return all };
        journal.mark_sealed(Stream::Access, last.seq + 1).unwrap();
        all.extend(batch);
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
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir.join(shard))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "segment"))
        .collect();
    found.sort();
    found
}

/// 70 rules 11-13: what was appended is sealed once, in order, across restarts.
#[tokio::test]
async fn rule_13_records_come_out_once_and_in_order() {
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
    assert!(drain(&journal).is_empty(), "the mark outlives the process");
}

/// HD22: a send without outcome is reported at the next start; one with outcome is not.
#[test]
fn hd22_open_intents_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    let mut room = journal.reserve(2).unwrap();
    journal.append_reserved(&mut room, intent(1)).unwrap();
    journal.append_reserved(&mut room, intent(2)).unwrap();
    let outcome = SendOutcome {
        hash: B256::repeat_byte(1),
        org_id: OrgId::fixed(5),
        outcome: Outcome::Accepted,
        node_code: None,
    };
    journal.append(outcome).unwrap();
    drop((room, journal));
    let (_, recovery) = open(dir.path());
    assert_eq!(recovery.open_intents, [intent(2)]);
}

/// HD24: the second process is told who holds the directory.
#[test]
fn hd24_the_directory_is_held() {
    let dir = tempfile::tempdir().unwrap();
    let (_journal, _) = open(dir.path());
    match open_with(options(dir.path())) {
        Err(OpenError::Held { holder, .. }) => assert_eq!(holder, "the test"),
        other => panic!("{other:?}"),
    }
}

/// Rule 14, HD22: the bound refuses records, but not those whose room was reserved.
#[test]
fn rule_14_full_is_said_and_reserved_room_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open_with(gw_journal::Options {
        max_bytes: 300 << 10,
        ..options(dir.path())
    })
    .unwrap();
    let mut room = journal.reserve(2).unwrap();
    let mut taken = 0;
    while journal.append(record(taken)).is_ok() {
        taken += 1;
        assert!(taken < 10_000);
    }
    assert_eq!(journal.append(record(0)), Err(JournalError::Full));
    assert!(journal.reserve(1).is_err());
    journal.append_reserved(&mut room, record(1)).unwrap();
    journal.append_reserved(&mut room, record(2)).unwrap();
}

/// Rule 11: whoever appends first is first, in the file and in the chain.
#[test]
fn rule_11_many_threads_make_one_order() {
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
    let all = drain(&journal);
    check_chains(&journal, &all);
    assert_eq!(methods(&all).len(), 1600);
    assert!(all.windows(2).all(|pair| pair[0].lsn + 1 == pair[1].lsn));
}

/// Rule 13: the sealer takes records out while others write, across segments that come and go.
#[test]
fn rule_13_sealing_goes_on_while_others_write() {
    const WRITERS: u32 = 3;
    const RECORDS: u32 = 3000;
    let dir = tempfile::tempdir().unwrap();
    let small = gw_journal::Options {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small).unwrap();
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let journal = &journal;
            scope.spawn(move || {
                (0..RECORDS).for_each(|n| assert!(journal.append(record(writer * RECORDS + n)).is_ok()))
            });
        }
        while all.len() < (WRITERS * RECORDS) as usize + 1 {
            all.extend(drain(&journal));
        }
    });
    check_chains(&journal, &all);
    let mut methods = methods(&all);
    methods.sort_unstable();
    methods.dedup();
    assert_eq!(methods.len(), (WRITERS * RECORDS) as usize);
    assert_eq!(journal.backlog().bytes, 0);
}

/// HD25: sealed segments stay for a while and then go.
#[test]
fn hd25_sealed_segments_are_retired() {
    let dir = tempfile::tempdir().unwrap();
    let small = gw_journal::Options {
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
    let (journal, _) = open_with(gw_journal::Options {
        retain_bytes: 1,
        ..options(dir.path())
    })
    .unwrap();
    assert_eq!(methods(&drain(&journal)).len(), 3000);
    assert!(segments(dir.path()).len() <= 2, "the one being written and the next");
    drop(journal);
    let (journal, _) = open(dir.path());
    let position = journal.append(record(1)).unwrap();
    assert_eq!(
        position.seq, 3001,
        "chain heads stand in the segment, not in what is left"
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

/// HD22: an open send is not forgotten when the segment that holds its intent is cleared away.
#[test]
fn hd22_open_intents_outlive_their_segment() {
    let dir = tempfile::tempdir().unwrap();
    let small = || gw_journal::Options {
        segment_bytes: 256 << 10,
        retain_bytes: 1,
        ..options(dir.path())
    };
    let (journal, _) = open_with(small()).unwrap();
    journal.append(intent(7)).unwrap();
    for n in 0..3000 {
        journal.append(record(n)).unwrap();
    }
    let before = segments(dir.path());
    journal.sync().unwrap();
    drain(&journal);
    assert!(
        !before.iter().take(2).any(|path| path.exists()),
        "the segment of the intent is gone"
    );
    drop(journal);
    for _ in 0..2 {
        let (_, recovery) = open_with(small()).unwrap();
        assert_eq!(recovery.open_intents, [intent(7)]);
    }
}

/// Decision 10: what nobody waits for becomes durable by itself, within 20 ms and the time of one fsync.
#[test]
fn decision_10_records_become_durable_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    journal.append(record(1)).unwrap();
    let began = std::time::Instant::now();
    // Only what is durable is handed out.
    while journal.unsealed(Stream::Access, 10).unwrap().len() < 2 {
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "never");
        std::thread::yield_now();
    }
}

/// Rule 11: one fsync answers many who wait, and whoever waits is answered.
#[tokio::test(flavor = "current_thread")]
async fn rule_11_everybody_who_waits_is_answered() {
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

/// HD22: room that was not used is given back, and a reservation outlives whoever made it.
#[test]
fn hd22_unused_room_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open_with(gw_journal::Options {
        max_bytes: 64 << 10,
        ..options(dir.path())
    })
    .unwrap();
    let mut rooms = Vec::new();
    while let Ok(room) = journal.reserve(1) {
        rooms.push(room);
        assert!(rooms.len() < 1000);
    }
    assert_eq!(journal.append(record(0)), Err(JournalError::Full));
    journal.append_reserved(&mut rooms[0], record(0)).unwrap();
    drop(rooms);
    assert_eq!(journal.backlog().reserved, 0);
    journal.append(record(1)).unwrap();
}

/// Decision 46: entries of mutations wait in the outbox of the policy store, never here.
#[test]
fn decision_46_entries_of_mutations_are_refused() {
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
        "nothing was numbered for them"
    );
}

/// RL12: a directory that is removed under a running journal keeps nothing, so nothing is said to be kept; it goes on when the
/// directory is there again.
#[test]
fn rl12_a_removed_directory_is_a_failed_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    journal.append(record(0)).unwrap();
    journal.sync().unwrap();
    let files = dir.path().join(journal.shard().to_string());
    std::fs::rename(&files, dir.path().join("aside")).unwrap();
    std::fs::remove_dir_all(dir.path().join("aside")).unwrap();
    journal.append(record(1)).unwrap();
    assert_eq!(journal.sync(), Err(JournalError::Unavailable));
    assert!(!journal.can_admit());
    std::fs::create_dir(&files).unwrap();
    let healed = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        journal.can_admit()
    });
    assert!(healed);
    journal.append(record(2)).unwrap();
    journal.sync().unwrap();
}
