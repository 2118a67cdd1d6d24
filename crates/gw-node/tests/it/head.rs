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
    fake.set_result("eth_getBlockByNumber", child(101, NEXT, FakeNode::HEAD_HASH));
    node.advance_head_to(101).await.unwrap();
    assert_eq!(fake.take_bodies().len(), 1);
    let head = node.head().unwrap();
    assert_eq!(
        (head.block.number, format!("{:#x}", head.block.hash).as_str()),
        (101, NEXT)
    );
}

/// A block with this parent.
fn child(number: u64, hash: &str, parent: &str) -> serde_json::Value {
    let mut block = fake_node::block(number, hash);
    if let Some(parent_hash) = block.get_mut("parentHash") {
        *parent_hash = parent.into();
    }
    block
}

/// Another node, of another chain, answers at the same address after a restart.
#[tokio::test]
async fn decision_41_a_node_that_became_another_chain_is_not_followed() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.set_result("eth_chainId", serde_json::json!("0x309"));
    for (number, hash) in [(101, NEXT), (3, NEXT), (FakeNode::HEAD, NEXT)] {
        fake.set_result("eth_getBlockByNumber", fake_node::block(number, hash));
        assert!(
            matches!(node.refresh_head().await, Err(NodeError::OtherChain)),
            "{number}"
        );
        assert!(node.head().is_none(), "nothing is served: {number}");
        assert_eq!(node.statuses()[0].state, gw_node::NodeState::OtherChain);
    }
    fake.set_result("eth_chainId", serde_json::json!("0x7a69"));
    node.refresh_head().await.unwrap();
    assert!(node.head().is_some());
}

/// A client never reads older state than it was shown, although one address leads to several replicas.
#[tokio::test(start_paused = true)]
async fn decision_41_a_replica_that_lags_behind_does_not_take_the_head_back() {
    let fake = FakeNode::start().await;
    let frequent = HealthCheckConfig {
        head: Duration::from_millis(200),
        probe: Duration::from_secs(3600),
        ..HealthCheckConfig::default()
    };
    let node = Node::connect(&config(fake.url()).with_health_checks(frequent))
        .await
        .unwrap();
    let (old, new) = (
        fake_node::block(FakeNode::HEAD, FakeNode::HEAD_HASH),
        child(101, NEXT, FakeNode::HEAD_HASH),
    );
    fake.set_result("eth_getBlockByNumber", new.clone());
    node.refresh_head().await.unwrap();
    let mut polls = 0;
    let answers = [old.clone(), new];
    fake.script("eth_getBlockByNumber", move |_| {
        polls += 1;
        fake_node::NodeReply::Result(answers[polls / 4 % 2].clone())
    });
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(node.head().map(|head| head.number), Some(101));
        assert_eq!(node.statuses()[0].state, gw_node::NodeState::Up);
    }
    // No replica has the block any more: reads are refused after the grace period, and only then read the older state.
    let mut moves = node.head_moves();
    moves.mark_unchanged();
    fake.set_result("eth_getBlockByNumber", old);
    let begun = tokio::time::Instant::now();
    moves.changed().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(4), "{:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(node.head().map(|head| head.number), Some(FakeNode::HEAD));
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
