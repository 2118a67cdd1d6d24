//! Evaluates a mined transaction and attributes a violation (HD2, HD38).
//!
//! A payee can delegate its wallet, or deploy code at its address, after the send was traced and before it is mined.
//! The transaction then enters that late code. The code may store what it reads of its caller, so the transaction is
//! convicted. The violation is not attributed to the sender, who is not suspended.

use super::{
    mined::MinedSend,
    trace::{AddressClass, TraceEvaluator},
};
use crate::{principal::Principal, settings::PolicySettings, snapshot::Snapshot};
use gw_evm::{
    code::delegation,
    trace::{Change, Frame, Trace},
};
use gw_types::{Address, Bytes, DenyReason, UserId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A user id that no row has.
pub(super) const NOBODY: UserId = UserId::fixed(0);

/// Why a transaction is convicted, and whether the violation is attributed to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: DenyReason,
    pub(super) by_sender: bool,
}

/// A mined transaction under evaluation.
pub(super) struct MinedTransaction<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) send: &'a MinedSend<'a>,
    pub(super) principal: &'a Principal,
    pub(super) trace: &'a Trace,
    pub(super) policy_settings: &'a PolicySettings,
}

/// A frame that enters late code.
#[derive(Clone, Copy, Debug)]
struct LateEntry {
    frame: usize,
    address: Address,
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
            by_sender: true,
        })?;
        let run = TraceEvaluator::for_mined(
            self.snapshot,
            self.send,
            self.principal.clone(),
            self.trace,
            self.policy_settings,
        );
        let Err(reason) = run
            .evaluate()
            .and_then(|()| run.approved_creations())
            .and_then(|()| run.upgrades(changes))
        else {
            return Ok(());
        };
        let entries = self.late_entries(&run);
        let by_sender = entries.is_empty() || self.evaluate_sender_part(&run, &entries, changes).is_err();
        Err(Violation { reason, by_sender })
    }

    /// The topmost frames that enter late code: wallets that others delegated, contracts deployed after the send was
    /// traced, and contracts whose creation is withheld.
    fn late_entries(&self, run: &TraceEvaluator<'_>) -> Vec<LateEntry> {
        let is_unknown = |address: Address| {
            let is_foreign_wallet = delegation(run.code(address)).is_some()
                && address != self.send.sender
                && !self.principal.owns(self.snapshot, address);
            let has_withheld_creation = || {
                self.snapshot
                    .withheld_before(address, self.send.at)
                    .any(|change| change.created)
            };
            is_foreign_wallet || self.send.came.contains(&address) || has_withheld_creation()
        };
        // For each frame, whether it is late code or below late code.
        let mut is_late: Vec<bool> = Vec::with_capacity(self.trace.frames.len());
        let mut entries = Vec::new();
        for (index, frame) in self.trace.frames.iter().enumerate() {
            let is_below = frame
                .parent
                .and_then(|parent| is_late.get(parent))
                .copied()
                .unwrap_or_default();
            let entered = frame
                .to
                .filter(|to| !is_below && !frame.is_creation() && is_unknown(*to));
            if let Some(address) = entered {
                entries.push(LateEntry { frame: index, address });
            }
            is_late.push(is_below || entered.is_some());
        }
        entries
    }

    /// Evaluates the trace without the frames of late code, as if the entered addresses were plain wallets.
    fn evaluate_sender_part(
        &self,
        run: &TraceEvaluator<'_>,
        entries: &[LateEntry],
        changes: &BTreeMap<Address, Change>,
    ) -> Result<(), DenyReason> {
        let below = self.below(entries);
        let keeps_frame = |index: usize| !below.contains(&index) || entries.iter().any(|entry| entry.frame == index);
        let entered: HashSet<Address> = entries.iter().map(|entry| entry.address).collect();
        let sender_named = self.named(run, |index| !below.contains(&index));
        let late_named = self.named(run, |index| below.contains(&index));
        let keeps_account = |address: &Address| {
            sender_named.contains(address)
                || entered.contains(address)
                || [self.send.sender, self.send.coinbase].contains(address)
        };
        let mut part = subtrace(self.trace, keeps_frame, |address| keeps_account(address));
        for (_, account) in part
            .touched
            .iter_mut()
            .filter(|(address, _)| entered.contains(*address))
        {
            account.code = Bytes::new();
        }
        let mut evaluator = TraceEvaluator::for_mined(
            self.snapshot,
            self.send,
            self.principal.clone(),
            &part,
            self.policy_settings,
        );
        let class_of = |address: &Address| {
            let is_own = self.principal.owns(self.snapshot, *address);
            (
                *address,
                if is_own {
                    AddressClass::Own
                } else {
                    AddressClass::Wallet
                },
            )
        };
        evaluator.class_overrides = entered.iter().map(class_of).collect();
        evaluator.evaluate()?;
        let changes = changes
            .iter()
            .filter(|(address, _)| !late_named.contains(*address) || sender_named.contains(*address));
        evaluator.upgrades(&changes.map(|(address, change)| (*address, change.clone())).collect())
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

    /// The addresses that the selected frames name, with the addresses whose code runs at them.
    fn named(&self, run: &TraceEvaluator<'_>, selects: impl Fn(usize) -> bool) -> HashSet<Address> {
        let frames = self
            .trace
            .frames
            .iter()
            .enumerate()
            .filter(|(index, _)| selects(*index));
        let addresses = |frame: &Frame| [Some(frame.from), frame.to].into_iter().flatten().collect::<Vec<_>>();
        frames
            .flat_map(|(_, frame)| addresses(frame))
            .flat_map(|address| run.runs_at(address).collect::<Vec<_>>())
            .collect()
    }
}

/// The part of a trace with the selected frames and touched accounts.
fn subtrace(trace: &Trace, keeps_frame: impl Fn(usize) -> bool, keeps_account: impl Fn(&Address) -> bool) -> Trace {
    let mut new_indexes: HashMap<usize, usize> = HashMap::new();
    let mut frames: Vec<Frame> = Vec::new();
    for (index, frame) in trace.frames.iter().enumerate().filter(|(index, _)| keeps_frame(*index)) {
        new_indexes.insert(index, frames.len());
        let parent = frame.parent.and_then(|parent| new_indexes.get(&parent)).copied();
        frames.push(Frame {
            parent,
            ..frame.clone()
        });
    }
    let touched = trace.touched.iter().filter(|(address, _)| keeps_account(address));
    Trace {
        frames,
        touched: touched.map(|(address, account)| (*address, account.clone())).collect(),
        changes: None,
        top: trace.top.clone(),
    }
}
