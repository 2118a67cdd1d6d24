//! Call trees for clients (spec/20 section 9, class TRACE; decision 6): in the callTracer's form, what is out of the viewer's
//! reach cut off, what is left masked like internal transactions (spec/30 section 5).
//!
//! A frame is cut with everything below it where code runs that the viewer does not reach. A wallet that is not Full stands
//! as nobody, and what passed between it and the other side is left out. With somebody beside the viewer, what shows is what
//! both see (HD7, HD40).

use super::{
    Parties,
    error::DisclosedError,
    malformed_as,
    scan::{Malformed, Scan},
    transaction::{NOBODY, Transaction},
};
use crate::{
    access::TraceVerdict,
    knobs::AdminTx,
    sealed::{Disclosed, RawJson, Sealed},
    snapshot::Moment,
    visibility::{Admission, Person, Viewer},
};
use alloy_primitives::hex;
use gw_evm::{
    code::delegation,
    trace::{Frame, FrameKind, Trace},
};
use gw_types::Address;
use std::fmt::Write as _;

/// `debug_traceCall`: the tree of a judged run.
pub fn call_tree(viewer: &Viewer<'_>, verdict: &TraceVerdict) -> Disclosed {
    let trace = verdict.trace();
    let tree = Tree::new(
        viewer,
        trace,
        Party {
            is_party: true,
            payload_hidden: false,
            moment: Moment::Now,
        },
    );
    let sender = trace.frames.first().map(|top| top.from);
    tree.beside(viewer, |operator| {
        // K7: of somebody else's run the payload may name the sender.
        let knows = sender.is_none_or(|sender| operator.sees(sender));
        let payload_hidden = !knows && operator.knobs.admin_tx == AdminTx::Masked;
        Party {
            is_party: knows,
            payload_hidden,
            moment: Moment::Now,
        }
    })
    .disclosed()
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
    let (parties, _) = admitted(viewer, transaction).ok()?;
    let moment = parties.moment;
    let party = |person: &Person<'_>| match parties.admission_of(person) {
        Admission::Participant => Party {
            is_party: true,
            payload_hidden: false,
            moment,
        },
        // K7: the payload may name the sender.
        Admission::OrgAdmin | Admission::Shared | Admission::None => Party {
            is_party: false,
            payload_hidden: person.knobs.admin_tx == AdminTx::Masked,
            moment,
        },
    };
    Some(malformed_as(Disclosed::NULL, || {
        let trace = trace.open();
        Ok(Tree::new(viewer, &trace, party(viewer.person()))
            .beside(viewer, party)
            .disclosed())
    }))
}

fn admitted(viewer: &Viewer<'_>, transaction: &Sealed<RawJson>) -> Result<(Parties, Option<u64>), Malformed> {
    let text = Scan::whole(transaction.peek().text().ok_or(Malformed)?)?;
    let transaction = Transaction::read(&mut Scan::new(text))?;
    let parties = transaction.parties()?;
    let traces = |person: &Person<'_>| match parties.admission_of(person) {
        Admission::Participant | Admission::OrgAdmin => true,
        Admission::Shared | Admission::None => false,
    };
    if viewer.all(traces) {
        Ok((parties, transaction.block_number()?))
    } else {
        Err(Malformed)
    }
}

struct Tree<'a, 's> {
    trace: &'a Trace,
    /// The calls of each frame.
    below: Vec<Vec<usize>>,
    person: Eyes<'a, 's>,
    beside: Option<Eyes<'a, 's>>,
}

/// What somebody is to the transaction.
#[derive(Clone, Copy)]
struct Party {
    /// Whether they are a party: both parties are known to them.
    is_party: bool,
    /// Whether calldata, output and values are left out everywhere (K7).
    payload_hidden: bool,
    /// When it was carried out: whose code ran is asked of that moment (HD41).
    moment: Moment,
}

/// One person looking at the trace.
struct Eyes<'a, 's> {
    viewer: &'a Person<'s>,
    trace: &'a Trace,
    party: Party,
}

/// How much of a frame shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    /// Nothing.
    Cut,
    /// That it was entered, but nothing of what it did.
    Entry,
    /// All of it.
    Open,
}

impl<'a, 's> Tree<'a, 's> {
    fn new(viewer: &'a Viewer<'s>, trace: &'a Trace, party: Party) -> Self {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); trace.frames.len()];
        for (index, frame) in trace.frames.iter().enumerate() {
            if let Some(calls) = frame.parent.and_then(|parent| below.get_mut(parent)) {
                calls.push(index);
            }
        }
        Self {
            trace,
            below,
            person: Eyes {
                viewer: viewer.person(),
                trace,
                party,
            },
            beside: None,
        }
    }

