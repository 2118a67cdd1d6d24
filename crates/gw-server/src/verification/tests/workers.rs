//! What the worker finds apart from the table: rows that readers were shown, signatures that wait, journals that are gone.

use super::{F, ROWS, World, access, chain, checkpoint, key, pass, record, said};
use crate::{
    ambient::{SystemClock, SystemEntropy},
    verification::{ChainReport, Known, Numbers, compare_numbers, verify_all},
};
use gw_audit::{ChainId, ShardId, Stream};
use gw_store::{
    DirectoryLock, Location, OutboxGuard, Store, StoreConfig,
    audit::{AccessFilter, LogRow},
    read::{Paging, Scope},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// RL9: a row that was verified and is changed afterwards is told of when somebody is shown it as tampered, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl9_what_a_reader_is_shown_as_tampered_raises_the_alarm_once() {
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
            "what was verified is not read again for a day"
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
            said(&journal),
            [format!("hash_mismatch {} Some(5)", access())],
            "{engine}"
        );
    }
}

/// RL9: a lock on the table of notes keeps a signature waiting; that is no tampering, and a note that is removed later is.
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
        .expect_err("the table is away");
    world.sql("ALTER TABLE away RENAME TO checkpoints").await;
    assert_eq!(
        world.verify(&world.heads, &[]).await,
        BTreeSet::new(),
        "its writer tries again"
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

/// RL5, HD25: numbers of a writer that is gone are missed at once; those of one that lives are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl5_numbers_of_a_writer_that_is_gone_are_missed_at_once() {
    let world = World::new("sqlite").await.expect("a world");
    let place = tempfile::tempdir().expect("a directory");
    let lock = Arc::new(DirectoryLock::acquire(place.path()).expect("held"));
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
    let never = ChainId {
        stream: Stream::Security,
        shard: ShardId(Uuid::from_u128(7)),
    };
    let compare = async |silence| {
        compare_numbers(&world.audit, &store, place.path(), silence)
            .await
            .expect("readable")
    };
    let short = Duration::from_millis(1200);
    store.note_journal_head(access(), rows).await.expect("noted");
    assert_eq!(compare(short).await, Numbers::default(), "all is sealed");
    store.note_journal_head(access(), rows + 4).await.expect("noted");
    store.note_journal_head(never, 3).await.expect("noted");
    let gone = compare(short).await;
    assert_eq!(gone.gone, BTreeMap::from([(access(), rows + 4), (never, 3)]));
    let known = Known {
        keys: vec![key().public()],
        numbers: gone,
        ..Known::default()
    };
    let pass = pass();
    let mut found = BTreeSet::new();
    let each = |report: ChainReport| {
        found.extend(
            report
                .report
                .findings
                .iter()
                .map(|finding| (report.chain, finding.kind, finding.seq)),
        );
    };
    verify_all(&world.audit, &known, &pass, &BTreeMap::new(), |_| true, each)
        .await
        .expect("readable");
    let lost = [(access(), F::JournalLost, Some(rows)), (never, F::JournalLost, Some(0))];
    assert_eq!(found, BTreeSet::from(lost));
    // The journal of this machine has the shard: the next start seals its records.
    std::fs::write(place.path().join("shard"), access().shard.to_string()).expect("written");
    assert_eq!(compare(short).await.gone, BTreeMap::from([(never, 3)]));
    std::fs::remove_file(place.path().join("shard")).expect("removed");
    // A writer that lives says so; it is waited for no longer than that.
    let end = CancellationToken::new();
    let (writer, ended) = (store.clone(), end.clone());
    let alive = tokio::spawn(async move {
        while !ended.is_cancelled() {
            writer.note_journal_head(access(), rows + 4).await.expect("noted");
            writer.note_journal_head(never, 3).await.expect("noted");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert_eq!(
        compare(Duration::from_secs(60)).await,
        Numbers::default(),
        "what is being sealed is not lost"
    );
    // More numbers than a living writer gave out.
    world
        .sql("UPDATE chains SET issued = 5000 WHERE stream = 'access'")
        .await;
    assert_eq!(
        compare(Duration::from_secs(60)).await.beyond,
        BTreeSet::from([access()])
    );
    end.cancel();
    alive.await.expect("ended");
}
