//! The order of checks (spec/20 §17): a request that fails several checks gets the result of the earliest one.

use crate::world::{DENIED, World, account, scripted, scripted_with, signed};
use gw_policy::PolicySettings;
use gw_rpc::{
    RpcSettings,
    send::{ComplianceCheck, PermittedSend},
};
use gw_testkit::{FakeNode, TestUser, fake_node::NodeReply};
use gw_types::{Address, Bytes, DenyReason};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

const CONTRACT: Address = Address::repeat_byte(0x11);

/// Checks before a call: each request fails one check and every later one.
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

/// Each step passes one more check, so that the next one answers.
#[tokio::test]
async fn s17_the_checks_of_a_call_run_in_order() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let other = world.fixture.create_org("other").await;
    let nobody = world.person("nobody", bank, &[], &[]).await;
    let caller = world.person("caller", bank, &["eth_call"], &[]).await;
    world.contract(bank, CONTRACT, None, &[caller.group]).await;
    let malformed = json!([{"to": "no address"}]);
    let elsewhere = format!("/rpc/{other}");

    // The method name, before the policy.
    world.fixture.make_policy_stale();
    assert_eq!(
        world
            .ask(None, "eth_newPendingTransactionFilter", malformed.clone())
            .send()
            .await
            .text,
        DENIED
    );
    assert_eq!(world.ask(None, "nonsense", malformed.clone()).send().await.text, DENIED);
    // Stale policy, before the caller.
    assert_eq!(
        world.ask(None, "eth_call", malformed.clone()).send().await.error(),
        (503, -32603)
    );
    world.fixture.change(async |_| ()).await;
    refresh(&world).await;
    // The caller, before the parameters.
    assert_eq!(world.ask(None, "eth_call", malformed.clone()).send().await.text, DENIED);
    // The organization, then the method list, before the parameters.
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
    fake.reply("debug_traceCall", NodeReply::Error(-32601, "gone", Value::Null));
    let good = json!([{"to": CONTRACT, "data": "0x12345678"}, "latest"]);
    assert_eq!(
        world.ask(Some(&caller), "eth_call", good).send().await.error(),
        (503, -32002)
    );
}

/// Makes the policy fresh again: a commit makes the feed read it.
async fn refresh(world: &World) {
    world.fixture.create_org("refresh").await;
    assert!(world.fixture.feed.pin().fresh);
}

/// J8: the limits come after the claims, so a denied caller does not learn how busy others are.
#[tokio::test]
async fn s17_limits_come_after_denials_and_before_the_node() {
    let settings = RpcSettings {
        max_concurrent: 1,
        ..RpcSettings::default()
    };
    let (world, fake) = scripted_with(settings, PolicySettings::default()).await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world
        .person("caller", bank, &["eth_syncing", "eth_getBalance"], &[])
        .await;
    fake.reply("eth_syncing", NodeReply::Silence);
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
    // A call that needs no node needs no concurrency permit.
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
    fake.set_result("eth_syncing", json!(false));
    assert_eq!(
        world.ask(Some(&caller), "eth_syncing", json!([])).send().await.status,
        200
    );
}

/// J8: HTTP 429 from the node pauses its key for a second, for all callers.
#[tokio::test]
async fn j8_after_429_the_node_gets_no_call_for_a_second() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["eth_syncing"], &[]).await;
    fake.reply("eth_syncing", NodeReply::Http(429, "slow down"));
    for _ in 0..3 {
        assert_eq!(
            world.ask(Some(&caller), "eth_syncing", json!([])).send().await.error(),
            (429, -32005)
        );
    }
    assert_eq!(fake.take().len(), 1);
    fake.set_result("eth_syncing", json!(false));
    world.fixture.clock.pass(1);
    assert_eq!(
        world.ask(Some(&caller), "eth_syncing", json!([])).send().await.status,
        200
    );
}

