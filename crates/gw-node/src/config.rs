//! Where the node is, or the nodes of one chain are, and how we name ourselves to them.

use crate::{
    KeyCipher,
    answers::{AnswerBudget, AnswerLimits},
    key::UpstreamKey,
};
use gw_types::Secret;
use http::{HeaderName, Uri, header};
use std::sync::Arc;

/// The node's address and the key it may ask for. Neither is ever printed: the path of a hosted node's URL is a key.
///
/// Several addresses are several nodes of one chain, the preferred one first; all of them are given the same key.
#[derive(Clone)]
pub struct NodeConfig {
    uris: Vec<Uri>,
    key_header: HeaderName,
    api_key: Option<UpstreamKey>,
    group_keys: Option<Arc<KeyCipher>>,
    upkeep: Upkeep,
    patience: Patience,
    largest_trace: usize,
    connections: Connections,
    answers: Arc<AnswerBudget>,
}

/// The largest answer to a question for traces.
const LARGEST_TRACE: usize = 64 * 1024 * 1024;

/// How many connections to the node there are, and how long one that nobody uses is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// At most so many at once (`NODE_HTTP_MAX_CONNS_PER_HOST`); who finds none free waits, within its own deadline.
    pub max: Option<usize>,
    /// At most so many unused (`NODE_HTTP_MAX_IDLE_CONNS`, `NODE_HTTP_MAX_IDLE_CONNS_PER_HOST`).
    pub max_idle: usize,
    /// How long an unused one is kept (`NODE_HTTP_IDLE_CONN_TIMEOUT`).
    pub idle: std::time::Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            max: None,
            max_idle: 256,
            idle: std::time::Duration::from_secs(90),
        }
    }
}

/// How long a trace may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Of a read (`ETH_CALL_TRACE_TIMEOUT`).
    pub read_trace: std::time::Duration,
    /// Of a send (`TRACE_TIMEOUT`).
    pub send_trace: std::time::Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            read_trace: std::time::Duration::from_secs(5),
            send_trace: std::time::Duration::from_secs(30),
        }
    }
}

/// How often the gateway asks for its own sake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// Between two looks at the head.
    pub head: std::time::Duration,
    /// Between two probes of tracing and chain id (X11).
    pub probe: std::time::Duration,
    /// Between two looks at the nodes that are not in use.
    pub standby: std::time::Duration,
    /// How long a preferred node must have been well before it is used again.
    pub settle: std::time::Duration,
    /// How long the last confirmed head serves while no node confirms it.
    pub grace: std::time::Duration,
}

impl Default for Upkeep {
    fn default() -> Self {
        let seconds = std::time::Duration::from_secs;
        Self {
            head: std::time::Duration::from_millis(200),
            probe: seconds(30),
            standby: seconds(2),
            settle: seconds(30),
            grace: seconds(5),
        }
    }
}

/// Why a node address was refused. The text names no part of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeConfigError {
    /// Not an absolute http or https URL.
    #[error("expected an absolute `http://` or `https://` URL")]
    Url,
    /// User and password belong into the API key.
    #[error("the URL holds credentials: use the API key instead")]
    Credentials,
    /// A header name or value that HTTP does not allow.
    #[error("the API key or its header name holds characters HTTP does not allow")]
    ApiKey,
}

impl NodeConfig {
    /// A node at `url`, without a key.
    pub fn new(url: &str) -> Result<Self, NodeConfigError> {
        Ok(Self {
            uris: vec![address(url)?],
            key_header: header::AUTHORIZATION,
            api_key: None,
            group_keys: None,
            upkeep: Upkeep::default(),
            patience: Patience::default(),
            largest_trace: LARGEST_TRACE,
            connections: Connections::default(),
            answers: AnswerBudget::new(AnswerLimits::default()),
        })
    }

    /// The same with one more node, used when those before it cannot be.
    pub fn or(mut self, url: &str) -> Result<Self, NodeConfigError> {
        self.uris.push(address(url)?);
        Ok(self)
    }

