//! `eth_getLogs`: permitted filters, limits and visible rows (HD1, J9, B19, decision 20).

use crate::world::{World, scripted, scripted_with};
use gw_policy::PolicySettings;
use gw_rpc::RpcSettings;
use gw_testkit::{
    FakeNode, TestUser,
    fake_node::{self, NodeReply},
};
use gw_types::{Address, B256, b256};
use serde_json::{Value, json};

const TOKEN: Address = Address::repeat_byte(0x11);
const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
const HIDDEN: Address = Address::repeat_byte(0xbb);

fn erc20() -> Value {
    json!([{"type": "event", "name": "Transfer", "anonymous": false, "inputs": [
        {"name": "from", "type": "address", "indexed": true}, {"name": "to", "type": "address", "indexed": true},
        {"name": "value", "type": "uint256", "indexed": false}]}])
}

fn log(tx: B256, from: Address, to: Address, index: u64) -> Value {
    json!({"address": TOKEN, "topics": [TRANSFER, from.into_word(), to.into_word()], "data": B256::with_last_byte(9),
        "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "transactionHash": tx, "transactionIndex": "0x0",
        "logIndex": format!("{index:#x}"), "removed": false})
}

async fn holder(world: &World) -> TestUser {
    let bank = world.fixture.create_org("bank").await;
    let holder = world.person("holder", bank, &["eth_getLogs"], &[]).await;
    world.contract(bank, TOKEN, Some(&erc20()), &[holder.group]).await;
    holder
}

/// HD1, I10: a query that names a hidden wallet is the same upstream, and gets the same answer, as one that names a
/// random address.
#[tokio::test]
async fn hd1_a_hidden_address_in_a_query_is_not_forwarded() {
    let (world, fake) = scripted().await;
    let holder = holder(&world).await;
    fake.set_result(
        "eth_getLogs",
        json!([log(B256::repeat_byte(1), HIDDEN, Address::repeat_byte(0xcc), 0)]),
    );
    let mut answers = Vec::new();
    for candidate in [HIDDEN, Address::repeat_byte(0xdd)] {
        let filter = json!([{"address": TOKEN, "topics": [TRANSFER, candidate.into_word()]}]);
        answers.push(world.ask(Some(&holder), "eth_getLogs", filter).send().await.text);
        let sent = fake.take();
        assert_eq!(sent[0].params[0]["topics"], json!([[TRANSFER], null]));
        assert!(!sent[0].params.to_string().contains(&"bb".repeat(20)));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], r#"{"jsonrpc":"2.0","id":1,"result":[]}"#);
    // Without the address in the filter, the row is there, masked.
    let rows = world
        .result(
            &holder,
            "eth_getLogs",
            json!([{"address": TOKEN, "topics": [TRANSFER]}]),
        )
        .await;
    assert_eq!(rows[0]["topics"][1], json!(B256::ZERO));
    assert!(!rows.to_string().contains(&"bb".repeat(20)), "I2");
}

/// RT16, HD30: if no row can be visible, the node is not queried: the time of its answer would reveal the number of
/// rows.
#[tokio::test]
async fn rt16_rows_that_cannot_be_visible_are_not_queried() {
    let (world, fake) = scripted().await;
    let holder = holder(&world).await;
    let rival = world.fixture.create_org("rival").await;
    let foreign = Address::repeat_byte(0x22);
    world.contract(rival, foreign, Some(&erc20()), &[]).await;
    fake.set_result("eth_getLogs", json!([]));
    let unregistered = Address::repeat_byte(0x33);
    for emitters in [
        json!(foreign),
        json!(unregistered),
        json!([TOKEN, foreign]),
        json!([TOKEN, unregistered]),
    ] {
        world
            .ask(Some(&holder), "eth_getLogs", json!([{"address": emitters}]))
            .send()
            .await
            .assert_denied();
        assert!(fake.take().is_empty(), "{emitters}");
    }
    world.result(&holder, "eth_getLogs", json!([{"address": TOKEN}])).await;
    assert_eq!(fake.take().len(), 1, "within reach");
    // A caller with an address may be a party of a transaction there, so the node is queried.
    world.link(&holder, Address::repeat_byte(0xaa)).await;
    world
        .ask(Some(&holder), "eth_getLogs", json!([{"address": foreign}]))
        .send()
        .await
        .assert_denied();
    assert_eq!(fake.take().len(), 1);
}

