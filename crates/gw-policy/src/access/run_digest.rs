//! Digest of everything in an execution that rights depend on, to find out whether a mined transaction ran as its
//! authorized trace did (HD2, HD38).

use crate::sealed::Sealed;
use alloy_primitives::{B256, Keccak256};
use gw_evm::trace::{Frame, FrameKind, Trace};
use gw_types::Address;
use std::collections::BTreeSet;

/// Digest of everything that the evaluation of a trace reads: its frames with their inputs, the touched accounts with
/// their code, the written slots. Two executions with equal digests need the same rights.
///
/// Nodes list the block's beneficiary in every trace, and it changes from block to block. It is part of the digest only
/// if a frame names it.
#[must_use]
pub fn run_digest(sealed: &Sealed<Trace>, coinbase: Address) -> B256 {
    let trace = sealed.peek();
    let mut hasher = Keccak256::new();
    let named: BTreeSet<Address> = trace
        .frames
        .iter()
        .flat_map(|frame| [Some(frame.from), frame.to])
        .flatten()
        .collect();
    hasher.update(len(trace.frames.len()));
    for frame in &trace.frames {
        add_frame(&mut hasher, frame);
    }
    let counts = |address: &Address| *address != coinbase || named.contains(address);
    for (address, account) in trace.touched.iter().filter(|(address, _)| counts(address)) {
        hasher.update(address);
        add_bytes(&mut hasher, &account.code);
    }
    for (address, change) in trace.changes.iter().flatten() {
        for slot in change.storage.keys() {
            hasher.update(address);
            hasher.update(slot);
        }
        if change.removed {
            hasher.update(address);
        }
    }
    hasher.finalize()
}

fn add_frame(hasher: &mut Keccak256, frame: &Frame) {
    let kind = match frame.kind {
        FrameKind::Call => 0_u8,
        FrameKind::StaticCall => 1,
        FrameKind::DelegateCall => 2,
        FrameKind::CallCode => 3,
        FrameKind::Create => 4,
        FrameKind::Create2 => 5,
        FrameKind::SelfDestruct => 6,
    };
    hasher.update([
        kind,
        u8::from(frame.failed),
        u8::from(frame.undone),
        u8::from(frame.to.is_some()),
    ]);
    hasher.update(frame.depth.to_be_bytes());
    hasher.update(frame.from);
    hasher.update(frame.to.unwrap_or_default());
    hasher.update(frame.value.to_be_bytes::<32>());
    add_bytes(hasher, &frame.input);
    // The output of a creation is the created code, which later frames run.
    if frame.is_creation() {
        add_bytes(hasher, &frame.output);
    }
}

/// Adds the bytes after their length, so that the encoding of consecutive byte strings is unambiguous.
fn add_bytes(hasher: &mut Keccak256, bytes: &[u8]) {
    hasher.update(len(bytes.len()));
    hasher.update(bytes);
}

const fn len(length: usize) -> [u8; 8] {
    (length as u64).to_be_bytes()
}
