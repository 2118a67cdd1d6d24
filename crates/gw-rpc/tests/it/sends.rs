//! Sends against a scripted node (spec/20 §12; HD13, HD15, HD20, HD22).

use crate::{
    consistency::Gate,
    world::{Answer, World, account, scripted, scripted_with, signed},
};
use gw_audit::{Outcome, Record, SecurityKind};
use gw_policy::{PolicySettings, settings::RawSenderPolicy};
use gw_rpc::RpcSettings;
use gw_store::record::UserPatch;
use gw_testkit::{FakeNode, TestUser, fake_node::NodeReply};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, OrgId};
use serde_json::{Value, json};

const TO: Address = Address::repeat_byte(5);
pub(crate) const CONTRACT: Address = Address::repeat_byte(0x11);
pub(crate) const SEND: &str = "eth_sendRawTransaction";

async fn send(world: &World, person: &TestUser, raw: &str) -> Answer {
    world.ask(Some(person), SEND, json!([raw])).send().await
}

pub(crate) async fn bank_with_sender(world: &World) -> (OrgId, TestUser) {
    let bank = world.fixture.create_org("bank").await;
    let sender = world
        .person("sender", bank, &[SEND, "eth_sendTransaction"], &[Claim::Deploy])
        .await;
    (bank, sender)
}

/// A call of the contract, which has code. Scripts the node so that the call can be traced.
pub(crate) fn contract_call(fake: &FakeNode) -> (String, B256) {
    fake.script("debug_traceCall", |params| match gw_testkit::fake_node::trace(params) {
        NodeReply::Result(mut accounts) if accounts.get(CONTRACT.to_string().to_lowercase()).is_some() => {
            accounts[CONTRACT.to_string().to_lowercase()] = json!({"balance": "0x0", "code": "0x6001"});
            NodeReply::Result(accounts)
        }
        reply => reply,
    });
    signed(&account(0), 0, Some(CONTRACT), 0, Bytes::from_static(&[1, 2, 3, 4]))
}

/// HD15, HD2: one batch queries call tree, touches and changes, on the current state and in the next block, and the
/// nonce; then the exact bytes are forwarded in a second request.
#[tokio::test]
async fn hd15_a_send_is_traced_whole_and_twice_in_one_batch() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    let (raw, hash) = signed(&account(0), 0, Some(TO), 1, Bytes::new());
    fake.set_result(SEND, json!(hash));
    let answer = send(&world, &sender, &raw).await;
    assert_eq!(
        answer.text,
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{hash:#x}"}}"#)
    );
    let bodies: Vec<Value> = fake
        .take_bodies()
        .iter()
        .map(|body| serde_json::from_slice(body).unwrap())
        .collect();
    let [traces, forwarded, renewed] = bodies.as_slice() else {
        panic!("{bodies:?}")
    };
    let queries: Vec<(String, bool, bool)> = traces
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let config = &call["params"][2];
            let diff = config["tracerConfig"]["diffMode"] == true;
            let next = config["blockOverrides"]["number"] == "0x65";
            (
                config["tracer"]
                    .as_str()
                    .unwrap_or_else(|| call["method"].as_str().unwrap())
                    .to_owned(),
                diff,
                next,
            )
        })
        .collect();
    let query = |name: &str, diff, next| (name.to_owned(), diff, next);
    assert_eq!(
        queries,
        [
            query("callTracer", false, false),
            query("prestateTracer", false, false),
            query("prestateTracer", true, false),
            query("callTracer", false, true),
            query("prestateTracer", false, true),
            query("prestateTracer", true, true),
            query("eth_getTransactionCount", false, false),
        ]
    );
    for call in &traces.as_array().unwrap()[..6] {
        assert_eq!(call["params"][1]["blockHash"], FakeNode::HEAD_HASH, "X3: one block");
        assert_eq!(
            call["params"][0]["from"],
            json!(account(0).address()),
            "the sender, never the node's"
        );
    }
    assert_eq!(
        *forwarded,
        json!({"jsonrpc": "2.0", "id": 0, "method": SEND, "params": [raw]})
    );
    assert_eq!(renewed[0]["method"], "eth_getBlockByNumber", "decision 41");
}

