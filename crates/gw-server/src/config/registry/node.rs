//! The node: addresses, connections, keys and timeouts.

use super::{HOUR, STRONG};
use crate::config::{
    kind::{self, number, span},
    variable::{Kind, Section::Node, Variable},
};
use gw_types::Secret;
use std::time::Duration;
use url::Url;

registry! {
    /// JSON-RPC address of the node, or of several nodes of one chain: the first is preferred, the others are standbys.
    NODE_URL: Vec<Url> = Variable::new(Node, &kind::UPSTREAMS)
        .shown_as_origin()
        .default("http://localhost:8545")
        .required();
    /// Required chain id of the node; a mismatch stops the process.
    EXPECTED_CHAIN_ID: u64 = Variable::new(Node, kind!(u64, "a whole number from 1", |t| number(t, 1, u64::MAX)));
    /// Idle connections kept to the node.
    NODE_HTTP_MAX_IDLE_CONNS: u32 =
        Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535)))
            .default("512");
    /// Idle connections kept to one address of the node.
    NODE_HTTP_MAX_IDLE_CONNS_PER_HOST: u32 =
        Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535)))
            .default("256");
    /// Connections to one address of the node; 0 means no limit.
    NODE_HTTP_MAX_CONNS_PER_HOST: u32 =
        Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535)))
            .default("0");
    /// How long an idle connection to the node is kept.
    NODE_HTTP_IDLE_CONN_TIMEOUT: Duration =
        Variable::new(Node, kind!(Duration, "a span from 1s to 1h", |t| span(t, 1, HOUR)))
            .default("90s");
    /// API key sent to the node for groups without their own key; all nodes of a list get the same key.
    RPC_API_KEY: Secret = Variable::new(Node, &kind::SECRET).secret();
    /// Request header that carries the API key.
    RPC_API_KEY_HEADER: http::HeaderName = Variable::new(Node, &kind::HEADER).default("Authorization");
    /// Encrypts the groups' API keys at rest.
    RPC_API_KEY_ENCRYPTION_KEY: Secret = Variable::new(Node, &kind::KEY_256)
        .secret()
        .derived("generated and kept in DATA_DIR")
        .required()
        .rule(STRONG);
    /// Older RPC_API_KEY_ENCRYPTION_KEY, used for decryption until the groups' keys are encrypted with the new one.
    RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS: Secret = Variable::new(Node, &kind::KEY_256).secret().rule(STRONG);
    /// Timeout of a trace of a send, a gas estimate or a client's own trace.
    TRACE_TIMEOUT: Duration = Variable::new(Node, kind!(Duration, "a span from 1s to 10m", |t| span(t, 1, 600)))
        .default("30s")
        .rule("shorter than the 60s response timeout");
    /// Timeout of a trace of `eth_call`.
    ETH_CALL_TRACE_TIMEOUT: Duration =
        Variable::new(
            Node,
            kind!(Duration, "a span from 100ms to 10m", |t| span(t, 0, 600).filter(|d| d.as_millis() >= 100)),
        )
            .default("5s")
            .rule("not longer than TRACE_TIMEOUT");
}
