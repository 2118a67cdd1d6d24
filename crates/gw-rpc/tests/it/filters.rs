//! Filters over HTTP: what they deliver, to whom, and how long (decision 51, HD1, HD18, HD20).

use crate::{
    live::{Chain, FILTERS, HIDDEN, TOKEN, TRANSFER, holder},
    world::{Answer, Person, World, account, real, scripted, signed},
};
use gw_store::record::UserPatch;
use gw_types::{Address, B256, Bytes};
use serde_json::{Value, json};

const OTHER: Address = Address::repeat_byte(0xcc);
const NOT_FOUND: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"filter not found"}}"#;

impl World {
    async fn changes(&self, who: &Person, filter: &Value) -> Value {
        self.node.refresh_head().await.unwrap();
        self.result(who, "eth_getFilterChanges", json!([filter])).await
    }

    async fn poll(&self, who: &Person, filter: &Value) -> Answer {
        self.ask(Some(who), "eth_getFilterChanges", json!([filter]))
            .send()
            .await
    }
}

/// A filter delivers each new row once, and each exactly as `eth_getLogs` shows it.
#[tokio::test]
async fn d51_a_log_filter_shows_what_get_logs_shows() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    chain.mine(0, &[(HIDDEN, OTHER)]);
    world.node.refresh_head().await.unwrap();
    let criteria = json!({"address": TOKEN, "topics": [TRANSFER]});
    let filter = world.result(&holder, "eth_newFilter", json!([criteria])).await;
    assert_eq!(filter.as_str().unwrap().len(), 34, "128 bits");
    assert_eq!(
        world.changes(&holder, &filter).await,
        json!([]),
        "what was there before is not news"
    );
    chain.mine(0, &[(HIDDEN, OTHER)]);
    chain.mine(0, &[(OTHER, HIDDEN), (OTHER, OTHER)]);
    let news = world.changes(&holder, &filter).await;
    let range = json!([{"address": TOKEN, "topics": [TRANSFER], "fromBlock": "0x66", "toBlock": "0x67"}]);
    assert_eq!(news, world.result(&holder, "eth_getLogs", range).await);
    assert_eq!(news.as_array().unwrap().len(), 3);
    assert!(!news.to_string().contains(&"bb".repeat(20)), "I2");
    assert_eq!(world.changes(&holder, &filter).await, json!([]));
    // All there is by its criteria, whatever was delivered.
    let all = json!([{"address": TOKEN, "topics": [TRANSFER]}]);
    let all = world.result(&holder, "eth_getLogs", all).await;
    assert_eq!(world.result(&holder, "eth_getFilterLogs", json!([filter])).await, all);
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

/// HD1, I10: a filter that names a hidden wallet delivers what one that names a random address does.
#[tokio::test]
async fn hd1_a_filter_finds_no_hidden_address() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
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

/// WS-2: somebody else's, expired and unknown are one answer.
#[tokio::test]
async fn ws2_foreign_expired_and_unknown_filters_read_alike() {
    let (world, fake) = scripted().await;
    let owner = holder(&world, "owner").await;
    let bank = world.org("other").await;
    let stranger = world.person("stranger", bank, &FILTERS, &[]).await;
    let _chain = Chain::on(&fake);
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
    // Asked in time it lives on; five minutes later it does not.
    for (seconds, text) in [(299, r#"{"jsonrpc":"2.0","id":1,"result":[]}"#), (301, NOT_FOUND)] {
        world.clock.pass(seconds);
        world.feed.catch_up_to(world.feed.epoch()).await;
        assert_eq!(world.poll(&owner, &filter).await.text, text);
    }
    // A number is no id at all.
    assert_eq!(
        world
            .ask(Some(&owner), "eth_getFilterChanges", json!([7]))
            .send()
            .await
            .error(),
        (400, -32602)
    );
}

/// WS-2: the same person in another organization is somebody else.
#[tokio::test]
async fn ws2_a_filter_is_of_one_organization() {
    let (world, fake) = scripted().await;
    let owner = holder(&world, "owner").await;
    let (other, methods) = (world.org("second").await, FILTERS);
    let access = world.person("somebody", other, &methods, &[]).await;
    let _chain = Chain::on(&fake);
    let home = world.feed.pin().snapshot.group(owner.group).unwrap().org;
    world
        .change(async |tx| {
            let new = gw_store::record::NewMembership {
                user: owner.id,
                group: access.group,
                expires_at: None,
            };
            tx.add_membership(new).await.unwrap();
        })
        .await;
    let at = |org: gw_types::OrgId, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        world
            .raw(body.to_string())
            .by(&owner)
            .path(&format!("/rpc/{org}"))
            .send()
    };
    let filter = at(home, "eth_newFilter", json!([{"address": TOKEN}])).await.body["result"].clone();
    assert_eq!(at(home, "eth_getFilterChanges", json!([filter])).await.status, 200);
    assert_eq!(at(other, "eth_getFilterChanges", json!([filter])).await.text, NOT_FOUND);
}

