//! A crash, a power cut, and a temporary disk failure at every single disk operation: append, sync, switch to the next
//! segment, rescue to another one, recording the sealed size, deletion, move to a new shard. Afterwards no durable
//! record is lost, and no record occurs twice.

use super::disk::{self, Fault};
use super::{files, options, sources};
use crate::journal::{Journal, JournalConfig};
use crate::{StoredHead, flush};
use gw_audit::{AccessRecord, Chain, ChainId, Content, Entry, Record, SecurityEvent, SecurityKind, Stream, tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The size of each record's parameters, so that a few records fill a segment.
const PARAMS: usize = 50_000;

fn open(dir: &Path, round: u64) -> Journal {
    let (clock, entropy) = sources((round + 1) << 32);
    let options = JournalConfig {
        retain_bytes: 1,
        ..options(dir)
    };
    let (mut journal, _) = Journal::open(options, clock, entropy).unwrap();
    journal.shared.signal.stop();
    journal.flusher.take().unwrap().join().unwrap();
    // The thread under test must create the next segment itself.
    journal.shared.writer().unwrap().spare = None;
    journal
}

/// A model of the audit store: its chains and the numbers of their records.
#[derive(Debug, Default)]
struct Store {
    chains: BTreeMap<ChainId, (Chain, u64)>,
    numbers: Vec<u64>,
}

impl Store {
    fn head(&self, journal: &Journal, stream: Stream) -> StoredHead {
        let chain = self.chains.get(&ChainId {
            stream,
            shard: journal.shard(),
        });
        chain.map_or(StoredHead::empty(stream), |(chain, size)| StoredHead {
            stream,
            size: *size,
            hash: chain.head().hash,
        })
    }

    /// Seals unsealed records. The chain rejects gaps and duplicates.
    fn seal(&mut self, journal: &Journal, stream: Stream, limit: usize) {
        let id = ChainId {
            stream,
            shard: journal.shard(),
        };
        let Ok(batch) = journal.unsealed(stream, limit) else {
            return;
        };
        for record in batch {
            match self.chains.get_mut(&id) {
                Some((chain, size)) => {
                    chain.accept(&record.bytes).unwrap();
                    *size += 1;
                }
                None => {
                    self.chains.insert(id, (Chain::replay(id, &record.bytes).unwrap().0, 1));
                }
            }
            match Entry::decode(&record.bytes, &record.openings).unwrap().content {
                Content::Record(Record::Access(access)) => self.numbers.push(access.duration_us),
                Content::Record(Record::Security(event)) => self.numbers.push(event.count.unwrap()),
                Content::Genesis(_) | Content::Record(_) => {}
            }
        }
        let _ = journal.mark_sealed(stream, self.head(journal, stream).size);
    }
}

/// The state of a scenario up to the fault.
#[derive(Debug, Default)]
struct Run {
    /// The numbers of the durable records.
    durable: Vec<u64>,
    /// The journal number and the own number of the records that are not durable.
    pending: Vec<(u64, u64)>,
    next: u64,
    store: Store,
}

impl Run {
    fn append(&mut self, journal: &Journal, record: impl Into<Record>) {
        if let Ok(position) = journal.append(record) {
            self.pending.push((position.lsn, self.next));
        }
        self.next += 1;
    }

    fn access(&mut self, journal: &Journal, times: u64) {
        for _ in 0..times {
            let params = Some("x".repeat(PARAMS));
            let record = AccessRecord {
                duration_us: self.next,
                request_params: params,
                ..AccessRecord::new("eth_call", 200)
            };
            self.append(journal, record);
        }
    }

    fn security(&mut self, journal: &Journal) {
        let mut event = SecurityEvent::new(SecurityKind::Login);
        event.count = Some(self.next);
        self.append(journal, event);
    }

    fn sync(&mut self, journal: &Journal) {
        flush::sync(&journal.shared);
        flush::heal(&journal.shared);
        let durable = journal.shared.durable_lsn();
        self.durable.extend(
            self.pending
                .extract_if(.., |(lsn, _)| *lsn <= durable)
                .map(|(_, number)| number),
        );
    }

    /// Runs everything that a journal does.
    fn scenario(&mut self, journal: &Journal) {
        self.access(journal, 3);
        self.security(journal);
        self.sync(journal);
        self.store.seal(journal, Stream::Access, 2);
        // These records exceed the end of a segment.
        self.access(journal, 3);
        self.sync(journal);
        self.security(journal);
        // A failing file, so that records are rescued even without an injected fault.
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        journal.shared.writer().unwrap().segment.file = Arc::new(full);
        self.access(journal, 1);
        self.sync(journal);
        self.store.seal(journal, Stream::Security, 100);
        self.access(journal, 4);
        self.sync(journal);
        // Both streams are fully sealed, so segments are deleted.
        self.store.seal(journal, Stream::Access, 100);
        self.access(journal, 1);
        self.security(journal);
        self.sync(journal);
    }

    /// Seals everything and checks the store.
    fn check(mut self, journal: &Journal, case: &str) {
        let heads = [Stream::Access, Stream::Security].map(|stream| self.store.head(journal, stream));
        for (stream, standing) in journal.reconcile(&heads).unwrap() {
            assert!(
                matches!(
                    standing,
                    crate::StreamComparison::InStep | crate::StreamComparison::Moved
                ),
                "{case}: {stream} {standing:?}"
            );
        }
        journal.sync().unwrap();
        self.store.seal(journal, Stream::Access, 1000);
        self.store.seal(journal, Stream::Security, 1000);
        assert_eq!(journal.backlog().records, 0, "{case}");
        let mut numbers = self.store.numbers.clone();
        numbers.sort_unstable();
        assert!(
            numbers.windows(2).all(|pair| pair[0] != pair[1]),
            "{case}: duplicates: {numbers:?}"
        );
        for number in &self.durable {
            assert!(
                numbers.binary_search(number).is_ok(),
                "{case}: {number} of {:?} is lost",
                self.durable
            );
        }
    }
}

/// Runs the scenario with a fault.
fn run(dir: &Path, fault: Option<(u64, Fault)>) -> (Run, Journal) {
    let journal = open(dir, 0);
    disk::start(fault);
    let mut run = Run::default();
    run.scenario(&journal);
    (run, journal)
}

/// Runs the scenario without a fault; returns the number of its disk operations.
fn operations() -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let (run, journal) = run(dir.path(), None);
    let (operations, forbidden) = disk::stop();
    assert_eq!(forbidden, Vec::<String>::new());
    assert_eq!(run.durable.len(), 15, "without a fault all records are durable");
    let segments = crate::segment::list(&files(dir.path())).unwrap();
    assert!(
        !segments.contains(&1) && journal.shared.reader().unwrap().base.heads.lsn > 0,
        "segments were deleted"
    );
    run.check(&journal, "no fault");
    assert!(operations > 40, "{operations}");
    operations
}

