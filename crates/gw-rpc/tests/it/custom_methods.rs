//! Custom methods, against a scripted node that records its requests (spec/20 §13).

use crate::{
    consistency::Gate,
    world::{World, account, scripted, signed},
};
use gw_audit::{AccessRecord, MatchedVia};
use gw_evm::CustomMethods;
use gw_rpc::RpcSettings;
use gw_testkit::{FakeNode, TestUser, fake_node::NodeReply};
use gw_types::{Address, Bytes, DenyReason, OrgId};
use serde_json::{Value, json};
use std::sync::Arc;

const WALLET: Address = Address::repeat_byte(0xaa);
const BOND: Address = Address::repeat_byte(0x11);
const SECRET: Address = Address::repeat_byte(0x5e);

fn settings() -> RpcSettings {
    let file = json!({"version": 2, "namespaces": {"linea": {
        "explicit": [
            {"method": "linea_getBalance", "alias": "eth_getBalance"},
            {"method": "linea_estimateGas", "alias": "eth_estimateGas"},
            {"method": "linea_getBlock", "alias": "eth_getBlockByNumber"},
            {"method": "linea_getLogs", "alias": "eth_getLogs"},
            {"method": "linea_chain", "alias": "eth_chainId"},
            {"method": "linea_hash", "alias": "web3_sha3"},
            {"method": "linea_sendRaw", "alias": "eth_sendRawTransaction"},
        ],
        "wildcard": {"prefix": "linea_", "deny": ["linea_sign*"]},
    }}});
    RpcSettings {
        custom_methods: Arc::new(CustomMethods::parse(&file.to_string(), true).unwrap()),
        ..RpcSettings::default()
    }
}

async fn world() -> (World, FakeNode, OrgId) {
    let (world, fake) = scripted().await;
    let world = world.with(settings());
    let bank = world.fixture.create_org("bank").await;
    (world, fake, bank)
}

/// A user whose method lists contain every registered and every custom method.
async fn insider(world: &World, bank: OrgId) -> TestUser {
    let caller = world.person("caller", bank, &["*", "linea_*"], &[]).await;
    world.link(&caller, WALLET).await;
    world.contract(bank, BOND, None, &[caller.group]).await;
    caller
}

async fn last(world: &World) -> AccessRecord {
    world.fixture.access_records().pop().unwrap()
}

/// The last request to the node.
fn last_request(fake: &FakeNode) -> (String, Value) {
    let call = fake.take().pop().unwrap();
    (call.method, call.params)
}

/// N2: the request to the node has the custom name and the body of the aliased method, whose view shows the answer.
#[tokio::test]
async fn n2_an_aliased_method_is_forwarded_under_its_own_name() {
    let (world, fake, bank) = world().await;
    let caller = insider(&world, bank).await;
    let pinned = json!({"blockHash": FakeNode::HEAD_HASH, "requireCanonical": true});
    fake.set_result("linea_getBalance", json!("0x5"));
    assert_eq!(
        world
            .result(&caller, "LINEA_getbalance", json!([WALLET, "latest"]))
            .await,
        "0x5"
    );
    assert_eq!(
        last_request(&fake),
        ("linea_getBalance".to_owned(), json!([WALLET, pinned]))
    );
    let record = last(&world).await;
    assert_eq!(
        (&*record.method, record.matched_via),
        ("linea_getBalance", Some(MatchedVia::Prefix))
    );
    // K8: an address that is not the caller's has balance zero, and the node is not queried.
    assert_eq!(
        world
            .result(&caller, "linea_getBalance", json!([SECRET, "latest"]))
            .await,
        "0x0"
    );
    fake.assert_silent();
    // A block is queried by its number, and shown with known members and own transactions only.
    let mut block = gw_testkit::fake_node::block(100, FakeNode::HEAD_HASH);
    block["secret"] = json!(1);
    block["gasUsed"] = json!("0x77");
    fake.set_result("linea_getBlock", block);
    let shown = world.result(&caller, "linea_getBlock", json!(["latest", false])).await;
    assert_eq!((&shown["gasUsed"], shown.get("secret")), (&json!("0x0"), None));
    assert_eq!(
        last_request(&fake),
        ("linea_getBlock".to_owned(), json!(["0x64", true]))
    );
}

/// N2: an alias of a method that the gateway answers by itself gets the same answer.
#[tokio::test]
async fn n2_an_alias_of_a_local_method_is_answered_like_the_method() {
    let (world, fake, bank) = world().await;
    let caller = insider(&world, bank).await;
    for (alias, method, params) in [
        ("linea_chain", "eth_chainId", json!([])),
        ("linea_hash", "web3_sha3", json!(["0x00"])),
    ] {
        assert_eq!(
            world.result(&caller, alias, params.clone()).await,
            world.result(&caller, method, params).await,
            "{alias}"
        );
    }
    fake.assert_silent();
    let params = json!([{"to": WALLET, "value": "0x1"}]);
    assert_eq!(
        world.result(&caller, "linea_estimateGas", params.clone()).await,
        world.result(&caller, "eth_estimateGas", params).await
    );
    assert!(
        fake.take().iter().all(|call| !call.method.starts_with("linea_")),
        "HD3: estimated from traces"
    );
    let anonymous = world.ask(None, "linea_chain", json!([])).send().await;
    assert_eq!(anonymous.body["result"], "0x7a69");
    world
        .ask(None, "linea_hash", json!(["0x00"]))
        .send()
        .await
        .assert_denied();
}

