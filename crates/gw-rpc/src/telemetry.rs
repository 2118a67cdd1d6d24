//! The metrics of calls. Labels are registered method names and fixed words, never text from a caller.

use gw_evm::Method;
use metrics::{Counter, Histogram, counter, histogram};
use std::time::Duration;

/// The outcome of a call, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Success,
    Denied,
    Error,
}

/// The metric handles. They are looked up once, because a lookup costs more than an increment.
pub(crate) struct RpcMetrics {
    methods: Vec<MethodMetrics>,
    other: MethodMetrics,
    node: Histogram,
    allowed: Counter,
    denied: Counter,
    concurrency_rejected: Counter,
    upstream_rate_limited: Counter,
    pin_broken: Counter,
}

struct MethodMetrics {
    outcomes: [Counter; 3],
    duration: Histogram,
}

impl MethodMetrics {
    fn new(method: &'static str) -> Self {
        let outcomes = ["success", "denied", "error"]
            .map(|outcome| counter!("ledger_gateway_rpc_requests_total", "rpc_method" => method, "outcome" => outcome));
        Self {
            outcomes,
            duration: histogram!("ledger_gateway_rpc_request_duration_seconds", "rpc_method" => method),
        }
    }
}

impl RpcMetrics {
    pub(crate) fn new() -> Self {
        let decision = |label: &'static str| counter!("ledger_gateway_rbac_decisions_total", "decision" => label);
        Self {
            methods: Method::ALL
                .iter()
                .map(|method| MethodMetrics::new(method.as_str()))
                .collect(),
            other: MethodMetrics::new("other"),
            node: histogram!("ledger_gateway_rpc_node_forward_duration_seconds"),
            allowed: decision("allow"),
            denied: decision("deny"),
            concurrency_rejected: counter!("ledger_gateway_concurrency_rejections_total"),
            upstream_rate_limited: counter!("ledger_gateway_upstream_rate_limit_total"),
            pin_broken: counter!("ledger_gateway_shared_code_mismatch_total"),
        }
    }

    pub(crate) fn call(&self, method: Option<Method>, outcome: CallOutcome, elapsed: Duration) {
        let registered = method.and_then(|method| self.methods.get(method as usize));
        let metrics = registered.unwrap_or(&self.other);
        let [success, denied, error] = &metrics.outcomes;
        match outcome {
            CallOutcome::Success => success,
            CallOutcome::Denied => denied,
            CallOutcome::Error => error,
        }
        .increment(1);
        metrics.duration.record(elapsed);
    }

    pub(crate) fn node(&self, elapsed: Duration) {
        self.node.record(elapsed);
    }

    pub(crate) fn decided(&self, allowed: bool) {
        if allowed { &self.allowed } else { &self.denied }.increment(1);
    }

    pub(crate) fn concurrency_rejected(&self) {
        self.concurrency_rejected.increment(1);
    }

    pub(crate) fn pin_broken(&self) {
        self.pin_broken.increment(1);
    }

    pub(crate) fn upstream_rate_limited(&self) {
        self.upstream_rate_limited.increment(1);
    }
}

impl core::fmt::Debug for RpcMetrics {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RpcMetrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_methods_discriminant_is_its_index_among_all_methods() {
        for (index, method) in Method::ALL.iter().enumerate() {
            assert_eq!(*method as usize, index);
        }
    }
}
