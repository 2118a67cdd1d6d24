//! One instance at a time writes.

use crate::{
    chain::ChainMaker,
    world::{World, on_both_engines},
};
use gw_chain_store::{ChainStore, ChainStoreError, ChainWriter};
use gw_types::B256;
use std::time::Duration;
use tokio::time::sleep;

on_both_engines! {
    only_one_of_two_writers_holds_the_lease,
    a_lost_lease_ends_writing,
    a_released_lease_is_free_at_once,
    x2_the_lease_of_an_ended_writer_is_free_at_once,
    x2_a_lost_lock_is_taken_again,
    a_lease_that_no_instance_could_hold_keeps_none_from_writing,
}

/// Lets the lease age. If it uses the database's clock, its end is moved instead.
async fn pass(world: &World, seconds: i64) {
    world.clock.pass(seconds);
    if world.engine == "postgres" {
        let micros = seconds * 1_000_000;
        world
            .tamper(&[&format!("UPDATE writer_lease SET expires_at = expires_at - {micros}")])
            .await;
    }
}

async fn only_one_of_two_writers_holds_the_lease(world: &World) {
    let first = world.store.writer("first").await.unwrap();
    let other = ChainStore::open(world.config(2)).await.unwrap();
    let refused = other.writer("second").await;
    assert!(
        matches!(&refused, Err(ChainStoreError::OtherWriter { name }) if name == "first"),
        "{refused:?}"
    );
    pass(world, 20).await;
    first.renew().await.unwrap();
    pass(world, 20).await;
    assert!(other.writer("second").await.is_err(), "the first was renewed");
    first
        .append(&ChainMaker::new(1).block(0, B256::ZERO), &[])
        .await
        .unwrap();
    pass(world, 20).await;
    assert!(other.writer("second").await.is_err(), "a write renews it too");
    pass(world, 11).await;
    other.writer("second").await.unwrap();
}

async fn a_lost_lease_ends_writing(world: &World) {
    let maker = ChainMaker::new(2);
    let chain = maker.blocks(0, B256::ZERO, 2);
    let first = world.store.writer("first").await.unwrap();
    first.append(&chain[0], &[]).await.unwrap();
    pass(world, 31).await;
    first.append(&chain[1], &[]).await.expect("nobody took it");
    pass(world, 31).await;
    let other = ChainStore::open(world.config(2)).await.unwrap();
    let second = other.writer("second").await.unwrap();
    let before = world.dump().await;
    let next = maker.blocks_after(&chain[1], 1);
    for lost in [
        first.append(&next[0], &[]).await.map(drop),
        first.revert_to(0).await.map(drop),
        first.set_finalized(chain[0].block.num_hash()).await,
        first.wipe().await,
        first.renew().await,
        first.enqueue(&[]).await,
        first.set_readings(chain[0].block.num_hash(), &[], &[]).await,
    ] {
        assert!(matches!(lost, Err(ChainStoreError::LeaseLost)), "{lost:?}");
    }
    first.release().await.expect("it has nothing to release");
    assert_eq!(world.dump().await, before);
    second.append(&next[0], &[]).await.unwrap();
}

async fn a_released_lease_is_free_at_once(world: &World) {
    let first = world.store.writer("first").await.unwrap();
    first.release().await.unwrap();
    world.store.writer("second").await.unwrap();
    assert!(matches!(first.renew().await, Err(ChainStoreError::LeaseLost)));
}

/// A killed process releases nothing itself; what it held goes with it.
async fn x2_the_lease_of_an_ended_writer_is_free_at_once(world: &World) {
    let first = world.store.writer("first").await.unwrap();
    let clone = first.clone();
    drop(first);
    assert!(world.store.writer("second").await.is_err(), "a clone still writes");
    drop(clone);
    let other = ChainStore::open(world.config(2)).await.unwrap();
    let second = taken_soon(&other, "second").await;
    assert!(world.store.writer("first").await.is_err(), "the lock passed, too");
    second.renew().await.unwrap();
}

/// The database server closes the socket of an ended process a moment later.
async fn taken_soon(store: &ChainStore, name: &str) -> ChainWriter {
    for _ in 0..500 {
        match store.writer(name).await {
            Ok(writer) => return writer,
            Err(ChainStoreError::OtherWriter { .. }) => sleep(Duration::from_millis(10)).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the lease did not become free");
}

/// Without its lock a writer still has its lease, so another instance may take over; the renewal takes the lock again.
async fn x2_a_lost_lock_is_taken_again(world: &World) {
    let first = world.store.writer("first").await.unwrap();
    world.lose_lock().await;
    first.renew().await.unwrap();
    let other = ChainStore::open(world.config(2)).await.unwrap();
    assert!(other.writer("second").await.is_err(), "the lock was taken again");
    world.lose_lock().await;
    taken_soon(&other, "second").await;
    assert!(matches!(first.renew().await, Err(ChainStoreError::LeaseLost)));
}

async fn a_lease_that_no_instance_could_hold_keeps_none_from_writing(world: &World) {
    let _first = world.store.writer("first").await.unwrap();
    assert!(world.store.writer("second").await.is_err());
    world
        .tamper(&["UPDATE writer_lease SET expires_at = 9223372036854775807"])
        .await;
    world
        .store
        .writer("second")
        .await
        .expect("no instance holds a lease for so long");
}
