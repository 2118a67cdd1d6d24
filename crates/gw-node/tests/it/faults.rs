//! Faults of the connection to the node: they convict no transaction, and show nothing about the node's abilities.

use crate::{config, connect};
use gw_evm::wire::TraceForm;
use gw_node::{HealthCheckConfig, MinedExecution, NoTrace, Node};
use gw_testkit::{
    FakeNode,
    fake_node::{self, NodeReply, block},
};
use gw_types::B256;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const HOUR: Duration = Duration::from_secs(3600);
const TX: B256 = B256::repeat_byte(7);

/// The trace of a payment, in the format of the requested tracer.
fn payment_trace(params: &Value) -> NodeReply {
    let call = json!({"from": "0x00000000000000000000000000000000000000aa", "value": "0x1",
        "to": "0x00000000000000000000000000000000000000bb", "input": "0x"});
    fake_node::trace(&json!([call, null, params[1]]))
}

/// A node whose newest block contains a payment.
async fn node_with_payment() -> (FakeNode, Arc<Node>, B256) {
    let fake = FakeNode::start().await;
    fake.script("eth_getBlockByHash", |_| {
        let mut newest = block(FakeNode::HEAD, FakeNode::HEAD_HASH);
        if let Value::Object(members) = &mut newest {
            members.insert("transactions".to_owned(), json!([TX]));
        }
        NodeReply::Result(newest)
    });
    fake.set_result(
        "eth_getTransactionByHash",
        json!({"hash": TX, "from": "0x00000000000000000000000000000000000000aa", "nonce": "0x0",
            "to": "0x00000000000000000000000000000000000000bb", "blockHash": FakeNode::HEAD_HASH}),
    );
    fake.set_result("eth_getTransactionReceipt", json!({"gasUsed": "0x5208", "logs": []}));
    fake.script("debug_traceTransaction", payment_trace);
    let node = connect(fake.url()).await;
    (fake, node, FakeNode::HEAD_HASH.parse().unwrap())
}

#[tokio::test]
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
        let executions = node.trace_block_transactions(block, &[TX]).await.unwrap();
        assert!(matches!(&executions[..], [MinedExecution::Run(_)]), "{fault:?}");
    }
}

/// The node answers a few traces with errors, while it answers all other queries.
#[tokio::test]
async fn hd36_passing_errors_convict_nobody() {
    let (fake, node, block) = node_with_payment().await;
    let mut left = 4;
    fake.script("debug_traceTransaction", move |params| {
        // One failed call fails the whole attempt.
        if params[1]["tracer"] == "callTracer" && left > 0 {
            left -= 1;
            return NodeReply::Error(-32000, "overloaded", Value::Null);
        }
        payment_trace(params)
    });
    let executions = node.trace_block_transactions(block, &[TX]).await.unwrap();
    assert!(matches!(&executions[..], [MinedExecution::Run(_)]), "{executions:?}");
}

/// A transaction that the node always refuses to trace is unreadable, so that it does not hold back the head.
#[tokio::test]
async fn hd36_a_transaction_that_always_fails_alike_is_unreadable() {
    let (fake, node, block) = node_with_payment().await;
    fake.reply(
        "debug_traceTransaction",
        NodeReply::Error(-32000, "execution timeout", Value::Null),
    );
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
