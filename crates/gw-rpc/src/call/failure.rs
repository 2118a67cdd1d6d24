//! The outcomes of calls that the node does not answer or trace.

use super::AuthorizedCall;
use crate::{outcome::RpcOutcome, state::RpcContext};
use gw_evm::trace::TraceError;
use gw_node::{NoTrace, NodeError};
use gw_types::DenyReason;

/// The outcome when the node does not answer: one constant text for the caller; the log has the reason. HTTP 429 opens
/// the circuit breaker of the key (J8). An answer that exceeds the caller's memory budget counts as too many concurrent
/// calls.
pub(crate) fn upstream_failure(state: &RpcContext, error: &NodeError) -> RpcOutcome {
    if let NodeError::RateLimited(key) = error {
        state.metrics.upstream_rate_limited();
        state.breakers.open(*key, state.clock().now());
        return RpcOutcome::Busy(DenyReason::RateLimited);
    }
    if let NodeError::NoRoom(_) = error {
        state.metrics.concurrency_rejected();
        return RpcOutcome::Busy(DenyReason::ConcurrencyLimited);
    }
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "the node did not answer a call"
    );
    RpcOutcome::NodeUnreachable
}

/// The outcome when there is no trace (X11): the call is neither answered nor forwarded. A frame of an unknown kind is
/// a denial (decision 58). Timeouts and oversized traces pause the caller's executions (HD36).
pub(super) fn trace_failure(state: &RpcContext, authorized: &AuthorizedCall, error: NoTrace) -> RpcOutcome {
    match &error {
        NoTrace::Node(NodeError::Timeout) => {
            state
                .pauses
                .record_timeout(authorized.limit_key(), authorized.execution(), authorized.now())
        }
        NoTrace::Node(NodeError::TooLarge) | NoTrace::Unusable(TraceError::TooDeep | TraceError::TooManyFrames) => {
            state
                .pauses
                .record_oversized_trace(authorized.limit_key(), authorized.execution(), authorized.now());
        }
        NoTrace::Unsupported | NoTrace::Node(_) | NoTrace::Unusable(_) => {}
    }
    let reason = match &error {
        NoTrace::Unusable(TraceError::UnknownFrame) => return authorized.denied(DenyReason::TraceMismatch),
        NoTrace::Unusable(TraceError::TooDeep | TraceError::TooManyFrames) => DenyReason::TraceDepthExceeded,
        NoTrace::Unsupported
        | NoTrace::Unusable(TraceError::Malformed)
        | NoTrace::Node(NodeError::Timeout | NodeError::TooLarge | NodeError::Unparsable | NodeError::NoAnswer) => {
            DenyReason::TracingUnavailable
        }
        NoTrace::Node(error) => return upstream_failure(state, error),
    };
    tracing::warn!(error = &error as &dyn std::error::Error, "a call could not be traced");
    RpcOutcome::TracingUnavailable(reason)
}