/// HD22: the intent is on disk before the node gets the transaction, the outcome afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hd22_intent_then_node_then_outcome() {
    let (world, fake) = scripted().await;
    let (bank, sender) = bank_with_sender(&world).await;
    let (raw, hash) = signed(&account(0), 0, Some(TO), 1, Bytes::new());
    let gate = Gate::new(&fake, SEND, NodeReply::Result(json!(hash)));
    let request = tokio::spawn(world.ask(Some(&sender), SEND, json!([raw])).answering());
    let gate = gate.reached().await;
    let (intents, outcomes, calls) = world.sends_recorded();
    assert_eq!((intents.len(), outcomes.len(), calls.len()), (1, 0, 0));
    assert_eq!((intents[0].hash, intents[0].org_id, intents[0].nonce), (hash, bank, 0));
    assert_eq!(intents[0].sender, Some(account(0).address()));
    gate.open();
    assert_eq!(request.await.unwrap().status, 200);
    let (intents, outcomes, calls) = world.sends_recorded();
    assert_eq!((intents.len(), outcomes.len(), calls.len()), (0, 1, 1));
    assert_eq!((outcomes[0].hash, outcomes[0].outcome), (hash, Outcome::Accepted));
}

/// W7, HD15: the caller gets the node's refusal as a known text with a known code, and all rows are released.
#[tokio::test]
async fn w7_a_refusal_is_mapped_and_leaves_nothing_behind() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    for (nonce, code, message, shown) in [
        (
            0,
            -32000,
            "nonce too low: next nonce 9, tx nonce 0 of 0x1234",
            (-32000, "nonce too low"),
        ),
        (
            0,
            -32003,
            "Insufficient funds: balance 12",
            (-32000, "insufficient funds for gas * price + value"),
        ),
        (
            0,
            -32601,
            "the method does not exist",
            (-32000, "the node does not support this method"),
        ),
        (0, -32602, "No Signer available", (-32602, "upstream error")),
    ] {
        let (raw, _) = signed(&account(0), nonce, None, 0, Bytes::from_static(&[0x60]));
        fake.reply(SEND, NodeReply::Error(code, message, Value::Null));
        let answer = send(&world, &sender, &raw).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body["error"], json!({"code": shown.0, "message": shown.1}));
        let (_, outcomes, calls) = world.sends_recorded();
        assert_eq!(
            (outcomes[0].outcome, outcomes[0].node_code),
            (Outcome::Refused, Some(shown.0))
        );
        assert_eq!(calls[0].denial_reason, Some(DenyReason::UpstreamError));
        assert!(
            world
                .fixture
                .store
                .read()
                .open_reservations(None)
                .await
                .unwrap()
                .is_empty(),
            "R3: released"
        );
        assert!(
            world.fixture.feed.pin().snapshot.links_of(sender.id).is_empty(),
            "B12: no link from a refusal"
        );
    }
}

/// B12, W6: a sender is linked only if the node returns the transaction's own hash.
#[tokio::test]
async fn b12_another_hash_from_the_node_links_nobody_and_the_send_stays_open() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    let (raw, _) = signed(&account(0), 0, Some(TO), 1, Bytes::new());
    for result in [json!(B256::repeat_byte(7)), json!(null), json!({"hash": "0x"})] {
        fake.set_result(SEND, result);
        assert_eq!(send(&world, &sender, &raw).await.error(), (502, -32603));
        let (intents, outcomes, _) = world.sends_recorded();
        assert_eq!((intents.len(), outcomes.len()), (1, 0), "the outcome is unknown");
        assert!(world.fixture.feed.pin().snapshot.links_of(sender.id).is_empty());
    }
}