/// The parties of transactions are queried only for viewers with addresses, in one batch. A party sees whole rows.
#[tokio::test]
async fn logs_of_own_transactions_are_whole() {
    let (world, fake) = scripted().await;
    let holder = holder(&world).await;
    let (mine, wallet) = (B256::repeat_byte(1), Address::repeat_byte(0xaa));
    fake.set_result(
        "eth_getLogs",
        json!([
            log(mine, wallet, HIDDEN, 0),
            log(B256::repeat_byte(2), HIDDEN, HIDDEN, 1)
        ]),
    );
    let filter = json!([{"address": TOKEN}]);
    world.result(&holder, "eth_getLogs", filter.clone()).await;
    assert_eq!(
        fake.take().len(),
        1,
        "no transactions are queried for a viewer without addresses"
    );
    world.link(&holder, wallet).await;
    fake.script("eth_getTransactionByHash", move |params| {
        let from = if params[0] == json!(mine) { wallet } else { HIDDEN };
        NodeReply::Result(
            json!({"hash": params[0], "from": from, "to": TOKEN, "blockHash": FakeNode::HEAD_HASH,
            "blockNumber": "0x64", "transactionIndex": "0x0"}),
        )
    });
    let rows = world.result(&holder, "eth_getLogs", filter).await;
    assert_eq!(
        rows[0]["topics"][2],
        json!(HIDDEN.into_word()),
        "a participant sees the counterparty"
    );
    assert_eq!(rows[1]["topics"][2], json!(B256::ZERO));
    assert_eq!(fake.take_bodies().len(), 2, "the logs, then all parties at once");
}

/// Decision 20: without a grant, the answer has own and shared rows, or it is the denial.
#[tokio::test]
async fn decision_20_without_a_grant_own_rows_or_the_denial() {
    let (world, fake) = scripted().await;
    let (bank, rival) = (
        world.fixture.create_org("bank").await,
        world.fixture.create_org("rival").await,
    );
    let caller = world.person("caller", bank, &["eth_getLogs"], &[]).await;
    world.contract(rival, TOKEN, Some(&erc20()), &[]).await;
    let (tx, wallet) = (B256::repeat_byte(1), Address::repeat_byte(0xaa));
    fake.set_result(
        "eth_getLogs",
        json!([log(tx, HIDDEN, wallet, 0), log(B256::repeat_byte(2), HIDDEN, HIDDEN, 1)]),
    );
    let filter = json!([{"address": TOKEN}]);
    world
        .ask(Some(&caller), "eth_getLogs", filter.clone())
        .send()
        .await
        .assert_denied();
    world.link(&caller, wallet).await;
    fake.script("eth_getTransactionByHash", move |params| {
        let to = if params[0] == json!(tx) { wallet } else { HIDDEN };
        NodeReply::Result(
            json!({"hash": params[0], "from": HIDDEN, "to": to, "blockHash": FakeNode::HEAD_HASH,
            "blockNumber": "0x64", "transactionIndex": "0x0"}),
        )
    });
    let rows = world.result(&caller, "eth_getLogs", filter).await;
    assert_eq!(rows.as_array().unwrap().len(), 1);
}

/// K2, K4: where rows of own and shared transactions need a grant, too, an address without a grant costs no query.
#[tokio::test]
async fn decision_20_the_strict_profile_denies_without_a_query() {
    let (world, fake) = scripted_with(RpcSettings::default(), PolicySettings::STRICT).await;
    let holder = holder(&world).await;
    world.link(&holder, Address::repeat_byte(0xaa)).await;
    for address in [HIDDEN, Address::repeat_byte(0x77)] {
        let params = json!([{"address": [TOKEN, address]}]);
        world
            .ask(Some(&holder), "eth_getLogs", params)
            .send()
            .await
            .assert_denied();
        fake.assert_silent();
    }
    assert_eq!(
        world.result(&holder, "eth_getLogs", json!([{"address": TOKEN}])).await,
        json!([])
    );
}

