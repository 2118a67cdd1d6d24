//! Faults of the connection to the node: they show nothing about the node's abilities.

use crate::{config, connect};
use gw_evm::wire::TraceForm;
use gw_node::{HealthCheckConfig, Node};
use gw_testkit::{
    FakeNode,
    fake_node::{self, NodeReply},
};
use serde_json::Value;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

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
