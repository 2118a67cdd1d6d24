//! Throughput of appending, latency of an fsync, and throughput of reading for sealing.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gw_audit::{AccessRecord, AuthMethod, Stream};
use gw_journal::{Journal, JournalConfig};
use gw_types::{
    Epoch, ExternalId, OrgId, Seconds,
    testing::{ManualClock, SeededEntropy},
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[expect(clippy::unwrap_used, reason = "a benchmark cannot run without its directory")]
fn open(dir: &Path) -> Journal {
    let options = JournalConfig {
        dir: dir.to_owned(),
        holder: "a benchmark".to_owned(),
        cluster: "bench".to_owned(),
        checkpoint_key: [7; 32],
        max_bytes: 32 << 30,
        segment_bytes: 64 << 20,
        retain_bytes: 0,
        retain_for: Seconds(0),
    };
    Journal::open(
        options,
        Arc::new(ManualClock::default()),
        Arc::new(SeededEntropy::default()),
    )
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

/// Seals all records, so that a long run does not fill the disk; returns the number of the last one.
#[expect(clippy::unwrap_used, reason = "a benchmark cannot run with a failed journal")]
fn drain(journal: &Journal) -> u64 {
    journal.sync().unwrap();
    let mut taken = 0;
    while let Some(last) = journal.unsealed(Stream::Access, 5000).unwrap().last() {
        taken = last.lsn;
        journal.mark_sealed(Stream::Access, last.seq + 1).unwrap();
    }
    taken
}

#[expect(clippy::unwrap_used, reason = "a benchmark cannot run with a failed journal")]
fn append(journal: &Journal, record: &AccessRecord, records: u64) {
    for _ in 0..records {
        // If the disk is slower than this loop, the unsynced records fill the memory limit, so this waits for a sync.
        while journal.append(record.clone()).is_err() {
            journal.sync().unwrap();
        }
    }
}

fn threads(journal: &Journal, threads: u64, records: u64) -> Duration {
    let record = record();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| append(journal, &record, records.div_ceil(threads)));
        }
    });
    let duration = start.elapsed();
    drain(journal);
    duration
}

#[expect(clippy::unwrap_used, reason = "a benchmark cannot run with a failed journal")]
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
            let start = Instant::now();
            drain(&journal);
            start.elapsed()
        });
    });
    group.finish();
}

criterion_group!(benches, journal);
criterion_main!(benches);
