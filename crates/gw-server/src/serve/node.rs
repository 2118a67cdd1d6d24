//! The upstream node, as configured.

use crate::config::Config;
use anyhow::{Context as _, bail};
use gw_node::{AnswerLimits, Connections, KeyCipher, Node, NodeConfig, NodeError, Patience};
use gw_policy::{Snapshot, snapshot::GroupAccess};
use gw_types::{GroupId, Secret};
use std::sync::Arc;

/// Connects and compares the chain (spec/85 section 3, step 6).
pub(crate) async fn connect(config: &Config, group_keys: Option<Arc<KeyCipher>>) -> anyhow::Result<Arc<Node>> {
    let patience = Patience {
        read_trace: config.node.call_trace_timeout,
        send_trace: config.node.trace_timeout,
    };
    let connections = Connections {
        max: config.node.max_connections.map(usize::try_from).transpose()?,
        max_idle: usize::try_from(config.node.idle_connections)?,
        idle: config.node.idle_timeout,
    };
    let (first, others) = config.node.urls.split_first().context("NODE_URL names no node")?;
    let upstream = NodeConfig::new(first.as_str());
    let upstream = others
        .iter()
        .fold(upstream, |named, url| named.and_then(|named| named.or(url.as_str())));
    let upstream = upstream.context("NODE_URL cannot be used")?;
    let answers = AnswerLimits {
        max: usize::try_from(config.limits.answer_bytes)?,
        per_caller: usize::try_from(config.limits.answer_bytes_per_caller)?,
        ..AnswerLimits::default()
    };
    let upstream = upstream.with_patience(patience).with_connections(connections);
    let mut upstream = upstream.with_answer_limits(answers);
    let header = config.node.api_key_header.as_str();
    upstream = upstream
        .with_key_header(header)
        .context("RPC_API_KEY_HEADER cannot be used")?;
    if let Some(key) = &config.node.api_key {
        upstream = upstream.with_api_key(key).context("RPC_API_KEY cannot be used")?;
    }
    if let Some(cipher) = group_keys {
        upstream = upstream.with_group_keys(cipher);
    }
    let node = Node::connect(&upstream).await.context("the node cannot be used")?;
    match config.node.expected_chain {
        Some(expected) if expected != node.chain_id() => {
            bail!(
                "EXPECTED_CHAIN_ID: the node is on chain {}, not on {expected}",
                node.chain_id()
            )
        }
        Some(_) | None => Ok(node),
    }
}

/// What upstream keys of groups rest under.
pub(crate) fn group_keys(config: &Config, key: &Secret) -> anyhow::Result<KeyCipher> {
    let cipher = KeyCipher::new(key).context("RPC_API_KEY_ENCRYPTION_KEY cannot be used")?;
    match &config.node.key_encryption_previous {
        None => Ok(cipher),
        Some(key) => cipher
            .with_previous(key)
            .context("RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS cannot be used"),
    }
}

/// The groups whose upstream key cannot be decrypted: their members are refused until that is mended (G1).
pub(crate) fn unreadable_keys(cipher: &KeyCipher, snapshot: &Snapshot) -> Vec<GroupId> {
    groups_whose_key(snapshot, |key| cipher.open(key).is_err())
}

/// The groups whose upstream key rests under the previous encryption key.
pub(crate) fn outdated_keys(cipher: &KeyCipher, snapshot: &Snapshot) -> Vec<GroupId> {
    groups_whose_key(snapshot, |key| cipher.is_outdated(key))
}

fn groups_whose_key(snapshot: &Snapshot, is_meant: impl Fn(&Secret) -> bool) -> Vec<GroupId> {
    let meant = |access: &&Arc<GroupAccess>| access.upstream_key.as_ref().is_some_and(&is_meant);
    snapshot.accesses().filter(meant).map(|access| access.group).collect()
}

/// Whether waiting may help: the node could not be asked.
pub(super) fn is_down(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<NodeError>() {
        Some(NodeError::ChainsDiffer { .. }) | None => false,
        Some(_) => true,
    }
}