/// HD22: it is unknown whether the node accepted the send, so the chain is queried for the hash.
#[tokio::test]
async fn hd22_an_unanswered_send_is_settled_by_its_hash() {
    let (world, fake) = scripted().await;
    let (bank, sender) = bank_with_sender(&world).await;
    world.contract(bank, CONTRACT, None, &[sender.group]).await;
    let (raw, hash) = contract_call(&fake);
    fake.reply(SEND, NodeReply::Http(502, "<html>bad gateway</html>"));
    // Decision 59: the transaction was not sent before.
    let queries = std::sync::atomic::AtomicU32::new(0);
    fake.script("eth_getTransactionByHash", move |_| {
        match queries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => NodeReply::Result(Value::Null),
            _ => NodeReply::Result(json!({"hash": hash})),
        }
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": SEND, "params": [raw], "visibleTo": ["did:test:friend"]});
    assert_eq!(
        world.raw(body.to_string()).by(&sender).send().await.error(),
        (502, -32603)
    );
    while world
        .fixture
        .feed
        .pin()
        .snapshot
        .visibility(hash)
        .iter()
        .all(|row| !row.active)
    {
        tokio::task::yield_now().await;
    }
    let linked: Vec<_> = world
        .fixture
        .feed
        .pin()
        .snapshot
        .links_of(sender.id)
        .iter()
        .map(|link| link.address)
        .collect();
    assert_eq!(linked, [account(0).address()]);
}

/// HD22: an error that does not show a rejection is no outcome. The send is searched for until the node has it.
#[tokio::test]
async fn hd22_an_error_that_shows_no_rejection_is_searched_for() {
    for (code, message) in [
        (-32603, "internal error"),
        (-32000, "already known"),
        (-32000, "VM Exception while processing transaction: reverted"),
        (-32010, "some words of 10.0.0.7"),
    ] {
        let (world, fake, hash, search) = unanswered_send(NodeReply::Error(code, message, Value::Null)).await;
        search.reached(2).await;
        let (intents, outcomes, _) = world.sends_recorded();
        assert_eq!((intents.len(), outcomes.len()), (1, 0), "{message}: unknown");
        assert_eq!(reserved(&world, hash).await, 1, "{message}: nothing is released");
        fake.set_result("eth_getTransactionByHash", json!({"hash": hash}));
        let outcome = settled(&world).await;
        assert_eq!(outcome, (hash, Outcome::Accepted), "{message}");
    }
}

/// HD22: a node that does not have a send proves nothing, however often it is asked. The send is refused only when
/// something else used its nonce.
#[tokio::test]
async fn hd22_a_send_is_searched_for_until_its_nonce_is_used() {
    let (world, fake, hash, search) = unanswered_send(NodeReply::Http(502, "<html>bad gateway</html>")).await;
    // More often than the gateway asked when it gave up after a minute.
    search.reached(62).await;
    let (intents, outcomes, _) = world.sends_recorded();
    assert_eq!((intents.len(), outcomes.len()), (1, 0), "the outcome is unknown");
    assert_eq!(reserved(&world, hash).await, 1);
    fake.script("eth_getBlockByHash", |_| {
        let mut block = gw_testkit::fake_node::block(FakeNode::HEAD, FakeNode::HEAD_HASH);
        block["transactions"] = json!([B256::repeat_byte(9)]);
        NodeReply::Result(block)
    });
    fake.script("eth_getTransactionByHash", move |params| {
        let of_other = json!({"hash": params[0], "from": account(0).address(), "nonce": "0x0",
            "blockHash": FakeNode::HEAD_HASH});
        NodeReply::Result(if params[0] == json!(hash) {
            Value::Null
        } else {
            of_other
        })
    });
    // Used at the head, and not before it.
    fake.script("eth_getTransactionCount", |params| {
        let is_before = params[1] != json!(format!("{:#x}", FakeNode::HEAD))
            && params[1]["blockHash"] != json!(FakeNode::HEAD_HASH);
        NodeReply::Result(json!(if is_before { "0x0" } else { "0x1" }))
    });
    assert_eq!(settled(&world).await, (hash, Outcome::Refused));
    assert_eq!(reserved(&world, hash).await, 0, "R3: released");
}

/// Counts how often the node was asked for a transaction that it does not have.
struct Search(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl Search {
    async fn reached(&self, count: usize) {
        while self.0.load(std::sync::atomic::Ordering::Relaxed) < count {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

/// Sends a deployment that the node replies to with `reply`, and which the node does not have afterwards.
async fn unanswered_send(reply: NodeReply) -> (World, FakeNode, B256, Search) {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    let (raw, hash) = signed(&account(0), 0, None, 0, Bytes::from_static(&[0x60]));
    fake.reply(SEND, reply);
    let search = Search(std::sync::Arc::default());
    let count = std::sync::Arc::clone(&search.0);
    fake.script("eth_getTransactionByHash", move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        NodeReply::Result(Value::Null)
    });
    let answer = send(&world, &sender, &raw).await;
    assert!(answer.body["error"].is_object(), "{}", answer.text);
    (world, fake, hash, search)
}

async fn reserved(world: &World, hash: B256) -> usize {
    let open = world.fixture.store.read().open_reservations(Some(hash)).await;
    open.unwrap().len()
}

/// Waits until the only send has an outcome.
async fn settled(world: &World) -> (B256, Outcome) {
    loop {
        let (intents, outcomes, _) = world.sends_recorded();
        if let Some(outcome) = outcomes.first() {
            assert!(intents.is_empty());
            return (outcome.hash, outcome.outcome);
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// HD22: intents that a crash left open are resolved at the next start.
#[tokio::test]
async fn hd22_open_intents_are_resolved_at_start() {
    let (world, fake) = scripted().await;
    let (org_id, sender) = bank_with_sender(&world).await;
    let (_, hash) = signed(&account(0), 0, Some(TO), 1, Bytes::new());
    let intent = gw_audit::SendIntent {
        hash,
        subject: Some(sender.name.clone()),
        org_id,
        sender: Some(account(0).address()),
        nonce: 0,
        visible_to: Vec::new(),
        claims: gw_types::Claims::NONE,
        creates: Vec::new(),
    };
    fake.set_result("eth_getTransactionByHash", json!({"hash": hash}));
    gw_rpc::send::resolve_intents(&world.sends, vec![intent]).await;
    let (_, outcomes, _) = world.sends_recorded();
    assert_eq!((outcomes[0].hash, outcomes[0].outcome), (hash, Outcome::Accepted));
    assert_eq!(world.fixture.feed.pin().snapshot.links_of(sender.id).len(), 1);
}

/// HD22: a transaction that the node signed has no hash to query, so its outcome stays unknown; it is not recorded as
/// refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hd22_an_open_intent_of_a_send_signed_by_the_node_stays_unknown() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    world.link(&sender, account(0).address()).await;
    let gate = Gate::new(
        &fake,
        "eth_sendTransaction",
        NodeReply::Result(json!(B256::repeat_byte(9))),
    );
    let call = json!([{"from": account(0).address(), "to": TO, "value": "0x1"}]);
    let request = tokio::spawn(world.ask(Some(&sender), "eth_sendTransaction", call).answering());
    let gate = gate.reached().await;
    let (open, ..) = world.sends_recorded();
    gate.open();
    assert_eq!(request.await.unwrap().status, 200);
    fake.take();
    // The intent as a crash before the answer would leave it.
    gw_rpc::send::resolve_intents(&world.sends, open.clone()).await;
    fake.assert_silent();
    let (_, outcomes, _) = world.sends_recorded();
    let last = outcomes.last().unwrap();
    assert_eq!((last.hash, last.outcome), (open[0].hash, Outcome::Unknown));
}

/// J8: a node that answers 429 has not accepted the send.
#[tokio::test]
async fn j8_a_send_rejected_with_429_is_released() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    let (raw, _) = signed(&account(0), 0, None, 0, Bytes::from_static(&[0x60]));
    fake.reply(SEND, NodeReply::Http(429, ""));
    assert_eq!(send(&world, &sender, &raw).await.error(), (429, -32005));
    let (_, outcomes, _) = world.sends_recorded();
    assert_eq!(outcomes[0].outcome, Outcome::Refused);
    assert!(
        world
            .fixture
            .store
            .read()
            .open_reservations(None)
            .await
            .unwrap()
            .is_empty()
    );
}

/// W5, B25: the visibility row exists before the node gets the transaction, inactive until the node accepts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn w5_b25_the_visibility_row_is_written_before_forwarding() {
    let (world, fake) = scripted().await;
    let (bank, sender) = bank_with_sender(&world).await;
    world.contract(bank, CONTRACT, None, &[sender.group]).await;
    let (raw, hash) = contract_call(&fake);
    let gate = Gate::new(&fake, SEND, NodeReply::Result(json!(hash)));
    // W4, R25: the lists from all permitted places are united.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": SEND, "params": [raw, {"visibleTo": ["did:test:b"]}],
        "visibleTo": ["did:test:a", "nonsense"], "privateFor": ["did:test:c"]});
    let request = tokio::spawn(world.raw(body.to_string()).by(&sender).answering());
    let gate = gate.reached().await;
    let rows = world.fixture.feed.pin().snapshot.visibility(hash).to_vec();
    let named: Vec<_> = rows[0].recipients.iter().map(ToString::to_string).collect();
    assert_eq!(
        (named.join(" ").as_str(), rows[0].active),
        ("did:test:a did:test:c did:test:b", false)
    );
    gate.open();
    assert_eq!(request.await.unwrap().status, 200);
    assert!(world.fixture.feed.pin().snapshot.visibility(hash)[0].active);
    let sent: Vec<_> = fake.take().into_iter().filter(|call| call.method == SEND).collect();
    assert_eq!(sent[0].params, json!([raw]), "stripped before forwarding");
}

pub(crate) fn naming(raw: &str, recipients: &[&str]) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": SEND, "params": [raw], "visibleTo": recipients});
    body.to_string()
}

/// RTO2, R27, decision 59: the attack sent the same bytes again with other recipients, and a node that answered with
/// the hash opened the transaction to them.
#[tokio::test]
async fn rto2_the_same_bytes_are_shared_once() {
    let (world, fake) = scripted().await;
    let (bank, sender) = bank_with_sender(&world).await;
    world.contract(bank, CONTRACT, None, &[sender.group]).await;
    let (raw, hash) = contract_call(&fake);
    fake.set_result(SEND, json!(hash));
    for names in [
        &["did:test:first"][..],
        &["did:test:other"],
        &["did:test:first", "did:test:other"],
        &[],
    ] {
        assert_eq!(world.raw(naming(&raw, names)).by(&sender).send().await.status, 200);
        let rows = world.fixture.feed.pin().snapshot.visibility(hash).to_vec();
        let named: Vec<_> = rows
            .iter()
            .flat_map(|row| &row.recipients)
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            (named, rows[0].active),
            (vec!["did:test:first".to_owned()], true),
            "{names:?}"
        );
    }
    // A transaction that was first sent without recipients gets none afterwards.
    fake.set_result("eth_getTransactionCount", json!("0x1"));
    let (raw, hash) = signed(&account(0), 1, Some(CONTRACT), 0, Bytes::from_static(&[1, 2, 3, 4]));
    fake.set_result(SEND, json!(hash));
    assert_eq!(send(&world, &sender, &raw).await.status, 200);
    fake.set_result("eth_getTransactionByHash", json!({"hash": hash}));
    assert_eq!(
        world
            .raw(naming(&raw, &["did:test:other"]))
            .by(&sender)
            .send()
            .await
            .status,
        200
    );
    assert!(world.fixture.feed.pin().snapshot.visibility(hash).is_empty());
}

