//! Catching up with an existing chain, and following a growing one.

use crate::support::{
    Running,
    chain::{Chain, Contracts},
    config,
    database::{Database, Tables, assert_equal, hex, text},
    indexed, within,
};
use gw_indexer::{IndexerConfig, IndexerState};
use gw_testkit::anvil::anvil;
use gw_types::{Address, U256};
use serde_json::Value;

/// The row of a table whose column has these bytes.
fn row<'t>(tables: &'t Tables, table: &str, column: &str, value: &str) -> &'t Value {
    tables[table].iter().find(|row| hex(&row[column]) == value).unwrap()
}

pub(crate) fn check_rows(tables: &Tables, contracts: &Contracts) {
    let address = |address: Address| format!("{address:#x}");
    let token = |contract| row(tables, "tokens", "address", &address(contract));
    let coin = token(contracts.coin);
    assert_eq!(
        (text(&coin["name"]).as_deref(), text(&coin["symbol"]).as_deref()),
        (Some("Demo coin"), Some("DMO"))
    );
    assert_eq!(
        (&coin["decimals"], &coin["standard"]),
        (&Value::from(18), &Value::from(20))
    );
    assert_eq!(hex(&coin["total_supply"]), format!("{:#066x}", U256::from(1_000_000)));
    assert_eq!(token(contracts.collection)["standard"], 721);
    assert_eq!(token(contracts.bundle)["standard"], 1155);
    let early = tables["tokens"]
        .iter()
        .find(|row| text(&row["symbol"]).as_deref() == Some("EAR"))
        .unwrap();
    assert_eq!(text(&early["name"]).as_deref(), Some("Early"), "a name of type bytes32");
    // HD26: what a token read in another contract is not stored.
    let prying = token(contracts.prying);
    assert_eq!((&prying["name"], &prying["total_supply"]), (&Value::Null, &Value::Null));
    assert_eq!(prying["metadata_state"], 1, "unavailable");
    let is_pried = |row: &&Value| hex(&row["token_address"]) == address(contracts.prying);
    assert_eq!(tables["token_balances"].iter().filter(is_pried).count(), 0);
    // Three contracts by receipts of the factory's kind, and two per call of the factory that was not undone.
    let made: Vec<&Value> = tables["contracts"]
        .iter()
        .filter(|row| hex(&row["creator"]) == address(contracts.workshop))
        .collect();
    assert_eq!(made.len(), 2, "{made:?}");
    let proxy = row(tables, "contracts", "address", &address(contracts.proxy));
    assert_eq!(
        (&proxy["proxy_kind"], hex(&proxy["implementation"])),
        (&Value::from(2), address(contracts.coin))
    );
    let change = row(tables, "proxy_changes", "address", &address(contracts.proxy));
    assert_eq!(hex(&change["implementation"]), address(Address::repeat_byte(8)));
    let failed: Vec<_> = tables["transactions"]
        .iter()
        .filter_map(|row| text(&row["revert_reason"]))
        .collect();
    for reason in ["balance exceeded", "made for nothing"] {
        assert!(failed.contains(&reason.to_owned()), "{failed:?}");
    }
    assert!(
        tables["frames"].iter().any(|row| row["error"] != Value::Null),
        "failed frames are stored"
    );
    assert!(
        tables["blocks"]
            .iter()
            .all(|row| row["frames_complete"] == true || row["frames_complete"] == 1)
    );
    let is_batch = |row: &&Value| row["batch_position"] == 1;
    assert_eq!(tables["token_transfers"].iter().filter(is_batch).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn x3_x4_x8_x11_catching_up_gives_the_same_tables_as_following() {
    for (first, second) in Database::pairs() {
        let anvil = anvil();
        let chain = Chain::new(anvil.url());
        let following = Running::start(anvil.url(), first.open().await, &first.clock, config()).await;
        let contracts = chain.deploy_contracts().await;
        chain.send_transactions(&contracts, 1).await;
        chain.one_block(&contracts).await;
        let (number, hash) = chain.rpc.head().await;
        following.reaches(&first, number, &hash).await;
        let progress = *following.progress.borrow();
        assert_eq!((progress.height, progress.target), (Some(number), Some(number)));
        assert_eq!((progress.state, progress.lag()), (IndexerState::Following, Some(0)));
        let mut updates = following.progress.clone();
        following.end().await;
        assert_eq!(updates.borrow_and_update().state, IndexerState::Stopped);
        let followed = first.tables().await;
        check_rows(&followed, &contracts);
        assert_equal(&indexed(anvil.url(), &second).await, &followed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn x3_confirmations_keep_a_distance_to_the_head() {
    let (anvil, database) = (anvil(), Database::sqlite());
    let chain = Chain::new(anvil.url());
    chain.mine(10).await;
    let config = IndexerConfig {
        confirmations: 4,
        first_block: 2,
        ..config()
    };
    let running = Running::start(anvil.url(), database.open().await, &database.clock, config).await;
    let mut progress = running.progress.clone();
    within(20, progress.wait_for(|progress| progress.height == Some(6)))
        .await
        .unwrap();
    chain.mine(3).await;
    within(20, progress.wait_for(|progress| progress.height == Some(9)))
        .await
        .unwrap();
    assert_eq!(progress.borrow().target, Some(9));
    running.end().await;
    assert_eq!(database.count("SELECT number FROM blocks").await, 8, "blocks 2 to 9");
}

#[tokio::test(flavor = "multi_thread")]
async fn x4_a_long_chain_is_caught_up_in_order() {
    let (anvil, database) = (anvil(), Database::sqlite());
    let chain = Chain::new(anvil.url());
    chain.mine(400).await;
    let running = Running::start(anvil.url(), database.open().await, &database.clock, config()).await;
    let mut progress = running.progress.clone();
    let catching_up = within(
        20,
        progress.wait_for(|progress| progress.state == IndexerState::CatchingUp),
    )
    .await;
    assert_eq!(catching_up.unwrap().target, Some(400));
    let mut height = 0;
    let in_order = progress.wait_for(|progress| {
        let next = progress.height.unwrap_or_default();
        assert!(next >= height, "the height goes back");
        height = next;
        progress.state == IndexerState::Following && next == 400
    });
    within(120, in_order).await.unwrap();
    running.end().await;
    assert_eq!(database.count("SELECT number FROM blocks").await, 401);
}
