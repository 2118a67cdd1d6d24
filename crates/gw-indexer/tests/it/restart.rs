//! An indexer that ends at any moment.

use crate::support::{
    Running,
    chain::Chain,
    config,
    database::{Database, assert_equal},
    indexed, within,
};
use gw_testkit::{Relay, anvil::anvil};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn x5_an_indexer_that_is_killed_at_any_moment_continues() {
    for (database, fresh) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let contracts = chain.deploy_contracts().await;
        chain.send_transactions(&contracts, 1).await;
        chain.one_block(&contracts).await;
        let (number, hash) = chain.rpc.head().await;
        // The store stays open: a killed task leaves its connections as they are.
        let store = database.open().await;
        let mut kills = 0_u64;
        loop {
            let running = Running::start(anvil.url(), store.clone(), &database.clock, config()).await;
            // Different moments: during the reads, between two statements of a block, at a commit.
            tokio::time::sleep(Duration::from_millis(2 + kills * 7 % 60)).await;
            running.task.abort();
            let _ = running.task.await;
            database.end_lease().await;
            kills += 1;
            let newest = database.newest_block().await;
            let blocks = database.count("SELECT number FROM blocks").await;
            let expected = newest
                .as_ref()
                .map_or(0, |(number, _)| usize::try_from(number + 1).unwrap());
            assert_eq!(blocks, expected, "a gap after kill {kills}");
            if kills >= 10 && (newest == Some((number, hash.clone())) || kills >= 40) {
                break;
            }
        }
        let tables = indexed(anvil.url(), &database).await;
        assert_equal(&tables, &indexed(anvil.url(), &fresh).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_indexer_stops_at_once_while_the_node_is_silent_and_frees_its_place() {
    let (anvil, database) = (anvil(), Database::sqlite());
    let chain = Chain::new(anvil.url());
    chain.mine(300).await;
    let relay = Relay::to(anvil.url()).await;
    let running = Running::start(&relay.url(), database.open().await, &database.clock, config()).await;
    let mut progress = running.progress.clone();
    within(20, progress.wait_for(|progress| progress.height > Some(5)))
        .await
        .unwrap();
    relay.pause();
    running.stop.cancel();
    within(2, running.task).await.unwrap().unwrap();
    let free = "SELECT id FROM writer_lease WHERE holder IS NULL";
    assert_eq!(database.count(free).await, 1, "the lease is released");
    let blocks = database.count("SELECT number FROM blocks").await;
    let (newest, _) = database.newest_block().await.unwrap();
    assert_eq!(blocks, usize::try_from(newest + 1).unwrap());
}
