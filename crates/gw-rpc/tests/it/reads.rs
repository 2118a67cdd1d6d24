//! Forwarded reads: the request to the node, and the part of its answer that the caller gets (HD11, B11, B18, B20).

use crate::world::{scripted, scripted_with};
use gw_policy::PolicySettings;
use gw_rpc::RpcSettings;
use gw_testkit::{
    FakeNode,
    fake_node::{self, NodeReply},
};
use gw_types::{Address, B256, OrgId};
use serde_json::{Value, json};

const WALLET: Address = Address::repeat_byte(0xaa);
const OTHER: Address = Address::repeat_byte(0xbb);
const ALL: &[&str] = &["*"];

/// J5: no text of the client is forwarded; blocks are pinned by hash, unknown fields and other spellings are dropped.
#[tokio::test]
async fn j5_the_body_is_written_from_the_typed_call() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.link(&caller, WALLET).await;
    let pinned = json!({"blockHash": FakeNode::HEAD_HASH, "requireCanonical": true});
    fake.set_result("eth_getBalance", json!("0x5"));
    let mixed_case = WALLET.to_checksum(None);
    for block in [
        json!("latest"),
        Value::Null,
        json!("0x64"),
        json!({"blockNumber": "0x64", "junk": 1}),
    ] {
        assert_eq!(
            world
                .result(&caller, "eth_getBalance", json!([mixed_case, block]))
                .await,
            "0x5"
        );
        let sent = fake.take();
        assert_eq!((sent.len(), &sent[0].params), (1, &json!([WALLET, pinned])), "{block}");
    }
    // A recent number is the state of that block.
    fake.set_result(
        "eth_getBlockByNumber",
        fake_node::block(99, &format!("0x{}", "63".repeat(32))),
    );
    world.result(&caller, "eth_getBalance", json!([WALLET, "0x63"])).await;
    let sent = fake.take();
    assert_eq!(sent[1].params[1]["blockHash"], format!("0x{}", "63".repeat(32)));
}

/// H1: a recent block is readable only for a target that already belonged to its owner at the time of the block.
#[tokio::test]
async fn h1_a_recent_block_before_the_registration_is_history() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.contract(bank, OTHER, None, &[caller.group]).await;
    fake.set_result("eth_getBalance", json!("0x5"));
    let registered = gw_types::Clock::now(&world.fixture.clock).micros() / 1_000_000;
    for (time, shown) in [(registered - 1, false), (registered, true)] {
        let mut block = fake_node::block(99, &format!("0x{}", "63".repeat(32)));
        block["timestamp"] = json!(format!("{time:#x}"));
        fake.set_result("eth_getBlockByNumber", block);
        let call = json!([{"to": OTHER, "input": "0x12345678"}, "0x63"]);
        for (method, params) in [("eth_getBalance", json!([OTHER, "0x63"])), ("eth_call", call)] {
            let answer = world.ask(Some(&caller), method, params).send().await;
            match shown {
                true => assert_eq!(answer.status, 200, "{method}: {}", answer.text),
                false => answer.assert_denied(),
            }
        }
        // For an address out of reach the answer does not depend on its owner.
        assert_eq!(
            world.result(&caller, "eth_getBalance", json!([WALLET, "0x63"])).await,
            "0x0"
        );
    }
}

/// B20: an unusable answer of the node never reaches the caller.
#[tokio::test]
async fn b20_unusable_answers_become_one_text() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    for body in ["<html>secret of the node</html>", "{\"secret\":1}", ""] {
        for status in [200, 500, 401] {
            fake.reply("eth_syncing", NodeReply::Http(status, body));
            let answer = world.ask(Some(&caller), "eth_syncing", json!([])).send().await;
            assert_eq!(answer.error(), (502, -32603));
            assert_eq!(
                answer.body["error"],
                json!({"code": -32603, "message": "failed to forward request"})
            );
        }
    }
    // A result of the wrong shape becomes a constant that reveals nothing (spec/30 section 5.2).
    fake.set_result("eth_getBlockByHash", json!({"number": 7, "secret": WALLET}));
    assert_eq!(
        world
            .result(&caller, "eth_getBlockByNumber", json!(["latest", true]))
            .await,
        Value::Null
    );
}

