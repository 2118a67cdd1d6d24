//! Bad input, tokens, records, and what happens without an index.

use crate::{
    chain::snapshot,
    world::{TestCaller, World},
};
use gw_policy::{
    PolicySettings,
    testing::{address_of, world},
};
use http::StatusCode;

/// spec/40 section 3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused() {
    let world = World::random(31, PolicySettings::SPEC).await;
    let alice = format!("0x{}", hex::encode(address_of("alice-w")));
    let unknown = format!("0x{}", "12".repeat(32));
    for path in [
        "/transactions?limit=ten",
        "/transactions?before=x",
        "/transactions?cursor=x",
        "/transactions?serach=1",
        "/transactions?with_categories=maybe",
        "/transactions/paginated?page=one",
        "/transactions/paginated?limit=1",
        "/transactions/0x12",
        "/blocks/x",
        "/blocks/-1",
        "/blocks/hash/0x12",
        "/addresses/0x12/stats",
        "/addresses/alice/transactions",
        "/logs?address=0x12",
        "/logs?topic0=0x12",
        "/logs?from=x",
        "/stats/tx-history?interval=x",
        "/chain-id?x=1",
    ] {
        let response = world.get(TestCaller::User("alice"), path).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{path}: {}", response.text);
    }
    for path in [
        "/blocks/999".to_owned(),
        format!("/blocks/hash/{unknown}"),
        format!("/transactions/{unknown}"),
        format!("/transactions/{unknown}/op-deposit"),
        format!("/addresses/0x{}/stats", "34".repeat(20)),
        "/nothing".to_owned(),
    ] {
        let response = world.get(TestCaller::User("alice"), &path).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}: {}", response.text);
    }
    let stats = world
        .get(TestCaller::User("alice"), &format!("/addresses/{alice}/stats"))
        .await;
    assert_eq!(stats.status, StatusCode::OK, "{}", stats.text);
    let empty = world
        .get(TestCaller::User("alice"), "/transactions?before=0")
        .await
        .json();
    assert_eq!(empty["data"], serde_json::json!([]));
    let many = world.get(TestCaller::User("alice"), "/blocks?limit=5000").await;
    assert_eq!(many.json()["data"].as_array().unwrap().len(), world.chain.len());
}

/// E10: a token that is present has to be valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e10_a_present_but_invalid_token_is_refused() {
    let world = World::random(32, PolicySettings::SPEC).await;
    assert_eq!(
        world.get(TestCaller::Nobody, "/transactions").await.status,
        StatusCode::OK
    );
    let unknown = format!("Bearer {}", world.token("mallory"));
    for authorization in ["Bearer x", "Basic x", "Bearer ", &unknown] {
        for path in ["/transactions", "/chain-id?", "/blocks"] {
            let response = world.get_with(authorization, path).await;
            if path == "/chain-id?" && authorization == unknown {
                continue;
            }
            assert_eq!(
                response.status,
                StatusCode::UNAUTHORIZED,
                "{authorization} {path}: {}",
                response.text
            );
        }
    }
    let banned = gw_policy::testing::world().user("alice").banned().snapshot();
    world.set_policy(Some(banned));
    let response = world.get(TestCaller::User("alice"), "/transactions").await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{}", response.text);
}

/// E12: every request is recorded, without the addresses in its path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e12_requests_are_recorded_without_addresses() {
    let world = World::random(33, PolicySettings::SPEC).await;
    let _earlier = world.fixture.access_records();
    let path = format!("/addresses/0x{}/stats", hex::encode(address_of("carol-w")));
    let _own = world.get(TestCaller::User("carol"), &path).await;
    let _other = world.get(TestCaller::Nobody, &path).await;
    let records = world.fixture.access_records();
    let seen: Vec<_> = records
        .iter()
        .map(|record| (record.external_id.as_ref().map(ToString::to_string), record.status_code))
        .collect();
    assert_eq!(seen, [(Some("did:test:carol".to_owned()), 200), (None, 404)]);
    for record in &records {
        assert_eq!(record.method, "GET /api/v1/explorer/addresses/{address}/stats");
        assert!(record.policy_epoch.is_some() && record.request_params.is_none());
    }
}

