//! RL1: a disk that becomes full and has room again. `max_page_count` makes SQLite itself return `SQLITE_FULL`.

use crate::{Actor, DirectoryLock, Location, Store, StoreConfig, record::NewUser};
use gw_types::{
    ExternalId,
    testing::{ManualClock, SeededEntropy},
};
use sea_orm::ConnectionTrait;
use std::{path::Path, sync::Arc};

pub(crate) async fn open(directory: &Arc<DirectoryLock>) -> Store {
    let location = Location::Sqlite {
        directory: Arc::clone(directory),
        file: "gateway.db".to_owned(),
    };
    let config = StoreConfig {
        location,
        connections: 2,
        clock: Arc::new(ManualClock::default()),
        entropy: Arc::new(SeededEntropy::default()),
        outbox: crate::OutboxGuard::default(),
    };
    Store::open(config).await.unwrap()
}

/// Creates and locks a temporary directory.
pub(crate) fn place() -> (tempfile::TempDir, Arc<DirectoryLock>) {
    let place = tempfile::tempdir().unwrap();
    let directory = Arc::new(DirectoryLock::acquire(place.path()).unwrap());
    (place, directory)
}

/// Adds a user whose row is large enough to need new pages.
async fn add(store: &Store, name: &str) -> Result<(), crate::StoreError> {
    let mut tx = store.begin(&Actor::system()).await?;
    let external_id = ExternalId::new(&format!("did:test:{name}{}", "x".repeat(200))).unwrap();
    tx.create_user(NewUser {
        external_id,
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    })
    .await?;
    tx.commit().await.map(drop)
}

/// Counts the users in a copy of the file and its log, which a kill at this moment would leave.
async fn users_after_a_kill(place: &Path) -> u64 {
    let copy = tempfile::tempdir().unwrap();
    for file in ["gateway.db", "gateway.db-wal"] {
        std::fs::copy(place.join(file), copy.path().join(file)).unwrap();
    }
    let directory = Arc::new(DirectoryLock::acquire(copy.path()).unwrap());
    let store = open(&directory).await;
    let pools = &store.inner.pools;
    let row = pools
        .reader
        .query_one_raw(pools.engine.statement("SELECT count(*) FROM users"))
        .await
        .unwrap()
        .unwrap();
    u64::try_from(row.try_get_by_index::<i64>(0).unwrap()).unwrap()
}

/// Limits the file to `free_pages` more pages than it has.
async fn limit_pages(store: &Store, free_pages: i64) {
    let writer = &store.inner.pools.writer;
    let engine = store.inner.pools.engine;
    let row = writer
        .query_one_raw(engine.statement("PRAGMA page_count"))
        .await
        .unwrap()
        .unwrap();
    let pages: i64 = row.try_get_by_index(0).unwrap();
    writer
        .execute_unprepared(&format!("PRAGMA max_page_count = {}", pages + free_pages))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl1_what_is_acknowledged_after_a_full_disk_is_there_after_a_kill() {
    let (place, directory) = place();
    let store = open(&directory).await;
    store.migrate().await.unwrap();
    let mut acknowledged = 0;
    for round in 0..4 {
        limit_pages(&store, round).await;
        let mut failures = 0;
        for n in 0..1000 {
            match add(&store, &format!("full{round}-{n}-")).await {
                Ok(()) => acknowledged += 1,
                Err(error) => {
                    assert!(
                        error.is_unavailable(),
                        "a full disk is no fault of the request: {error:?}"
                    );
                    failures += 1;
                    // The disk stays full for a while, whether or not the connection was kept.
                    if failures == 3 {
                        break;
                    }
                    limit_pages(&store, 0).await;
                }
            }
        }
        assert!(failures > 0, "the disk was never full");
        limit_pages(&store, 1_000_000).await;
        for n in 0..5 {
            add(&store, &format!("freed{round}-{n}-"))
                .await
                .expect("the disk has room again");
            acknowledged += 1;
        }
        assert_eq!(users_after_a_kill(place.path()).await, acknowledged, "round {round}");
    }
}

/// A failed statement ends its mutation, however the caller handles the error: SQLite may have rolled back all earlier
/// statements, and later ones would be committed without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl1_a_mutation_cannot_go_on_after_a_failed_statement() {
    let (place, directory) = place();
    let store = open(&directory).await;
    store.migrate().await.unwrap();
    limit_pages(&store, 0).await;
    let tx = store.begin(&Actor::system()).await.unwrap();
    let filled = tx
        .db
        .execute_unprepared("CREATE TABLE filler AS SELECT randomblob(1000000) AS blob")
        .await;
    filled.expect_err("there is no room");
    let rename = "UPDATE organizations SET slug = 'half-done' WHERE slug = 'default'";
    tx.db
        .execute_unprepared(rename)
        .await
        .expect_err("nothing follows a failed statement");
    tx.commit().await.expect_err("and nothing is kept");
    assert!(
        store
            .load()
            .await
            .unwrap()
            .organizations()
            .all(|org| &*org.slug != "half-done")
    );
    limit_pages(&store, 1_000_000).await;
    add(&store, "after").await.unwrap();
    assert_eq!(users_after_a_kill(place.path()).await, 1);
}

/// RL12: readiness reports the full disk until a probe write succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl12_a_full_disk_is_known_until_there_is_room_again() {
    let (place, directory) = place();
    let store = open(&directory).await;
    store.migrate().await.unwrap();
    add(&store, "before").await.unwrap();
    assert!(store.has_room());
    limit_pages(&store, 0).await;
    let mut added = 0;
    while add(&store, &format!("full{added}-")).await.is_ok() {
        added += 1;
    }
    assert!(!store.has_room());
    store
        .read()
        .find_user_by_external_id(&ExternalId::new("did:test:none").unwrap())
        .await
        .unwrap();
    assert!(!store.has_room(), "reads tell nothing of it");
    limit_pages(&store, 1_000_000).await;
    // A directory blocks the path of the probe's file: the probe fails.
    std::fs::create_dir(place.path().join("room-probe")).unwrap();
    store.probe_room().await.unwrap_err();
    assert!(!store.has_room());
    std::fs::remove_dir(place.path().join("room-probe")).unwrap();
    store.probe_room().await.unwrap();
    assert!(store.has_room() && !place.path().join("room-probe").exists());
    add(&store, "after").await.unwrap();
}
