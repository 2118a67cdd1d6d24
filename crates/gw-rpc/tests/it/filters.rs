//! Filters over HTTP: their updates, their owners and their lifetime (decision 51, HD1, HD18, HD20).

use crate::{
    live::{Chain, FILTERS, HIDDEN, TOKEN, TRANSFER, holder},
    world::{Answer, World, account, real, scripted, signed},
};
use gw_store::record::UserPatch;
use gw_testkit::TestUser;
use gw_types::{Address, B256, Bytes};
use serde_json::{Value, json};

const OTHER: Address = Address::repeat_byte(0xcc);
const NOT_FOUND: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"filter not found"}}"#;

impl World {
    async fn changes(&self, person: &TestUser, filter: &Value) -> Value {
        self.node.refresh_head().await.unwrap();
        self.result(person, "eth_getFilterChanges", json!([filter])).await
    }

    async fn poll(&self, person: &TestUser, filter: &Value) -> Answer {
        self.ask(Some(person), "eth_getFilterChanges", json!([filter]))
            .send()
            .await
    }
}

/// A filter delivers each new row once, and each exactly as `eth_getLogs` shows it.
#[tokio::test]
async fn d51_a_log_filter_shows_what_get_logs_shows() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    chain.mine(0, &[(HIDDEN, OTHER)]);
    world.node.refresh_head().await.unwrap();
    let criteria = json!({"address": TOKEN, "topics": [TRANSFER]});
    let filter = world.result(&holder, "eth_newFilter", json!([criteria])).await;
    assert_eq!(filter.as_str().unwrap().len(), 34, "128 bits");
    assert_eq!(
        world.changes(&holder, &filter).await,
        json!([]),
        "earlier rows are not updates"
    );
    chain.mine(0, &[(HIDDEN, OTHER)]);
    chain.mine(0, &[(OTHER, HIDDEN), (OTHER, OTHER)]);
    let updates = world.changes(&holder, &filter).await;
    let range = json!([{"address": TOKEN, "topics": [TRANSFER], "fromBlock": "0x66", "toBlock": "0x67"}]);
    assert_eq!(updates, world.result(&holder, "eth_getLogs", range).await);
    assert_eq!(updates.as_array().unwrap().len(), 3);
    assert!(!updates.to_string().contains(&"bb".repeat(20)), "I2");
    assert_eq!(world.changes(&holder, &filter).await, json!([]));
    // `eth_getFilterLogs` returns all matching rows, delivered or not.
    let all_rows = json!([{"address": TOKEN, "topics": [TRANSFER]}]);
    let all_rows = world.result(&holder, "eth_getLogs", all_rows).await;
    assert_eq!(
        world.result(&holder, "eth_getFilterLogs", json!([filter])).await,
        all_rows
    );
    assert_eq!(
        world.result(&holder, "eth_uninstallFilter", json!([filter])).await,
        json!(true)
    );
    assert_eq!(
        world.result(&holder, "eth_uninstallFilter", json!([filter])).await,
        json!(false)
    );
    assert_eq!(world.poll(&holder, &filter).await.text, NOT_FOUND);
}

/// HD1, I10: a filter that names a hidden wallet delivers the same as one that names a random address.
#[tokio::test]
async fn hd1_a_filter_finds_no_hidden_address() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    let mut answers = Vec::new();
    for candidate in [HIDDEN, Address::repeat_byte(0xdd)] {
        let criteria = json!([{"address": TOKEN, "topics": [TRANSFER, candidate.into_word()]}]);
        let filter = world.result(&holder, "eth_newFilter", criteria).await;
        chain.mine(0, &[(HIDDEN, OTHER)]);
        fake.take();
        answers.push(world.changes(&holder, &filter).await);
        let sent: Vec<_> = fake
            .take()
            .into_iter()
            .filter(|call| call.method == "eth_getLogs")
            .collect();
        assert_eq!(sent[0].params[0]["topics"], json!([[TRANSFER], null]));
    }
    assert_eq!(answers, [json!([]), json!([])]);
}