/// RTO3, decision 57: an invalid list is rejected before any trace.
#[tokio::test]
async fn rto3_an_invalid_list_causes_no_query() {
    let (world, fake) = scripted().await;
    let (bank, sender) = bank_with_sender(&world).await;
    world.contract(bank, CONTRACT, None, &[sender.group]).await;
    let (raw, _) = contract_call(&fake);
    let (plain, _) = signed(&account(0), 0, Some(TO), 1, Bytes::new());
    fake.take();
    for (raw, names) in [(&raw, vec!["did:test:a"; 33]), (&plain, vec!["did:test:a"])] {
        let answer = world.raw(naming(raw, &names)).by(&sender).send().await;
        assert_eq!(answer.error(), (400, -32602), "{}", answer.text);
        assert!(fake.take().is_empty(), "nothing was queried");
    }
}

/// W6, LK-7: the recovered sender of an accepted raw transaction is linked, once, with a security event.
#[tokio::test]
async fn w6_an_accepted_sender_is_linked_once() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    for nonce in 0..2 {
        let (raw, hash) = signed(&account(0), nonce, Some(TO), 1, Bytes::new());
        fake.set_result(SEND, json!(hash));
        assert_eq!(send(&world, &sender, &raw).await.status, 200);
    }
    let linked: Vec<_> = world
        .fixture
        .feed
        .pin()
        .snapshot
        .links_of(sender.id)
        .iter()
        .map(|link| (link.address, link.kind))
        .collect();
    assert_eq!(linked, [(account(0).address(), gw_policy::snapshot::LinkKind::System)]);
    let events = world.fixture.records().into_iter().filter_map(|record| match record {
        Record::Security(event) if event.kind == SecurityKind::EthAddressLinked => Some(event),
        _ => None,
    });
    assert_eq!(events.count(), 1);
}

