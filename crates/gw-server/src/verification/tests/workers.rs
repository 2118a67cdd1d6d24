//! Findings of the worker beyond the tamper table: tampered rows in results of readers, waiting signatures and lost
//! journals.

use super::{F, LATE, ROWS, World, access, chain, checkpoint, key, pass, record, recorded_findings};
use crate::{
    system::{SystemClock, SystemEntropy},
    verification::{ChainReport, Known, Numbers, compare_numbers, verify_all},
};
use gw_audit::{Chain, ChainId, EncodedRecord, ShardId, StoredEntry, Stream};
use gw_store::{
    DirectoryLock, Location, OutboxGuard, Store, StoreConfig,
    audit::{AccessFilter, LogRow},
    read::{Paging, Scope},
};
use gw_types::{Seconds, Timestamp, testing::ManualClock};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// RL9: a row that is changed after its verification raises the alarm once, when a reader gets it as tampered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl9_a_tampered_row_in_a_readers_result_raises_the_alarm_once() {
    for engine in ["sqlite", "postgres"] {
        let Some(world) = World::new(engine).await else {
            continue;
        };
        let (journal, worker) = world.worker();
        let mut verified = BTreeMap::new();
        worker.pass(&mut verified).await.expect("readable");
        world
            .sql("UPDATE entries SET status_code = 200 WHERE kind = 'access' AND seq = 5")
            .await;
        worker.pass(&mut verified).await.expect("readable");
        assert!(
            !worker.trust.alarm.is_raised(),
            "a verified row is not read again for a day"
        );
        let paging = Paging { limit: 100, offset: 0 };
        for _ in 0..3 {
            let page = world
                .audit
                .list_access_logs(&AccessFilter::all(Scope::All), paging)
                .await
                .expect("a page");
            assert_eq!(
                page.rows
                    .iter()
                    .filter(|row| matches!(row, LogRow::Tampered(_)))
                    .count(),
                1
            );
            worker.raise_reads();
        }
        assert!(worker.trust.alarm.is_raised());
        assert_eq!(
            recorded_findings(&journal),
            [format!("hash_mismatch {} Some(5)", access())],
            "{engine}"
        );
    }
}

/// RL9: a signature that waits because the table of notes is unavailable is no tampering; a note that is removed later
/// is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl9_a_signature_that_waits_for_the_database_is_no_finding() {
    let world = World::new("sqlite").await.expect("a world");
    let longer = chain(access(), &world.entries, 60, &key(), record);
    world.seal(access(), longer.get(ROWS..).expect("more")).await;
    world.sql("ALTER TABLE checkpoints RENAME TO away").await;
    let last = checkpoint(access(), &longer);
    world
        .audit
        .insert_checkpoint(access(), last.size, &last.sign(&key()))
        .await
        .expect_err("the table is missing");
    world.sql("ALTER TABLE away RENAME TO checkpoints").await;
    assert_eq!(
        world.verify(&world.heads, &[]).await,
        BTreeSet::new(),
        "its writer retries"
    );
    world
        .audit
        .insert_checkpoint(access(), last.size, &last.sign(&key()))
        .await
        .expect("kept");
    assert_eq!(world.verify(&world.heads, &[]).await, BTreeSet::new());
    world.sql("DELETE FROM checkpoints WHERE size = 60").await;
    assert_eq!(
        world.verify(&world.heads, &[]).await,
        BTreeSet::from([F::CheckpointMissing])
    );
}