/// Without an index there is no answer, and nothing of a block that was not validated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd28_only_validated_blocks_are_shown() {
    let chain = crate::chain::ChainMaker::new(34).blocks(1, Default::default(), 24);
    let mut world = World::with(snapshot(&chain), PolicySettings::SPEC).await;
    world.append(chain.clone()).await;
    let root = TestCaller::User("root");
    for path in [
        "/transactions",
        "/blocks",
        "/blocks/3",
        "/stats",
        "/logs",
        "/sync/status",
    ] {
        let response = world.get(root, path).await;
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(response.text.contains("explorer index is behind"), "{}", response.text);
    }
    world.validated.set(&chain[..10]);
    world.follow().await;
    assert_eq!(world.get(root, "/blocks/latest/number").await.json()["number"], 10);
    assert_eq!(world.get(root, "/blocks/11").await.status, StatusCode::NOT_FOUND);
    let newest = world.get(root, "/transactions?limit=1").await.json();
    assert!(newest["data"][0]["blockNumber"].as_u64().unwrap() <= 10);
    for data in &chain[10].transactions {
        let path = format!("/transactions/0x{}", hex::encode(data.transaction.hash));
        assert_eq!(world.get(root, &path).await.status, StatusCode::NOT_FOUND);
    }
    world.validated.set(&chain);
    world.follow().await;
    assert_eq!(world.get(root, "/blocks/latest/number").await.json()["number"], 24);
}

/// A validated chain that is not the stored one shows nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd28_a_stored_branch_that_was_not_validated_is_not_loaded() {
    let maker = crate::chain::ChainMaker::new(35);
    let (stored, other) = (
        maker.blocks(1, Default::default(), 5),
        maker.blocks(1, Default::default(), 5),
    );
    let mut explorer = World::with(world().user("root").snapshot(), PolicySettings::SPEC).await;
    explorer.append(stored).await;
    explorer.validated.set(&other);
    explorer.follow().await;
    let response = explorer.get(TestCaller::User("root"), "/blocks").await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{}", response.text);
}

/// A row that is selected and does not survive its evaluation fails the request: nothing is shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_contradicts_its_selection_is_not_shown() {
    let world = World::random(36, PolicySettings::SPEC).await;
    let carol = TestCaller::User("carol");
    let hashes = world.walk(carol, "/transactions", "data", 100).await.texts("hash");
    // The stored rows now belong to strangers, the index still knows them as they were.
    world
        .tamper("UPDATE transactions SET from_address = zeroblob(19) || x'99', to_address = zeroblob(19) || x'98'")
        .await;
    world.tamper("UPDATE logs SET address = zeroblob(19) || x'99'").await;
    for path in [
        "/transactions".to_owned(),
        format!("/transactions/{}", hashes[0]),
        "/logs?limit=1000".to_owned(),
    ] {
        let response = world.get(carol, &path).await;
        assert_eq!(
            response.status,
            StatusCode::INTERNAL_SERVER_ERROR,
            "{path}: {}",
            response.text
        );
        assert!(!response.text.contains("0x"), "{}", response.text);
    }
}

/// spec/30 section 8: under `HIDE_BASE_FEE` neither blocks nor the prices that transactions paid tell the base fee.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_base_fee_is_in_no_price() {
    let mut chain = crate::chain::ChainMaker::new(37).blocks(1, Default::default(), 4);
    let mut kinds = [0_u8, 1, 2, 3].into_iter().cycle();
    for data in chain.iter_mut().flat_map(|block| &mut block.transactions) {
        let transaction = &mut data.transaction;
        transaction.from = address_of("alice-w");
        transaction.transaction_type = kinds.next().unwrap();
        transaction.max_fee_per_gas = (transaction.transaction_type > 1).then(|| gw_types::U256::from(30));
    }
    for hide_base_fee in [false, true] {
        let settings = PolicySettings {
            hide_base_fee,
            ..PolicySettings::SPEC
        };
        let world = World::loaded(chain.clone(), settings).await;
        let list = world
            .walk(TestCaller::User("alice"), "/transactions", "data", 100)
            .await;
        let prices: std::collections::BTreeSet<_> = (list.rows.iter())
            .map(|row| {
                (
                    row["txType"].as_u64().unwrap(),
                    row["gasPrice"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        let paid = if hide_base_fee { "30" } else { "9" };
        let expected = [(0, "9"), (1, "9"), (2, paid), (3, paid)];
        assert_eq!(prices, expected.map(|(kind, price)| (kind, price.to_owned())).into());
        let block = world.get(TestCaller::Nobody, "/blocks/1").await.json();
        assert_eq!(block.get("baseFeePerGas").is_none(), hide_base_fee, "{block}");
    }
}
