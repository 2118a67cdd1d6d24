//! Connects to the upstream nodes of the configuration.

use crate::config::{self, Config};
use anyhow::{Context as _, bail};
use gw_crypto::KeyCipher;
use gw_node::{AnswerLimits, Connections, Node, NodeConfig, NodeError, Timeouts};
use gw_policy::{Snapshot, snapshot::GroupAccess};
use gw_types::{GroupId, Secret};
use std::sync::Arc;

/// Connects to the nodes of NODE_URL and checks the chain id (spec/85 section 3, step 6).
///
/// # Errors
/// If the configuration is unusable, no node can be reached ([`is_down`]), or the chain is not EXPECTED_CHAIN_ID.
pub(crate) async fn connect(config: &Config, group_keys: Option<Arc<KeyCipher>>) -> anyhow::Result<Arc<Node>> {
    let answers = AnswerLimits {
        max: usize::try_from(config.limits.answer_bytes)?,
        per_caller: usize::try_from(config.limits.answer_bytes_per_caller)?,
        ..AnswerLimits::default()
    };
    connect_to(&config.node, answers, group_keys).await
}

/// Connects for a process that has no callers.
///
/// # Errors
/// As [`connect`].
pub(crate) async fn connect_indexer(config: &config::Node, answer_bytes: u64) -> anyhow::Result<Arc<Node>> {
    let max = usize::try_from(answer_bytes)?;
    let answers = AnswerLimits {
        max,
        per_caller: max,
        ..AnswerLimits::default()
    };
    connect_to(config, answers, None).await
}

async fn connect_to(
    config: &config::Node,
    answers: AnswerLimits,
    group_keys: Option<Arc<KeyCipher>>,
) -> anyhow::Result<Arc<Node>> {
    let timeouts = Timeouts {
        read_trace: config.call_trace_timeout,
        send_trace: config.trace_timeout,
    };
    let connections = Connections {
        max: config.max_connections.map(usize::try_from).transpose()?,
        max_idle: usize::try_from(config.idle_connections)?,
        idle: config.idle_timeout,
    };
    let (first, standbys) = config
        .urls
        .split_first()
        .context("NODE_URL names no node: set at least one address")?;
    let upstream = NodeConfig::new(first.as_str());
    let upstream = standbys.iter().fold(upstream, |node_config, url| {
        node_config.and_then(|node_config| node_config.or(url.as_str()))
    });
    let upstream = upstream.context("NODE_URL is not valid")?;
    let upstream = upstream.with_timeouts(timeouts).with_connections(connections);
    let mut upstream = upstream.with_answer_limits(answers);
    let header = config.api_key_header.as_str();
    upstream = upstream
        .with_key_header(header)
        .context("RPC_API_KEY_HEADER is not valid")?;
    if let Some(key) = &config.api_key {
        upstream = upstream.with_api_key(key).context("RPC_API_KEY is not valid")?;
    }
    if let Some(cipher) = group_keys {
        upstream = upstream.with_group_keys(cipher);
    }
    let node = Node::connect(&upstream).await.context("the node cannot be used")?;
    match config.expected_chain {
        Some(expected) if expected != node.chain_id() => {
            bail!(
                "EXPECTED_CHAIN_ID: the node is on chain {}, not on {expected}",
                node.chain_id()
            )
        }
        Some(_) | None => Ok(node),
    }
}

/// The cipher that encrypts the upstream keys of groups in the policy store.
pub(crate) fn group_keys(config: &Config, key: &Secret) -> anyhow::Result<KeyCipher> {
    let cipher = KeyCipher::new(key).context("RPC_API_KEY_ENCRYPTION_KEY is not valid")?;
    match &config.node.key_encryption_previous {
        None => Ok(cipher),
        Some(key) => cipher
            .with_previous(key)
            .context("RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS is not valid"),
    }
}

/// The groups whose upstream key cannot be decrypted. Requests of their members are refused until that is repaired
/// (G1).
pub(crate) fn unreadable_keys(cipher: &KeyCipher, snapshot: &Snapshot) -> Vec<GroupId> {
    groups_with_key(snapshot, |group, key| cipher.open(group, key).is_err())
}

/// The groups whose upstream key is still encrypted with the previous encryption key.
pub(crate) fn outdated_keys(cipher: &KeyCipher, snapshot: &Snapshot) -> Vec<GroupId> {
    groups_with_key(snapshot, |group, key| cipher.is_outdated(group, key))
}

fn groups_with_key(snapshot: &Snapshot, key_matches: impl Fn(GroupId, &Secret) -> bool) -> Vec<GroupId> {
    let matches = |access: &&Arc<GroupAccess>| {
        access
            .upstream_key
            .as_ref()
            .is_some_and(|key| key_matches(access.group, key))
    };
    snapshot.accesses().filter(matches).map(|access| access.group).collect()
}

/// Whether the node could not be reached, so that a retry may succeed.
pub(crate) fn is_down(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<NodeError>() {
        Some(NodeError::ChainsDiffer { .. }) | None => false,
        Some(_) => true,
    }
}
