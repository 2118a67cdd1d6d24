//! Faults of the connection to the node: they convict no transaction, and show nothing about the node's abilities.

use crate::{config, connect};
use gw_evm::wire::TraceForm;
use gw_node::{Block, HealthCheckConfig, MinedExecution, NoTrace, Node, NodeError, NonceUse};
use gw_testkit::{
    FakeNode,
    fake_node::{self, NodeReply, Received, block},
};
use gw_types::{Address, B256};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::Instant,
};

const HOUR: Duration = Duration::from_secs(3600);
const TX: B256 = B256::repeat_byte(7);
/// Another transaction, which the node traces.
const CONTROL: B256 = B256::repeat_byte(8);
/// The sender of [`TX`] where a nonce is looked up.
const SENDER: Address = Address::repeat_byte(0xcc);
const OTHER: B256 = B256::repeat_byte(9);

/// The trace of a payment, in the format of the requested tracer.
fn payment_trace(params: &Value) -> NodeReply {
    let call = json!({"from": "0x00000000000000000000000000000000000000aa", "value": "0x1",
        "to": "0x00000000000000000000000000000000000000bb", "input": "0x"});
    fake_node::trace(&json!([call, null, params[1]]))
}

/// A node whose newest block contains a payment.
async fn node_with_payment() -> (FakeNode, Arc<Node>, B256) {
    node_with_payments(&[TX]).await
}

/// A node whose newest block contains these payments.
async fn node_with_payments(hashes: &'static [B256]) -> (FakeNode, Arc<Node>, B256) {
    let fake = FakeNode::start().await;
    let with_payments = move |_: &Value| {
        let mut newest = block(FakeNode::HEAD, FakeNode::HEAD_HASH);
        if let Value::Object(members) = &mut newest {
            members.insert("transactions".to_owned(), json!(hashes));
        }
        NodeReply::Result(newest)
    };
    fake.script("eth_getBlockByHash", with_payments);
    fake.script("eth_getBlockByNumber", with_payments);
    fake.script("eth_getTransactionByHash", |params| {
        NodeReply::Result(
            json!({"hash": params[0], "from": "0x00000000000000000000000000000000000000aa", "nonce": "0x0",
            "to": "0x00000000000000000000000000000000000000bb", "blockHash": FakeNode::HEAD_HASH}),
        )
    });
    fake.set_result("eth_getTransactionReceipt", json!({"gasUsed": "0x5208", "logs": []}));
    fake.script("debug_traceTransaction", payment_trace);
    let node = connect(fake.url()).await;
    (fake, node, FakeNode::HEAD_HASH.parse().unwrap())
}

/// Forwards connections to the node, and closes those on which the trace of [`TX`] is requested.
async fn without_traces_of_tx(target: &str) -> String {
    let target = target.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let trace_of_tx = format!("\"debug_traceTransaction\",\"params\":[\"{TX:#x}\"");
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let (target, trace_of_tx) = (target.clone(), trace_of_tx.clone());
            tokio::spawn(async move {
                let mut node = TcpStream::connect(target).await.unwrap();
                let (mut sent, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
                loop {
                    tokio::select! {
                        Ok(length) = client.read(&mut sent) => {
                            let request = sent.get(..length).unwrap_or_default();
                            let is_trace = request
                                .windows(trace_of_tx.len())
                                .any(|part| part == trace_of_tx.as_bytes());
                            if length == 0 || is_trace || node.write_all(request).await.is_err() {
                                return;
                            }
                        }
                        Ok(length) = node.read(&mut answered) => {
                            let answer = answered.get(..length).unwrap_or_default();
                            if length == 0 || client.write_all(answer).await.is_err() {
                                return;
                            }
                        }
                        else => return,
                    }
                }
            });
        }
    });
    url
}

/// Replies to traces of [`TX`] with `fault`, and to those of other transactions with a trace.
fn fail_tx(fake: &FakeNode, fault: NodeReply) {
    fake.script("debug_traceTransaction", move |params| {
        if params[0] == json!(TX) {
            fault.clone()
        } else {
            payment_trace(params)
        }
    });
}

