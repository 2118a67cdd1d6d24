//! Code pins of shared infrastructure (spec/20 X6, D3; HD9): a tag applies to the pinned code, not to the address.

use crate::{
    sealed::{RawJson, Sealed},
    snapshot::Snapshot,
};
use alloy_primitives::keccak256;
use gw_evm::trace::Trace;
use gw_types::{Address, B256, Bytes};

/// A shared address and the keccak256 of the code there, which is not the pinned code.
pub type BrokenPin = (Address, B256);

/// Checks that the code at a shared address, a result of `eth_getCode`, is the pinned code. Without a pin any code
/// passes.
///
/// # Errors
/// `Some` with the broken pin if the code differs; `None` if the address is not shared or the result cannot be parsed.
pub fn check_pin(snapshot: &Snapshot, address: Address, code: &Sealed<RawJson>) -> Result<(), Option<BrokenPin>> {
    let shared = snapshot.shared(address).ok_or(None)?;
    let Some(pin) = shared.pin else { return Ok(()) };
    let code = code
        .peek()
        .text()
        .and_then(|text| serde_json::from_str::<Bytes>(text).ok())
        .ok_or(None)?;
    if pin.is_code(&code) {
        Ok(())
    } else {
        Err(Some((address, keccak256(&code))))
    }
}

/// Shared addresses whose code in the trace is not the pinned code. They are to be reported, since their tag no longer
/// applies.
pub fn broken_pins(snapshot: &Snapshot, trace: &Sealed<Trace>) -> Vec<BrokenPin> {
    let touched = trace.peek().touched.iter();
    let broken = touched.filter(|(address, account)| {
        let pin = snapshot.shared(**address).and_then(|shared| shared.pin);
        pin.is_some_and(|pin| !pin.is_code(&account.code))
    });
    broken
        .map(|(address, account)| (*address, keccak256(&account.code)))
        .collect()
}