/// HD13: which transactions of others may be relayed, by policy and by kind of transaction.
#[tokio::test]
async fn hd13_relaying_somebody_elses_transaction() {
    let policy_settings = |raw_sender_policy| PolicySettings {
        raw_sender_policy,
        ..PolicySettings::default()
    };
    for (policy, unclaimed, proved_by_other, inferred_for_other) in [
        (RawSenderPolicy::Unclaimed, true, false, false),
        (RawSenderPolicy::Owner, false, false, false),
        (RawSenderPolicy::Any, true, true, true),
    ] {
        let (world, fake) = scripted_with(RpcSettings::default(), policy_settings(policy)).await;
        let (bank, relay) = bank_with_sender(&world).await;
        let owner = world.person("other", bank, &[], &[]).await;
        world.link(&owner, account(1).address()).await;
        world
            .fixture
            .change(async |tx| tx.link_sender(owner.id, account(2).address()).await.unwrap())
            .await;
        for (number, allowed) in [(0, unclaimed), (1, proved_by_other), (2, inferred_for_other)] {
            // A creation of a claimed sender may be sent only by its owner, under every policy.
            let (raw, hash) = signed(&account(number), 0, None, 0, Bytes::from_static(&[0x60]));
            fake.set_result(SEND, json!(hash));
            let claimed = number > 0;
            let answer = send(&world, &relay, &raw).await;
            assert_eq!(
                answer.status == 200,
                allowed && !claimed,
                "{policy:?} creation of {number}"
            );
            let (raw, hash) = signed(&account(number), 1, Some(TO), 1, Bytes::new());
            fake.set_result(SEND, json!(hash));
            fake.take();
            let answer = send(&world, &relay, &raw).await;
            assert_eq!(answer.status == 200, allowed, "{policy:?} {number}: {}", answer.text);
            if !allowed {
                answer.assert_denied();
                fake.assert_silent();
            }
        }
    }
}

