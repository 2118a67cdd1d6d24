//! Batches: n single calls in one body (J7, decision 8, HD20).

use crate::world::{scripted, scripted_with};
use gw_policy::PolicySettings;
use gw_rpc::RpcSettings;
use gw_testkit::fake_node::NodeReply;
use gw_types::Address;
use serde_json::{Value, json};

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn j7_elements_are_authorized_one_by_one_in_order_and_answered_with_200() {
    let (world, _fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["eth_getBalance"], &[]).await;
    let body = json!([
        call(1, "eth_chainId", json!([])),
        call(2, "eth_newPendingTransactionFilter", json!([{}])),
        call(3, "eth_getBalance", json!([Address::repeat_byte(1), "latest"])),
        {"jsonrpc": "2.0", "id": 4},
        call(5, "eth_getBalance", json!(["nonsense"])),
        7,
    ]);
    let answer = world.raw(body.to_string()).by(&caller).send().await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (
            200,
            concat!(
                r#"[{"jsonrpc":"2.0","id":1,"result":"0x7a69"},"#,
                r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found"}},"#,
                r#"{"jsonrpc":"2.0","id":3,"result":"0x0"},"#,
                r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"#,
                r#""message":"method must be a string of at most 128 bytes"}},"#,
                r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"#,
                r#""message":"address must be an address of 20 bytes"}},"#,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request is an object"}}]"#,
            )
        )
    );
    assert_eq!(world.fixture.access_records().len(), 6, "one record per element");
}

/// RTO12, JSON-RPC 2.0 §6: a notification in a batch is executed and recorded, but not answered. A batch of
/// notifications gets no body.
#[tokio::test]
async fn rto12_a_notification_inside_a_batch_is_not_answered() {
    let (world, _fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["eth_getBalance"], &[]).await;
    let notification =
        json!({"jsonrpc": "2.0", "method": "eth_getBalance", "params": [Address::repeat_byte(1), "latest"]});
    let body = json!([notification, call(7, "eth_chainId", json!([])), notification]);
    let answer = world.raw(body.to_string()).by(&caller).send().await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (200, r#"[{"jsonrpc":"2.0","id":7,"result":"0x7a69"}]"#)
    );
    let answer = world.raw(json!([notification]).to_string()).by(&caller).send().await;
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    // A single notification is answered (J4), because an HTTP client reads the outcome.
    let answer = world.raw(notification.to_string()).by(&caller).send().await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (200, r#"{"jsonrpc":"2.0","id":null,"result":"0x0"}"#)
    );
    assert_eq!(world.fixture.access_records().len(), 5, "one record per element");
}

#[tokio::test]
async fn decision_8_the_bound_holds_and_zero_switches_batches_off() {
    let (world, fake) = scripted_with(
        RpcSettings {
            batch_max: 2,
            ..RpcSettings::default()
        },
        PolicySettings::default(),
    )
    .await;
    let batch_of = |n| json!(vec![call(1, "eth_chainId", json!([])); n]).to_string();
    assert_eq!(world.raw(batch_of(2)).send().await.status, 200);
    let answer = world.raw(batch_of(3)).send().await;
    assert_eq!(answer.error(), (400, -32600));
    assert!(answer.text.contains("batch"), "{}", answer.text);
    let (world, _fake) = scripted_with(
        RpcSettings {
            batch_max: 0,
            ..RpcSettings::default()
        },
        PolicySettings::default(),
    )
    .await;
    let answer = world.raw(batch_of(1)).send().await;
    assert!(answer.status == 400 && answer.text.contains("batch"), "{}", answer.text);
    fake.assert_silent();
}

/// J7: a batch holds one concurrency permit, and returns it.
#[tokio::test]
async fn j7_a_batch_takes_one_concurrency_permit() {
    let settings = RpcSettings {
        max_concurrent: 1,
        ..RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, PolicySettings::default()).await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["eth_syncing"], &[]).await;
    let body = json!([call(1, "eth_syncing", json!([])), call(2, "eth_syncing", json!([]))]).to_string();
    for _ in 0..2 {
        let answer = world.raw(body.clone()).by(&caller).send().await;
        assert_eq!(answer.body[0]["result"], false);
        assert_eq!(answer.body[1]["result"], false);
    }
    assert_eq!(fake.take().len(), 4);
}

/// HD20: a batch pins no policy: a right that is revoked between two elements is revoked for the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hd20_each_element_is_authorized_by_the_policy_of_its_own_time() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world
        .person("caller", bank, &["eth_syncing", "eth_blobBaseFee"], &[])
        .await;
    let gate = crate::consistency::Gate::new(&fake, "eth_syncing", NodeReply::Result(json!(false)));
    let body = json!([call(1, "eth_syncing", json!([])), call(2, "eth_blobBaseFee", json!([]))]).to_string();
    let request = tokio::spawn(world.raw(body).by(&caller).answering());
    let gate = gate.reached().await;
    world.ban(&caller).await;
    gate.open();
    let answer = request.await.unwrap();
    for element in [0, 1] {
        assert_eq!(answer.body[element]["error"]["code"], -32601, "{}", answer.text);
    }
    assert_eq!(fake.take().len(), 1, "the second element is not forwarded");
}

/// HD20: after a minute, no further element is started.
#[tokio::test]
async fn hd20_a_batch_ends_after_a_minute() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["eth_syncing"], &[]).await;
    fake.reply("eth_syncing", NodeReply::Silence);
    let body = json!(vec![call(1, "eth_syncing", json!([])); 10]).to_string();
    tokio::time::pause();
    let answer = world.raw(body).by(&caller).send().await;
    let messages: Vec<_> = (0..10)
        .map(|n| answer.body[n]["error"]["message"].as_str().unwrap_or_default())
        .collect();
    // The node gets ten seconds for each element, or twenty if the call is retried.
    let started = messages
        .iter()
        .take_while(|text| **text == "failed to forward request")
        .count();
    assert!((3..=6).contains(&started), "{messages:?}");
    assert!(
        messages[started..]
            .iter()
            .all(|text| *text == "the batch took too long"),
        "{messages:?}"
    );
    assert_eq!(world.fixture.access_records().len(), 10);
}