/// §17: trace, nonce and recipients of a send are checked before anything is written or forwarded.
#[tokio::test]
async fn s17_a_send_writes_nothing_until_everything_passed() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let sender = world.person("sender", bank, &["eth_sendRawTransaction"], &[]).await;
    let to = Address::repeat_byte(5);
    let epoch = world.fixture.feed.epoch();
    let far = signed(&account(0), 65, Some(to), 1, Bytes::new()).0;
    let near = signed(&account(0), 0, Some(to), 1, Bytes::new()).0;

    fake.reply("debug_traceCall", NodeReply::Error(-32601, "gone", Value::Null));
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
    let (intents, outcomes, calls) = world.sends_recorded();
    assert_eq!((intents.len(), outcomes.len(), calls.len()), (0, 0, 3));
    assert_eq!(world.fixture.feed.epoch(), epoch, "nothing was written");
}

/// A compliance check that counts sends, and denies them while it is closed.
#[derive(Debug, Default)]
struct Rules {
    checks: AtomicUsize,
    is_closed: AtomicBool,
}

impl ComplianceCheck for Rules {
    fn check(&self, send: &PermittedSend<'_>) -> Result<(), DenyReason> {
        assert!(send.permit.org().is_some());
        self.checks.fetch_add(1, Ordering::SeqCst);
        if self.is_closed.load(Ordering::SeqCst) {
            Err(DenyReason::ComplianceBlocked)
        } else {
            Ok(())
        }
    }
}

/// spec/60 §7: compliance is checked after access and trace, before anything is written; its denial is the opaque one.
#[tokio::test]
async fn s17_compliance_comes_after_the_trace_and_before_anything_is_written() {
    let (world, fake) = scripted().await;
    let rules = Arc::new(Rules::default());
    rules.is_closed.store(true, Ordering::SeqCst);
    let world = world.under(Arc::clone(&rules) as Arc<dyn ComplianceCheck>);
    let bank = world.fixture.create_org("bank").await;
    let sender = world.person("sender", bank, &["eth_sendRawTransaction"], &[]).await;
    let stranger = world.person("stranger", bank, &[], &[]).await;
    let take_checks = || rules.checks.swap(0, Ordering::SeqCst);
    let to = Address::repeat_byte(5);
    let raw = signed(&account(0), 0, Some(to), 1, Bytes::new()).0;

    fake.script("debug_traceCall", gw_testkit::fake_node::trace);
    assert_eq!(send(&world, &stranger, &raw).await.text, DENIED);
    assert_eq!(take_checks(), 0, "access before compliance");
    fake.reply("debug_traceCall", NodeReply::Error(-32601, "gone", Value::Null));
    assert_eq!(send(&world, &sender, &raw).await.error(), (503, -32002));
    assert_eq!(take_checks(), 0, "trace before compliance");
    fake.script("debug_traceCall", gw_testkit::fake_node::trace);
    let epoch = world.fixture.feed.epoch();
    let _earlier = world.fixture.records();
    assert_eq!(send(&world, &sender, &raw).await.text, DENIED);
    assert_eq!(take_checks(), 1);
    let (intents, outcomes, calls) = world.sends_recorded();
    assert_eq!((intents.len(), outcomes.len()), (0, 0), "no send was started");
    assert_eq!(calls[0].denial_reason, Some(DenyReason::ComplianceBlocked));
    assert_eq!(world.fixture.feed.epoch(), epoch, "nothing was written");
    assert!(!forwarded(&fake));

    rules.is_closed.store(false, Ordering::SeqCst);
    fake.set_result(
        "eth_sendRawTransaction",
        json!(signed(&account(0), 0, Some(to), 1, Bytes::new()).1),
    );
    assert_eq!(send(&world, &sender, &raw).await.status, 200);
    assert_eq!(take_checks(), 2, "once more directly before it goes out");
}

async fn send(world: &World, person: &TestUser, raw: &str) -> crate::world::Answer {
    world
        .ask(Some(person), "eth_sendRawTransaction", json!([raw]))
        .send()
        .await
}

fn forwarded(fake: &FakeNode) -> bool {
    fake.take().iter().any(|call| call.method.starts_with("eth_send"))
}
