//! Every call writes exactly one access record, regardless of how it ends.

use crate::support::{open, open_with, options};
use gw_audit::{AccessRecord, Content, Entry, Record, SecurityKind, Stream};
use gw_journal::{AccessRecorder, Journal, JournalConfig, JournalError, WhenFull};
use std::sync::Arc;

fn records(journal: &Journal) -> Vec<(String, u16)> {
    journal.sync().unwrap();
    let entries = journal.unsealed(Stream::Access, 1000).unwrap();
    let contents = entries
        .iter()
        .map(|entry| Entry::decode(&entry.bytes, &entry.openings).unwrap().content);
    contents
        .filter_map(|content| match content {
            Content::Record(Record::Access(record)) => Some((record.method.into_owned(), record.status_code)),
            _ => None,
        })
        .collect()
}

/// The numbers of calls without a record that security events report.
fn unrecorded_counts(journal: &Journal) -> Vec<u64> {
    journal.sync().unwrap();
    let entries = journal.unsealed(Stream::Security, 1000).unwrap();
    let contents = entries
        .iter()
        .map(|entry| Entry::decode(&entry.bytes, &entry.openings).unwrap().content);
    contents
        .filter_map(|content| match content {
            Content::Record(Record::Security(event)) if event.kind == SecurityKind::CallsUnrecorded => event.count,
            _ => None,
        })
        .collect()
}

fn call(name: &'static str) -> AccessRecord {
    AccessRecord::new(name, 0)
}

/// HD21: calls that are answered, finished twice, abandoned or ended by a panic write one record each.
#[tokio::test]
async fn hd21_every_call_writes_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Arc::new(open(dir.path()).0);
    let open_recorder = |name| AccessRecorder::open(&journal, call(name), WhenFull::Refuse).unwrap();
    open_recorder("answered").finish(200, true).await.unwrap();
    let mut twice = open_recorder("finished twice");
    twice.finish(403, false).await.unwrap();
    twice.finish(200, false).await.unwrap();
    drop(twice);
    drop(open_recorder("abandoned"));
    let recorder = open_recorder("panicked");
    let handler = std::thread::spawn(move || {
        let _recorder = recorder;
        panic!("the handler fails");
    });
    assert!(handler.join().is_err());
    let expected = [
        ("answered", 200),
        ("finished twice", 403),
        ("abandoned", 499),
        ("panicked", 500),
    ];
    assert_eq!(
        records(&journal),
        expected.map(|(name, status)| (name.to_owned(), status))
    );
    assert_eq!(journal.backlog().reserved, 0);
}

/// HD22: no call starts without room for its record, unless the configuration allows calls without a record.
#[tokio::test]
async fn hd22_a_full_journal_rejects_calls_that_must_be_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let config = JournalConfig {
        max_bytes: 64 << 10,
        ..options(dir.path())
    };
    let journal = Arc::new(open_with(config).unwrap().0);
    let mut early = AccessRecorder::open(&journal, call("early"), WhenFull::Refuse).unwrap();
    let reservations: Vec<_> = std::iter::from_fn(|| journal.reserve(1).ok()).collect();
    let rejected = AccessRecorder::open(&journal, call("rejected"), WhenFull::Refuse);
    assert_eq!(rejected.map(drop), Err(JournalError::Full));
    for name in ["unrecorded", "unrecorded too"] {
        let mut unrecorded = AccessRecorder::open(&journal, call(name), WhenFull::GoOn).unwrap();
        unrecorded.finish(200, false).await.unwrap();
    }
    drop(AccessRecorder::open(&journal, call("abandoned"), WhenFull::GoOn).unwrap());
    // The room for this record was reserved before the journal was full.
    early.finish(200, true).await.unwrap();
    drop(reservations);
    let mut late = AccessRecorder::open(&journal, call("late"), WhenFull::GoOn).unwrap();
    late.finish(200, true).await.unwrap();
    assert_eq!(unrecorded_counts(&journal), [3]);
    AccessRecorder::open(&journal, call("last"), WhenFull::GoOn)
        .unwrap()
        .finish(200, true)
        .await
        .unwrap();
    assert_eq!(
        unrecorded_counts(&journal),
        [3],
        "an event for each time without records"
    );
    assert_eq!(
        records(&journal),
        ["early", "late", "last"].map(|name| (name.to_owned(), 200))
    );
}