/// HD13: an address that is no longer linked differs from one that never was: what a former holder signed creates
/// nothing for the relaying user.
#[tokio::test]
async fn hd13_hd37_a_former_holders_transaction_is_not_relayed() {
    let (world, fake) = scripted().await;
    let (bank, relay) = bank_with_sender(&world).await;
    let former = world.person("former", bank, &[], &[]).await;
    let wallet = account(1).address();
    world.link(&former, wallet).await;
    world
        .fixture
        .change(async |tx| tx.unlink_address(former.id, wallet).await.unwrap())
        .await;
    let (raw, _) = signed(&account(1), 0, None, 0, Bytes::from_static(&[0x60]));
    send(&world, &relay, &raw).await.assert_denied();
    assert_eq!(world.record().denial_reason, Some(DenyReason::SenderNotOwned));
    fake.assert_silent();
    // Nor is a payment: sanctions against the former holder would end with the link (HD37).
    let (raw, _) = signed(&account(1), 0, Some(TO), 1, Bytes::new());
    send(&world, &relay, &raw).await.assert_denied();
    fake.assert_silent();
    // Payments of an address that was never linked may be relayed.
    let (raw, hash) = signed(&account(2), 0, Some(TO), 1, Bytes::new());
    fake.set_result(SEND, json!(hash));
    assert_eq!(send(&world, &relay, &raw).await.status, 200);
}

/// HD13: a transaction of an owner who is banned or without KYC is not relayed, under any policy.
#[tokio::test]
async fn hd13_a_barred_owners_transaction_is_not_relayed() {
    let policy_settings = PolicySettings {
        raw_sender_policy: RawSenderPolicy::Any,
        ..PolicySettings::default()
    };
    let (world, fake) = scripted_with(RpcSettings::default(), policy_settings).await;
    let (bank, relay) = bank_with_sender(&world).await;
    for (number, patch) in [
        (
            1,
            UserPatch {
                banned: Some(true),
                ..UserPatch::default()
            },
        ),
        (
            2,
            UserPatch {
                kyc: Some(false),
                ..UserPatch::default()
            },
        ),
    ] {
        let owner = world.person(&format!("owner{number}"), bank, &[], &[]).await;
        world.link(&owner, account(number).address()).await;
        world.update(&owner, patch).await;
        let (raw, _) = signed(&account(number), 0, Some(TO), 1, Bytes::new());
        send(&world, &relay, &raw).await.assert_denied();
        assert_eq!(world.record().denial_reason, Some(DenyReason::SenderNotOwned));
    }
    fake.assert_silent();
}

