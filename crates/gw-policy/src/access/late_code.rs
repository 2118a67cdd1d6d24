//! Evaluates a mined transaction and attributes a violation (HD2, HD38).
//!
//! A payee can delegate the wallet, or deploy code at the address, after the send was traced and before it is mined. The
//! transaction then enters that late code. The code may store what it reads of its caller, so the transaction is convicted.
//! The violation is not attributed to the sender, who is not suspended.

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
pub(super) struct Violation {
    pub(super) reason: DenyReason,
    pub(super) of_sender: bool,
}

/// A mined transaction under evaluation.
pub(super) struct MinedTransaction<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) sent: &'a MinedSend<'a>,
    pub(super) member: &'a Member,
    pub(super) trace: &'a Trace,
    pub(super) knobs: &'a Knobs,
}

/// A frame that enters late code.
#[derive(Clone, Copy, Debug)]
struct LateEntry {
    frame: usize,
    at: Address,
}

impl MinedTransaction<'_> {
    /// Evaluates the whole trace by the sender's rights.
    ///
    /// # Errors
    /// The violation, attributed to the sender unless late code explains all of it.
    pub(super) fn evaluate(&self) -> Result<(), Violation> {
        let changes = self.trace.changes.as_ref();
        let changes = changes.ok_or(Violation {
            reason: DenyReason::TracingUnavailable,
            of_sender: true,
        })?;
        let run = Run::mined(self.snapshot, self.sent, self.member.clone(), self.trace, self.knobs);
        let Err(reason) = run
            .judge()
            .and_then(|()| run.approved_creations())
            .and_then(|()| run.upgrades(changes))
        else {
            return Ok(());
        };
        let entries = self.late_entries(&run);
        let of_sender = entries.is_empty() || self.evaluate_sender_part(&run, &entries, changes).is_err();
        Err(Violation { reason, of_sender })
    }

    /// The topmost frames that enter late code: wallets that others delegated, contracts deployed after the send was traced,
    /// and contracts whose creation is withheld.
    fn late_entries(&self, run: &Run<'_>) -> Vec<LateEntry> {
        let is_unknown = |address: Address| {
            let wallet = delegation(run.code(address)).is_some()
                && address != self.sent.sender
                && !self.member.owns(self.snapshot, address);
            let unseen = || {
                self.snapshot
                    .withheld_before(address, self.sent.at)
                    .any(|change| change.created)
            };
            wallet || self.sent.came.contains(&address) || unseen()
        };
        let mut within: Vec<bool> = Vec::with_capacity(self.trace.frames.len());
        let mut entries = Vec::new();
        for (index, frame) in self.trace.frames.iter().enumerate() {
            let is_below = frame
                .parent
                .and_then(|parent| within.get(parent))
                .copied()
                .unwrap_or_default();
            let at = frame
                .to
                .filter(|to| !is_below && !frame.is_creation() && is_unknown(*to));
            if let Some(at) = at {
                entries.push(LateEntry { frame: index, at });
            }
            within.push(is_below || at.is_some());
        }
        entries
    }

    /// Evaluates the trace without the frames of late code, as if the entered addresses were plain wallets.
    fn evaluate_sender_part(
        &self,
        run: &Run<'_>,
        entries: &[LateEntry],
        changes: &BTreeMap<Address, Change>,
    ) -> Result<(), DenyReason> {
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
        let mut part = subtrace(self.trace, kept, |address| is_sides(address));
        for (_, account) in part
            .touched
            .iter_mut()
            .filter(|(address, _)| entered.contains(*address))
        {
            account.code = Bytes::new();
        }
        let mut judged = Run::mined(self.snapshot, self.sent, self.member.clone(), &part, self.knobs);
        let place = |address: &Address| {
            let own = self.member.owns(self.snapshot, *address);
            (*address, if own { Place::Own } else { Place::Wallet })
        };
        judged.excused = entered.iter().map(place).collect();
        judged.judge()?;
        let changes = changes
            .iter()
            .filter(|(address, _)| !theirs.contains(*address) || own.contains(*address));
        judged.upgrades(&changes.map(|(address, change)| (*address, change.clone())).collect())
    }

    /// The frames of these entries and below them.
    fn below(&self, entries: &[LateEntry]) -> HashSet<usize> {
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
        frames
            .flat_map(|(_, frame)| of(frame))
            .flat_map(|address| run.runs_at(address).collect::<Vec<_>>())
            .collect()
    }
}

/// The part of a trace with the selected frames and touched accounts.
fn subtrace(trace: &Trace, keep: impl Fn(usize) -> bool, shows: impl Fn(&Address) -> bool) -> Trace {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut frames: Vec<Frame> = Vec::new();
    for (index, frame) in trace.frames.iter().enumerate().filter(|(index, _)| keep(*index)) {
        places.insert(index, frames.len());
        let parent = frame.parent.and_then(|parent| places.get(&parent)).copied();
        frames.push(Frame {
            parent,
            ..frame.clone()
        });
    }
    let touched = trace.touched.iter().filter(|(address, _)| shows(address));
    Trace {
        frames,
        touched: touched.map(|(address, account)| (*address, account.clone())).collect(),
        changes: None,
        top: trace.top.clone(),
    }
}
