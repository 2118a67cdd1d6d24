//! Reorganizations and chain resets.

use crate::support::{
    Running,
    chain::Chain,
    config,
    database::{Database, assert_equal},
    indexed, within,
};
use gw_indexer::{IndexerConfig, IndexerError};
use gw_testkit::anvil::anvil;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn x5_a_reorganization_leaves_the_tables_of_the_new_chain() {
    for (first, second) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let running = Running::start(anvil.url(), first.open().await, &first.clock, config()).await;
        let contracts = chain.deploy_contracts().await;
        let snapshot = chain.rpc.call("evm_snapshot", json!([])).await;
        chain.send_transactions(&contracts, 1).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&first, number, &hash).await;
        // The other branch is longer than the removed one.
        assert_eq!(chain.rpc.call("evm_revert", json!([snapshot])).await, true);
        chain.transfer(contracts.coin, contracts.workshop, 9).await;
        chain.send_transactions(&contracts, 2).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&first, number, &hash).await;
        // This one is shorter.
        chain.rpc.call("anvil_rollback", json!([5])).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&first, number, &hash).await;
        chain.transfer(contracts.coin, contracts.proxy, 4).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&first, number, &hash).await;
        running.end().await;
        assert_equal(&first.tables().await, &indexed(anvil.url(), &second).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn x5_a_reorganization_while_no_indexer_runs_is_found_at_start() {
    let (first, second) = (Database::sqlite(), Database::sqlite());
    let anvil = anvil();
    let chain = Chain::new(anvil.url());
    let contracts = chain.deploy_contracts().await;
    let snapshot = chain.rpc.call("evm_snapshot", json!([])).await;
    chain.send_transactions(&contracts, 1).await;
    indexed(anvil.url(), &first).await;
    chain.rpc.call("evm_revert", json!([snapshot])).await;
    chain.send_transactions(&contracts, 2).await;
    let tables = indexed(anvil.url(), &first).await;
    assert_equal(&tables, &indexed(anvil.url(), &second).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn x6_a_chain_reset_stops_the_indexer_unless_it_may_start_again() {
    let (database, fresh) = (Database::sqlite(), Database::sqlite());
    let old = anvil();
    Chain::new(old.url()).mine(140).await;
    indexed(old.url(), &database).await;
    let before = database.tables().await;
    // Far below the indexed height.
    let new = anvil();
    let chain = Chain::new(new.url());
    chain.mine(5).await;
    let running = Running::start(new.url(), database.open().await, &database.clock, config()).await;
    let error = within(20, running.task).await.unwrap().unwrap_err();
    assert!(
        matches!(error, IndexerError::ChainReset { newest: 140, head: 5 }),
        "{error:?}"
    );
    // High enough, but another chain.
    chain.rpc.call("evm_increaseTime", json!([1000])).await;
    chain.mine(150).await;
    let other = gw_testkit::Anvil::start(&gw_testkit::anvil::AnvilOptions {
        extra: vec!["--timestamp".to_owned(), "1600000000".to_owned()],
        ..Default::default()
    });
    Chain::new(other.url()).mine(141).await;
    let running = Running::start(other.url(), database.open().await, &database.clock, config()).await;
    let error = within(20, running.task).await.unwrap().unwrap_err();
    assert!(matches!(error, IndexerError::OtherChain), "{error:?}");
    assert_equal(&database.tables().await, &before);
    let config = IndexerConfig {
        reindex_after_reset: true,
        ..config()
    };
    let running = Running::start(other.url(), database.open().await, &database.clock, config).await;
    let (number, hash) = Chain::new(other.url()).rpc.head().await;
    running.reaches(&database, number, &hash).await;
    running.end().await;
    assert_equal(&database.tables().await, &indexed(other.url(), &fresh).await);
}