    fn beside(mut self, viewer: &'a Viewer<'s>, party: impl Fn(&Person<'s>) -> Party) -> Self {
        let trace = self.trace;
        self.beside = viewer.operator().map(|viewer| Eyes {
            viewer,
            trace,
            party: party(viewer),
        });
        self
    }

    /// Whether it shows to everybody who looks.
    fn shows(&self, test: impl Fn(&Eyes<'a, 's>) -> bool) -> bool {
        test(&self.person) && self.beside.as_ref().is_none_or(test)
    }

    fn shown(&self, frame: &Frame) -> Shown {
        let own = self.person.shown(frame);
        self.beside.as_ref().map_or(own, |beside| beside.shown(frame).min(own))
    }

    fn disclosed(&self) -> Disclosed {
        let mut out = String::new();
        // The top frame is the transaction itself, which the viewer knows of.
        let shown = match self.trace.frames.first() {
            Some(top) if self.shown(top) == Shown::Open => Shown::Open,
            Some(_) | None => Shown::Entry,
        };
        self.write(0, shown, &mut out);
        if out.is_empty() {
            Disclosed::NULL
        } else {
            Disclosed::text(out)
        }
    }

    fn write(&self, index: usize, shown: Shown, out: &mut String) {
        let Some(frame) = self.trace.frames.get(index) else {
            return;
        };
        let passes = self.shows(|eyes| eyes.passes(frame));
        let text =
            |shows: bool, text: &dyn Fn() -> String, hidden: &str| if shows { text() } else { hidden.to_owned() };
        let named = |address: Address| {
            text(
                self.shows(|eyes| eyes.names(address)),
                &|| format!("\"{address:#x}\""),
                NOBODY,
            )
        };
        // Writing to a string cannot fail.
        let _ = write!(out, "{{\"from\":{}", named(frame.from));
        let _ = write!(out, ",\"gas\":\"{:#x}\"", frame.gas.unwrap_or_default());
        let _ = write!(out, ",\"gasUsed\":\"{:#x}\"", frame.gas_used.unwrap_or_default());
        if let Some(to) = frame.to {
            let _ = write!(out, ",\"to\":{}", named(to));
        }
        let input = text(
            passes,
            &|| format!("\"{}\"", hex::encode_prefixed(&frame.input)),
            "\"0x\"",
        );
        let _ = write!(out, ",\"input\":{input}");
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
            let value = text(passes, &|| format!("\"{:#x}\"", frame.value), "\"0x0\"");
            let _ = write!(out, ",\"value\":{value}");
        }
        let _ = write!(out, ",\"type\":\"{}\"}}", name(frame.kind));
    }

    fn write_calls(&self, index: usize, out: &mut String) {
        let mut any = false;
        for call in self.below.get(index).into_iter().flatten() {
            let Some(frame) = self.trace.frames.get(*call) else {
                continue;
            };
            let shown = self.shown(frame);
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

impl Eyes<'_, '_> {
    fn code(&self, address: Address) -> &[u8] {
        self.trace.touched.get(&address).map_or(&[], |account| &account.code)
    }

    fn is_registered(&self, address: Address) -> bool {
        self.viewer.snapshot.owner(address).is_some()
    }

    fn is_side_of_top(&self, address: Address) -> bool {
        let sides = self.trace.frames.first().map(|top| [Some(top.from), top.to]);
        self.party.is_party && sides.is_some_and(|sides| sides.contains(&Some(address)))
    }

    /// Whether the address may be named.
    fn names(&self, address: Address) -> bool {
        let is_known = self.viewer.sees(address) || self.viewer.sees_at(address, self.party.moment);
        is_known || self.is_side_of_top(address) || self.is_new(address)
    }

    /// Whether what passed between the sides of a frame shows.
    fn passes(&self, frame: &Frame) -> bool {
        self.names(frame.from) && frame.to.is_none_or(|to| self.names(to)) && !self.party.payload_hidden
    }

    /// Code that the viewer's own run put where there is none, and nobody registered.
    fn is_new(&self, address: Address) -> bool {
        let here = |frame: &Frame| frame.is_creation() && frame.to == Some(address);
        self.party.is_party && !self.is_registered(address) && self.trace.frames.iter().any(here)
    }

    fn shown(&self, frame: &Frame) -> Shown {
        let Some(to) = frame.to else { return Shown::Open };
        let delegate = delegation(self.code(to));
        let runs_reached = |address| {
            // RT18: a reservation shows no code that is there already.
            let by_reservation = !self.code(address).is_empty() && self.viewer.only_reserves(address);
            (self.viewer.sees_at(address, self.party.moment) && !by_reservation) || self.is_new(address)
        };
        if runs_reached(to) {
            // What an own wallet runs is its delegate's.
            return if delegate.is_none_or(runs_reached) {
                Shown::Open
            } else {
                Shown::Entry
            };
        }
        let wallet = !self.is_registered(to) && (self.code(to).is_empty() || delegate.is_some());
        if wallet { Shown::Entry } else { Shown::Cut }
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