/// N2: an alias of a send is a send: it is traced twice, its intent is on disk, and its sender is linked when it is
/// accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn n2_a_send_under_another_name_is_a_send() {
    let (world, fake, bank) = world().await;
    let sender = world.person("sender", bank, &["linea_sendRaw"], &[]).await;
    let (raw, hash) = signed(&account(0), 0, Some(Address::repeat_byte(5)), 1, Bytes::new());
    fake.set_result("linea_sendRaw", json!(hash));
    assert_eq!(world.result(&sender, "linea_sendRaw", json!([raw])).await, json!(hash));
    let calls = fake.take();
    assert_eq!(
        calls.iter().filter(|call| call.method == "debug_traceCall").count(),
        6,
        "HD2, HD15"
    );
    assert!(
        calls
            .iter()
            .any(|call| call.method == "linea_sendRaw" && call.params == json!([raw]))
    );
    let (intents, outcomes, _) = world.sends_recorded();
    assert_eq!((intents.len(), outcomes.len()), (1, 1));
    // The alias is granted, the aliased method is not.
    world
        .ask(Some(&sender), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await
        .assert_denied();
}

/// N3, the attack: a passthrough method reads the state of whatever its parameters name. Only the parameters are
/// checked, so they may not name another organization's contract.
#[tokio::test]
async fn n3_a_passthrough_call_cannot_name_another_organizations_contract() {
    let (world, fake, bank) = world().await;
    let caller = insider(&world, bank).await;
    let rival = world.fixture.create_org("rival").await;
    world.contract(rival, SECRET, None, &[]).await;
    fake.script("linea_getState", |params| {
        let secret = params.to_string().to_lowercase().contains(&format!("{SECRET:x}"));
        NodeReply::Result(if secret {
            json!({"balance": "0x5ec2e7"})
        } else {
            json!({"balance": "0x1"})
        })
    });
    // Without the rule: the bare node reveals the state to everybody.
    assert_eq!(
        world.bare("linea_getState", json!([SECRET])).await["result"]["balance"],
        "0x5ec2e7"
    );
    fake.take();
    let hex = format!("{SECRET:#x}");
    for params in [
        json!([hex]),
        json!([hex.to_uppercase()]),
        json!([{"account": [hex]}]),
        json!([{hex.clone(): {}}]),
        json!([format!("0x70a08231{}{SECRET:x}", "0".repeat(24))]),
        json!([format!("0x00{SECRET:x}00")]),
    ] {
        world
            .ask(Some(&caller), "linea_getState", params.clone())
            .send()
            .await
            .assert_denied();
        fake.assert_silent();
        assert_eq!(
            last(&world).await.denial_reason,
            Some(DenyReason::ForeignOrg),
            "{params}"
        );
    }
    let escaped = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"linea_getState","params":["\u0030x{SECRET:x}"]}}"#);
    world.raw(escaped).by(&caller).send().await.assert_denied();
    fake.assert_silent();
    // A call about an own contract passes, and its answer is the node's.
    let own = world
        .result(&caller, "LINEA_getState", json!([BOND, {"deep": [1, true, null]}]))
        .await;
    assert_eq!(own, json!({"balance": "0x1"}));
    assert_eq!(
        last_request(&fake),
        ("linea_getState".to_owned(), json!([BOND, {"deep": [1, true, null]}]))
    );
    let record = last(&world).await;
    assert_eq!(
        (&*record.method, record.matched_via),
        ("linea_getState", Some(MatchedVia::Prefix))
    );
    assert_eq!((record.org_id, record.node_called), (Some(bank), true));
}

#[tokio::test]
async fn n3_a_denied_unlisted_or_unknown_method_never_reaches_the_node() {
    let (world, fake, bank) = world().await;
    let caller = insider(&world, bank).await;
    let plain = world.person("plain", bank, &["*"], &[]).await;
    for (person, name, reason) in [
        (&caller, "linea_signTypedData", DenyReason::MethodNotAllowed),
        (&caller, "trace_block", DenyReason::MethodNotAllowed),
        (&caller, "other_x", DenyReason::MethodUnknown),
        (&plain, "linea_getState", DenyReason::MethodNotAllowed),
        (&plain, "linea_getBalance", DenyReason::MethodNotAllowed),
    ] {
        world.ask(Some(person), name, json!([])).send().await.assert_denied();
        assert_eq!(last(&world).await.denial_reason, Some(reason), "{name}");
    }
    world
        .ask(None, "linea_getState", json!([]))
        .send()
        .await
        .assert_denied();
    fake.assert_silent();
}

/// W7, B20: errors and unusable answers are mapped as for registered methods.
#[tokio::test]
async fn n3_errors_of_the_node_become_known_texts() {
    let (world, fake, bank) = world().await;
    let caller = insider(&world, bank).await;
    fake.reply(
        "linea_x",
        NodeReply::Error(-38000, "no such thing: secret", json!("0x1234")),
    );
    let answer = world.ask(Some(&caller), "linea_x", json!([])).send().await;
    assert_eq!(
        answer.body["error"],
        json!({"code": -32000, "message": "upstream error"})
    );
    fake.reply("linea_x", NodeReply::Http(200, "<html>secret</html>"));
    assert_eq!(
        world.ask(Some(&caller), "linea_x", json!([])).send().await.error(),
        (502, -32603)
    );
}

/// HD20: a ban while the node answers a passthrough method keeps the answer from the caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hd20_a_passthrough_answer_is_opened_under_the_newest_policy() {
    let (world, fake, bank) = world().await;
    let caller = insider(&world, bank).await;
    let gate = Gate::new(&fake, "linea_getState", NodeReply::Result(json!("0x5")));
    let request = tokio::spawn(world.ask(Some(&caller), "linea_getState", json!([])).answering());
    let gate = gate.reached().await;
    world.ban(&caller).await;
    gate.open();
    request.await.unwrap().assert_denied();
}
