//! Which databases are opened.

use crate::{
    chain::ChainMaker,
    world::{World, append_all, on_both_engines},
};
use gw_chain_store::{ChainStore, ChainStoreError, OtherChain};
use gw_types::B256;

on_both_engines! {
    the_blocks_of_another_chain_are_refused_or_removed,
    a_newer_schema_is_refused,
    two_instances_open_an_empty_database,
}

async fn the_blocks_of_another_chain_are_refused_or_removed(world: &World) {
    let writer = world.writer().await;
    append_all(&writer, &ChainMaker::new(1).blocks(0, B256::ZERO, 3)).await;
    let before = world.dump().await;
    ChainStore::open(world.config(2)).await.expect("the same chain");
    let mut config = world.config(3);
    // The largest id: columns are signed.
    config.chain_id = u64::MAX;
    match ChainStore::open(config.clone()).await {
        Err(ChainStoreError::OtherChain { stored, configured }) => assert_eq!((stored, configured), (1337, u64::MAX)),
        other => panic!("{other:?}"),
    }
    config.other_chain = OtherChain::Wipe;
    let refused = ChainStore::open(config.clone()).await;
    assert!(
        matches!(refused, Err(ChainStoreError::OtherWriter { .. })),
        "somebody writes: {refused:?}"
    );
    assert_eq!(world.dump().await, before);
    writer.release().await.unwrap();
    let generation = world.generation().await;
    ChainStore::open(config.clone()).await.unwrap();
    assert!(world.dump().await.values().all(Vec::is_empty));
    assert_eq!(world.generation().await, generation + 1);
    config.other_chain = OtherChain::Refuse;
    ChainStore::open(config).await.expect("it is this chain's now");
    assert!(matches!(
        ChainStore::open(world.config(4)).await,
        Err(ChainStoreError::OtherChain { .. })
    ));
}

async fn a_newer_schema_is_refused(world: &World) {
    world
        .tamper(&["INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_later', 1)"])
        .await;
    let refused = ChainStore::open(world.config(2)).await;
    assert!(matches!(refused, Err(ChainStoreError::Schema(text)) if text.starts_with("newer")));
}

async fn two_instances_open_an_empty_database(world: &World) {
    let tables = world.dump_of(&["chain_state", "writer_lease"]).await;
    world
        .tamper(&["UPDATE chain_state SET chain_id = NULL", "DELETE FROM blocks"])
        .await;
    let (first, second) = tokio::join!(ChainStore::open(world.config(2)), ChainStore::open(world.config(3)));
    first.unwrap();
    second.unwrap();
    assert_eq!(
        world.dump_of(&["chain_state"]).await["chain_state"],
        tables["chain_state"]
    );
    world.store.writer("first").await.expect("opening holds no lease");
}

/// RL14: a database whose transactions are read-only by default refuses nothing: each session says that it writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_default_of_read_only_transactions_refuses_no_write() {
    let Some(world) = World::postgres().await else { return };
    world
        .tamper(&[
            "DROP SCHEMA public CASCADE",
            "CREATE SCHEMA public",
            "DO $$ BEGIN EXECUTE pg_catalog.format('ALTER DATABASE %I SET default_transaction_read_only = on', \
             pg_catalog.current_database()); END $$",
        ])
        .await;
    let store = ChainStore::open(world.config(2)).await.expect("the migrations write");
    let writer = store.writer("another").await.unwrap();
    append_all(&writer, &ChainMaker::new(1).blocks(0, B256::ZERO, 3)).await;
}