/// RL5, HD25: unsealed numbers of a gone writer are reported at once; those of a living writer are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl5_unsealed_numbers_of_a_gone_writer_are_reported_at_once() {
    let world = World::new("sqlite").await.expect("a world");
    let store_dir = tempfile::tempdir().expect("a directory");
    let lock = Arc::new(DirectoryLock::acquire(store_dir.path()).expect("held"));
    let location = Location::Sqlite {
        directory: lock,
        file: "gateway.db".to_owned(),
    };
    let clock = Arc::new(SystemClock);
    let entropy = Arc::new(SystemEntropy);
    let config = StoreConfig {
        location,
        connections: 2,
        clock,
        entropy,
        outbox: OutboxGuard::default(),
    };
    let store = Store::open(config).await.expect("opened");
    store.migrate().await.expect("migrated");
    let rows = u64::try_from(ROWS).expect("small");
    let unsealed_chain = ChainId {
        stream: Stream::Security,
        shard: ShardId(Uuid::from_u128(7)),
    };
    let compare = async |silence| {
        compare_numbers(&world.audit, &store, store_dir.path(), silence)
            .await
            .expect("readable")
    };
    let short = Duration::from_millis(1200);
    store.note_journal_head(access(), rows).await.expect("noted");
    assert_eq!(compare(short).await, Numbers::default(), "all is sealed");
    store.note_journal_head(access(), rows + 4).await.expect("noted");
    store.note_journal_head(unsealed_chain, 3).await.expect("noted");
    let lost_numbers = compare(short).await;
    assert_eq!(
        lost_numbers.gone,
        BTreeMap::from([(access(), rows + 4), (unsealed_chain, 3)])
    );
    let known = Known {
        keys: vec![key().public()],
        numbers: lost_numbers,
        ..Known::default()
    };
    let pass = pass();
    let mut findings = BTreeSet::new();
    let collect = |report: ChainReport| {
        findings.extend(
            report
                .report
                .findings
                .iter()
                .map(|finding| (report.chain, finding.kind, finding.seq)),
        );
    };
    verify_all(&world.audit, &known, &pass, &BTreeMap::new(), |_| true, collect)
        .await
        .expect("readable");
    let lost = [
        (access(), F::JournalLost, Some(rows)),
        (unsealed_chain, F::JournalLost, Some(0)),
    ];
    assert_eq!(findings, BTreeSet::from(lost));
    // If the journal on this machine belongs to the shard, the next start seals its records.
    std::fs::write(store_dir.path().join("shard"), access().shard.to_string()).expect("written");
    assert_eq!(compare(short).await.gone, BTreeMap::from([(unsealed_chain, 3)]));
    std::fs::remove_file(store_dir.path().join("shard")).expect("removed");
    // A living writer records its numbers, and the comparison ends as soon as it does.
    let stop = CancellationToken::new();
    let (writer, stopped) = (store.clone(), stop.clone());
    let living_writer = tokio::spawn(async move {
        while !stopped.is_cancelled() {
            writer.note_journal_head(access(), rows + 4).await.expect("noted");
            writer.note_journal_head(unsealed_chain, 3).await.expect("noted");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert_eq!(
        compare(Duration::from_secs(60)).await,
        Numbers::default(),
        "records that are being sealed are not lost"
    );
    // The chain's row has more numbers than the living writer issued.
    world
        .sql("UPDATE chains SET issued = 5000 WHERE stream = 'access'")
        .await;
    assert_eq!(
        compare(Duration::from_secs(60)).await.beyond,
        BTreeSet::from([access()])
    );
    stop.cancel();
    living_writer.await.expect("ended");
}

/// Entries that continue the chain, all with one time.
fn continued(before: &[StoredEntry], rows: usize, time: Timestamp) -> Vec<StoredEntry> {
    let [first, rest @ ..] = before else {
        return Vec::new();
    };
    let (mut chain, ..) = Chain::replay(access(), &first.bytes).expect("a chain");
    rest.iter()
        .for_each(|entry| assert!(chain.accept(&entry.bytes).is_ok()));
    let entry = |n| {
        let record = EncodedRecord::new(&record(n), &SystemEntropy);
        chain.entry(record, time).expect("an entry")
    };
    (0..rows).map(entry).collect()
}

/// RL2, rule 19: somebody keeps the claim of a gone writer alive, and dates its unsigned entries anew before each
/// verification. The age of the entries is the time for which this instance has seen them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_unsigned_entries_that_are_dated_anew_are_reported() {
    for engine in ["sqlite", "postgres"] {
        let Some(world) = World::new(engine).await else {
            continue;
        };
        let (journal, mut worker) = world.worker();
        for (minutes, is_reported) in [(0, false), (40, true)] {
            let now = LATE.plus(Seconds(minutes * 60));
            world
                .sql("DELETE FROM entries WHERE kind = 'access' AND seq >= 30")
                .await;
            world
                .sql(
                    "UPDATE chains SET size = 30, leased_until = 0, head_hash = (SELECT hash FROM entries e WHERE \
                     e.chain_id = chains.id AND e.seq = 29) WHERE stream = 'access'",
                )
                .await;
            world.seal(access(), &continued(&world.entries, 5, now)).await;
            let renew = format!(
                "UPDATE chains SET leased_until = {} WHERE stream = 'access'",
                now.micros()
            );
            world.sql(&renew).await;
            worker.clock = Arc::new(ManualClock::at(now));
            // A full pass, as after a restart: the entries of the pass before are not known any more.
            worker.pass(&mut BTreeMap::new()).await.expect("readable");
            assert_eq!(worker.trust.alarm.is_raised(), is_reported, "{engine}: {minutes}");
        }
        assert_eq!(
            recorded_findings(&journal),
            [format!("checkpoint_missing {} Some(30)", access())],
            "{engine}"
        );
    }
}