/// Polls as the follower of the head does, until the transaction counts as unreadable. Returns the time and the number
/// of its traces until then.
async fn until_unreadable(fake: &FakeNode, node: &Node, block: B256) -> (Duration, usize) {
    let begun = Instant::now();
    let mut traces = 0;
    fake.take();
    loop {
        let executions = node.trace_block_transactions(block, &[TX]).await;
        let is_trace =
            |call: &Received| call.method == "debug_traceTransaction" && call.params.get(0) == Some(&json!(TX));
        traces += fake.take().iter().filter(|call| is_trace(call)).count();
        match executions {
            Ok(executions) => {
                assert!(
                    matches!(&executions[..], [MinedExecution::Unreadable(_)]),
                    "{executions:?}"
                );
                return (begun.elapsed(), traces);
            }
            Err(error) => assert!(
                matches!(error, NoTrace::Node(_)) && begun.elapsed() < HOUR,
                "the block is never let in: {error:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Errors and results that say nothing about the transaction.
fn faults_of_the_node() -> Vec<NodeReply> {
    let errors = [
        (-32005, "limit exceeded"),
        (
            -32601,
            "the method debug_traceTransaction does not exist/is not available",
        ),
        (-32603, "internal error"),
        (-32602, "invalid params"),
        (-32003, "transaction rejected"),
        (-32000, "transaction indexing is in progress"),
        (-32000, "transaction not found"),
        (-32000, "missing trie node 5e2f (path ) state 0x12 is not available"),
        (-32000, "required historical state unavailable (reexec=128)"),
        (-32000, "out of memory"),
        (-32000, "a text of no known node"),
    ];
    let results = [json!([]), json!("0x"), json!({}), Value::Null];
    let errors = errors
        .into_iter()
        .map(|(code, text)| NodeReply::Error(code, text, Value::Null));
    errors.chain(results.into_iter().map(NodeReply::Result)).collect()
}

/// The node answers every trace of a mined transaction alike, even by the name of a limit, and everything else as it
/// should.
#[tokio::test(start_paused = true)]
async fn hd36_a_node_that_traces_no_mined_transaction_convicts_nobody() {
    let limits = ["execution timeout", "request timed out", "response too large"];
    let limits = limits.map(|text| NodeReply::Error(-32000, text, Value::Null));
    for fault in faults_of_the_node().into_iter().chain(limits) {
        let (fake, node, block) = node_with_payments(&[TX, CONTROL]).await;
        fake.reply("debug_traceTransaction", fault.clone());
        for _ in 0..45 {
            let executions = node.trace_block_transactions(block, &[TX]).await;
            assert!(matches!(executions, Err(NoTrace::Node(_))), "{fault:?}: {executions:?}");
            tokio::time::sleep(Duration::from_secs(8)).await;
        }
        fake.script("debug_traceTransaction", payment_trace);
        tokio::time::sleep(Duration::from_secs(10)).await;
        let executions = node.trace_block_transactions(block, &[TX]).await.unwrap();
        assert!(matches!(&executions[..], [MinedExecution::Run(_)]), "{fault:?}");
    }
}

/// A failure without a cause takes thirty attempts and five minutes with this transaction alone; they are no storm.
#[tokio::test(start_paused = true)]
async fn hd36_a_failure_without_cause_counts_after_five_minutes_of_few_attempts() {
    for fault in faults_of_the_node().into_iter().step_by(5) {
        let (fake, node, block) = node_with_payments(&[TX, CONTROL]).await;
        fail_tx(&fake, fault.clone());
        let (elapsed, traces) = until_unreadable(&fake, &node, block).await;
        assert!(elapsed >= Duration::from_secs(300), "{fault:?}: {elapsed:?}");
        assert!(elapsed < Duration::from_secs(330), "{fault:?}: {elapsed:?}");
        assert!((90..=300).contains(&traces), "three per attempt: {traces}");
    }
}

/// The same if the connection breaks at each trace of this transaction.
#[tokio::test(start_paused = true)]
async fn hd36_a_connection_that_breaks_at_each_trace_of_one_transaction_does_not_hold_back_its_block_for_ever() {
    let (fake, _, block) = node_with_payments(&[TX, CONTROL]).await;
    let url = without_traces_of_tx(fake.url()).await;
    let node = connect(&url).await;
    let (elapsed, _) = until_unreadable(&fake, &node, block).await;
    assert!(elapsed >= Duration::from_secs(300), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(330), "{elapsed:?}");
}

/// Several transactions that fail without cause do not reset each other's count.
#[tokio::test(start_paused = true)]
async fn hd36_two_transactions_that_fail_without_cause_do_not_hold_back_their_block_for_ever() {
    let (fake, node, block) = node_with_payments(&[TX, OTHER, CONTROL]).await;
    fake.script("eth_getTransactionByHash", |params| {
        let sender = if params[0] == json!(TX) { "aa" } else { "cc" };
        NodeReply::Result(
            json!({"hash": params[0], "from": format!("0x{}{sender}", "0".repeat(38)), "nonce": "0x0",
            "to": "0x00000000000000000000000000000000000000bb", "blockHash": FakeNode::HEAD_HASH}),
        )
    });
    fake.script("debug_traceTransaction", |params| {
        if params[0] == json!(CONTROL) {
            payment_trace(params)
        } else {
            NodeReply::Error(-32603, "internal error", Value::Null)
        }
    });
    let begun = Instant::now();
    loop {
        match node.trace_block_transactions(block, &[TX, OTHER]).await {
            Ok(executions) => {
                assert_eq!(executions.len(), 2);
                break;
            }
            Err(error) => assert!(begun.elapsed() < HOUR, "the block is never let in: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// HD36: a node without the state before the block cannot trace its transactions, whatever its errors are called. The
/// transaction is not unreadable by its content; after five minutes it is read without a trace.
#[tokio::test(start_paused = true)]
async fn hd36_a_node_without_the_state_before_the_block_convicts_nobody() {
    for fault in [
        NodeReply::Error(
            -32000,
            "missing trie node 5e2f (path ) state 0x12 is not available",
            Value::Null,
        ),
        NodeReply::Error(-32000, "execution timeout", Value::Null),
        NodeReply::Result(Value::Null),
    ] {
        let (fake, node, block) = node_with_payments(&[TX, CONTROL]).await;
        fail_tx(&fake, fault.clone());
        let parent = node.listing(block).await.unwrap().block.parent;
        fake.script("eth_getTransactionCount", move |params| {
            if params[1]["blockHash"] == json!(parent) {
                NodeReply::Error(-32000, "historical state is not available", Value::Null)
            } else {
                NodeReply::Result(json!("0x0"))
            }
        });
        let begun = Instant::now();
        let execution = loop {
            match node.trace_block_transactions(block, &[TX]).await {
                Ok(mut executions) => break executions.pop().unwrap(),
                Err(error) => assert!(
                    matches!(
                        error,
                        NoTrace::Node(NodeError::StateUnavailable | NodeError::TraceDeferred)
                    ) && begun.elapsed() < HOUR,
                    "{fault:?}: {error:?}"
                ),
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        assert!(begun.elapsed() >= Duration::from_secs(300), "{fault:?}");
        let MinedExecution::Unreadable(unreadable) = execution else {
            panic!("{fault:?}: it has no trace")
        };
        assert!(unreadable.is_state_missing, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hd36_a_fault_of_the_connection_convicts_nobody() {
    let (fake, node, block) = node_with_payment().await;
    for fault in [
        NodeReply::Http(200, r#"[{"jsonrpc":"2.0","id":0}]"#),
        NodeReply::Http(200, r#"[{"jsonrpc":"2.0","id":0,"result":{"#),
        NodeReply::Http(200, "{}"),
        NodeReply::Http(503, "no"),
        NodeReply::Http(429, "slow down"),
        NodeReply::Result(Value::Null),
    ] {
        fake.reply("debug_traceTransaction", fault.clone());
        let executions = node.trace_block_transactions(block, &[TX]).await;
        assert!(matches!(executions, Err(NoTrace::Node(_))), "{fault:?}: {executions:?}");
        fake.script("debug_traceTransaction", payment_trace);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let executions = node.trace_block_transactions(block, &[TX]).await.unwrap();
        assert!(matches!(&executions[..], [MinedExecution::Run(_)]), "{fault:?}");
    }
}

/// The node answers a few traces with errors, while it answers all other queries.
#[tokio::test(start_paused = true)]
async fn hd36_passing_errors_convict_nobody() {
    let (fake, node, block) = node_with_payments(&[TX, CONTROL]).await;
    let mut left = 4;
    fake.script("debug_traceTransaction", move |params| {
        // One failed call fails the whole attempt.
        if params[1]["tracer"] == "callTracer" && params[0] == json!(TX) && left > 0 {
            left -= 1;
            return NodeReply::Error(-32000, "execution timeout", Value::Null);
        }
        payment_trace(params)
    });
    let executions = node.trace_block_transactions(block, &[TX]).await.unwrap();
    assert!(matches!(&executions[..], [MinedExecution::Run(_)]), "{executions:?}");
}

/// While the pause after a failure lasts, polls of the head send no request for the block's transactions.
#[tokio::test(start_paused = true)]
async fn hd36_polls_during_the_pause_after_a_failure_send_nothing() {
    let (fake, node, block) = node_with_payments(&[TX, CONTROL]).await;
    fake.reply(
        "debug_traceTransaction",
        NodeReply::Error(-32603, "internal error", Value::Null),
    );
    assert!(node.trace_block_transactions(block, &[CONTROL, TX]).await.is_err());
    fake.take();
    for _ in 0..10 {
        let executions = node.trace_block_transactions(block, &[CONTROL, TX]).await;
        assert!(
            matches!(executions, Err(NoTrace::Node(NodeError::TraceDeferred))),
            "{executions:?}"
        );
    }
    fake.assert_silent();
}

/// A transaction whose trace exceeds a limit that the node names is unreadable, so that it does not hold back the head.
#[tokio::test(start_paused = true)]
async fn hd36_a_transaction_that_always_exceeds_a_limit_is_unreadable() {
    let (fake, node, block) = node_with_payments(&[TX, CONTROL]).await;
    fail_tx(&fake, NodeReply::Error(-32000, "execution timeout", Value::Null));
    let executions = node.trace_block_transactions(block, &[TX]).await.unwrap();
    assert!(
        matches!(&executions[..], [MinedExecution::Unreadable(_)]),
        "{executions:?}"
    );
    // It is not unreadable while the node does not trace calls of nobody, either.
    let mut left = 6;
    fake.script("debug_traceCall", move |params| {
        if left == 0 {
            return NodeReply::Http(503, "no");
        }
        left -= 1;
        fake_node::trace(params)
    });
    let executions = node.trace_block_transactions(block, &[TX]).await;
    assert!(matches!(executions, Err(NoTrace::Node(_))), "{executions:?}");
}

/// X11: a probe that the node does not answer is no answer that it does not trace.
#[tokio::test]
async fn x11_an_unanswered_probe_changes_nothing() {
    let fake = FakeNode::start().await;
    let frequent = HealthCheckConfig {
        head: HOUR,
        probe: Duration::from_millis(20),
        standby: HOUR,
        ..HealthCheckConfig::default()
    };
    let node = Node::connect(&config(fake.url()).with_health_checks(frequent))
        .await
        .unwrap();
    for fault in [NodeReply::Http(503, "no"), NodeReply::Http(200, "[]")] {
        fake.take();
        fake.reply("debug_traceCall", fault.clone());
        for _ in 0..3 {
            while !fake.take().iter().any(|call| call.method == "debug_traceCall") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        assert_eq!(node.trace_form(), Some(TraceForm::Batch), "{fault:?}");
    }
    fake.reply("debug_traceCall", NodeReply::Error(-32601, "no debug", Value::Null));
    while node.trace_form().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The probe is repeated soon, not only at the next interval, which is an hour here.
#[tokio::test]
async fn an_unanswered_probe_is_repeated_at_once() {
    let fake = FakeNode::start().await;
    fake.reply("debug_traceCall", NodeReply::Http(503, "no"));
    let node = connect(fake.url()).await;
    assert_eq!(node.trace_form(), None);
    fake.script("debug_traceCall", fake_node::trace);
    tokio::time::timeout(Duration::from_secs(60), async {
        while node.trace_form().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
}

/// A node whose sender `0xcc…` used nonce 0 in the newest block, by [`TX`]; `fault` replaces a transaction.
async fn node_with_nonce(fault: impl Fn(&Value) -> Option<NodeReply> + Send + 'static) -> (FakeNode, Arc<Node>, Block) {
    let (fake, node, _) = node_with_payments(&[TX, CONTROL]).await;
    fake.script("eth_getTransactionByHash", move |params| {
        let sender = if params[0] == json!(TX) {
            SENDER
        } else {
            Address::repeat_byte(0xaa)
        };
        let sent = json!({"hash": params[0], "from": sender, "nonce": "0x0", "blockHash": FakeNode::HEAD_HASH});
        fault(&params[0]).unwrap_or(NodeReply::Result(sent))
    });
    fake.script("eth_getTransactionCount", |params| {
        let is_head = params[1] == json!(format!("{:#x}", FakeNode::HEAD));
        NodeReply::Result(json!(if is_head { "0x1" } else { "0x0" }))
    });
    let head = node.head().unwrap().block;
    (fake, node, head)
}

/// The uses of the sender's nonce that polls see, and the time until the last one.
async fn nonce_use_after_polls(node: &Node, head: &Block, most: usize) -> (Option<NonceUse>, Duration) {
    let begun = Instant::now();
    for _ in 0..most {
        if let Ok(use_of_nonce) = node.nonce_use(SENDER, 0, head).await {
            return (Some(use_of_nonce), begun.elapsed());
        }
        tokio::time::sleep(Duration::from_secs(8)).await;
    }
    (None, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn hd36_the_transaction_that_used_a_nonce_is_found_or_certainly_absent() {
    let (_fake, node, head) = node_with_nonce(|_| None).await;
    let use_of_nonce = node.nonce_use(SENDER, 0, &head).await.unwrap();
    let block = head.hash;
    assert_eq!(use_of_nonce, NonceUse::Transaction { block, hash: TX });
    // Another account's authorization used the nonce: no transaction of the block is the sender's.
    let (_fake, node, head) = node_with_nonce(|hash| {
        let other = json!({"hash": hash, "from": Address::repeat_byte(0xaa), "nonce": "0x7",
            "blockHash": FakeNode::HEAD_HASH});
        Some(NodeReply::Result(other))
    })
    .await;
    let use_of_nonce = node.nonce_use(SENDER, 0, &head).await.unwrap();
    assert_eq!(use_of_nonce, NonceUse::NoTransaction);
}

/// The node shows other transactions, but not this one, by whatever error.
#[tokio::test(start_paused = true)]
async fn hd36_a_transaction_that_the_node_does_not_show_is_unknown_after_five_minutes() {
    for fault in faults_of_the_node().into_iter().step_by(3) {
        let reply = fault.clone();
        let (fake, node, head) = node_with_nonce(move |hash| (*hash == json!(TX)).then(|| reply.clone())).await;
        fake.take();
        let (use_of_nonce, elapsed) = nonce_use_after_polls(&node, &head, 100).await;
        assert_eq!(use_of_nonce, Some(NonceUse::Unknown), "{fault:?}");
        assert!(elapsed >= Duration::from_secs(300), "{fault:?}: {elapsed:?}");
        let polls = fake.take();
        assert!(polls.len() < 400, "a storm of queries: {}", polls.len());
    }
}

/// The node shows no transaction at all: that proves nothing, however long it lasts.
#[tokio::test(start_paused = true)]
async fn hd36_a_node_that_shows_no_transaction_decides_nothing() {
    for fault in faults_of_the_node().into_iter().step_by(3) {
        let reply = fault.clone();
        let (fake, node, head) = node_with_nonce(move |_| Some(reply.clone())).await;
        let (use_of_nonce, _) = nonce_use_after_polls(&node, &head, 100).await;
        assert_eq!(use_of_nonce, None, "{fault:?}");
        fake.take();
        assert!(node.nonce_use(SENDER, 0, &head).await.is_err());
        fake.take();
        // During the pause, nothing is sent.
        let polled = node.nonce_use(SENDER, 0, &head).await;
        assert!(matches!(polled, Err(NodeError::LookupDeferred)), "{polled:?}");
        fake.assert_silent();
    }
}

/// An error in place of the code before a send shows neither that there was code nor that there was none.
#[tokio::test(start_paused = true)]
async fn hd38_an_error_is_no_code() {
    let (fake, node, head) = node_with_nonce(|_| None).await;
    let before = json!({"blockHash": B256::ZERO});
    fake.script("eth_getCode", move |params| match &params[1] {
        block if block["blockHash"] == before["blockHash"] => {
            NodeReply::Error(-32000, "missing trie node", Value::Null)
        }
        _ => NodeReply::Result(json!("0x")),
    });
    let begun = Instant::now();
    let had_code = loop {
        if let Ok(had_code) = node.had_code(&[SENDER], B256::ZERO, TX, head.hash).await {
            break had_code;
        }
        tokio::time::sleep(Duration::from_secs(8)).await;
    };
    assert_eq!(had_code, None);
    assert!(begun.elapsed() >= Duration::from_secs(300), "{:?}", begun.elapsed());
    let had_code = node.had_code(&[SENDER], head.hash, OTHER, head.hash).await.unwrap();
    assert_eq!(had_code, Some(vec![false]));
}