/// WS-2: another caller's filter, an expired and an unknown one get the same answer.
#[tokio::test]
async fn ws2_foreign_expired_and_unknown_filters_read_alike() {
    let (world, fake) = scripted().await;
    let owner = holder(&world, "owner").await;
    let bank = world.fixture.create_org("other").await;
    let stranger = world.person("stranger", bank, &FILTERS, &[]).await;
    let _chain = Chain::start(&fake);
    let criteria = json!([{"address": TOKEN}]);
    let filter = world.result(&owner, "eth_newFilter", criteria.clone()).await;
    for method in ["eth_getFilterChanges", "eth_getFilterLogs"] {
        for id in [
            &filter,
            &json!("0x00000000000000000000000000000001"),
            &json!("0x1"),
            &json!(""),
        ] {
            let answer = world.ask(Some(&stranger), method, json!([id])).send().await;
            assert_eq!((answer.status, answer.text.as_str()), (200, NOT_FOUND));
        }
    }
    assert_eq!(
        world.result(&stranger, "eth_uninstallFilter", json!([filter])).await,
        json!(false)
    );
    assert_eq!(world.poll(&owner, &filter).await.status, 200, "it is still there");
    // A filter that is polled in time stays; after five minutes without a poll it is gone.
    for (seconds, text) in [(299, r#"{"jsonrpc":"2.0","id":1,"result":[]}"#), (301, NOT_FOUND)] {
        world.fixture.clock.pass(seconds);
        world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
        assert_eq!(world.poll(&owner, &filter).await.text, text);
    }
    // A JSON number is no filter id.
    assert_eq!(
        world
            .ask(Some(&owner), "eth_getFilterChanges", json!([7]))
            .send()
            .await
            .error(),
        (400, -32602)
    );
}

/// WS-2: a filter belongs to its user in one organization, not in another.
#[tokio::test]
async fn ws2_a_filter_belongs_to_one_organization() {
    let (world, fake) = scripted().await;
    let owner = holder(&world, "owner").await;
    let (second, methods) = (world.fixture.create_org("second").await, FILTERS);
    let member = world.person("somebody", second, &methods, &[]).await;
    let _chain = Chain::start(&fake);
    let home = world.fixture.feed.pin().snapshot.group(owner.group).unwrap().org;
    world
        .fixture
        .change(async |tx| {
            let new = gw_store::record::NewMembership {
                user: owner.id,
                group: member.group,
                expires_at: None,
            };
            tx.add_membership(new).await.unwrap();
        })
        .await;
    let ask_in = |org: gw_types::OrgId, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        world
            .raw(body.to_string())
            .by(&owner)
            .path(&format!("/rpc/{org}"))
            .send()
    };
    let filter = ask_in(home, "eth_newFilter", json!([{"address": TOKEN}])).await.body["result"].clone();
    assert_eq!(ask_in(home, "eth_getFilterChanges", json!([filter])).await.status, 200);
    assert_eq!(
        ask_in(second, "eth_getFilterChanges", json!([filter])).await.text,
        NOT_FOUND
    );
}

/// WS-3, HD20: a delivery is authorized when it is made. The attack: create a filter with the right to read, and poll
/// after losing it.
#[tokio::test]
async fn ws3_a_filter_does_not_outlive_the_right_to_read() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    chain.mine(0, &[(OTHER, OTHER)]);
    assert_eq!(
        world.changes(&holder, &filter).await.as_array().unwrap().len(),
        1,
        "with the right to read"
    );
    chain.mine(0, &[(OTHER, OTHER)]);
    world.node.refresh_head().await.unwrap();
    // A filter without the right to its underlying read delivers nothing.
    let access = |methods: &[&str]| gw_store::record::AccessInput {
        allowed_methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        claims: Default::default(),
        ..Default::default()
    };
    world
        .fixture
        .change(async |tx| tx.set_access(holder.group, access(&FILTERS)).await.unwrap())
        .await;
    world.poll(&holder, &filter).await.assert_denied();
    world
        .ask(Some(&holder), "eth_getFilterLogs", json!([filter]))
        .send()
        .await
        .assert_denied();
    world
        .ask(Some(&holder), "eth_newFilter", json!([{"address": TOKEN}]))
        .send()
        .await
        .assert_denied();
    world
        .ask(Some(&holder), "eth_newBlockFilter", json!([]))
        .send()
        .await
        .assert_denied();
    // The right to the read without the filter methods is not enough either.
    world
        .fixture
        .change(async |tx| tx.set_access(holder.group, access(&["eth_getLogs"])).await.unwrap())
        .await;
    world.poll(&holder, &filter).await.assert_denied();
    world
        .update(
            &holder,
            UserPatch {
                banned: Some(true),
                ..UserPatch::default()
            },
        )
        .await;
    world.poll(&holder, &filter).await.assert_denied();
}

/// HD1: a filter needs an address, and logs that the caller may read; pending transactions have no filter.
#[tokio::test]
async fn d51_a_filter_needs_the_right_to_its_read() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    world
        .ask(Some(&holder), "eth_newFilter", json!([{}]))
        .send()
        .await
        .assert_denied();
    world
        .ask(None, "eth_newFilter", json!([{"address": TOKEN}]))
        .send()
        .await
        .assert_denied();
    world
        .ask(Some(&holder), "eth_newPendingTransactionFilter", json!([]))
        .send()
        .await
        .assert_denied();
    let answer = world
        .ask(Some(&holder), "eth_subscribe", json!(["newHeads"]))
        .send()
        .await;
    assert_eq!(
        answer.text,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"notifications not supported"}}"#
    );
    let pending = world
        .ask(Some(&holder), "eth_subscribe", json!(["newPendingTransactions"]))
        .send()
        .await;
    assert_eq!(pending.error(), (400, -32602));
}

