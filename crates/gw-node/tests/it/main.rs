//! The node client against a scripted and a real node.
#![expect(clippy::unwrap_used, reason = "a test without its node is over")]

mod anvil;
mod execution;
mod head;
mod makes;
mod scripted;
mod several;
mod wallet;

use gw_node::{Node, NodeConfig, Upkeep};
use std::{sync::Arc, time::Duration};

/// Upkeep so rare that a test sees only its own calls.
pub(crate) fn config(url: &str) -> NodeConfig {
    let hour = Duration::from_secs(3600);
    NodeConfig::new(url).unwrap().with_upkeep(Upkeep {
        head: hour,
        probe: hour,
        standby: hour,
        ..Upkeep::default()
    })
}

pub(crate) async fn connect(url: &str) -> Arc<Node> {
    Node::connect(&config(url)).await.unwrap()
}