/// HD15, W7: the node's own messages and codes are not passed on.
#[tokio::test]
async fn hd15_node_errors_become_known_texts() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    for code in [-32001, -32002, -32003, -32004, -32005, -32603, 17] {
        fake.reply(
            "eth_syncing",
            NodeReply::Error(code, "dial tcp 10.0.0.7:8545", json!("0x1234")),
        );
        let answer = world.ask(Some(&caller), "eth_syncing", json!([])).send().await;
        assert_eq!(
            answer.text,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"upstream error"}}"#
        );
        assert_eq!(answer.status, 200);
    }
    // RTO12: the node's unknown-method error does not look like a denial.
    fake.reply(
        "eth_syncing",
        NodeReply::Error(-32601, "the method does not exist", json!("0x1234")),
    );
    let answer = world.ask(Some(&caller), "eth_syncing", json!([])).send().await;
    let unsupported =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"the node does not support this method"}}"#;
    assert_eq!((answer.status, answer.text.as_str()), (200, unsupported));
}

fn transaction(hash: B256, from: Address, to: Address) -> Value {
    json!({
        "hash": hash, "blockHash": FakeNode::HEAD_HASH, "blockNumber": "0x64", "transactionIndex": "0x0",
        "from": from, "to": to, "value": "0x7", "nonce": "0x1", "gas": "0x5208", "gasPrice": "0x1", "input": "0x",
        "type": "0x0", "chainId": "0x7a69", "v": "0x1", "r": "0x2", "s": "0x3", "secretOfTheNode": "0x4"
    })
}

/// HD11, B18: a block is queried with all transactions and shown with the caller's own; sums over all transactions are
/// zero, and unknown fields are dropped.
#[tokio::test]
async fn hd11_b18_blocks_show_own_transactions_and_zeroed_sums() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.link(&caller, WALLET).await;
    let (mine, others) = (B256::repeat_byte(1), B256::repeat_byte(2));
    let mut block = fake_node::block(FakeNode::HEAD, FakeNode::HEAD_HASH);
    block["transactions"] = json!([transaction(mine, WALLET, OTHER), transaction(others, OTHER, OTHER)]);
    block["excessBlobGas"] = json!("0x9");
    block["secretOfTheNode"] = json!("0x4");
    fake.set_result("eth_getBlockByHash", block);
    let seen = world
        .result(&caller, "eth_getBlockByNumber", json!(["latest", false]))
        .await;
    assert_eq!(
        fake.take()[0].params,
        json!([FakeNode::HEAD_HASH, true]),
        "always whole, always the pinned head"
    );
    assert_eq!(seen["transactions"], json!([mine]));
    for zero in ["gasUsed", "excessBlobGas", "size"] {
        assert_eq!(seen[zero], "0x0", "{zero}");
    }
    for root in ["transactionsRoot", "receiptsRoot", "stateRoot"] {
        assert_eq!(seen[root], json!(B256::ZERO), "K9 {root}");
    }
    let text = seen.to_string();
    assert!(
        !text.contains("secretOfTheNode") && !text.contains(&"bb".repeat(20)),
        "I2: {text}"
    );
    let count = world
        .result(
            &caller,
            "eth_getBlockTransactionCountByHash",
            json!([FakeNode::HEAD_HASH]),
        )
        .await;
    assert_eq!(count, "0x1");
    // By hash, the caller gets their own transaction; another one gets the answer for an unknown hash.
    fake.script("eth_getTransactionByHash", move |params| {
        let hash: B256 = params[0].as_str().unwrap().parse().unwrap();
        let exists = hash == mine || hash == others;
        NodeReply::Result(if exists {
            transaction(hash, if hash == mine { WALLET } else { OTHER }, OTHER)
        } else {
            Value::Null
        })
    });
    assert_eq!(
        world.result(&caller, "eth_getTransactionByHash", json!([mine])).await["value"],
        "0x7"
    );
    assert_eq!(
        world.result(&caller, "eth_getTransactionByHash", json!([others])).await,
        Value::Null
    );
    assert_eq!(
        world
            .result(&caller, "eth_getTransactionByHash", json!([B256::repeat_byte(3)]))
            .await,
        Value::Null
    );
}

/// B18, decision 42: a fee history shows no gas usage of others.
#[tokio::test]
async fn b18_fee_history_keeps_no_ratio() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    fake.set_result(
        "eth_feeHistory",
        json!({"oldestBlock": "0x63", "baseFeePerGas": ["0x1", "0x2", "0x3"], "gasUsedRatio": [0.5, 0.25],
            "reward": [["0x9"], ["0x9"]], "blobGasUsedRatio": [0.1, 0.2], "secret": 1}),
    );
    let history = world
        .result(&caller, "eth_feeHistory", json!(["0x2", "latest", [50.0]]))
        .await;
    assert_eq!(
        (&history["gasUsedRatio"], &history["blobGasUsedRatio"]),
        (&json!([0, 0]), &json!([0, 0]))
    );
    // The price (2 gwei) minus the head's base fee (1 gwei), not what others paid.
    assert_eq!(history["reward"], json!([["0x3b9aca00"], ["0x3b9aca00"]]));
    assert!(history.get("secret").is_none());
    assert_eq!(fake.take()[0].params[1], "0x64", "pinned");
    let without = world.result(&caller, "eth_feeHistory", json!([2, "latest"])).await;
    assert!(without.get("reward").is_none());
}