/// B6, X10, HD22: `eth_sendTransaction` must name its sender, is traced like any send, gets its nonce from the gateway,
/// and links no address.
#[tokio::test]
async fn b6_a_send_signed_by_the_node() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    let mine = Address::repeat_byte(0xaa);
    let ask = |params: Value| world.ask(Some(&sender), "eth_sendTransaction", params).send();
    assert_eq!(
        ask(json!([{"to": TO}])).await.error(),
        (400, -32602),
        "from is required"
    );
    let answer = ask(json!([{"from": mine, "to": TO}])).await;
    assert_eq!(answer.error(), (400, -32602));
    let text = answer.body["error"]["message"].as_str().unwrap();
    assert!(
        text.starts_with("invalid sender") && text.contains("/eth/link"),
        "decision 38: {text}"
    );
    fake.assert_silent();
    world.link(&sender, mine).await;
    let hash = B256::repeat_byte(9);
    fake.set_result("eth_sendTransaction", json!(hash));
    fake.set_result("eth_getTransactionCount", json!("0x7"));
    assert_eq!(
        ask(json!([{"from": mine, "to": TO, "value": "0x1", "extra": 1}]))
            .await
            .body["result"],
        json!(hash)
    );
    let calls = fake.take();
    let sent = calls.iter().find(|call| call.method == "eth_sendTransaction").unwrap();
    assert_eq!(
        sent.params[0],
        json!({"from": mine, "to": TO, "value": "0x1", "input": "0x", "nonce": "0x7"})
    );
    assert!(calls.iter().any(|call| call.method == "debug_traceCall"));
    // A node without the sender's key.
    fake.reply(
        "eth_sendTransaction",
        NodeReply::Error(-32000, "unknown account", Value::Null),
    );
    let answer = ask(json!([{"from": mine, "to": TO}])).await;
    assert_eq!(
        (answer.status, &answer.body["error"]),
        (200, &json!({"code": -32000, "message": "upstream error"}))
    );
}

/// R1: a deployment's address is reserved before the node gets the transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r1_the_address_of_a_deployment_is_reserved_before_forwarding() {
    let (world, fake) = scripted().await;
    let (bank, sender) = bank_with_sender(&world).await;
    let (raw, hash) = signed(&account(0), 0, None, 0, Bytes::from_static(&[0x60]));
    let gate = Gate::new(&fake, SEND, NodeReply::Result(json!(hash)));
    let request = tokio::spawn(world.ask(Some(&sender), SEND, json!([raw])).answering());
    let gate = gate.reached().await;
    let reserved = world
        .fixture
        .feed
        .pin()
        .snapshot
        .reservations(account(0).address().create(0))
        .to_vec();
    assert_eq!(
        (reserved.len(), reserved[0].org, reserved[0].user),
        (1, bank, sender.id)
    );
    gate.open();
    assert_eq!(request.await.unwrap().status, 200);
    let open = world.fixture.store.read().open_reservations(Some(hash)).await.unwrap();
    assert_eq!((open.len(), open[0].nonce), (1, 0));
}

/// HD22: without room for intent and outcome nothing is sent.
#[tokio::test]
async fn hd22_without_room_for_both_records_nothing_is_sent() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    let (raw, _) = signed(&account(0), 0, Some(TO), 1, Bytes::new());
    // Room for the access record, not for two more.
    let mut taken: Vec<_> = std::iter::from_fn(|| world.fixture.journal.reserve(1).ok()).collect();
    taken.pop();
    let answer = send(&world, &sender, &raw).await;
    assert_eq!(answer.error(), (503, -32603), "{}", answer.text);
    assert!(fake.take().iter().all(|call| call.method != SEND));
}

/// W1: bytes that are no canonical transaction of this chain are rejected without a query to the node.
#[tokio::test]
async fn w1_malformed_transactions_never_leave() {
    let (world, fake) = scripted().await;
    let (_, sender) = bank_with_sender(&world).await;
    let (raw, _) = signed(&account(0), 0, Some(TO), 1, Bytes::new());
    for bad in [
        "0x",
        "0x00",
        "0xzz",
        raw.get(..raw.len() - 2).unwrap(),
        &format!("{raw}00"),
        "0x03f8",
    ] {
        assert_eq!(send(&world, &sender, bad).await.error(), (400, -32602), "{bad}");
    }
    fake.assert_silent();
}