/// WS-3, HD20: what a filter delivers is judged when it is delivered. The attack: make it while one may, poll when one
/// may no longer.
#[tokio::test]
async fn ws3_a_filter_does_not_outlive_the_right_to_read() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    chain.mine(0, &[(OTHER, OTHER)]);
    assert_eq!(
        world.changes(&holder, &filter).await.as_array().unwrap().len(),
        1,
        "while one may"
    );
    chain.mine(0, &[(OTHER, OTHER)]);
    world.node.refresh_head().await.unwrap();
    // Without the read it stands for, a filter is nothing.
    let access = |methods: &[&str]| gw_store::record::AccessInput {
        allowed_methods: methods.iter().map(|method| (*method).to_owned()).collect(),
        claims: Default::default(),
        ..Default::default()
    };
    world
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
    // And the other way round.
    world
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

/// HD1: criteria without an address, or about what nobody may read, make no filter; and nothing pending does.
#[tokio::test]
async fn d51_what_cannot_be_read_cannot_be_watched() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::on(&fake);
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

/// WS-4: what was delivered and left the chain is taken back, and nothing else is.
#[tokio::test]
async fn ws4_removed_is_said_of_delivered_rows_only() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    chain.mine(0, &[(OTHER, OTHER)]);
    let lost = chain.mine(0, &[(OTHER, HIDDEN), (HIDDEN, OTHER)]);
    let first = world.changes(&holder, &filter).await;
    assert_eq!(first.as_array().unwrap().len(), 3);
    // This one nobody was told of.
    let unseen = chain.mine(0, &[(OTHER, OTHER)]);
    world.node.refresh_head().await.unwrap();
    chain.drop_newest(2);
    let (new, newer) = (chain.mine(1, &[(HIDDEN, OTHER)]), chain.mine(1, &[]));
    chain.mine(1, &[(OTHER, OTHER)]);
    let second = world.changes(&holder, &filter).await;
    let told: Vec<_> = second
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["blockHash"].clone(), row["removed"].clone()))
        .collect();
    assert_eq!(
        &told[..3],
        [
            (json!(lost), json!(true)),
            (json!(lost), json!(true)),
            (json!(new), json!(false))
        ]
    );
    assert_eq!(told.len(), 4);
    assert!(!second.to_string().contains(&unseen.to_string()) && !second.to_string().contains(&newer.to_string()));
    // What is taken back reads as it was delivered.
    let mut again = second[0].clone();
    again["removed"] = json!(false);
    assert_eq!(again, first[2]);
    assert_eq!(world.changes(&holder, &filter).await, json!([]));
}

/// A block filter names each block once, the new ones of a reorganization too.
#[tokio::test]
async fn d51_a_block_filter_names_new_blocks() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let filter = world.result(&holder, "eth_newBlockFilter", json!([])).await;
    let (one, two) = (chain.mine(0, &[]), chain.mine(0, &[]));
    assert_eq!(world.changes(&holder, &filter).await, json!([one, two]));
    chain.drop_newest(1);
    let (other, next) = (chain.mine(1, &[]), chain.mine(1, &[]));
    assert_eq!(world.changes(&holder, &filter).await, json!([other, next]));
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

/// Nobody makes filters without end; the bound is each user's own.
#[tokio::test]
async fn ws5_filters_are_bounded_per_user() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let bank = world.org("other").await;
    let other = world
        .person("other", bank, &[&FILTERS[..], &["eth_getBlockByNumber"]].concat(), &[])
        .await;
    let _chain = Chain::on(&fake);
    for _ in 0..32 {
        world.result(&holder, "eth_newBlockFilter", json!([])).await;
    }
    let refused = world.ask(Some(&holder), "eth_newBlockFilter", json!([])).send().await;
    assert_eq!(refused.error(), (429, -32005));
    world.result(&other, "eth_newBlockFilter", json!([])).await;
    // Those nobody asks make room.
    world.clock.pass(301);
    world.feed.catch_up_to(world.feed.epoch()).await;
    world.result(&holder, "eth_newBlockFilter", json!([])).await;
}

/// L1: each poll leaves its record, under the name it was called by.
#[tokio::test]
async fn l1_polls_are_recorded() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::on(&fake);
    let filter = world
        .result(&holder, "eth_newFilter", json!([{"address": TOKEN}]))
        .await;
    world.records().await;
    world.poll(&holder, &filter).await;
    let record = world.record().await;
    assert_eq!(
        (record.method.as_ref(), record.status_code),
        ("eth_getFilterChanges", 200)
    );
    assert_eq!(record.external_id.as_ref(), Some(&holder.name));
    world.poll(&holder, &json!("0x1")).await;
    assert_eq!(world.record().await.status_code, 200);
}

/// The same against a real node: real blocks, real logs.
#[tokio::test]
async fn d51_filters_on_a_real_chain() {
    let (world, _anvil) = real().await;
    let bank = world.org("bank").await;
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
