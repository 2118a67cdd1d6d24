//! The verdict on a trace: the execution is permitted, and its trace may be opened; or the frame at which it is denied.

use super::{TraceEvaluator, TraceFacts};
use crate::{
    access::{mined::account_changes, permit::Permit, run_digest::run_digest},
    principal::is_public,
    sealed::Sealed,
    settings::PolicySettings,
    snapshot::{AccountChange, Snapshot},
    visibility::Viewer,
};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use gw_evm::{CallRequest, code::delegation, trace::Trace};
use gw_types::{Address, B256, DenyReason, Timestamp};
use std::collections::BTreeMap;

/// A trace that was evaluated and permitted: the call may be answered from it, or its transaction forwarded. It
/// contains the trace, so that no other trace can be opened with this verdict.
#[derive(Debug)]
#[must_use]
pub struct TraceVerdict {
    trace: Sealed<Trace>,
    created_inside: Vec<Address>,
    existence: Vec<Address>,
    reads_block: bool,
    pub(in crate::access) target_has_code: bool,
}

impl TraceVerdict {
    /// The evaluated trace, for the views of this crate.
    pub(crate) const fn trace(&self) -> &Trace {
        self.trace.peek()
    }

    /// Evaluates the trace again, by another snapshot (HD20).
    ///
    /// # Errors
    /// The reason for which the execution is denied by this snapshot.
    pub fn reevaluate(
        self,
        snapshot: &Snapshot,
        permit: &Permit,
        facts: &TraceFacts,
        now: Timestamp,
        policy_settings: &PolicySettings,
    ) -> Result<Self, DenyReason> {
        evaluate_trace(snapshot, permit, self.trace, facts, now, policy_settings)
    }

    /// The access list (EIP-2930) of the execution: the requested list with the accounts and slots that the execution
    /// read or wrote (HD3). Without accessed slots, the sender, the target, the block's beneficiary and public
    /// addresses are left out, which are warm anyway, and so are wallets, since listing one would need a basis on which
    /// the caller knows it. Accounts that the viewer does not see are left out (HD30).
    pub fn access_list(&self, viewer: &Viewer<'_>, request: &CallRequest, coinbase: Address) -> AccessList {
        let mut list = request.access_list.clone().unwrap_or_default();
        let Some(top) = self.trace().frames.first() else {
            return list;
        };
        for (address, account) in &self.trace().touched {
            let is_implied = is_public(*address) || [Some(top.from), top.to, Some(coinbase)].contains(&Some(*address));
            let is_wallet = account.code.is_empty() || delegation(&account.code).is_some();
            if !viewer.sees(*address) || (account.slots.is_empty() && (is_implied || is_wallet)) {
                continue;
            }
            let item = match list.0.iter().position(|item| item.address == *address) {
                Some(index) => list.0.get_mut(index),
                None => {
                    list.0.push(AccessListItem {
                        address: *address,
                        storage_keys: Vec::new(),
                    });
                    list.0.last_mut()
                }
            };
            let Some(item) = item else { continue };
            for slot in account.slots.keys() {
                if !item.storage_keys.contains(slot) {
                    item.storage_keys.push(*slot);
                }
            }
        }
        list
    }

    /// Addresses that are not Full and whose existence or balance this execution may reveal: a payment to an account
    /// that does not exist costs more gas, or runs out of gas (RT9), and code that is created at an address with a
    /// balance can read it. The result is taken from an execution in which all of them look new.
    pub fn existence_revealing_addresses(&self) -> &[Address] {
        &self.existence
    }

    /// Whether all these accounts looked new in the execution, so that the node applied the overrides.
    pub fn looked_new<'a>(&self, accounts: impl IntoIterator<Item = &'a Address>) -> bool {
        accounts.into_iter().all(|account| {
            let touched = self.trace().touched.get(account);
            touched.is_none_or(|account| account.balance.is_zero() && account.nonce == 0)
        })
    }

    /// The [`run_digest`] of the execution, which ran in a block with this beneficiary.
    pub(in crate::access) fn digest(&self, coinbase: Address) -> B256 {
        run_digest(&self.trace, coinbase)
    }

    /// Whether executed code reads block properties, so that it may behave differently in another block on the same
    /// state.
    pub const fn reads_block(&self) -> bool {
        self.reads_block
    }

    /// The changes of the execution, except those of its sender and the block's beneficiary.
    pub(in crate::access) fn changes(&self, coinbase: Address) -> BTreeMap<Address, AccountChange> {
        let trace = self.trace();
        let sender = trace.frames.first().map(|top| top.from);
        account_changes(trace, sender.unwrap_or_default(), coinbase)
    }

    /// Contracts that the execution created below its top frame and did not revert.
    pub fn created_inside(&self) -> &[Address] {
        &self.created_inside
    }
}

/// Evaluates whether the caller may see the outcome of this execution, or cause it.
///
/// # Errors
/// The reason for which the execution is denied; `TraceMismatch` if the trace is not of the permitted call.
pub fn evaluate_trace(
    snapshot: &Snapshot,
    permit: &Permit,
    sealed: Sealed<Trace>,
    facts: &TraceFacts,
    now: Timestamp,
    policy_settings: &PolicySettings,
) -> Result<TraceVerdict, DenyReason> {
    let trace = sealed.peek();
    let (run, top) = TraceEvaluator::for_permit(snapshot, permit, trace, facts, now, policy_settings)?;
    let hidden = run.evaluate_plan(permit)?;
    let existence = run.existence(hidden);
    let is_code = |code: &[u8]| !code.is_empty() && delegation(code).is_none();
    let target_has_code = top.to.is_some_and(|to| is_code(run.code(to)));
    let created_inside = run.kept_creations();
    let reads_block = run.reads_block();
    Ok(TraceVerdict {
        trace: sealed,
        created_inside,
        existence,
        reads_block,
        target_has_code,
    })
}

/// The frame or account at which an execution was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeniedFrame {
    /// Index of the frame, in the order in which frames are entered. `None` if an account that no frame enters was
    /// denied, or the execution as a whole.
    pub frame: Option<usize>,
    /// Depth of the frame.
    pub depth: Option<u32>,
    /// The denied address, if the user and the impersonating administrator may see it.
    pub address: Option<Address>,
}

/// The frame or account at which [`evaluate_trace`] denies this execution, for administrators (V1); `None` if it
/// permits the execution.
pub fn denied_frame(
    snapshot: &Snapshot,
    permit: &Permit,
    sealed: &Sealed<Trace>,
    facts: &TraceFacts,
    now: Timestamp,
    policy_settings: &PolicySettings,
) -> Option<DeniedFrame> {
    let whole_execution = DeniedFrame {
        frame: None,
        depth: None,
        address: None,
    };
    let Ok((run, _)) = TraceEvaluator::for_permit(snapshot, permit, sealed.peek(), facts, now, policy_settings) else {
        return Some(whole_execution);
    };
    run.evaluate_plan(permit).err()?;
    let Some((frame, address)) = run.current_check.get() else {
        return Some(whole_execution);
    };
    let viewer = permit.viewer(snapshot, now, policy_settings);
    let depth = frame
        .and_then(|frame| run.trace.frames.get(frame))
        .map(|frame| frame.depth);
    Some(DeniedFrame {
        frame,
        depth,
        address: address.filter(|address| viewer.sees(*address)),
    })
}
