//! Code pins of shared infrastructure (spec/20 X6, D3; HD9): a tag is about code, not about an address.

use crate::{
    sealed::{RawJson, Sealed},
    snapshot::Snapshot,
};
use alloy_primitives::keccak256;
use gw_evm::trace::Trace;
use gw_types::{Address, B256, Bytes};

/// A shared address and the hash of the code found there, which is not the pinned one.
pub type BrokenPin = (Address, B256);

/// Whether the code at a shared address, as the node answered `eth_getCode`, is the pinned one. Without a pin any is;
/// what cannot be read is none, and is no finding either.
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

/// Shared addresses that the trace shows with other code than their pin: to be reported, for the tag is void.
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
