//! The order of checks (spec/20 §17): a request that is wrong in several ways meets the earliest check.

use crate::world::{DENIED, World, account, scripted, scripted_with, signed};
use gw_policy::Knobs;
use gw_rpc::RpcSettings;
use gw_testkit::{FakeNode, fake_node::Reply};
use gw_types::{Address, Bytes};
use serde_json::{Value, json};

const CONTRACT: Address = Address::repeat_byte(0x11);

/// What stands before a call: each row breaks this check and every later one.
#[tokio::test]
async fn s17_before_the_call_size_token_shape() {
    let (world, fake) = scripted().await;
    let too_large = "[".repeat(2_000_000);
    let bad = "Bearer nonsense";
    assert_eq!(
        world.raw(too_large).header("authorization", bad).send().await.status,
        413,
        "size before token"
    );
    let broken = || world.raw(format!("{}{}", "[".repeat(100), "]".repeat(100)));
    assert_eq!(
        broken().header("authorization", bad).send().await.status,
        401,
        "token before depth"
    );
    let two = format!("/rpc/{}", gw_types::OrgId::fixed(1));
    assert_eq!(
        broken()
            .path(&two)
            .header("x-org-id", "x")
            .header("authorization", bad)
            .send()
            .await
            .status,
        401
    );
    assert_eq!(broken().send().await.error(), (400, -32600), "depth before batch");
    fake.assert_silent();
}

/// A ladder: each step mends one check, so that the next one answers.
#[tokio::test]
async fn s17_a_call_meets_its_checks_in_order() {
    let (world, fake) = scripted().await;
    let bank = world.org("bank").await;
    let other = world.org("other").await;
    let nobody = world.person("nobody", bank, &[], &[]).await;
    let caller = world.person("caller", bank, &["eth_call"], &[]).await;
    world.contract(bank, CONTRACT, None, &[caller.group]).await;
    let malformed = json!([{"to": "no address"}]);
    let elsewhere = format!("/rpc/{other}");

    // The name, before policy is even looked at.
    world.uptime.pass(60);
    assert_eq!(
        world
            .ask(None, "eth_newPendingTransactionFilter", malformed.clone())
            .send()
            .await
            .text,
        DENIED
    );
    assert_eq!(world.ask(None, "nonsense", malformed.clone()).send().await.text, DENIED);
    // Staleness, before who calls.
    assert_eq!(
        world.ask(None, "eth_call", malformed.clone()).send().await.error(),
        (503, -32603)
    );
    world.change(async |_| ()).await;
    refresh(&world).await;
    // Who calls, before parameters.
    assert_eq!(world.ask(None, "eth_call", malformed.clone()).send().await.text, DENIED);
    // The organization, then the method list, before parameters.
    assert_eq!(
        world
            .ask(Some(&caller), "eth_call", malformed.clone())
            .path(&elsewhere)
            .send()
            .await
            .text,
        DENIED
    );
    assert_eq!(
        world
            .ask(Some(&nobody), "eth_call", malformed.clone())
            .send()
            .await
            .text,
        DENIED
    );
    // Parameters, before the target.
    assert_eq!(
        world.ask(Some(&caller), "eth_call", malformed).send().await.error(),
        (400, -32602)
    );
    // The target, before the sender.
    let foreign = json!([{"to": Address::repeat_byte(9), "from": Address::repeat_byte(8)}, "latest"]);
    assert_eq!(world.ask(Some(&caller), "eth_call", foreign).send().await.text, DENIED);
    // The sender, before the trace.
    let not_mine = json!([{"to": CONTRACT, "from": Address::repeat_byte(8)}, "latest"]);
    assert_eq!(
        world.ask(Some(&caller), "eth_call", not_mine).send().await.error(),
        (400, -32602)
    );
    fake.assert_silent();
    // The trace, before the answer.
    fake.reply("debug_traceCall", Reply::Error(-32601, "gone", Value::Null));
    let good = json!([{"to": CONTRACT, "data": "0x12345678"}, "latest"]);
    assert_eq!(
        world.ask(Some(&caller), "eth_call", good).send().await.error(),
        (503, -32002)
    );
}

/// Makes policy fresh again: any commit makes the feed look.
async fn refresh(world: &World) {
    world.org("refresh").await;
    assert!(world.feed.pin().fresh);
}