/// WS-4: only delivered rows that left the chain are marked as removed.
#[tokio::test]
async fn ws4_only_delivered_rows_are_marked_as_removed() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    chain.mine(0, &[(OTHER, OTHER)]);
    let lost = chain.mine(0, &[(OTHER, HIDDEN), (HIDDEN, OTHER)]);
    let first = world.changes(&holder, &filter).await;
    assert_eq!(first.as_array().unwrap().len(), 3);
    // The row of this block is never delivered.
    let unseen = chain.mine(0, &[(OTHER, OTHER)]);
    world.node.refresh_head().await.unwrap();
    chain.drop_newest(2);
    let (new, newer) = (chain.mine(1, &[(HIDDEN, OTHER)]), chain.mine(1, &[]));
    chain.mine(1, &[(OTHER, OTHER)]);
    let second = world.changes(&holder, &filter).await;
    let rows: Vec<_> = second
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["blockHash"].clone(), row["removed"].clone()))
        .collect();
    assert_eq!(
        &rows[..3],
        [
            (json!(lost), json!(true)),
            (json!(lost), json!(true)),
            (json!(new), json!(false))
        ]
    );
    assert_eq!(rows.len(), 4);
    assert!(!second.to_string().contains(&unseen.to_string()) && !second.to_string().contains(&newer.to_string()));
    // A removed row equals the delivered one, except for the mark.
    let mut restored = second[0].clone();
    restored["removed"] = json!(false);
    assert_eq!(restored, first[2]);
    assert_eq!(world.changes(&holder, &filter).await, json!([]));
}

/// A block filter names each block once, the new ones of a reorganization too.
#[tokio::test]
async fn d51_a_block_filter_names_new_blocks() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let filter = world.result(&holder, "eth_newBlockFilter", json!([])).await;
    let (first, second) = (chain.mine(0, &[]), chain.mine(0, &[]));
    assert_eq!(world.changes(&holder, &filter).await, json!([first, second]));
    chain.drop_newest(1);
    let (third, fourth) = (chain.mine(1, &[]), chain.mine(1, &[]));
    assert_eq!(world.changes(&holder, &filter).await, json!([third, fourth]));
    assert_eq!(world.changes(&holder, &filter).await, json!([]));
    assert_eq!(
        world
            .ask(Some(&holder), "eth_getFilterLogs", json!([filter]))
            .send()
            .await
            .text,
        NOT_FOUND
    );
}

/// The number of filters is limited for each user separately.
#[tokio::test]
async fn ws5_filters_are_bounded_per_user() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let bank = world.fixture.create_org("other").await;
    let other = world
        .person("other", bank, &[&FILTERS[..], &["eth_getBlockByNumber"]].concat(), &[])
        .await;
    let _chain = Chain::start(&fake);
    for _ in 0..32 {
        world.result(&holder, "eth_newBlockFilter", json!([])).await;
    }
    let rejected = world.ask(Some(&holder), "eth_newBlockFilter", json!([])).send().await;
    assert_eq!(rejected.error(), (429, -32005));
    world.result(&other, "eth_newBlockFilter", json!([])).await;
    // Idle filters make room.
    world.fixture.clock.pass(301);
    world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
    world.result(&holder, "eth_newBlockFilter", json!([])).await;
}

/// L1: each poll leaves a record, under the name of the called method.
#[tokio::test]
async fn l1_polls_are_recorded() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    world.fixture.records();
    world.poll(&holder, &filter).await;
    let record = world.record();
    assert_eq!(
        (record.method.as_ref(), record.status_code),
        ("eth_getFilterChanges", 200)
    );
    assert_eq!(record.external_id.as_ref(), Some(&holder.name));
    world.poll(&holder, &json!("0x1")).await;
    assert_eq!(world.record().status_code, 200);
}

/// Filters on a real node, with real blocks and logs.
#[tokio::test]
async fn d51_filters_on_a_real_chain() {
    let (world, _anvil) = real().await;
    let bank = world.fixture.create_org("bank").await;
    let methods = [&FILTERS[..], &["eth_getLogs", "eth_getBlockByNumber"]].concat();
    let holder = world.person("holder", bank, &methods, &[]).await;
    // Emits one log without topics, then stops.
    let emitter = world
        .deploy(&[
            0x64, 0x60, 0x00, 0x60, 0x00, 0xa0, 0x60, 0x00, 0x52, 0x60, 0x05, 0x60, 0x1b, 0xf3,
        ])
        .await;
    world.contract(bank, emitter, None, &[holder.group]).await;
    let logs = world
        .result(&holder, "eth_newFilter", json!([{"address": emitter}]))
        .await;
    let blocks = world.result(&holder, "eth_newBlockFilter", json!([])).await;
    let before = world.node.head().unwrap().number;
    let (raw, hash): (String, B256) = signed(&account(0), 0, Some(emitter), 0, Bytes::new());
    world.anvil("eth_sendRawTransaction", json!([raw])).await;
    world.mined(before + 1).await;
    let rows = world.changes(&holder, &logs).await;
    assert_eq!(rows[0]["transactionHash"], json!(hash));
    assert_eq!(world.changes(&holder, &blocks).await.as_array().unwrap().len(), 1);
    assert_eq!(world.changes(&holder, &logs).await, json!([]));
}
