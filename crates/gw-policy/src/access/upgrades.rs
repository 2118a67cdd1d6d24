//! Checks on contract upgrades by an execution (spec/20 U1, U2; HD29).
//!
//! Replacing the code that a contract of an organization runs needs the `upgrade` claim on that contract and an
//! implementation of that organization, in any frame and by any function.

use super::trace::TraceEvaluator;
use crate::{principal::contract_access, snapshot::Contract};
use gw_evm::{
    abi::clean_address,
    code::{
        BEACON_SLOT, DIAMOND_CUT, IMPLEMENTATION_SLOT, UPGRADE_SLOTS, diamond_cut_slots, diamond_facets, is_beacon,
        keeps_diamond_selectors, upgrade,
    },
    trace::{Change, Frame, FrameKind},
};
use gw_types::{Address, B256, Claim, DenyReason, OrgId};
use std::{collections::BTreeMap, sync::Arc};

impl TraceEvaluator<'_> {
    /// Checks every upgrade that is not reverted.
    pub(super) fn upgrades(&self, changes: &BTreeMap<Address, Change>) -> Result<(), DenyReason> {
        self.upgrade_calls()?;
        for (address, change) in changes {
            self.current_check.set(Some((None, Some(*address))));
            if let Some(contract) = self.snapshot.contract(*address) {
                self.upgrade_by_change(contract, change)?;
            }
        }
        Ok(())
    }

    /// U1: checks every frame that is not reverted and calls a known upgrade function.
    fn upgrade_calls(&self) -> Result<(), DenyReason> {
        for (index, frame) in self.trace.frames.iter().enumerate().filter(|(_, frame)| !frame.undone) {
            let Some(contract) = changed_by(frame).and_then(|address| self.snapshot.contract(address)) else {
                continue;
            };
            self.current_check.set(Some((Some(index), Some(contract.address))));
            if let Some(upgrade) = upgrade(&frame.input) {
                self.may_upgrade(contract)?;
                self.is_own_implementation(contract, upgrade.implementation)?;
            } else if frame.input.first_chunk::<4>() == Some(&DIAMOND_CUT) {
                self.may_upgrade(contract)?;
                let facets = diamond_facets(&frame.input).ok_or(DenyReason::UpgradeClaimRequired)?;
                facets
                    .into_iter()
                    .try_for_each(|facet| self.is_own_implementation(contract, Some(facet)))?;
            }
        }
        Ok(())
    }

    /// U2: a write to a storage slot that holds an implementation is an upgrade, by whichever function.
    fn upgrade_by_change(&self, contract: &Arc<Contract>, change: &Change) -> Result<(), DenyReason> {
        let writes_upgrade_slot = UPGRADE_SLOTS.iter().any(|slot| change.storage.contains_key(slot));
        if writes_upgrade_slot
            || self.changes_diamond(contract.address, change)
            || self.changes_beacon(contract.address, change)
        {
            self.may_upgrade(contract)?;
        }
        for slot in [IMPLEMENTATION_SLOT, BEACON_SLOT] {
            if let Some(word) = change.storage.get(&slot).filter(|word| !word.is_zero()) {
                self.is_own_implementation(contract, clean_address(word))?;
            }
        }
        Ok(())
    }

    fn may_upgrade(&self, contract: &Arc<Contract>) -> Result<(), DenyReason> {
        let access = contract_access(self.snapshot, &self.principal, contract, self.policy_settings);
        let has_claim = access.is_some_and(|access| access.claims.has(Claim::Upgrade));
        if has_claim {
            Ok(())
        } else {
            Err(DenyReason::UpgradeClaimRequired)
        }
    }

    /// Checks that the implementation belongs to the contract's organization, or will belong to it because it was
    /// created for that organization.
    fn is_own_implementation(&self, contract: &Contract, implementation: Option<Address>) -> Result<(), DenyReason> {
        let owner_of = |address: Address| match self.snapshot.contract(address) {
            Some(registered) => Some(registered.org),
            None if self.created.contains(&address) => self.org,
            None => self
                .pending_contracts
                .and_then(|pending| pending.get(&address))
                .copied(),
        };
        let owner: Option<OrgId> = implementation.and_then(owner_of);
        if owner == Some(contract.org) {
            Ok(())
        } else {
            Err(DenyReason::UpgradeClaimRequired)
        }
    }

    /// Whether the contract is a beacon and the change writes an address to it, by any function.
    fn changes_beacon(&self, address: Address, change: &Change) -> bool {
        // Words with only low bytes set are counters and flags, not addresses.
        let is_address = |word: &B256| {
            let address = clean_address(word);
            let high = address
                .as_ref()
                .and_then(|address| address.as_slice().split_last_chunk::<8>());
            high.is_some_and(|(high, _)| high.iter().any(|byte| *byte != 0))
        };
        change.storage.values().any(is_address) && is_beacon(self.code(address))
    }

    /// Whether the contract is a diamond and its selectors change, by `diamondCut` or any other function.
    fn changes_diamond(&self, diamond: Address, change: &Change) -> bool {
        let frames = || {
            self.trace
                .frames
                .iter()
                .filter(move |frame| changed_by(frame) == Some(diamond))
        };
        if change.storage.is_empty() {
            return false;
        }
        let is_kept = |frame: &&Frame| !frame.undone;
        if frames()
            .filter(is_kept)
            .any(|frame| frame.input.first_chunk::<4>() == Some(&DIAMOND_CUT))
        {
            return true;
        }
        let codes = || frames().filter_map(|frame| frame.to).map(|code| self.code(code));
        codes().any(keeps_diamond_selectors)
            && diamond_cut_slots(codes().chain(frames().map(|frame| frame.input.as_ref())))
                .any(|slot| change.storage.contains_key(&slot))
    }
}

/// The account whose storage a frame can change.
fn changed_by(frame: &Frame) -> Option<Address> {
    match frame.kind {
        FrameKind::Call => frame.to,
        FrameKind::DelegateCall | FrameKind::CallCode => Some(frame.from),
        FrameKind::StaticCall | FrameKind::Create | FrameKind::Create2 | FrameKind::SelfDestruct => None,
    }
}