/// J8 stands after the claims: who may not do it is not told how busy others are.
#[tokio::test]
async fn s17_limits_come_after_what_is_denied_and_before_the_node() {
    let settings = RpcSettings {
        max_concurrent: 1,
        ..RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, Knobs::default(), 64 << 20).await;
    let bank = world.org("bank").await;
    let caller = world
        .person("caller", bank, &["eth_syncing", "eth_getBalance"], &[])
        .await;
    fake.reply("eth_syncing", Reply::Silence);
    let mut hanging = Box::pin(world.ask(Some(&caller), "eth_syncing", json!([])).answering());
    while fake.take().is_empty() {
        let turn = tokio::task::yield_now();
        tokio::select! { biased; _ = &mut hanging => panic!("answered"), () = turn => {} }
    }
    let busy = world.ask(Some(&caller), "eth_syncing", json!([])).send().await;
    assert_eq!(
        (busy.error(), busy.headers["retry-after"].to_str().unwrap()),
        ((429, -32005), "1")
    );
    let denied = world
        .ask(Some(&caller), "eth_getCode", json!([CONTRACT, "latest"]))
        .send()
        .await;
    assert_eq!(denied.text, DENIED);
    // What needs no node needs no place.
    assert_eq!(
        world.ask(Some(&caller), "eth_chainId", json!([])).send().await.status,
        200
    );
    assert_eq!(
        world
            .ask(Some(&caller), "eth_getBalance", json!([CONTRACT, "latest"]))
            .send()
            .await
            .status,
        200
    );
    fake.assert_silent();
    drop(hanging);
    fake.on("eth_syncing", json!(false));
    assert_eq!(
        world.ask(Some(&caller), "eth_syncing", json!([])).send().await.status,
        200
    );
}

/// J8: 429 from the node opens a pause of a second for everybody.
#[tokio::test]
async fn j8_a_node_that_says_too_many_is_left_alone_for_a_second() {
    let (world, fake) = scripted().await;
    let bank = world.org("bank").await;
    let caller = world.person("caller", bank, &["eth_syncing"], &[]).await;
    fake.reply("eth_syncing", Reply::Http(429, "slow down"));
    for _ in 0..3 {
        assert_eq!(
            world.ask(Some(&caller), "eth_syncing", json!([])).send().await.error(),
            (429, -32005)
        );
    }
    assert_eq!(fake.take().len(), 1);
    fake.on("eth_syncing", json!(false));
    world.clock.pass(1);
    assert_eq!(
        world.ask(Some(&caller), "eth_syncing", json!([])).send().await.status,
        200
    );
}

/// §17: a send meets trace, nonce and recipients before anything is written or forwarded.
#[tokio::test]
async fn s17_a_send_writes_nothing_until_everything_passed() {
    let (world, fake) = scripted().await;
    let bank = world.org("bank").await;
    let sender = world.person("sender", bank, &["eth_sendRawTransaction"], &[]).await;
    let to = Address::repeat_byte(5);
    let epoch = world.feed.epoch();
    let far = signed(&account(0), 65, Some(to), 1, Bytes::new()).0;
    let near = signed(&account(0), 0, Some(to), 1, Bytes::new()).0;

    fake.reply("debug_traceCall", Reply::Error(-32601, "gone", Value::Null));
    assert_eq!(
        send(&world, &sender, &far).await.error(),
        (503, -32002),
        "trace before nonce"
    );
    fake.script("debug_traceCall", gw_testkit::fake_node::trace);
    assert_eq!(
        send(&world, &sender, &far).await.error(),
        (400, -32602),
        "HD13: a nonce 65 above the pending one"
    );
    let shared = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [near],
        "visibleTo": ["did:test:friend"]});
    let answer = world.raw(shared.to_string()).by(&sender).send().await;
    assert_eq!(answer.error(), (400, -32602), "W4: only for contract calls");
    assert!(!forwarded(&fake), "nothing was sent");
    let (intents, outcomes, calls) = world.sends_recorded().await;
    assert_eq!((intents.len(), outcomes.len(), calls.len()), (0, 0, 3));
    assert_eq!(world.feed.epoch(), epoch, "nothing was written");
}

async fn send(world: &World, who: &crate::world::Person, raw: &str) -> crate::world::Answer {
    world
        .ask(Some(who), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await
}

fn forwarded(fake: &FakeNode) -> bool {
    fake.take().iter().any(|call| call.method.starts_with("eth_send"))
}
