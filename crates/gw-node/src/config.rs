//! Configuration of the upstream nodes: their URLs, keys, timeouts and limits.

use crate::{
    answers::{AnswerBudget, AnswerLimits},
    key::UpstreamKey,
};
use gw_crypto::KeyCipher;
use gw_types::Secret;
use http::{HeaderName, Uri, header};
use std::sync::Arc;

/// The URL of the node and its key. Neither is ever printed: the path of a hosted node's URL is a key.
///
/// Several URLs are several nodes of one chain, the preferred one first. All of them get the same key.
#[derive(Clone)]
pub struct NodeConfig {
    uris: Vec<Uri>,
    key_header: HeaderName,
    api_key: Option<UpstreamKey>,
    group_keys: Option<Arc<KeyCipher>>,
    health_checks: HealthCheckConfig,
    timeouts: Timeouts,
    largest_trace: usize,
    connections: Connections,
    answers: Arc<AnswerBudget>,
}

/// The default limit for the answer to a trace request, in bytes.
const LARGEST_TRACE: usize = 64 * 1024 * 1024;

/// The number of connections to a node, and how long an idle one is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Most connections at once (`NODE_HTTP_MAX_CONNS_PER_HOST`). A request that finds none free waits, within its own
    /// deadline.
    pub max: Option<usize>,
    /// Most idle connections (`NODE_HTTP_MAX_IDLE_CONNS`, `NODE_HTTP_MAX_IDLE_CONNS_PER_HOST`).
    pub max_idle: usize,
    /// How long an idle connection is kept (`NODE_HTTP_IDLE_CONN_TIMEOUT`).
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

/// The time limits for traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the trace of a read (`ETH_CALL_TRACE_TIMEOUT`).
    pub read_trace: std::time::Duration,
    /// For the trace of a send (`TRACE_TIMEOUT`).
    pub send_trace: std::time::Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            read_trace: std::time::Duration::from_secs(5),
            send_trace: std::time::Duration::from_secs(30),
        }
    }
}

/// The intervals of the gateway's own checks of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthCheckConfig {
    /// Between two polls of the head.
    pub head: std::time::Duration,
    /// Between two probes of tracing and chain id (X11).
    pub probe: std::time::Duration,
    /// Between two checks of the nodes that are not in use.
    pub standby: std::time::Duration,
    /// How long a preferred node must have been healthy before it is used again.
    pub settle: std::time::Duration,
    /// How long the last confirmed head remains valid while no node confirms it.
    pub grace: std::time::Duration,
}

impl Default for HealthCheckConfig {
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

/// Why a node URL or key was refused. The text contains no part of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeConfigError {
    /// Not an absolute http or https URL.
    #[error("expected an absolute `http://` or `https://` URL")]
    Url,
    /// The URL contains a user or password; these belong into the API key.
    #[error("the URL contains credentials: use the API key instead")]
    Credentials,
    /// A header name or value that HTTP does not allow.
    #[error("the API key or its header name contains characters that HTTP does not allow")]
    ApiKey,
}

impl NodeConfig {
    /// A node at `url`, without a key.
    ///
    /// # Errors
    /// [`NodeConfigError`] if the URL is not an absolute `http` or `https` URL, or contains credentials.
    pub fn new(url: &str) -> Result<Self, NodeConfigError> {
        Ok(Self {
            uris: vec![parse_url(url)?],
            key_header: header::AUTHORIZATION,
            api_key: None,
            group_keys: None,
            health_checks: HealthCheckConfig::default(),
            timeouts: Timeouts::default(),
            largest_trace: LARGEST_TRACE,
            connections: Connections::default(),
            answers: AnswerBudget::new(AnswerLimits::default()),
        })
    }

    /// Adds a node, which is used when those before it cannot be.
    ///
    /// # Errors
    /// [`NodeConfigError`] if the URL is not an absolute `http` or `https` URL, or contains credentials.
    pub fn or(mut self, url: &str) -> Result<Self, NodeConfigError> {
        self.uris.push(parse_url(url)?);
        Ok(self)
    }

    /// Sets the header that carries keys (`RPC_API_KEY_HEADER`).
    ///
    /// # Errors
    /// [`NodeConfigError::ApiKey`] if this is not a valid header name.
    pub fn with_key_header(mut self, header: &str) -> Result<Self, NodeConfigError> {
        self.key_header = header.parse().map_err(|_| NodeConfigError::ApiKey)?;
        Ok(self)
    }

    /// Sets the gateway's own key (`RPC_API_KEY`).
    ///
    /// # Errors
    /// [`NodeConfigError::ApiKey`] if the key is not a valid header value.
    pub fn with_api_key(mut self, key: &Secret) -> Result<Self, NodeConfigError> {
        self.api_key = Some(UpstreamKey::new(key).map_err(|_| NodeConfigError::ApiKey)?);
        Ok(self)
    }

    /// Sets the cipher that decrypts the keys of groups (`RPC_API_KEY_ENCRYPTION_KEY`).
    #[must_use]
    pub fn with_group_keys(mut self, cipher: Arc<KeyCipher>) -> Self {
        self.group_keys = Some(cipher);
        self
    }

    /// Sets the intervals of health checks; tests that count requests make them long.
    #[must_use]
    pub fn with_health_checks(mut self, health_checks: HealthCheckConfig) -> Self {
        self.health_checks = health_checks;
        self
    }

    /// Sets the time limits for traces.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the limit for the answer to a trace request, in bytes.
    #[must_use]
    pub fn with_largest_trace(mut self, bytes: usize) -> Self {
        self.largest_trace = bytes;
        self
    }

    /// Sets the limits on connections.
    #[must_use]
    pub fn with_connections(mut self, connections: Connections) -> Self {
        self.connections = connections;
        self
    }

    /// Sets the limits on the bytes of answers held at once.
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

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
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

    pub(crate) fn health_checks(&self) -> HealthCheckConfig {
        self.health_checks
    }
}

fn parse_url(url: &str) -> Result<Uri, NodeConfigError> {
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
        let first = NodeConfig::new("http://127.0.0.1:8545").unwrap();
        assert_eq!(first.clone().or("node.example").err(), Some(NodeConfigError::Url));
        assert_eq!(
            first.or("https://node.example").map(|both| both.uris().len()).ok(),
            Some(2)
        );
    }

    #[test]
    fn neither_url_nor_key_shows_in_debug_output() {
        let config = NodeConfig::new("https://node.example/hunter2")
            .and_then(|c| c.with_api_key(&Secret::new("Bearer hunter3")))
            .unwrap();
        assert!(!format!("{config:?}").contains("hunter"));
    }
}
