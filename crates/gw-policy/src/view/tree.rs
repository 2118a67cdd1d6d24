//! Call trees for clients (spec/20 section 9, class TRACE; decision 6): in the callTracer's form, what is out of the viewer's
//! reach cut off, what is left masked like internal transactions (spec/30 section 5).
//!
//! A frame is cut with everything below it where code runs that the viewer does not reach. A wallet that is not Full stands
//! as nobody, and what passed between it and the other side is left out.

use super::{
    error::DisclosedError,
    malformed_as,
    scan::{Malformed, Scan},
    transaction::{NOBODY, Transaction},
};
use crate::{
    access::TraceVerdict,
    knobs::AdminTx,
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{Admission, Viewer},
};
use alloy_primitives::hex;
use gw_evm::{
    code::delegation,
    trace::{Frame, FrameKind, Trace},
};
use gw_types::{Address, U256};
use std::fmt::Write as _;

/// `debug_traceCall`: the tree of a judged run.
pub fn call_tree(viewer: &Viewer<'_>, verdict: &TraceVerdict) -> Disclosed {
    Tree::new(viewer, verdict.trace(), false).disclosed()
}

/// The block of a transaction that this viewer may see the execution of: as a party, or as administrator of the contract
/// it was sent to. `None` for everybody else and for what is unknown; `Some(None)` while it is not mined.
#[must_use]
pub fn traceable(viewer: &Viewer<'_>, transaction: &Sealed<RawJson>) -> Option<Option<u64>> {
    admitted(viewer, transaction).ok().map(|(_, block)| block)
}

/// `debug_traceTransaction`: the tree of a mined transaction for somebody admitted to it; `None` for others.
#[must_use]
pub fn mined_call_tree(viewer: &Viewer<'_>, transaction: &Sealed<RawJson>, trace: Sealed<Trace>) -> Option<Disclosed> {
    let (admission, _) = admitted(viewer, transaction).ok()?;
    let payload_hidden = match admission {
        Admission::Participant => false,
        // K7: the payload may name the sender.
        Admission::OrgAdmin => viewer.knobs().admin_tx == AdminTx::Masked,
        Admission::Shared | Admission::None => return None,
    };
    Some(malformed_as(Disclosed::NULL, || {
        let trace = trace.open();
        let mut tree = Tree::new(viewer, &trace, payload_hidden);
        tree.is_party = admission == Admission::Participant;
        Ok(tree.disclosed())
    }))
}

fn admitted(viewer: &Viewer<'_>, transaction: &Sealed<RawJson>) -> Result<(Admission, Option<u64>), Malformed> {
    let text = Scan::whole(transaction.peek().text().ok_or(Malformed)?)?;
    let transaction = Transaction::read(&mut Scan::new(text))?;
    match transaction.admission(viewer)? {
        admission @ (Admission::Participant | Admission::OrgAdmin) => Ok((admission, transaction.block_number()?)),
        Admission::Shared | Admission::None => Err(Malformed),
    }
}

struct Tree<'a> {
    viewer: &'a Viewer<'a>,
    trace: &'a Trace,
    /// The calls of each frame.
    below: Vec<Vec<usize>>,
    /// Whether the viewer is a party: both parties are known to them.
    is_party: bool,
    /// Whether calldata, output and values are left out everywhere (K7).
    payload_hidden: bool,
}

/// How much of a frame shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// All of it.
    Open,
    /// That it was entered, but nothing of what it did.
    Entry,
    /// Nothing.
    Cut,
}

impl<'a> Tree<'a> {
    fn new(viewer: &'a Viewer<'a>, trace: &'a Trace, payload_hidden: bool) -> Self {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); trace.frames.len()];
        for (index, frame) in trace.frames.iter().enumerate() {
            if let Some(calls) = frame.parent.and_then(|parent| below.get_mut(parent)) {
                calls.push(index);
            }
        }
        Self { viewer, trace, below, is_party: true, payload_hidden }
    }

    fn disclosed(&self) -> Disclosed {
        let mut out = String::new();
        // The top frame is the transaction itself, which the viewer knows of.
        let shown = match self.trace.frames.first() {
            Some(top) if self.shown(top) == Shown::Open => Shown::Open,
            Some(_) | None => Shown::Entry,
        };
        self.write(0, shown, &mut out);
        if out.is_empty() { Disclosed::NULL } else { Disclosed::text(out) }
    }

