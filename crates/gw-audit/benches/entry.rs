//! The cost of one access record before it is written: encoding, commitments and linking into the chain.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gw_audit::{
    AccessRecord, AuthMethod, Chain, ChainId, EncodedRecord, Entry, Genesis, MatchedVia, Record, ShardId, StoredEntry,
    Stream, tree,
};
use gw_types::{Entropy, Epoch, ExternalId, OrgId, Timestamp};
use std::hint::black_box;
use uuid::Uuid;

/// Entropy without cost, to leave the system's random numbers out of the measurement.
#[derive(Debug)]
struct NoEntropy;

impl Entropy for NoEntropy {
    fn fill(&self, _: &mut [u8]) {}
}

#[expect(clippy::unwrap_used, reason = "fixed inputs")]
fn access() -> Record {
    let subject = "did:iden3:privado:main:2ScrbEuw9jLXMapW3DELXBbDco5EURzJZRN1tYj7L7";
    Record::Access(AccessRecord {
        external_id: Some(ExternalId::new(subject).unwrap()),
        ip_address: Some("192.0.2.7".parse().unwrap()),
        correlation_id: Some("5a1c77e0-31f0-4c55-9b8e-2f1f0a6ef0a1".into()),
        org_id: Some(OrgId::fixed(5)),
        auth_method: AuthMethod::Bearer,
        duration_us: 1234,
        node_called: true,
        upstream_ms: Some(3),
        policy_epoch: Some(Epoch(77)),
        matched_via: Some(MatchedVia::Method),
        ..AccessRecord::new("eth_getBalance", 200)
    })
}

#[expect(clippy::unwrap_used, reason = "fixed inputs")]
fn entry(criterion: &mut Criterion) {
    let (record, now) = (access(), Timestamp::from_secs(1_700_000_000));
    let id = ChainId {
        stream: Stream::Access,
        shard: ShardId(Uuid::from_u128(7)),
    };
    let mut bytes = Vec::new();
    let (mut chain, _) = Chain::begin(id, &Genesis::new(id.shard, "bench", [7; 32]), now, &mut bytes);
    let mut group = criterion.benchmark_group("access_record");
    group.throughput(Throughput::Elements(1));
    group.bench_function("draft", |bencher| {
        bencher.iter(|| EncodedRecord::new(black_box(&record), &NoEntropy))
    });
    let encoded = EncodedRecord::new(&record, &NoEntropy);
    group.bench_function("link", |bencher| {
        bencher.iter(|| {
            bytes.clear();
            chain.link(black_box(&encoded), now, &mut bytes)
        });
    });
    let stored = StoredEntry::new(bytes.clone(), encoded.openings().to_vec()).unwrap();
    group.bench_function("decode", |bencher| {
        bencher.iter(|| Entry::decode(black_box(&stored.bytes), &stored.openings))
    });
    group.bench_function("leaf", |bencher| {
        let mut frontier = tree::Frontier::default();
        bencher.iter(|| frontier.push(black_box(stored.hash)));
    });
    group.finish();
}

criterion_group!(benches, entry);
criterion_main!(benches);
