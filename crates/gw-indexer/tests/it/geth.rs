//! The indexer on go-ethereum, where it is installed.

use crate::{
    catch_up::check_rows,
    support::{
        Running,
        chain::Chain,
        config,
        database::{Database, assert_equal},
        indexed,
    },
};
use gw_testkit::Geth;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn x3_x5_x8_x11_geth_is_followed_through_a_reorganization() {
    for (first, second) in Database::pairs() {
        let Some(geth) = Geth::start() else { return };
        let chain = Chain::of_unsigning_node(geth.url());
        let running = Running::start(geth.url(), first.open().await, &first.clock, config()).await;
        let contracts = chain.deploy_contracts().await;
        let (fork, _) = chain.rpc.head().await;
        chain.send_transactions(&contracts, 1).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&first, number, &hash).await;
        let followed = first.tables().await;
        check_rows(&followed, &contracts);
        assert_equal(&indexed(geth.url(), &second).await, &followed);
        // The next block continues at the fork, so all transactions after it are gone.
        chain.rpc.call("debug_setHead", json!([format!("{fork:#x}")])).await;
        chain.transfer(contracts.coin, contracts.workshop, 9).await;
        chain.send_transactions(&contracts, 2).await;
        let (number, hash) = chain.rpc.head().await;
        running.reaches(&first, number, &hash).await;
        running.end().await;
        let branch = first.tables().await;
        assert_ne!(branch["transactions"], followed["transactions"]);
        assert_equal(&branch, &indexed(geth.url(), &second).await);
    }
}
