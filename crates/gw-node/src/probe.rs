//! Which trace the node gives (decision 7): probed, not configured, because a node that silently answers something
//! else must count as one that cannot trace (X11).

use crate::{Node, trace::Traced};
use gw_evm::{
    CallRequest,
    wire::{self, TraceForm, TraceScope},
};
use gw_types::{Address, Bytes, address};
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

const IDENTITY: Address = address!("0000000000000000000000000000000000000004");

/// Tries both forms on a call of the identity precompile; the better one whose answer reads as a trace.
pub(crate) async fn probe(node: &Node) -> Option<TraceForm> {
    let pin = node.head()?.block.pin();
    let call = CallRequest { to: Some(IDENTITY), input: Bytes::from_static(b"gate"), ..CallRequest::default() };
    for form in [TraceForm::Mux, TraceForm::Batch] {
        let calls = wire::trace_batch(&call, pin, TraceScope::Read, form, None);
        if let Some(Traced::Trace(_)) = node.trace_in(form, &calls).await {
            return Some(form);
        }
    }
    None
}
