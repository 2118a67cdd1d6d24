//! Several instances on one database.

use crate::support::{Running, chain::Chain, config, database::Database, within};
use gw_indexer::{IndexerConfig, IndexerState};
use gw_testkit::anvil::anvil;

#[tokio::test(flavor = "multi_thread")]
async fn x2_of_two_indexers_one_writes_and_the_other_takes_over() {
    for (database, _) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let named = |name: &str| IndexerConfig {
            name: name.to_owned(),
            ..config()
        };
        let first = Running::start(anvil.url(), database.open().await, &database.clock, named("one")).await;
        let mut progress = first.progress.clone();
        within(20, progress.wait_for(|progress| progress.height == Some(0)))
            .await
            .unwrap();
        let second = Running::start(anvil.url(), database.open().await, &database.clock, named("two")).await;
        chain.mine(5).await;
        within(20, progress.wait_for(|progress| progress.height == Some(5)))
            .await
            .unwrap();
        let state = *second.progress.borrow();
        assert_eq!((state.state, state.height), (IndexerState::Standby, None));
        first.end().await;
        chain.mine(5).await;
        let (number, hash) = chain.rpc.head().await;
        second.reaches(&database, number, &hash).await;
        second.end().await;
        assert_eq!(database.count("SELECT number FROM blocks").await, 11);
    }
}
