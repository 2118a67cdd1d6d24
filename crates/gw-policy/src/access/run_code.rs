//! Checks on the code of an execution: what the code can query, what it creates, and what hidden facts the execution
//! may reveal by that (HD2, HD6, RT9, K8).

use super::trace::TraceEvaluator;
use crate::{principal::target_status, settings::Deployments};
use gw_evm::{
    code::{asks_for_beneficiary, probes_accounts, reads_block},
    trace::{Frame, FrameKind},
};
use gw_types::{Address, DenyReason};
use std::collections::{BTreeSet, HashSet};

impl TraceEvaluator<'_> {
    /// HD6: whether code that ran can query another account's balance, code or code hash.
    pub(super) fn probes(&self, executed: &HashSet<Address>) -> bool {
        let in_accounts = executed.iter().any(|address| match self.trace.touched.get(address) {
            Some(account) => probes_accounts(&account.code),
            // The trace shows no code of a registered contract, so it is unknown and may probe.
            None => self.snapshot.owner(*address).is_some() || self.snapshot.is_tagged_shared(*address),
        });
        let creations = || self.trace.frames.iter().filter(|frame| frame.is_creation());
        in_accounts || creations().any(|frame| probes_accounts(&frame.input) || probes_accounts(&frame.output))
    }

    /// Whether code that ran can read block properties. Shared code is exempt because a super admin approved it (HD9).
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

    /// Whether the execution may access the block's beneficiary on purpose: by code that it creates, by the opcode in
    /// executed code, or by the address in code or input. That a trace lists the beneficiary is no evidence, since
    /// nodes list it in every trace.
    pub(super) fn may_ask_for_beneficiary(&self, mut executed: impl Iterator<Item = Address>) -> bool {
        let address = self.coinbase.into_array();
        let names = |bytes: &[u8]| bytes.windows(address.len()).any(|window| window == address);
        let creates = self.trace.frames.iter().any(Frame::is_creation);
        creates
            || self.trace.frames.iter().any(|frame| names(&frame.input))
            || executed.any(|address| asks_for_beneficiary(self.code(address)) || names(self.code(address)))
    }

    /// The addresses whose existence or balance the execution may reveal (RT9): created addresses that held a balance,
    /// and hidden wallets without code (`hidden`, which are not Full) if a hidden wallet is paid below the top frame,
    /// or if a frame failed otherwise than by a revert, possibly because the gas for a new account was missing. A
    /// delegated wallet is known to exist.
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
        let reveals = |frame: &Frame| halts(frame) || (pays(frame) && is_hidden(frame));
        let is_revealed = self.trace.frames.iter().any(reveals);
        let wallets = hidden
            .into_iter()
            .filter(|wallet| is_revealed && self.code(*wallet).is_empty());
        wallets.chain(self.paid_creations()).collect()
    }

    /// Created addresses that held a balance before the execution. The caller may not read that balance through the
    /// created code (K8), unless the address is reserved for the caller's organization.
    fn paid_creations(&self) -> impl Iterator<Item = Address> {
        self.created.iter().copied().filter(|address| {
            let account = self.trace.touched.get(address);
            let had_balance = account.is_some_and(|account| !account.balance.is_zero());
            had_balance
                && target_status(self.snapshot, &self.principal, *address, self.policy_settings)
                    .reserved_in
                    .is_empty()
        })
    }

    /// Contracts that the execution created below its top frame and did not revert.
    pub(super) fn kept_creations(&self) -> Vec<Address> {
        let below = self.trace.frames.iter().filter(|frame| frame.parent.is_some());
        below
            .filter(|frame| frame.is_creation() && !frame.undone)
            .filter_map(|frame| frame.to)
            .collect()
    }

    /// HD2: with `DEPLOYMENTS=approved` every creation of a send, at any depth, needs approved creation code.
    pub(super) fn approved_creations(&self) -> Result<(), DenyReason> {
        if self.policy_settings.deployments == Deployments::Any {
            return Ok(());
        }
        let creations = self
            .trace
            .frames
            .iter()
            .enumerate()
            .filter(|(_, frame)| frame.is_creation());
        for (index, frame) in creations {
            self.current_check.set(Some((Some(index), frame.to)));
            if !self.snapshot.approves_creation(&frame.input) {
                return Err(DenyReason::CodehashMismatch);
            }
        }
        Ok(())
    }
}
