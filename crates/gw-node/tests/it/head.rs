//! Following the head (decision 41).

use crate::{config, connect};
use gw_node::{Node, NodeError, Upkeep};
use gw_testkit::{FakeNode, fake_node};
use std::time::Duration;

const NEXT: &str = "0x6565656565656565656565656565656565656565656565656565656565656565";

#[tokio::test]
async fn decision_41_a_higher_number_asks_the_node_once_and_a_known_one_not_at_all() {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.take();
    node.raise(FakeNode::HEAD).await.unwrap();
    fake.assert_silent();
    fake.on("eth_getBlockByNumber", fake_node::block(101, NEXT));
    node.raise(101).await.unwrap();
    assert_eq!(fake.take_bodies().len(), 1);
    let head = node.head().unwrap();
    assert_eq!(
        (head.block.number, format!("{:#x}", head.block.hash).as_str()),
        (101, NEXT)
    );
}

#[tokio::test(start_paused = true)]
async fn a_head_nobody_confirms_is_no_head() {
    let fake = FakeNode::start().await;
    let often = Upkeep {
        head: Duration::from_millis(200),
        probe: Duration::from_secs(3600),
        ..Upkeep::default()
    };
    let node = Node::connect(&config(fake.url()).with_upkeep(often)).await.unwrap();
    assert!(node.head().is_some());
    fake.on("eth_getBlockByNumber", serde_json::json!({"number": "0x65"}));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(node.head().is_none());
    fake.on("eth_getBlockByNumber", fake_node::block(101, NEXT));
    node.refresh_head().await.unwrap();
    assert_eq!(node.head().map(|head| head.block.number), Some(101));
}

#[tokio::test]
async fn a_node_that_is_not_there_at_start_is_an_error() {
    let fake = FakeNode::start().await;
    fake.reply(
        "eth_chainId",
        fake_node::Reply::Error(-32601, "x", serde_json::Value::Null),
    );
    assert!(matches!(
        Node::connect(&config(fake.url())).await,
        Err(NodeError::Unparsable)
    ));
}

/// A head of before is not served for long once the only node is gone, whether it refuses connections, answers nothing or
/// is kept from us by what stands before it; it is back with its first answer.
#[tokio::test(start_paused = true)]
async fn rl14_the_only_node_is_gone_for_three_seconds_at_most_before_its_head_is() {
    for gone in [fake_node::Reply::Silence, fake_node::Reply::Http(502, "gone")] {
        let fake = FakeNode::start().await;
        let often = Upkeep {
            probe: Duration::from_secs(3600),
            ..Upkeep::default()
        };
        let node = Node::connect(&config(fake.url()).with_upkeep(often)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(node.head().is_some(), "it answers");
        fake.reply("eth_getBlockByNumber", gone);
        tokio::time::sleep(Duration::from_millis(3500)).await;
        assert!(node.head().is_none());
        assert!(
            node.statuses()
                .iter()
                .all(|node| node.state == gw_node::NodeState::Down)
        );
        fake.on("eth_getBlockByNumber", fake_node::block(101, NEXT));
        node.refresh_head().await.unwrap();
        assert_eq!(node.head().map(|head| head.block.number), Some(101));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(node.head().is_some());
    }
}