    /// The same with the header that carries keys (`RPC_API_KEY_HEADER`).
    pub fn with_key_header(mut self, header: &str) -> Result<Self, NodeConfigError> {
        self.key_header = header.parse().map_err(|_| NodeConfigError::ApiKey)?;
        Ok(self)
    }

    /// The same with a key of our own (`RPC_API_KEY`).
    pub fn with_api_key(mut self, key: &Secret) -> Result<Self, NodeConfigError> {
        self.api_key = Some(UpstreamKey::new(key)?);
        Ok(self)
    }

    /// The same with what keys of groups are decrypted with (`RPC_API_KEY_ENCRYPTION_KEY`).
    #[must_use]
    pub fn with_group_keys(mut self, cipher: Arc<KeyCipher>) -> Self {
        self.group_keys = Some(cipher);
        self
    }

    /// The same with another rhythm; tests that count bytes make it long.
    #[must_use]
    pub fn with_upkeep(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = upkeep;
        self
    }

    /// The same, waiting otherwise for traces.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// The same, taking no larger answer to a question for traces than this.
    #[must_use]
    pub fn with_largest_trace(mut self, bytes: usize) -> Self {
        self.largest_trace = bytes;
        self
    }

    /// The same with other bounds on connections.
    #[must_use]
    pub fn with_connections(mut self, connections: Connections) -> Self {
        self.connections = connections;
        self
    }

    /// The same, holding no more bytes of answers at once than this.
    #[must_use]
    pub fn with_answer_limits(mut self, limits: AnswerLimits) -> Self {
        self.answers = AnswerBudget::new(limits);
        self
    }

    pub(crate) const fn answers(&self) -> &Arc<AnswerBudget> {
        &self.answers
    }

    pub(crate) fn connections(&self) -> Connections {
        self.connections
    }

    pub(crate) fn largest_trace(&self) -> usize {
        self.largest_trace
    }

    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    pub(crate) fn uris(&self) -> &[Uri] {
        &self.uris
    }

    pub(crate) fn key_header(&self) -> HeaderName {
        self.key_header.clone()
    }

    pub(crate) fn api_key(&self) -> Option<UpstreamKey> {
        self.api_key.clone()
    }

    pub(crate) fn group_keys(&self) -> Option<Arc<KeyCipher>> {
        self.group_keys.clone()
    }

    pub(crate) fn upkeep(&self) -> Upkeep {
        self.upkeep
    }
}

fn address(url: &str) -> Result<Uri, NodeConfigError> {
    let uri: Uri = url.trim().parse().map_err(|_| NodeConfigError::Url)?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(NodeConfigError::Url);
    }
    match uri.authority() {
        None => Err(NodeConfigError::Url),
        Some(authority) if authority.as_str().contains('@') => Err(NodeConfigError::Credentials),
        Some(_) => Ok(uri),
    }
}

impl core::fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("NodeConfig(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_http_urls_without_credentials() {
        assert!(NodeConfig::new("http://127.0.0.1:8545").is_ok());
        assert!(NodeConfig::new("https://node.example/v3/key").is_ok());
        for bad in ["", "127.0.0.1:8545", "/path", "ws://node.example", "ftp://x"] {
            assert_eq!(NodeConfig::new(bad).err(), Some(NodeConfigError::Url), "{bad}");
        }
        assert_eq!(
            NodeConfig::new("http://a:b@node.example").err(),
            Some(NodeConfigError::Credentials)
        );
        let one = NodeConfig::new("http://127.0.0.1:8545").unwrap();
        assert_eq!(one.clone().or("node.example").err(), Some(NodeConfigError::Url));
        assert_eq!(one.or("https://node.example").map(|two| two.uris().len()).ok(), Some(2));
    }

    #[test]
    fn neither_url_nor_key_shows_in_debug_output() {
        let config = NodeConfig::new("https://node.example/hunter2")
            .and_then(|c| c.with_api_key(&Secret::new("Bearer hunter3")))
            .unwrap();
        assert!(!format!("{config:?}").contains("hunter"));
    }
}
