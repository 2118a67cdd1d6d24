//! Who answers for what a mined transaction did (HD2, HD38): its sender for what could be known when it was judged.
//!
//! Between the trace and the block a payee may delegate their wallet, or put code at their address. An honest transaction enters
//! that code then. What the code learns of its caller it may keep, so the transaction is convicted all the same; but it is not
//! its sender's doing, who goes on sending.

use super::{
    mined::MinedSend,
    target::Member,
    trace::{Place, Run},
};
use crate::{knobs::Knobs, snapshot::Snapshot};
use gw_evm::{
    code::delegation,
    trace::{Change, Frame, Trace},
};
use gw_types::{Address, Bytes, DenyReason, UserId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// No row has it.
pub(super) const NOBODY: UserId = UserId::fixed(0);

/// Why a transaction is convicted, and whether that is its sender's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: DenyReason,
    pub(super) of_sender: bool,
}

/// One mined transaction to be judged.
pub(super) struct Deed<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) sent: &'a MinedSend<'a>,
    pub(super) member: &'a Member,
    pub(super) trace: &'a Trace,
    pub(super) knobs: &'a Knobs,
}

/// Code of others that a frame enters.
#[derive(Clone, Copy, Debug)]
struct Entry {
    frame: usize,
    at: Address,
}

impl Deed<'_> {
    /// Judged as its sender's; what is not the sender's doing by whose it is.
    pub(super) fn judge(&self) -> Result<(), Fault> {
        let changes = self.trace.changes.as_ref();
        let changes = changes.ok_or(Fault { reason: DenyReason::TracingUnavailable, of_sender: true })?;
        let run = Run::mined(self.snapshot, self.sent, self.member.clone(), self.trace, self.knobs);
        let Err(reason) = run.judge().and_then(|()| run.upgrades(changes)) else { return Ok(()) };
        let entries = self.entries(&run);
        let of_sender = entries.is_empty() || self.without(&run, &entries, changes).is_err();
        Err(Fault { reason, of_sender })
    }

    /// Where code is entered that the sender could not know: of wallets that others delegated, of contracts that came after
    /// the send was judged, or that nobody is shown.
    fn entries(&self, run: &Run<'_>) -> Vec<Entry> {
        let is_unknown = |address: Address| {
            let wallet = delegation(run.code(address)).is_some()
                && address != self.sent.sender
                && !self.member.owns(self.snapshot, address);
            let unseen = || self.snapshot.withheld_before(address, self.sent.at).any(|change| change.created);
            wallet || self.sent.came.contains(&address) || unseen()
        };
        let mut within: Vec<bool> = Vec::with_capacity(self.trace.frames.len());
        let mut entries = Vec::new();
        for (index, frame) in self.trace.frames.iter().enumerate() {
            let is_below = frame.parent.and_then(|parent| within.get(parent)).copied().unwrap_or_default();
            let at = frame.to.filter(|to| !is_below && !frame.is_creation() && is_unknown(*to));
            if let Some(at) = at {
                entries.push(Entry { frame: index, at });
            }
            within.push(is_below || at.is_some());
        }
        entries
    }

    /// The sender's own part, as if these entries had met wallets: whatever may be theirs is left out.
    fn without(&self, run: &Run<'_>, entries: &[Entry], changes: &BTreeMap<Address, Change>) -> Result<(), DenyReason> {
        let below = self.below(entries);
        let kept = |index: usize| !below.contains(&index) || entries.iter().any(|entry| entry.frame == index);
        let entered: HashSet<Address> = entries.iter().map(|entry| entry.at).collect();
        let own = self.named(run, |index| !below.contains(&index));
        let theirs = self.named(run, |index| below.contains(&index));
        let is_sides = |address: &Address| {
            own.contains(address)
                || entered.contains(address)
                || [self.sent.sender, self.sent.coinbase].contains(address)
        };
        let mut part = part(self.trace, kept, |address| is_sides(address));
        for (_, account) in part.touched.iter_mut().filter(|(address, _)| entered.contains(*address)) {
            account.code = Bytes::new();
        }
        let mut judged = Run::mined(self.snapshot, self.sent, self.member.clone(), &part, self.knobs);
        let place = |address: &Address| {
            let own = self.member.owns(self.snapshot, *address);
            (*address, if own { Place::Own } else { Place::Wallet })
        };
        judged.excused = entered.iter().map(place).collect();
        judged.judge()?;
        let changes = changes.iter().filter(|(address, _)| !theirs.contains(*address) || own.contains(*address));
        judged.upgrades(&changes.map(|(address, change)| (*address, change.clone())).collect())
    }

    /// The frames of these entries and below them.
    fn below(&self, entries: &[Entry]) -> HashSet<usize> {
        let mut below: HashSet<usize> = entries.iter().map(|entry| entry.frame).collect();
        for (index, frame) in self.trace.frames.iter().enumerate() {
            if frame.parent.is_some_and(|parent| below.contains(&parent)) {
                below.insert(index);
            }
        }
        below
    }

    /// The addresses that these frames name, and what runs at them.
    fn named(&self, run: &Run<'_>, which: impl Fn(usize) -> bool) -> HashSet<Address> {
        let frames = self.trace.frames.iter().enumerate().filter(|(index, _)| which(*index));
        let of = |frame: &Frame| [Some(frame.from), frame.to].into_iter().flatten().collect::<Vec<_>>();
        frames.flat_map(|(_, frame)| of(frame)).flat_map(|address| run.runs_at(address).collect::<Vec<_>>()).collect()
    }
}

/// A part of a trace: these frames, and of what was touched these accounts.
fn part(trace: &Trace, keep: impl Fn(usize) -> bool, shows: impl Fn(&Address) -> bool) -> Trace {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut frames: Vec<Frame> = Vec::new();
    for (index, frame) in trace.frames.iter().enumerate().filter(|(index, _)| keep(*index)) {
        places.insert(index, frames.len());
        let parent = frame.parent.and_then(|parent| places.get(&parent)).copied();
        frames.push(Frame { parent, ..frame.clone() });
    }
    let touched = trace.touched.iter().filter(|(address, _)| shows(address));
    Trace {
        frames,
        touched: touched.map(|(address, account)| (*address, account.clone())).collect(),
        changes: None,
        top: trace.top.clone(),
    }
}
