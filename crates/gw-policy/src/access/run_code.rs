//! What the code of a run can ask for, what it creates, and what the run tells by that (HD2, HD6, RT9, K8).

use super::{target::standing, trace::Run};
use crate::knobs::Deployments;
use gw_evm::{
    code::{asks_for_beneficiary, probes_accounts, reads_block},
    trace::{Frame, FrameKind},
};
use gw_types::{Address, DenyReason};
use std::collections::{BTreeSet, HashSet};

impl Run<'_> {
    /// HD6: whether code that ran can ask for another account's balance, code or code hash.
    pub(super) fn probes(&self, executed: &HashSet<Address>) -> bool {
        let of_account = executed.iter().any(|address| match self.trace.touched.get(address) {
            Some(account) => probes_accounts(&account.code),
            // A registered contract the node shows no code of: unknown.
            None => self.snapshot.owner(*address).is_some() || self.snapshot.is_tagged_shared(*address),
        });
        let creations = || self.trace.frames.iter().filter(|frame| frame.is_creation());
        of_account || creations().any(|frame| probes_accounts(&frame.input) || probes_accounts(&frame.output))
    }

    /// Whether code that ran may ask for its block. Shared code is a super admin's word (HD9).
    pub(super) fn reads_block(&self) -> bool {
        let entered = self
            .trace
            .frames
            .iter()
            .filter(|frame| !frame.is_creation())
            .filter_map(|frame| frame.to);
        let mut executed = entered
            .flat_map(|address| self.runs_at(address))
            .filter(|address| !self.shared(*address));
        let creations = || self.trace.frames.iter().filter(|frame| frame.is_creation());
        let is_unknown =
            |address: Address| !self.trace.touched.contains_key(&address) && self.snapshot.owner(address).is_some();
        executed.any(|address| is_unknown(address) || reads_block(self.code(address)))
            || creations().any(|frame| reads_block(&frame.input) || reads_block(&frame.output))
    }

    /// Whether the run may look at the block's beneficiary on purpose: code it brought along, the opcode in the executed code, or
    /// the address in what is passed on. Nodes list the beneficiary in every run, which says nothing.
    pub(super) fn may_ask_for_beneficiary(&self, mut executed: impl Iterator<Item = Address>) -> bool {
        let address = self.coinbase.into_array();
        let names = |bytes: &[u8]| bytes.windows(address.len()).any(|window| window == address);
        let creates = self.trace.frames.iter().any(Frame::is_creation);
        creates
            || self.trace.frames.iter().any(|frame| names(&frame.input))
            || executed.any(|at| asks_for_beneficiary(self.code(at)) || names(self.code(at)))
    }

    /// Of these wallets, which are not Full, those whose existence the gas of the run may tell (RT9): if one is paid below
    /// the top frame, or a frame ended otherwise than by a revert, perhaps for want of the gas that a new account costs. A
    /// delegated wallet exists anyway.
    pub(super) fn existence(&self, hidden: BTreeSet<Address>) -> Vec<Address> {
        let is_hidden = |frame: &Frame| frame.to.is_some_and(|to| hidden.contains(&to));
        let pays = |frame: &Frame| match frame.kind {
            FrameKind::Call => frame.parent.is_some() && !frame.value.is_zero(),
            FrameKind::SelfDestruct => true,
            FrameKind::StaticCall
            | FrameKind::DelegateCall
            | FrameKind::CallCode
            | FrameKind::Create
            | FrameKind::Create2 => false,
        };
        let halts = |frame: &Frame| frame.error.as_deref().is_some_and(|error| !error.contains("revert"));
        let tells = |frame: &Frame| halts(frame) || (pays(frame) && is_hidden(frame));
        let is_told = self.trace.frames.iter().any(tells);
        let wallets = hidden
            .into_iter()
            .filter(|wallet| is_told && self.code(*wallet).is_empty());
        wallets.chain(self.paid_creations()).collect()
    }

    /// Created addresses that held a balance before the run. The caller may not read that balance through the created code (K8),
    /// unless the address is reserved for the caller's organization.
    fn paid_creations(&self) -> impl Iterator<Item = Address> {
        self.created.iter().copied().filter(|address| {
            let held = self.trace.touched.get(address);
            let is_paid = held.is_some_and(|account| !account.balance.is_zero());
            is_paid
                && standing(self.snapshot, &self.member, *address, self.knobs)
                    .reserved_in
                    .is_empty()
        })
    }

    /// What the run created below its top frame, and did not undo.
    pub(super) fn kept_creations(&self) -> Vec<Address> {
        let below = self.trace.frames.iter().filter(|frame| frame.parent.is_some());
        below
            .filter(|frame| frame.is_creation() && !frame.undone)
            .filter_map(|frame| frame.to)
            .collect()
    }

    /// HD2: with `DEPLOYMENTS=approved` every creation of a send, at any depth, needs approved creation code.
    pub(super) fn approved_creations(&self) -> Result<(), DenyReason> {
        if self.knobs.deployments == Deployments::Any {
            return Ok(());
        }
        let creations = self
            .trace
            .frames
            .iter()
            .enumerate()
            .filter(|(_, frame)| frame.is_creation());
        for (index, frame) in creations {
            self.looked_at.set(Some((Some(index), frame.to)));
            if !self.snapshot.approves_creation(&frame.input) {
                return Err(DenyReason::CodehashMismatch);
            }
        }
        Ok(())
    }
}