/// Decision 40: the rights in each contract's organization count for that contract. A query that also names a contract
/// of an organization without the method shows no more of it than without a grant.
#[tokio::test]
async fn d40_a_mixed_query_opens_no_logs_where_the_method_is_not_listed() {
    let (world, fake) = scripted().await;
    let (bank, rival) = (
        world.fixture.create_org("bank").await,
        world.fixture.create_org("rival").await,
    );
    let caller = world.person("caller", bank, &["eth_getLogs"], &[]).await;
    let guests = world
        .fixture
        .change(async |tx| {
            let group = tx
                .create_group(gw_store::record::NewGroup::plain(rival, "guests", "guests"))
                .await
                .unwrap()
                .id;
            let new = gw_store::record::NewMembership {
                user: caller.id,
                group,
                expires_at: None,
            };
            tx.add_membership(new).await.unwrap();
            group
        })
        .await;
    let own = Address::repeat_byte(0x22);
    world.contract(bank, own, Some(&erc20()), &[caller.group]).await;
    world.contract(rival, TOKEN, Some(&erc20()), &[guests]).await;
    fake.set_result("eth_getLogs", json!([log(B256::repeat_byte(1), HIDDEN, HIDDEN, 0)]));
    for addresses in [json!([TOKEN]), json!([own, TOKEN])] {
        world
            .ask(Some(&caller), "eth_getLogs", json!([{"address": addresses}]))
            .send()
            .await
            .assert_denied();
    }
    fake.set_result("eth_getLogs", json!([]));
    assert_eq!(
        world.result(&caller, "eth_getLogs", json!([{"address": [own]}])).await,
        json!([])
    );
}

/// J9, B19: distinct addresses, blocks and rows are limited; tags are resolved; logs above the head are not queried.
#[tokio::test]
async fn j9_b19_queries_are_bounded() {
    let (world, fake) = scripted().await;
    let holder = holder(&world).await;
    let ask = |filter: Value| world.ask(Some(&holder), "eth_getLogs", json!([filter])).send();
    let many: Vec<_> = (0..65).map(|n| Address::with_last_byte(n + 20)).collect();
    assert_eq!(ask(json!({"address": many})).await.error(), (400, -32005));
    world
        .ask(Some(&holder), "eth_getLogs", json!([{}]))
        .send()
        .await
        .assert_denied();
    let range = |from: &str, to: &str| json!({"address": TOKEN, "fromBlock": from, "toBlock": to});
    assert_eq!(ask(range("0x0", "0x2711")).await.error(), (400, -32005));
    assert_eq!(ask(range("0x5", "0x4")).await.error(), (400, -32602));
    assert_eq!(
        ask(json!({"address": TOKEN, "fromBlock": "0x1", "blockHash": B256::ZERO}))
            .await
            .error(),
        (400, -32602)
    );
    fake.assert_silent();
    ask(range("earliest", "latest")).await;
    let sent = fake.take();
    assert_eq!(
        (&sent[0].params[0]["fromBlock"], &sent[0].params[0]["toBlock"]),
        (&json!("0x0"), &json!("0x64"))
    );
    // Above the head: the node is queried once for its head, and for no logs.
    assert_eq!(ask(range("0x70", "0x71")).await.body["result"], json!([]));
    assert!(fake.take().iter().all(|call| call.method != "eth_getLogs"));
    // The node resolves a tag that the gateway does not follow.
    fake.set_result(
        "eth_getBlockByNumber",
        fake_node::block(68, &format!("0x{}", "44".repeat(32))),
    );
    ask(range("safe", "latest")).await;
    assert_eq!(fake.take().last().unwrap().params[0]["fromBlock"], "0x44");
}

#[tokio::test]
async fn j9_more_than_ten_thousand_rows_are_too_many() {
    let (world, fake) = scripted().await;
    let holder = holder(&world).await;
    let rows = |n: u64| Value::Array((0..n).map(|i| log(B256::repeat_byte(1), HIDDEN, HIDDEN, i)).collect());
    fake.set_result("eth_getLogs", rows(10_000));
    let ask = || {
        world
            .ask(Some(&holder), "eth_getLogs", json!([{"address": TOKEN}]))
            .send()
    };
    assert_eq!(ask().await.body["result"].as_array().unwrap().len(), 10_000);
    fake.set_result("eth_getLogs", rows(10_001));
    assert_eq!(ask().await.error(), (400, -32005));
}