/// B11, B9: only standard slots, only the callTracer, and no access list of the node's own are served.
#[tokio::test]
async fn b11_slots_and_proofs_are_closed() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.contract(bank, OTHER, None, &[caller.group]).await;
    for (method, params) in [
        ("eth_getStorageAt", json!([OTHER, "0x0", "latest"])),
        ("eth_getProof", json!([OTHER, ["0x0"], "latest"])),
        ("eth_getProof", json!([WALLET, [], "latest"])),
    ] {
        world.ask(Some(&caller), method, params).send().await.assert_denied();
    }
    for (method, params) in [
        (
            "debug_traceCall",
            json!([{"to": OTHER}, "latest", {"tracer": "prestateTracer"}]),
        ),
        ("debug_traceTransaction", json!([B256::ZERO])),
    ] {
        assert_eq!(
            world.ask(Some(&caller), method, params).send().await.error(),
            (400, -32602),
            "{method}"
        );
    }
    fake.assert_silent();
    // HD3: the list never comes from the node's own method.
    world
        .result(&caller, "eth_createAccessList", json!([{"to": OTHER}, "latest"]))
        .await;
    assert!(fake.take().iter().all(|call| call.method == "debug_traceCall"));
    const IMPLEMENTATION: &str = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
    fake.set_result("eth_getStorageAt", json!(B256::repeat_byte(5)));
    let slot = world
        .result(&caller, "eth_getStorageAt", json!([OTHER, IMPLEMENTATION, "latest"]))
        .await;
    assert_eq!(slot, json!(B256::repeat_byte(5)));
}

/// H1, decision 41: only administrators read history; a block above the followed head does not exist.
#[tokio::test]
async fn h1_blocks_of_the_past_and_of_the_future() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.link(&caller, WALLET).await;
    for block in [
        json!("earliest"),
        json!("0x0"),
        json!("0x23"),
        json!({"blockHash": FakeNode::HEAD_HASH}),
    ] {
        world
            .ask(Some(&caller), "eth_getBalance", json!([WALLET, block]))
            .send()
            .await
            .assert_denied();
    }
    fake.assert_silent();
    // The node has a newer block: its head is queried once, and then the block is known.
    fake.set_result(
        "eth_getBlockByNumber",
        fake_node::block(101, &format!("0x{}", "65".repeat(32))),
    );
    fake.set_result("eth_getBalance", json!("0x5"));
    assert_eq!(
        world.result(&caller, "eth_getBalance", json!([WALLET, "0x65"])).await,
        "0x5"
    );
    assert_eq!(world.result(&caller, "eth_blockNumber", json!([])).await, "0x65");
    fake.take();
    assert_eq!(
        world
            .result(&caller, "eth_getBlockByNumber", json!(["0x70", false]))
            .await,
        Value::Null
    );
    assert!(
        fake.take().iter().all(|call| call.params[0] != "0x70"),
        "never asked for"
    );
}

/// Decision 41: a caller who sees a block can read at it.
#[tokio::test]
async fn decision_41_an_answer_advances_the_head_to_its_block() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.link(&caller, WALLET).await;
    let hash = B256::repeat_byte(1);
    let mut mined = transaction(hash, WALLET, OTHER);
    mined["blockNumber"] = json!("0x65");
    mined["blockHash"] = json!(B256::repeat_byte(0x65));
    fake.set_result("eth_getTransactionByHash", mined);
    fake.set_result(
        "eth_getBlockByNumber",
        fake_node::block(101, &format!("0x{}", "65".repeat(32))),
    );
    world.result(&caller, "eth_getTransactionByHash", json!([hash])).await;
    fake.take();
    assert_eq!(world.result(&caller, "eth_blockNumber", json!([])).await, "0x65");
    fake.assert_silent();
}

/// B1, B2, B4, decision 39: ambiguous call objects and overrides are rejected.
#[tokio::test]
async fn b2_b4_ambiguous_call_objects_are_refused() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.contract(bank, OTHER, None, &[caller.group]).await;
    for params in [
        json!([{"to": OTHER, "data": "0x01", "input": "0x02"}, "latest"]),
        json!([{"to": OTHER, "INPUT": "0x02"}, "latest"]),
        json!([{"to": "0x11"}, "latest"]),
        json!([{"to": OTHER}, "latest", {OTHER.to_string(): {"code": "0x00"}}]),
        json!([{"to": OTHER}, "latest", null, {"number": "0x1"}]),
        json!(["nonsense", "latest"]),
        json!([{"to": OTHER}, "soon"]),
    ] {
        let answer = world.ask(Some(&caller), "eth_call", params.clone()).send().await;
        assert_eq!(answer.error(), (400, -32602), "{params} {}", answer.text);
    }
    // B1: a call without target is a deployment, which needs the claim.
    world
        .ask(Some(&caller), "eth_call", json!([{"data": "0x60"}, "latest"]))
        .send()
        .await
        .assert_denied();
    fake.assert_silent();
}

