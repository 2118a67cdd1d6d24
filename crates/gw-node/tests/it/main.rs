//! The node client against a scripted and a real node.
#![expect(clippy::unwrap_used, reason = "a test cannot continue without its node")]

mod anvil;
mod blocks;
mod execution;
mod faults;
mod head;
mod makes;
mod scripted;
mod several;
mod wallet;

use gw_node::{HealthCheckConfig, Node, NodeConfig};
use std::{sync::Arc, time::Duration};

/// Health checks so rare that a test sees only its own calls.
pub(crate) fn config(url: &str) -> NodeConfig {
    let hour = Duration::from_secs(3600);
    NodeConfig::new(url).unwrap().with_health_checks(HealthCheckConfig {
        head: hour,
        probe: hour,
        standby: hour,
        ..HealthCheckConfig::default()
    })
}

pub(crate) async fn connect(url: &str) -> Arc<Node> {
    Node::connect(&config(url)).await.unwrap()
}
