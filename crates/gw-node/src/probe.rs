//! Which trace the node gives (decision 7): probed, not configured, because a node that silently answers something
//! else must count as one that cannot trace (X11).

use crate::Node;
use gw_evm::{
    CallRequest,
    wire::{self, AccountOverride, Pin, StateOverrides, TraceForm, TraceScope},
};
use gw_types::{Address, B256, Bytes, U256};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

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

/// Whether the node was seen to run calls on a changed state, since the last probe.
#[derive(Debug, Default)]
pub(crate) struct Overriding(AtomicBool);

impl Overriding {
    pub(crate) fn load(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn store(&self, overrides: bool) {
        self.0.store(overrides, Ordering::Relaxed);
    }
}

/// Adds its balance and its first slot.
const SUM: &[u8] = &[
    0x60, 0x00, 0x54, 0x47, 0x01, 0x60, 0x00, 0x52, 0x60, 0x20, 0x60, 0x00, 0xf3,
];

/// Whether the node runs a call on the balance, the code and the slots it is given. One that passes over what it does not know
/// would run on what is withheld (HD28).
pub(crate) async fn overrides(node: &Node, form: TraceForm, pin: Pin) -> bool {
    let empty = Address::from_word(pin.hash);
    let account = AccountOverride {
        balance: Some(U256::from(5)),
        nonce: Some(1),
        code: Some(Bytes::from_static(SUM)),
        slots: [(B256::ZERO, B256::with_last_byte(7))].into(),
    };
    let call = CallRequest {
        to: Some(empty),
        ..CallRequest::default()
    };
    let state = StateOverrides::new([(empty, account)].into());
    let calls = wire::trace_batch(&call, pin, TraceScope::Read, form, None, &state);
    let trace = node.trace_in(form, &calls).await;
    let output = trace
        .as_ref()
        .and_then(|trace| trace.frames.first())
        .map(|frame| frame.output.as_ref());
    output == Some(B256::with_last_byte(12).as_slice())
}

/// Tries both forms on a call of an address that has nothing; the better one whose answer reads as a trace, and lists that
/// address: what a node leaves out because it is empty cannot be judged (HD6).
pub(crate) async fn probe(node: &Node, pin: Pin) -> Option<TraceForm> {
    // Nobody could foresee it, so nobody has paid it.
    let empty = Address::from_word(pin.hash);
    let call = CallRequest {
        to: Some(empty),
        input: Bytes::from_static(b"gate"),
        ..CallRequest::default()
    };
    for form in [TraceForm::Mux, TraceForm::Batch] {
        let calls = wire::trace_batch(&call, pin, TraceScope::Read, form, None, &StateOverrides::default());
        match node.trace_in(form, &calls).await {
            Some(trace) if trace.touched.contains_key(&empty) => return Some(form),
            Some(_) => tracing::warn!(form = ?form, "the node leaves empty accounts out of its traces"),
            None => {}
        }
    }
    None
}
