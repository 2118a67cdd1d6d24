//! Records per second into the journal, the wait for an fsync, and records per second out of it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gw_audit::{AccessRecord, AuthMethod, Stream};
use gw_journal::{Journal, Options};
use gw_types::{Clock, Entropy, Epoch, ExternalId, OrgId, Seconds, Timestamp};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Clock for Counter {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1, Ordering::Relaxed).cast_signed())
    }
}

impl Entropy for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        let n = self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        bytes
            .iter_mut()
            .zip(n.iter().cycle())
            .for_each(|(to, from)| *to = *from);
    }
}

#[expect(clippy::unwrap_used, reason = "a benchmark without its directory is none")]
fn open(dir: &Path) -> Journal {
    let options = Options {
        dir: dir.to_owned(),
        holder: "a benchmark".to_owned(),
        cluster: "bench".to_owned(),
        checkpoint_key: [7; 32],
        max_bytes: 32 << 30,
        segment_bytes: 64 << 20,
        retain_bytes: 0,
        retain_for: Seconds(0),
    };
    let counter = Arc::new(Counter::default());
    Journal::open(options, Arc::<Counter>::clone(&counter), counter)
        .unwrap()
        .0
}

#[expect(clippy::unwrap_used, reason = "fixed inputs")]
fn record() -> AccessRecord {
    let subject = "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7";
    AccessRecord {
        external_id: Some(ExternalId::new(subject).unwrap()),
        ip_address: Some("192.0.2.7".parse().unwrap()),
        correlation_id: Some("5a1c77e0-31f0-4c55-9b8e-2f1f0a6ef0a1".into()),
        org_id: Some(OrgId::fixed(5)),
        auth_method: AuthMethod::Bearer,
        policy_epoch: Some(Epoch(77)),
        ..AccessRecord::new("eth_getBalance", 200)
    }
}

/// Takes everything durable out, so that a long run does not fill the disk.
#[expect(clippy::unwrap_used, reason = "a benchmark whose journal failed is none")]
fn drain(journal: &Journal) -> u64 {
    journal.sync().unwrap();
    let mut taken = 0;
    while let Some(last) = journal.unsealed(Stream::Access, 5000).unwrap().last() {
        taken = last.lsn;
        journal.mark_sealed(Stream::Access, last.seq + 1).unwrap();
    }
    taken
}

#[expect(clippy::unwrap_used, reason = "a benchmark whose journal failed is none")]
fn append(journal: &Journal, record: &AccessRecord, records: u64) {
    for _ in 0..records {
        // A disk slower than this loop is waited for: what is not synced is kept in memory.
        while journal.append(record.clone()).is_err() {
            journal.sync().unwrap();
        }
    }
}

fn threads(journal: &Journal, threads: u64, records: u64) -> Duration {
    let record = record();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| append(journal, &record, records.div_ceil(threads)));
        }
    });
    let took = began.elapsed();
    drain(journal);
    took
}

#[expect(clippy::unwrap_used, reason = "a benchmark whose journal failed is none")]
fn journal(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    let mut group = criterion.benchmark_group("journal");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for count in [1, 8] {
        group.bench_function(format!("append_{count}_threads"), |bencher| {
            bencher.iter_custom(|records| threads(&journal, count, records));
        });
    }
    group.bench_function("append_and_fsync", |bencher| {
        bencher.iter(|| {
            journal.append(record()).unwrap();
            journal.sync()
        });
    });
    group.bench_function("read_for_sealing", |bencher| {
        bencher.iter_custom(|records| {
            append(&journal, &record(), records);
            journal.sync().unwrap();
            let began = Instant::now();
            drain(&journal);
            began.elapsed()
        });
    });
    group.finish();
}

criterion_group!(benches, journal);
criterion_main!(benches);
