//! What is counted of every call. Labels are names of the registry and three words, never a caller's text.

use gw_evm::Method;
use metrics::{Counter, Histogram, counter, histogram};
use std::time::Duration;

/// How a call ended, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Success,
    Denied,
    Error,
}

/// The handles, looked up once: a lookup costs more than the count.
pub(crate) struct Meters {
    methods: Vec<OfMethod>,
    other: OfMethod,
    node: Histogram,
    allowed: Counter,
    denied: Counter,
    crowded: Counter,
    node_busy: Counter,
    pin_broken: Counter,
}

struct OfMethod {
    ended: [Counter; 3],
    duration: Histogram,
}

impl OfMethod {
    fn new(method: &'static str) -> Self {
        let ended = ["success", "denied", "error"]
            .map(|outcome| counter!("ledger_gateway_rpc_requests_total", "rpc_method" => method, "outcome" => outcome));
        Self {
            ended,
            duration: histogram!("ledger_gateway_rpc_request_duration_seconds", "rpc_method" => method),
        }
    }
}

impl Meters {
    pub(crate) fn new() -> Self {
        let decision = |word: &'static str| counter!("ledger_gateway_rbac_decisions_total", "decision" => word);
        Self {
            methods: Method::ALL
                .iter()
                .map(|method| OfMethod::new(method.as_str()))
                .collect(),
            other: OfMethod::new("other"),
            node: histogram!("ledger_gateway_rpc_node_forward_duration_seconds"),
            allowed: decision("allow"),
            denied: decision("deny"),
            crowded: counter!("ledger_gateway_concurrency_rejections_total"),
            node_busy: counter!("ledger_gateway_upstream_rate_limit_total"),
            pin_broken: counter!("ledger_gateway_shared_code_mismatch_total"),
        }
    }

    pub(crate) fn call(&self, method: Option<Method>, ended: Ended, took: Duration) {
        let known = method.and_then(|method| self.methods.get(method as usize));
        let of = known.unwrap_or(&self.other);
        let [success, denied, error] = &of.ended;
        match ended {
            Ended::Success => success,
            Ended::Denied => denied,
            Ended::Error => error,
        }
        .increment(1);
        of.duration.record(took);
    }

    pub(crate) fn node(&self, took: Duration) {
        self.node.record(took);
    }

    pub(crate) fn decided(&self, allowed: bool) {
        if allowed { &self.allowed } else { &self.denied }.increment(1);
    }

    pub(crate) fn crowded(&self) {
        self.crowded.increment(1);
    }

    pub(crate) fn pin_broken(&self) {
        self.pin_broken.increment(1);
    }

    pub(crate) fn node_busy(&self) {
        self.node_busy.increment(1);
    }
}

impl core::fmt::Debug for Meters {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Meters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_counted_under_their_own_place() {
        for (place, method) in Method::ALL.iter().enumerate() {
            assert_eq!(*method as usize, place);
        }
    }
}
