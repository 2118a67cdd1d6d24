//! The state of a database, as operators see it.

use crate::{
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{ChainStoreError, Job, JobKind, Location, StoreStatus, status};
use gw_types::{Address, B256, Clock as _, Seconds};

on_both_engines! {
    x1_the_status_counts_what_is_stored,
    x1_the_status_of_a_database_without_tables_is_none,
}

async fn status_of(world: &World) -> StoreStatus {
    let status = status(&world.config(1).location, world.clock.now()).await;
    status.unwrap().unwrap()
}

async fn x1_the_status_counts_what_is_stored(world: &World) {
    let empty = status_of(world).await;
    assert_eq!((empty.chain_id, empty.generation, empty.first), (Some(1337), 1, None));
    assert_eq!((empty.head, empty.missing_blocks, empty.lease), (None, 0, None));

    let writer = world.writer().await;
    let chain = ChainMaker::new(1).blocks(3, B256::ZERO, 20);
    append_all(&writer, &chain).await;
    let tasks = writer.take_tasks(JobKind::Frames, 1, Seconds(60)).await.unwrap();
    writer.retry_tasks(&tasks).await.unwrap();
    writer
        .enqueue(&[Job::TokenSupply {
            token: Address::repeat_byte(7),
        }])
        .await
        .unwrap();
    if world.engine == "sqlite" {
        world.clock.pass(12);
    }

    let status = status_of(world).await;
    let newest = &chain.last().unwrap().block;
    assert_eq!((status.first, status.head.as_ref()), (Some(3), Some(newest)));
    let untraced = chain.iter().filter(|data| !data.block.frames_complete).count();
    assert!(untraced > 0);
    assert_eq!(status.blocks_without_frames, untraced as u64);
    let frames = status.queue.iter().find(|queue| queue.kind == JobKind::Frames).unwrap();
    assert_eq!((frames.tasks, frames.failed), (untraced as u64, 1));
    assert!(
        status
            .queue
            .iter()
            .any(|queue| queue.kind == JobKind::TokenSupply && queue.tasks > 0)
    );
    let lease = status.lease.unwrap();
    assert_eq!((lease.name.as_str(), lease.is_valid), ("test", true));
    if world.engine == "sqlite" {
        assert_eq!(lease.age, Seconds(12));
    }
    assert!(status.bytes > 100_000, "{}", status.bytes);
    assert_eq!(status.missing_blocks, 0);

    world.tamper(&["DELETE FROM blocks WHERE number IN (5, 9)"]).await;
    writer.release().await.unwrap();
    let damaged = status_of(world).await;
    assert_eq!((damaged.missing_blocks, damaged.lease), (2, None));

    world
        .tamper(&["INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_later', 1)"])
        .await;
    let refused = gw_chain_store::status(&world.config(1).location, world.clock.now()).await;
    assert!(matches!(refused, Err(ChainStoreError::Schema(text)) if text.starts_with("newer")));
}

async fn x1_the_status_of_a_database_without_tables_is_none(world: &World) {
    let location = match world.config(1).location {
        Location::Sqlite { file } => {
            let file = file.with_file_name("none.db");
            assert_eq!(
                status(&Location::Sqlite { file: file.clone() }, world.clock.now())
                    .await
                    .unwrap(),
                None
            );
            assert!(!file.exists(), "it was not created");
            Location::Sqlite { file }
        }
        Location::Postgres { .. } => {
            let empty = gw_testkit::postgres::database().unwrap().unwrap();
            Location::Postgres {
                url: gw_types::Secret::new(empty.url),
            }
        }
    };
    assert_eq!(status(&location, world.clock.now()).await.unwrap(), None);
}