/// X3, X4, B5: a call is one batch, pinned to one block, with every field of the call; the answer comes from that
/// trace.
#[tokio::test]
async fn b5_a_call_is_one_pinned_exchange_with_every_field() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    world.link(&caller, WALLET).await;
    world.contract(bank, OTHER, None, &[caller.group]).await;
    let call = json!({"from": WALLET, "to": OTHER, "data": "0x12345678", "gas": "0x5000", "maxFeePerGas": "0x9",
        "accessList": [{"address": OTHER, "storageKeys": []}]});
    assert_eq!(world.result(&caller, "eth_call", json!([call, "pending"])).await, "0x");
    let bodies = fake.take_bodies();
    assert_eq!(bodies.len(), 1);
    let batch: Vec<Value> = serde_json::from_slice(&bodies[0]).unwrap();
    for traced_call in &batch {
        assert_eq!(traced_call["method"], "debug_traceCall");
        assert_eq!(
            traced_call["params"][1]["blockHash"],
            FakeNode::HEAD_HASH,
            "HD11: pending means latest"
        );
        let expected = json!({"from": WALLET, "to": OTHER, "input": "0x12345678", "gas": "0x5000",
            "maxFeePerGas": "0x9",
            "accessList": [{"address": OTHER, "storageKeys": []}]});
        assert_eq!(traced_call["params"][0], expected);
    }
    // Decision 38: a call without sender runs as the zero address, which is sent explicitly.
    world
        .result(&caller, "eth_call", json!([{"to": OTHER, "from": null}]))
        .await;
    assert_eq!(fake.take()[0].params[0]["from"], json!(Address::ZERO));
}

/// X11: without debug API, or with an unusable trace, nothing else is forwarded instead.
#[tokio::test]
async fn x11_without_a_usable_trace_there_is_no_answer() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, ALL, &[]).await;
    // A caller with an unreadable run is paused, so another caller makes the next call.
    let second_caller = world.person("other", bank, ALL, &[]).await;
    world
        .contract(bank, OTHER, None, &[caller.group, second_caller.group])
        .await;
    let frame = |calls: Value| {
        json!({"type": "CALL", "from": Address::ZERO, "to": OTHER, "gas": "0x1", "gasUsed": "0x1",
        "input": "0x12345678", "output": "0x", "value": "0x0", "calls": calls})
    };
    let mut deep = frame(json!([]));
    for _ in 0..300 {
        deep = frame(json!([deep]));
    }
    for (reply, reason) in [
        (NodeReply::Error(-32601, "no debug", Value::Null), "tracing_unavailable"),
        (NodeReply::Result(Value::Null), "tracing_unavailable"),
        (NodeReply::Result(json!({"structLogs": []})), "tracing_unavailable"),
        (NodeReply::Result(deep), "trace_depth_exceeded"),
    ] {
        fake.reply("debug_traceCall", reply);
        for (person, method) in [(&caller, "eth_call"), (&second_caller, "eth_estimateGas")] {
            let answer = world
                .ask(Some(person), method, json!([{"to": OTHER, "data": "0x12345678"}]))
                .send()
                .await;
            assert_eq!(
                answer.text,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"tracing unavailable"}}"#
            );
            assert_eq!(
                (answer.status, world.record().denial_reason.unwrap().as_str()),
                (503, reason)
            );
        }
        assert!(fake.take().iter().all(|call| call.method == "debug_traceCall"));
    }
}

/// Decision 40: without a named organization, a record belongs to the target's organization, or else to the caller's
/// only one.
#[tokio::test]
async fn decision_40_records_are_filed_under_the_callers_organization() {
    let (world, _fake) = scripted_with(RpcSettings::default(), PolicySettings::default()).await;
    let bank = world.fixture.create_org("bank").await;
    let caller = world.person("caller", bank, &["eth_syncing"], &[]).await;
    world.result(&caller, "eth_syncing", json!([])).await;
    assert_eq!(world.record().org_id, Some(bank));
    world
        .ask(Some(&caller), "eth_getCode", json!([OTHER]))
        .send()
        .await
        .assert_denied();
    assert_eq!(world.record().org_id, Some(bank));
    world.ask(None, "eth_call", json!([])).send().await.assert_denied();
    assert_eq!(world.record().org_id, None::<OrgId>);
}
