//! Probes which trace form the node supports (decision 7). It is probed, not configured, because a node that silently
//! answers something else must count as one without tracing (X11).

use crate::{error::NodeError, node::Node};
use gw_evm::{
    CallRequest,
    wire::{self, AccountOverride, Pin, StateOverrides, TraceForm, TraceScope},
};
use gw_types::{Address, B256, Bytes, U256};

/// EVM code that returns the sum of the account's balance and its storage slot 0.
const SUM: &[u8] = &[
    0x60, 0x00, 0x54, 0x47, 0x01, 0x60, 0x00, 0x52, 0x60, 0x20, 0x60, 0x00, 0xf3,
];

/// Whether the node applies overrides of balance, code and slots. A node that ignores them would run on state that is
/// withheld (HD28).
///
/// # Errors
/// If the node did not answer: then nothing is known.
pub(crate) async fn overrides(node: &Node, form: TraceForm, pin: Pin) -> Result<bool, NodeError> {
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
    let trace = node.trace_in(form, &calls).await?;
    let output = trace
        .as_ref()
        .and_then(|trace| trace.frames.first())
        .map(|frame| frame.output.as_ref());
    Ok(output == Some(B256::with_last_byte(12).as_slice()))
}

/// Tries both trace forms; returns the first one that the node [supports](supports).
///
/// # Errors
/// If the node did not answer: then nothing is known.
pub(crate) async fn probe(node: &Node, pin: Pin) -> Result<Option<TraceForm>, NodeError> {
    for form in [TraceForm::Mux, TraceForm::Batch] {
        if supports(node, form, pin).await? {
            return Ok(Some(form));
        }
    }
    Ok(None)
}

/// Whether the node traces a call of an empty address in this form, and lists that address. A trace without empty
/// accounts cannot be authorized (HD6).
///
/// # Errors
/// If the node did not answer: then nothing is known.
pub(crate) async fn supports(node: &Node, form: TraceForm, pin: Pin) -> Result<bool, NodeError> {
    // The address was unknown before the block existed, so it has no balance.
    let empty = Address::from_word(pin.hash);
    let call = CallRequest {
        to: Some(empty),
        input: Bytes::from_static(b"gate"),
        ..CallRequest::default()
    };
    let calls = wire::trace_batch(&call, pin, TraceScope::Read, form, None, &StateOverrides::default());
    match node.trace_in(form, &calls).await? {
        Some(trace) if trace.touched.contains_key(&empty) => Ok(true),
        Some(_) => {
            tracing::warn!(form = ?form, "the node leaves empty accounts out of its traces");
            Ok(false)
        }
        None => Ok(false),
    }
}
