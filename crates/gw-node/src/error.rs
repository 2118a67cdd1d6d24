//! Errors of the node.

use crate::{answers::NoRoom, key::KeyId};

/// Why there is no answer. A JSON-RPC error of the node is an answer, not a `NodeError`.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// No connection, no TLS, or the connection broke before the answer began.
    #[error("the node is not reachable")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The connection broke during the answer.
    #[error("the connection to the node broke during its answer")]
    Broken(#[source] hyper::Error),
    /// No answer within the deadline.
    #[error("the node did not answer in time")]
    Timeout,
    /// A proxy in front of the node cannot reach it (HTTP 502, 503 or 504 without JSON).
    #[error("the proxy in front of the node cannot reach it")]
    Unavailable,
    /// Another node replaced this one while the request waited.
    #[error("the node was replaced by another one while the request waited")]
    GivenUp,
    /// The answer has more bytes than the request's budget allows.
    #[error("the node's answer exceeds the size limit")]
    TooLarge,
    /// The caller, or all callers together, hold as many bytes of answers as they may.
    #[error("the node's answer was not read: the memory budget for answers is used up")]
    NoRoom(#[from] NoRoom),
    /// The answer is no JSON-RPC answer to the request.
    #[error("the node's answer is not a valid JSON-RPC answer to the request")]
    Unparsable,
    /// A JSON-RPC error in place of a fact: the node does not have it, or keeps no state that old.
    #[error("the node answered a query with a JSON-RPC error")]
    NoAnswer,
    /// HTTP 429 to a request with this key (J8).
    #[error("the node rate-limits the gateway (HTTP 429)")]
    RateLimited(KeyId),
    /// TLS could not be set up.
    #[error("TLS for the node could not be set up")]
    Tls(#[source] std::io::Error),
    /// The call would run code at the node without authorization (HD26).
    #[error("an execution without a permit or a trace was refused before sending")]
    Unjudged,
    /// No head is confirmed.
    #[error("no node has confirmed the head")]
    NoHead,
    /// The newest block of the node is older than the followed head that clients were shown.
    #[error("the node is behind the followed head")]
    Behind,
    /// The node serves another chain than the gateway.
    #[error("the node serves another chain")]
    OtherChain,
    /// The configured nodes serve different chains; the text names them by their positions.
    #[error("the nodes serve different chains: number {one} chain {chain}, number {other} chain {other_chain}")]
    ChainsDiffer {
        /// The position of one node in the list, from one.
        one: usize,
        /// The chain id of that node.
        chain: u64,
        /// The position of another node.
        other: usize,
        /// The chain id of that other node.
        other_chain: u64,
    },
    /// The trace of a mined transaction failed, and the next attempt is not due yet (HD36).
    #[error("a mined transaction could not be traced: the trace is repeated after a pause")]
    TraceDeferred,
    /// The node answers queries about its head, and has no state before the block of a mined transaction.
    #[error("the node has no state before the block of a mined transaction")]
    StateUnavailable,
    /// A query about the sender of a mined transaction failed, and the next attempt is not due yet.
    #[error("the node did not show a fact about a mined transaction: the query is repeated after a pause")]
    LookupDeferred,
    /// A new block could not be validated; no reads at it before that (HD2).
    #[error("a new block could not be validated")]
    NotValidated(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl NodeError {
    /// Whether the node certainly did not act on the request: it never received it, or rejected it unread.
    pub fn is_before_sending(&self) -> bool {
        match self {
            Self::Unreachable(error) => error.is_connect(),
            Self::RateLimited(_)
            | Self::Unjudged
            | Self::NoHead
            | Self::Behind
            | Self::OtherChain
            | Self::ChainsDiffer { .. }
            | Self::TraceDeferred
            | Self::StateUnavailable
            | Self::LookupDeferred
            | Self::NotValidated(_)
            | Self::Tls(_) => true,
            Self::Broken(_)
            | Self::Timeout
            | Self::Unavailable
            | Self::GivenUp
            | Self::TooLarge
            | Self::NoRoom(_)
            | Self::Unparsable
            | Self::NoAnswer => false,
        }
    }

    /// Whether the transport to the node failed, rather than the node's answer.
    pub(crate) const fn is_transport_failure(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::Timeout | Self::Unavailable | Self::GivenUp => true,
            Self::TooLarge
            | Self::NoRoom(_)
            | Self::Unparsable
            | Self::NoAnswer
            | Self::RateLimited(_)
            | Self::Tls(_)
            | Self::Unjudged
            | Self::NoHead
            | Self::Behind
            | Self::OtherChain
            | Self::ChainsDiffer { .. }
            | Self::TraceDeferred
            | Self::StateUnavailable
            | Self::LookupDeferred
            | Self::NotValidated(_) => false,
        }
    }
}

/// An error after which [`crate::Node::with_failover`] may repeat the query on another node.
pub(crate) trait FailoverError: From<NodeError> {
    /// Whether the transport to the node failed, rather than the node's answer.
    fn is_transport_failure(&self) -> bool;
}

impl FailoverError for NodeError {
    fn is_transport_failure(&self) -> bool {
        self.is_transport_failure()
    }
}