    fn code(&self, address: Address) -> &[u8] {
        self.trace.touched.get(&address).map_or(&[], |account| &account.code)
    }

    fn is_side_of_top(&self, address: Address) -> bool {
        let sides = self.trace.frames.first().map(|top| [Some(top.from), top.to]);
        self.is_party && sides.is_some_and(|sides| sides.contains(&Some(address)))
    }

    /// Whether the address may be named.
    fn names(&self, address: Address) -> bool {
        self.viewer.sees(address) || self.is_side_of_top(address) || self.is_new(address)
    }

    /// Code that the viewer's own run put where there is none, and nobody registered.
    fn is_new(&self, address: Address) -> bool {
        let here = |frame: &Frame| frame.is_creation() && frame.to == Some(address);
        self.is_party && !self.viewer.is_registered(address) && self.trace.frames.iter().any(here)
    }

    fn shown(&self, frame: &Frame) -> Shown {
        let Some(to) = frame.to else { return Shown::Open };
        let delegate = delegation(self.code(to));
        let runs_reached = |address| self.viewer.sees(address) || self.is_new(address);
        if runs_reached(to) {
            // What an own wallet runs is its delegate's.
            return if delegate.is_none_or(runs_reached) { Shown::Open } else { Shown::Entry };
        }
        let wallet = !self.viewer.is_registered(to) && (self.code(to).is_empty() || delegate.is_some());
        if wallet { Shown::Entry } else { Shown::Cut }
    }

    fn write(&self, index: usize, shown: Shown, out: &mut String) {
        let Some(frame) = self.trace.frames.get(index) else { return };
        let names_from = self.names(frame.from);
        let names_to = frame.to.is_none_or(|to| self.names(to));
        let passes = names_from && names_to && !self.payload_hidden;
        let text = |known: bool, address: Address| {
            if known { format!("\"{address:#x}\"") } else { NOBODY.to_owned() }
        };
        // Writing to a string cannot fail.
        let _ = write!(out, "{{\"from\":{}", text(names_from, frame.from));
        let _ = write!(out, ",\"gas\":\"{:#x}\"", frame.gas.unwrap_or_default());
        let _ = write!(out, ",\"gasUsed\":\"{:#x}\"", frame.gas_used.unwrap_or_default());
        if let Some(to) = frame.to {
            let _ = write!(out, ",\"to\":{}", text(names_to, to));
        }
        let input: &[u8] = if passes { &frame.input } else { &[] };
        let _ = write!(out, ",\"input\":\"{}\"", hex::encode_prefixed(input));
        if shown == Shown::Open && passes {
            if !frame.output.is_empty() {
                let _ = write!(out, ",\"output\":\"{}\"", hex::encode_prefixed(&frame.output));
            }
            if let Some(error) = &frame.error {
                let error = DisclosedError::known(-32000, error);
                let _ = write!(out, ",\"error\":\"{}\"", error.plain());
            }
        }
        if shown == Shown::Open {
            self.write_calls(index, out);
        }
        if !matches!(frame.kind, FrameKind::StaticCall) {
            let value = if passes { frame.value } else { U256::ZERO };
            let _ = write!(out, ",\"value\":\"{value:#x}\"");
        }
        let _ = write!(out, ",\"type\":\"{}\"}}", name(frame.kind));
    }

    fn write_calls(&self, index: usize, out: &mut String) {
        let mut any = false;
        for call in self.below.get(index).into_iter().flatten() {
            let Some(shown) = self.trace.frames.get(*call).map(|frame| self.shown(frame)) else { continue };
            if shown == Shown::Cut {
                continue;
            }
            out.push_str(if any { "," } else { ",\"calls\":[" });
            any = true;
            self.write(*call, shown, out);
        }
        if any {
            out.push(']');
        }
    }
}

const fn name(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Call => "CALL",
        FrameKind::StaticCall => "STATICCALL",
        FrameKind::DelegateCall => "DELEGATECALL",
        FrameKind::CallCode => "CALLCODE",
        FrameKind::Create => "CREATE",
        FrameKind::Create2 => "CREATE2",
        FrameKind::SelfDestruct => "SELFDESTRUCT",
    }
}
