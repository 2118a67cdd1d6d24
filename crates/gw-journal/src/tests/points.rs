//! A process that dies, a power cut, and a disk that refuses for a while, at every single operation on the disk:
//! append, sync, the next segment, rescue into another one, the mark of what is sealed, deletion, a move to a new shard.
//! Afterwards nothing durable is lost, and nothing comes twice.

use super::disk::{self, Fault};
use super::{Counter, files, options};
use crate::journal::{Journal, Options};
use crate::{StoredHead, flush};
use gw_audit::{AccessRecord, Chain, ChainId, Content, Entry, Record, SecurityEvent, SecurityKind, Stream, tree};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Few records fill a segment.
const PARAMS: usize = 50_000;

fn open(dir: &Path, round: u64) -> Journal {
    let counter = Arc::new(Counter::default());
    counter.0.store((round + 1) << 32, Ordering::Relaxed);
    let options = Options {
        retain_bytes: 1,
        ..options(dir)
    };
    let (mut journal, _) = Journal::open(options, Arc::<Counter>::clone(&counter), counter).unwrap();
    journal.shared.signal.stop();
    journal.flusher.take().unwrap().join().unwrap();
    // The next segment is made by the thread under test.
    journal.shared.writer().unwrap().spare = None;
    journal
}

/// The audit store: chains, and the records in them.
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

    /// Takes what is unsealed; the chain refuses gaps and repeats.
    fn seal(&mut self, journal: &Journal, stream: Stream, most: usize) {
        let id = ChainId {
            stream,
            shard: journal.shard(),
        };
        let Ok(batch) = journal.unsealed(stream, most) else {
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

/// What happened until the fault.
#[derive(Debug, Default)]
struct Run {
    /// The numbers whose records were durable.
    durable: Vec<u64>,
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

    /// Everything a journal does.
    fn all(&mut self, journal: &Journal) {
        self.access(journal, 3);
        self.security(journal);
        self.sync(journal);
        self.store.seal(journal, Stream::Access, 2);
        // Over the end of a segment.
        self.access(journal, 3);
        self.sync(journal);
        self.security(journal);
        // A file that fails, so that even without a further fault its records move.
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        journal.shared.writer().unwrap().segment.file = Arc::new(full);
        self.access(journal, 1);
        self.sync(journal);
        self.store.seal(journal, Stream::Security, 100);
        self.access(journal, 4);
        self.sync(journal);
        // Both streams are level, and segments go.
        self.store.seal(journal, Stream::Access, 100);
        self.access(journal, 1);
        self.security(journal);
        self.sync(journal);
    }

    /// Everything there is goes into the store; then it is looked at.
    fn check(mut self, journal: &Journal, what: &str) {
        let heads = [Stream::Access, Stream::Security].map(|stream| self.store.head(journal, stream));
        for (stream, standing) in journal.reconcile(&heads).unwrap() {
            assert!(
                matches!(standing, crate::Standing::InStep | crate::Standing::Moved),
                "{what}: {stream} {standing:?}"
            );
        }
        journal.sync().unwrap();
        self.store.seal(journal, Stream::Access, 1000);
        self.store.seal(journal, Stream::Security, 1000);
        assert_eq!(journal.backlog().records, 0, "{what}");
        let mut numbers = self.store.numbers.clone();
        numbers.sort_unstable();
        assert!(
            numbers.windows(2).all(|pair| pair[0] != pair[1]),
            "{what}: twice: {numbers:?}"
        );
        for number in &self.durable {
            assert!(
                numbers.binary_search(number).is_ok(),
                "{what}: {number} is lost of {:?}",
                self.durable
            );
        }
    }
}

/// Runs everything with a fault at operation `at`; the operations there were.
fn run(dir: &Path, fault: Option<(u64, Fault)>) -> (Run, Journal) {
    let journal = open(dir, 0);
    disk::start(fault);
    let mut run = Run::default();
    run.all(&journal);
    (run, journal)
}

fn operations() -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let (run, journal) = run(dir.path(), None);
    let (operations, misused) = disk::stop();
    assert_eq!(misused, Vec::<String>::new());
    assert_eq!(run.durable.len(), 15, "all of it works without a fault");
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
fn rl12_hd22_a_death_at_every_operation_loses_nothing_durable() {
    for at in 1..=operations() {
        let dir = tempfile::tempdir().unwrap();
        let (run, journal) = run(dir.path(), Some((at, Fault::Dies)));
        drop(journal);
        disk::stop();
        run.check(&open(dir.path(), 1), &format!("death at {at}"));
    }
}

#[test]
fn rl12_hd25_a_power_cut_at_every_operation_loses_nothing_durable() {
    let operations = operations();
    // Nothing unsynced survives, or some of it.
    for keep in [usize::MAX, 2, 3] {
        for at in 1..=operations {
            let dir = tempfile::tempdir().unwrap();
            let (run, journal) = run(dir.path(), Some((at, Fault::Dies)));
            drop(journal);
            disk::cut_power(keep);
            run.check(&open(dir.path(), 1), &format!("cut at {at}, keeping every {keep}th"));
        }
    }
}

#[test]
fn rl12_hd22_a_disk_that_refuses_for_a_while_costs_nothing() {
    let operations = operations();
    for times in [1, 12] {
        for at in 1..=operations {
            let dir = tempfile::tempdir().unwrap();
            let (mut run, journal) = run(dir.path(), Some((at, Fault::Refuses(times))));
            let what = format!("{times} refused from {at} on");
            // The disk is well again at the latest after so many tries.
            for _ in 0..times {
                flush::heal(&journal.shared);
            }
            assert!(!journal.backlog().failing && journal.can_admit(), "{what}");
            run.access(&journal, 1);
            run.sync(&journal);
            assert_eq!(run.pending, [], "{what}: whatever was taken is durable");
            let (_, misused) = disk::stop();
            assert_eq!(misused, Vec::<String>::new(), "{what}: HD22");
            // Live, and once more after a restart.
            let Run {
                durable,
                pending,
                next,
                store,
            } = run;
            let seen = Run {
                durable: durable.clone(),
                pending,
                next,
                store,
            };
            seen.check(&journal, &what);
            drop(journal);
            let again = open(dir.path(), 1);
            assert_eq!(again.backlog().records, 0, "{what}");
        }
    }
}

/// The move of unsealed records to a new shard: one or the other is there, whole.
#[test]
fn hd24_a_death_at_every_operation_of_a_move_leaves_one_shard() {
    for at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let journal = open(dir.path(), 0);
        let mut run = Run::default();
        run.access(&journal, 3);
        run.security(&journal);
        run.sync(&journal);
        run.store.seal(&journal, Stream::Access, 2);
        let before = journal.shard();
        disk::start(Some((at, Fault::Dies)));
        let moved = journal.into_new_shard().is_ok();
        let (operations, _) = disk::stop();
        let journal = open(dir.path(), 1);
        if journal.shard() != before {
            // Into the store as another chain, behind what it has.
            assert!(files(dir.path()).is_dir());
        }
        run.check(&journal, &format!("death at {at}"));
        if moved && operations < at {
            break;
        }
    }
}

#[test]
fn leaves_are_what_the_chain_says() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path(), 0);
    let mut run = Run::default();
    run.access(&journal, 2);
    run.sync(&journal);
    let all = journal.unsealed(Stream::Access, 10).unwrap();
    run.store.seal(&journal, Stream::Access, 10);
    assert_eq!(run.store.head(&journal, Stream::Access).hash, tree::leaf(&all[2].bytes));
}
