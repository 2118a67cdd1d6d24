//! RL1 on a real disk: a file system of a few megabytes becomes full and has room again, under the policy and the audit
//! store.
//!
//! Needs the permission to mount; `dialect::full_disk` tests the same with SQLite's own limit everywhere.

use crate::world::{World, config, did};
use gw_audit::{ChainId, ShardId, Stream};
use gw_store::{Actor, AuditStore, DirectoryLock, Location, Store, StoreError, record::NewUser};
use gw_testkit::FullDisk;
use gw_types::Seconds;
use gw_types::testing::ManualClock;
use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use std::{fs, path::Path, sync::Arc};
use uuid::Uuid;

/// Runs a query on a copy of the file and its log, as another process would after a kill at this moment.
async fn after_a_kill(place: &Path, file: &str, sql: &str) -> usize {
    let copy = tempfile::tempdir().unwrap();
    for name in [file.to_owned(), format!("{file}-wal")] {
        fs::copy(place.join(&name), copy.path().join(&name)).unwrap();
    }
    let db = Database::connect(format!("sqlite://{}", copy.path().join(file).display()))
        .await
        .unwrap();
    let row = db
        .query_one_raw(Statement::from_string(DbBackend::Sqlite, sql))
        .await
        .unwrap()
        .unwrap();
    usize::try_from(row.try_get_by_index::<i64>(0).unwrap()).unwrap()
}

/// Writes until three writes failed, then frees the disk and writes again; returns the number of acknowledged writes.
async fn over_a_full_disk(disk: &FullDisk, mut write: impl AsyncFnMut(usize) -> Result<(), StoreError>) -> usize {
    let (mut acknowledged, mut failed, mut next) = (0, 0, 0);
    disk.fill().unwrap();
    while failed < 3 {
        next += 1;
        assert!(next < 10_000, "the disk was never full");
        match write(next).await {
            Ok(()) => acknowledged += 1,
            Err(error) => {
                assert!(
                    error.is_unavailable(),
                    "a full disk is no fault of the request: {error:?}"
                );
                failed += 1;
            }
        }
    }
    disk.free().unwrap();
    for _ in 0..5 {
        next += 1;
        write(next).await.expect("the disk has room again");
        acknowledged += 1;
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl1_a_real_disk_fills_up_and_is_freed() {
    let Some(disk) = FullDisk::mount(3) else { return };
    let clock = Arc::new(ManualClock::default());
    let directory = Arc::new(DirectoryLock::acquire(disk.path()).unwrap());
    let at = |file: &str| Location::Sqlite {
        directory: Arc::clone(&directory),
        file: file.to_owned(),
    };
    let store = Store::open(config(&at("gateway.db"), &clock, 1)).await.unwrap();
    store.migrate().await.unwrap();
    let audit = AuditStore::open(config(&at("audit.db"), &clock, 2)).await.unwrap();
    audit.migrate().await.unwrap();
    let (mut users, mut chains) = (0, 0);
    for round in 0..3 {
        users += over_a_full_disk(&disk, async |n| {
            let mut tx = store.begin(&Actor::system()).await?;
            let external_id = did(&format!("round{round}-{n}-{}", "x".repeat(200)));
            tx.create_user(NewUser {
                external_id,
                kyc: false,
                auth_tenant_id: None,
                groups: Vec::new(),
            })
            .await?;
            tx.commit().await.map(drop)
        })
        .await;
        assert_eq!(
            after_a_kill(disk.path(), "gateway.db", "SELECT count(*) FROM users").await,
            users
        );
        chains += over_a_full_disk(&disk, async |n| {
            let shard = ShardId(Uuid::from_u128(u128::try_from(round * 100_000 + n + 1).unwrap()));
            audit
                .claim(
                    ChainId {
                        stream: Stream::Access,
                        shard,
                    },
                    "writer",
                    Seconds(30),
                )
                .await
                .map(drop)
        })
        .await;
        assert_eq!(
            after_a_kill(disk.path(), "audit.db", "SELECT count(*) FROM chains").await,
            chains
        );
    }
}

/// RL12 on PostgreSQL: a server that returns `disk_full` counts as without room until a write that needs room succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl12_a_server_without_room_is_known_until_there_is_some() {
    let Some(world) = World::postgres().await else { return };
    let refuse = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS \
                  $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$";
    world
        .tamper(&[
            refuse,
            "CREATE TRIGGER a BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION no_room()",
        ])
        .await;
    assert!(world.store.has_room());
    let mut tx = world.begin().await;
    let user = NewUser {
        external_id: did("full"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    assert!(tx.create_user(user).await.unwrap_err().is_unavailable());
    drop(tx);
    world.store.ping().await.unwrap();
    assert!(!world.store.has_room(), "an answer tells nothing of writes");
    world.store.probe_room().await.unwrap();
    assert!(world.store.has_room());
    let left = world
        .rows("SELECT count(*) AS n FROM pg_largeobject_metadata", "n")
        .await;
    assert_eq!(left, [0], "the probe leaves nothing behind");
}
