//! Call trees for clients (spec/20 section 9, class TRACE; decision 6) in the format of geth's callTracer.
//! [`FrameViewer`] evaluates the visibility of frames.

use super::{
    error::DisclosedError,
    malformed_as,
    scan::{Malformed, Scan},
    transaction::{NOBODY, Transaction},
};
use crate::{
    access::TraceVerdict,
    sealed::{Disclosed, RawJson, Sealed},
    visibility::{ExecutionRow, FrameRow, FrameViewer, FrameVisibility, TransactionRow, Viewer},
};
use alloy_primitives::hex;
use gw_evm::trace::{FrameKind, Trace};
use gw_types::Address;
use std::fmt::Write as _;

/// The result of `debug_traceCall`: the tree of an evaluated execution.
pub fn call_tree(viewer: &Viewer<'_>, verdict: &TraceVerdict) -> Disclosed {
    let trace = verdict.trace();
    let execution = ExecutionRow::from_trace(trace);
    Tree::new(trace, FrameViewer::for_run(viewer, &execution)).disclosed()
}

/// The block number of a transaction whose execution the viewer may see. `None` if the viewer may not, or the
/// transaction is unknown; `Some(None)` while it is not mined.
#[must_use]
pub fn traceable(viewer: &Viewer<'_>, transaction: &Sealed<RawJson>) -> Option<Option<u64>> {
    traceable_row(viewer, transaction).ok().map(|(_, block)| block)
}

/// The result of `debug_traceTransaction`: the tree of a mined transaction. `None` if the viewer may not see its
/// execution.
#[must_use]
pub fn mined_call_tree(viewer: &Viewer<'_>, transaction: &Sealed<RawJson>, trace: Sealed<Trace>) -> Option<Disclosed> {
    let (row, _) = traceable_row(viewer, transaction).ok()?;
    Some(malformed_as(Disclosed::NULL, || {
        let trace = trace.open();
        let execution = ExecutionRow::from_trace(&trace);
        Ok(Tree::new(&trace, FrameViewer::for_transaction(viewer, &execution, &row)).disclosed())
    }))
}

fn traceable_row(
    viewer: &Viewer<'_>,
    transaction: &Sealed<RawJson>,
) -> Result<(TransactionRow, Option<u64>), Malformed> {
    let text = Scan::whole(transaction.peek().text().ok_or(Malformed)?)?;
    let transaction = Transaction::read(&mut Scan::new(text))?;
    let row = transaction.row()?;
    if viewer.may_trace(&row) {
        Ok((row, transaction.block_number()?))
    } else {
        Err(Malformed)
    }
}

struct Tree<'a, 's> {
    trace: &'a Trace,
    /// The indexes of the child frames of each frame.
    calls: Vec<Vec<usize>>,
    viewer: FrameViewer<'a, 's>,
}

impl<'a, 's> Tree<'a, 's> {
    fn new(trace: &'a Trace, viewer: FrameViewer<'a, 's>) -> Self {
        let mut calls: Vec<Vec<usize>> = vec![Vec::new(); trace.frames.len()];
        for (index, frame) in trace.frames.iter().enumerate() {
            if let Some(children) = frame.parent.and_then(|parent| calls.get_mut(parent)) {
                children.push(index);
            }
        }
        Self { trace, calls, viewer }
    }

    fn disclosed(&self) -> Disclosed {
        let mut out = String::new();
        if let Some(top) = self.trace.frames.first() {
            let row = FrameRow::from_frame(self.trace, top);
            self.write(0, &row, self.viewer.top(&row), &mut out);
        }
        if out.is_empty() {
            Disclosed::NULL
        } else {
            Disclosed::text(out)
        }
    }

    fn write(&self, index: usize, row: &FrameRow, visibility: FrameVisibility, out: &mut String) {
        let Some(frame) = self.trace.frames.get(index) else {
            return;
        };
        let content = self.viewer.content(row);
        let text =
            |is_shown: bool, text: &dyn Fn() -> String, hidden: &str| if is_shown { text() } else { hidden.to_owned() };
        let address_text = |address: Address| text(self.viewer.names(address), &|| format!("\"{address:#x}\""), NOBODY);
        // Writing to a string cannot fail.
        let _ = write!(out, "{{\"from\":{}", address_text(frame.from));
        let _ = write!(out, ",\"gas\":\"{:#x}\"", frame.gas.unwrap_or_default());
        let _ = write!(out, ",\"gasUsed\":\"{:#x}\"", frame.gas_used.unwrap_or_default());
        if let Some(to) = frame.to {
            let _ = write!(out, ",\"to\":{}", address_text(to));
        }
        let input = text(
            content.payload,
            &|| format!("\"{}\"", hex::encode_prefixed(&frame.input)),
            "\"0x\"",
        );
        let _ = write!(out, ",\"input\":{input}");
        if self.viewer.shows_outcome(visibility, row) {
            if !frame.output.is_empty() {
                let _ = write!(out, ",\"output\":\"{}\"", hex::encode_prefixed(&frame.output));
            }
            if let Some(error) = &frame.error {
                let error = DisclosedError::known(-32000, error);
                let _ = write!(out, ",\"error\":\"{}\"", error.plain());
            }
        }
        self.write_calls(index, visibility, out);
        if !matches!(frame.kind, FrameKind::StaticCall) {
            let value = text(content.value, &|| format!("\"{:#x}\"", frame.value), "\"0x0\"");
            let _ = write!(out, ",\"value\":{value}");
        }
        let _ = write!(out, ",\"type\":\"{}\"}}", type_name(frame.kind));
    }

    fn write_calls(&self, index: usize, parent: FrameVisibility, out: &mut String) {
        let mut has_calls = false;
        for call in self.calls.get(index).into_iter().flatten() {
            let Some(frame) = self.trace.frames.get(*call) else {
                continue;
            };
            let row = FrameRow::from_frame(self.trace, frame);
            let visibility = self.viewer.frame_below(parent, &row);
            if visibility == FrameVisibility::Cut {
                continue;
            }
            out.push_str(if has_calls { "," } else { ",\"calls\":[" });
            has_calls = true;
            self.write(*call, &row, visibility, out);
        }
        if has_calls {
            out.push(']');
        }
    }
}

const fn type_name(kind: FrameKind) -> &'static str {
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
