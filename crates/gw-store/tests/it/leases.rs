//! HD24: which instances may live side by side.

use crate::world::{World, on_both_engines};
use gw_store::StoreError;
use gw_types::Seconds;

on_both_engines! {
    hd24_an_instance_without_a_shared_cache_stays_alone,
    hd24_an_ended_lease_makes_room,
}

async fn hd24_an_instance_without_a_shared_cache_stays_alone(world: &World) {
    let life = Seconds(30);
    let alone = world.store.take_lease("first", false, life).await.unwrap();
    let refused = world.store.take_lease("second", true, life).await;
    assert!(matches!(refused, Err(StoreError::OtherInstance(name)) if name == "first"));
    world.store.release_lease(alone).await.unwrap();

    world.store.take_lease("third", true, life).await.unwrap();
    let beside = world.store.take_lease("fourth", true, life).await;
    assert_eq!(beside.is_ok(), world.engine == "postgres", "sqlite serves one process");
    let refused = world.store.take_lease("fifth", false, life).await;
    assert!(matches!(refused, Err(StoreError::OtherInstance(name)) if name == "third"));
}

async fn hd24_an_ended_lease_makes_room(world: &World) {
    let first = world.store.take_lease("first", false, Seconds(30)).await.unwrap();
    world.clock.pass(20);
    world.store.renew_lease(first, Seconds(30)).await.unwrap();
    world.clock.pass(20);
    assert!(world.store.take_lease("second", false, Seconds(30)).await.is_err(), "the first was renewed");
    world.clock.pass(11);
    world.store.take_lease("second", false, Seconds(30)).await.unwrap();
    let late = world.store.renew_lease(first, Seconds(30)).await;
    assert!(matches!(late, Err(StoreError::OtherInstance(_))), "the first is told that it lost its place");
}
