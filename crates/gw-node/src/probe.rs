//! Which trace the node gives (decision 7): probed, not configured, because a node that silently answers something
//! else must count as one that cannot trace (X11).

use crate::Node;
use gw_evm::{
    CallRequest,
    wire::{self, Pin, TraceForm, TraceScope},
};
use gw_types::{Address, Bytes};
use std::sync::atomic::{AtomicU8, Ordering};

/// The last probe's finding; nothing found means no tracing.
#[derive(Debug, Default)]
pub(crate) struct Tracing(AtomicU8);

impl Tracing {
    pub(crate) fn load(&self) -> Option<TraceForm> {
        match self.0.load(Ordering::Relaxed) {
            1 => Some(TraceForm::Mux),
            2 => Some(TraceForm::Batch),
            _ => None,
        }
    }

    pub(crate) fn store(&self, form: Option<TraceForm>) {
        let code = match form {
            None => 0,
            Some(TraceForm::Mux) => 1,
            Some(TraceForm::Batch) => 2,
        };
        if self.0.swap(code, Ordering::Relaxed) != code {
            tracing::info!(form = ?form, "tracing support of the node");
        }
    }
}

/// Tries both forms on a call of an address that has nothing; the better one whose answer reads as a trace, and lists that
/// address: what a node leaves out because it is empty cannot be judged (HD6).
pub(crate) async fn probe(node: &Node, pin: Pin) -> Option<TraceForm> {
    // Nobody could foresee it, so nobody has paid it.
    let empty = Address::from_word(pin.hash);
    let call = CallRequest { to: Some(empty), input: Bytes::from_static(b"gate"), ..CallRequest::default() };
    for form in [TraceForm::Mux, TraceForm::Batch] {
        let calls = wire::trace_batch(&call, pin, TraceScope::Read, form, None, &wire::StateOverrides::default());
        match node.trace_in(form, &calls).await {
            Some(trace) if trace.touched.contains_key(&empty) => return Some(form),
            Some(_) => tracing::warn!(form = ?form, "the node leaves empty accounts out of its traces"),
            None => {}
        }
    }
    None
}
