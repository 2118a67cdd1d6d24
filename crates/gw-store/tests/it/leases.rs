//! HD24: which instances may run at the same time.

use crate::world::{World, on_both_engines};
use gw_store::StoreError;
use gw_types::Seconds;

on_both_engines! {
    hd24_an_instance_without_a_shared_cache_stays_alone,
    hd24_an_ended_lease_makes_room,
    rl11_a_clock_that_is_an_hour_ahead_ends_nobodys_lease,
    hd24_a_lease_that_no_instance_could_hold_keeps_none_from_starting,
}

async fn hd24_an_instance_without_a_shared_cache_stays_alone(world: &World) {
    let life = Seconds(30);
    let alone = world.store.take_lease("first", false, life).await.unwrap();
    let refused = world.store.take_lease("second", true, life).await;
    assert!(matches!(refused, Err(StoreError::OtherInstance(name)) if name == "first"));
    world.store.release_lease(alone).await.unwrap();

    world.store.take_lease("third", true, life).await.unwrap();
    let shared = world.store.take_lease("fourth", true, life).await;
    assert_eq!(shared.is_ok(), world.engine == "postgres", "sqlite serves one process");
    let refused = world.store.take_lease("fifth", false, life).await;
    assert!(matches!(refused, Err(StoreError::OtherInstance(name)) if name == "third"));
}

async fn hd24_an_ended_lease_makes_room(world: &World) {
    let first = world.store.take_lease("first", false, Seconds(30)).await.unwrap();
    world.pass_for_leases(20).await;
    world.store.renew_lease(first, Seconds(30)).await.unwrap();
    world.pass_for_leases(20).await;
    assert!(
        world.store.take_lease("second", false, Seconds(30)).await.is_err(),
        "the first was renewed"
    );
    world.pass_for_leases(11).await;
    world.store.take_lease("second", false, Seconds(30)).await.unwrap();
    let late = world.store.renew_lease(first, Seconds(30)).await;
    assert!(
        matches!(late, Err(StoreError::OtherInstance(_))),
        "the first is told that it lost its place"
    );
}

/// RL11, HD24: leases use the database's clock if it has one. On SQLite one process holds the file, and its own clock
/// is the only one.
async fn rl11_a_clock_that_is_an_hour_ahead_ends_nobodys_lease(world: &World) {
    if world.engine == "sqlite" {
        return;
    }
    let life = Seconds(30);
    let first = world.store.take_lease("first", false, life).await.unwrap();
    world.clock.pass(3600);
    let refused = world.store.take_lease("second", false, life).await;
    assert!(
        matches!(refused, Err(StoreError::OtherInstance(name)) if name == "first"),
        "it lives"
    );
    world.store.renew_lease(first, life).await.unwrap();
    world.clock.pass(-3600);
    // A lease renewed by such a clock is no longer than any other.
    world.pass_for_leases(31).await;
    world
        .store
        .take_lease("second", false, life)
        .await
        .expect("the first one ended");
}

async fn hd24_a_lease_that_no_instance_could_hold_keeps_none_from_starting(world: &World) {
    let life = Seconds(30);
    world.store.take_lease("first", false, life).await.unwrap();
    assert!(world.store.take_lease("second", false, life).await.is_err());
    world
        .tamper(&["UPDATE instances SET name = 'evil', expires_at = 9223372036854775807"])
        .await;
    world
        .store
        .take_lease("second", false, life)
        .await
        .expect("no instance holds a lease for so long");
}
