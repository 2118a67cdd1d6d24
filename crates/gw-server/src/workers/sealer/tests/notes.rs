//! RL4: a database that does not keep signatures, or that has entries that its writer did not write, is reported.

use super::World;
use crate::workers::sealer::{ADMIN_CHAIN, health::StallReason, worker::ChainWorker};
use futures_util::future::join_all;
use gw_audit::Stream;
use std::time::{Duration, Instant};

on_both_engines! {
    rl4_a_note_that_the_store_does_not_keep_is_reported,
    rl4_the_head_of_the_chain_is_compared_while_no_row_waits,
}

/// If the database discards a signature, its writer reports a stall until the database keeps one.
async fn rl4_a_note_that_the_store_does_not_keep_is_reported(world: World) {
    let swallow: &[&str] = if world.audit_url.starts_with("sqlite") {
        &["CREATE TRIGGER lie BEFORE INSERT ON checkpoints BEGIN SELECT RAISE(IGNORE); END"]
    } else {
        &[
            "CREATE FUNCTION lie() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
            "CREATE TRIGGER lie BEFORE INSERT ON checkpoints FOR EACH ROW EXECUTE FUNCTION lie()",
        ]
    };
    world.in_audit(swallow).await;
    let mut sealer = world.sealer();
    // The genesis of the chain has time zero, so the first signature is due at once.
    world.mutate("one").await;
    for _ in 0..2 {
        world.seal(&mut sealer).await;
        assert_eq!(
            world.health.stall(Stream::Admin),
            Some(StallReason::Unconfirmed),
            "a failed signature stays due"
        );
    }
    let drop = if world.audit_url.starts_with("sqlite") {
        "DROP TRIGGER lie"
    } else {
        "DROP TRIGGER lie ON checkpoints"
    };
    world.in_audit(&[drop]).await;
    world.seal(&mut sealer).await;
    assert_eq!(world.health.stall(Stream::Admin), None);
    let admin = ADMIN_CHAIN;
    assert!(world.audit.last_checkpoint(admin).await.unwrap().is_some());
    let note = world.audit.last_checkpoint(admin).await.unwrap().unwrap();
    world.audit.insert_checkpoint(admin, 2, &note).await.unwrap();
    world.in_audit(&["UPDATE checkpoints SET note = 'other'"]).await;
    let result = world.audit.insert_checkpoint(admin, 2, &note).await;
    assert!(matches!(result, Err(gw_store::StoreError::NotKept(_))), "{result:?}");
}

/// An entry that an attacker appends while no row waits is reported within seconds.
async fn rl4_the_head_of_the_chain_is_compared_while_no_row_waits(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    world
        .in_audit(&["UPDATE chains SET size = size + 1 WHERE stream = 'admin'"])
        .await;
    let started = Instant::now();
    while world.health.stall(Stream::Admin) != Some(StallReason::Foreign) {
        assert!(started.elapsed() < Duration::from_secs(50), "reported too late");
        tokio::time::sleep(Duration::from_millis(100)).await;
        sealer.chains.iter_mut().for_each(ChainWorker::wake);
        join_all(sealer.chains.iter_mut().map(ChainWorker::step)).await;
    }
}