#[test]
fn rl12_hd22_a_crash_at_every_operation_loses_no_durable_record() {
    for at in 1..=operations() {
        let dir = tempfile::tempdir().unwrap();
        let (run, journal) = run(dir.path(), Some((at, Fault::Crash)));
        drop(journal);
        disk::stop();
        run.check(&open(dir.path(), 1), &format!("crash at {at}"));
    }
}

#[test]
fn rl12_hd25_a_power_cut_at_every_operation_loses_no_durable_record() {
    let operations = operations();
    // Of the unsynced writes none survives, or every second or third.
    for keep in [usize::MAX, 2, 3] {
        for at in 1..=operations {
            let dir = tempfile::tempdir().unwrap();
            let (run, journal) = run(dir.path(), Some((at, Fault::Crash)));
            drop(journal);
            disk::cut_power(keep);
            run.check(&open(dir.path(), 1), &format!("cut at {at}, keeping every {keep}th"));
        }
    }
}

#[test]
fn rl12_hd22_a_temporary_disk_failure_loses_nothing() {
    let operations = operations();
    for times in [1, 12] {
        for at in 1..=operations {
            let dir = tempfile::tempdir().unwrap();
            let (mut run, journal) = run(dir.path(), Some((at, Fault::DiskError(times))));
            let case = format!("{times} errors from {at} on");
            // The disk works again after this number of attempts at the latest.
            for _ in 0..times {
                flush::heal(&journal.shared);
            }
            assert!(!journal.backlog().failing && journal.can_admit(), "{case}");
            run.access(&journal, 1);
            run.sync(&journal);
            assert_eq!(run.pending, [], "{case}: all accepted records are durable");
            let (_, forbidden) = disk::stop();
            assert_eq!(forbidden, Vec::<String>::new(), "{case}: HD22");
            // Checked in the running journal and again after a restart.
            let Run {
                durable,
                pending,
                next,
                store,
            } = run;
            let live = Run {
                durable: durable.clone(),
                pending,
                next,
                store,
            };
            live.check(&journal, &case);
            drop(journal);
            let reopened = open(dir.path(), 1);
            assert_eq!(reopened.backlog().records, 0, "{case}");
        }
    }
}

/// The move of unsealed records to a new shard leaves the old or the new shard, complete.
#[test]
fn hd24_a_crash_at_every_operation_of_a_move_leaves_one_shard() {
    for at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(dir.path(), 0);
        let mut run = Run::default();
        run.access(&journal, 3);
        run.security(&journal);
        run.sync(&journal);
        run.store.seal(&journal, Stream::Access, 2);
        let old_shard = journal.shard();
        disk::start(Some((at, Fault::Crash)));
        let has_moved = journal.into_new_shard().is_ok();
        let (operations, _) = disk::stop();
        let journal = open(dir.path(), 1);
        if journal.shard() != old_shard {
            // The store gets the moved records as another chain.
            assert!(files(dir.path()).is_dir());
        }
        run.check(&journal, &format!("crash at {at}"));
        if has_moved && operations < at {
            break;
        }
    }
}

#[test]
fn the_hash_of_a_chain_head_is_the_leaf_hash_of_its_last_entry() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path(), 0);
    let mut run = Run::default();
    run.access(&journal, 2);
    run.sync(&journal);
    let records = journal.unsealed(Stream::Access, 10).unwrap();
    run.store.seal(&journal, Stream::Access, 10);
    assert_eq!(
        run.store.head(&journal, Stream::Access).hash,
        tree::leaf(&records[2].bytes)
    );
}
