//! Following the head (decision 41).

use crate::{config, connect};
use gw_node::{HealthCheckConfig, Node, NodeError};
use gw_testkit::{FakeNode, fake_node};
use std::time::Duration;

const NEXT: &str = "0x6565656565656565656565656565656565656565656565656565656565656565";

#[tokio::test]
async fn decision_41_a_higher_number_polls_the_node_once_and_a_known_one_does_not() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.take();
    node.advance_head_to(FakeNode::HEAD).await.unwrap();
    fake.assert_silent();
    fake.set_result("eth_getBlockByNumber", fake_node::block(101, NEXT));
    node.advance_head_to(101).await.unwrap();
    assert_eq!(fake.take_bodies().len(), 1);
    let head = node.head().unwrap();
    assert_eq!(
        (head.block.number, format!("{:#x}", head.block.hash).as_str()),
        (101, NEXT)
    );
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_head_is_withdrawn() {
    let fake = FakeNode::start().await;
    let frequent = HealthCheckConfig {
        head: Duration::from_millis(200),
        probe: Duration::from_secs(3600),
        ..HealthCheckConfig::default()
    };
    let node = Node::connect(&config(fake.url()).with_health_checks(frequent))
        .await
        .unwrap();
    assert!(node.head().is_some());
    fake.set_result("eth_getBlockByNumber", serde_json::json!({"number": "0x65"}));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(node.head().is_none());
    fake.set_result("eth_getBlockByNumber", fake_node::block(101, NEXT));
    node.refresh_head().await.unwrap();
    assert_eq!(node.head().map(|head| head.block.number), Some(101));
}

#[tokio::test]
async fn a_node_that_does_not_answer_at_start_is_an_error() {
    let fake = FakeNode::start().await;
    fake.reply(
        "eth_chainId",
        fake_node::NodeReply::Error(-32601, "x", serde_json::Value::Null),
    );
    assert!(matches!(
        Node::connect(&config(fake.url())).await,
        Err(NodeError::Unparsable)
    ));
}

/// The last head is withdrawn soon after the only node fails, whether the node does not answer or a proxy in front of
/// it does not reach it. It is published again with the node's first answer.
#[tokio::test(start_paused = true)]
async fn rl14_the_head_is_withdrawn_at_most_three_seconds_after_the_only_node_fails() {
    for failure in [fake_node::NodeReply::Silence, fake_node::NodeReply::Http(502, "gone")] {
        let fake = FakeNode::start().await;
        let frequent = HealthCheckConfig {
            probe: Duration::from_secs(3600),
            ..HealthCheckConfig::default()
        };
        let node = Node::connect(&config(fake.url()).with_health_checks(frequent))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(node.head().is_some(), "the node answers");
        fake.reply("eth_getBlockByNumber", failure);
        tokio::time::sleep(Duration::from_millis(3500)).await;
        assert!(node.head().is_none());
        assert!(
            node.statuses()
                .iter()
                .all(|node| node.state == gw_node::NodeState::Down)
        );
        fake.set_result("eth_getBlockByNumber", fake_node::block(101, NEXT));
        node.refresh_head().await.unwrap();
        assert_eq!(node.head().map(|head| head.block.number), Some(101));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(node.head().is_some());
    }
}
