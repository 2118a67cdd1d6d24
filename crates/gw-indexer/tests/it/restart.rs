//! An indexer that ends at any moment.

use crate::support::{
    Running,
    chain::Chain,
    config,
    database::{Database, assert_equal},
    indexed,
};
use gw_testkit::anvil::anvil;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn x5_an_indexer_that_is_killed_at_any_moment_continues() {
    for (database, fresh) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let contracts = chain.deploy_contracts().await;
        chain.act(&contracts, 1).await;
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
