//! What an execution upgrades (spec/20 U1, U2; HD29): replacing the code that a contract of an organization runs needs the
//! `upgrade` claim on that contract, and an implementation of the same organization, whichever frame or function does it.

use super::{target::reach, trace::Run};
use crate::snapshot::Contract;
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

impl Run<'_> {
    /// Every upgrade that stays in force.
    pub(super) fn upgrades(&self, changes: &BTreeMap<Address, Change>) -> Result<(), DenyReason> {
        self.upgrade_calls()?;
        for (address, change) in changes {
            self.looked_at.set(Some((None, Some(*address))));
            if let Some(contract) = self.snapshot.contract(*address) {
                self.upgrade_by_change(contract, change)?;
            }
        }
        Ok(())
    }

    /// U1 in every frame that stays in force: a function that replaces an implementation.
    fn upgrade_calls(&self) -> Result<(), DenyReason> {
        for (index, frame) in self.trace.frames.iter().enumerate().filter(|(_, frame)| !frame.undone) {
            let Some(contract) = changed_by(frame).and_then(|address| self.snapshot.contract(address)) else {
                continue;
            };
            self.looked_at.set(Some((Some(index), Some(contract.address))));
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

    /// U2: whoever writes where an implementation stands upgrades, whichever function did.
    fn upgrade_by_change(&self, contract: &Arc<Contract>, change: &Change) -> Result<(), DenyReason> {
        let slots = UPGRADE_SLOTS.iter().any(|slot| change.storage.contains_key(slot));
        if slots || self.cuts(contract.address, change) || self.aims(contract.address, change) {
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
        let reach = reach(self.snapshot, &self.member, contract, self.knobs);
        let may = reach.is_some_and(|reach| reach.claims.has(Claim::Upgrade));
        if may {
            Ok(())
        } else {
            Err(DenyReason::UpgradeClaimRequired)
        }
    }

    /// Whether the new code is of the organization whose contract will run it, or will be, because it was created for it.
    fn is_own_implementation(&self, contract: &Contract, new: Option<Address>) -> Result<(), DenyReason> {
        let owner = |new: Address| match self.snapshot.contract(new) {
            Some(known) => Some(known.org),
            None if self.created.contains(&new) => self.org,
            None => self.lately.and_then(|lately| lately.get(&new)).copied(),
        };
        let owned: Option<OrgId> = new.and_then(owner);
        if owned == Some(contract.org) {
            Ok(())
        } else {
            Err(DenyReason::UpgradeClaimRequired)
        }
    }

    /// Whether a beacon is given another address, by any function.
    fn aims(&self, address: Address, change: &Change) -> bool {
        // Smaller numbers are counters and flags.
        let is_address = |word: &B256| {
            let address = clean_address(word);
            let high = address
                .as_ref()
                .and_then(|address| address.as_slice().split_last_chunk::<8>());
            high.is_some_and(|(high, _)| high.iter().any(|byte| *byte != 0))
        };
        change.storage.values().any(is_address) && is_beacon(self.code(address))
    }

    /// Whether a diamond's selectors change, by its own function or by any other.
    fn cuts(&self, diamond: Address, change: &Change) -> bool {
        let frames = || {
            self.trace
                .frames
                .iter()
                .filter(move |frame| changed_by(frame) == Some(diamond))
        };
        if change.storage.is_empty() {
            return false;
        }
        let effective = |frame: &&Frame| !frame.undone;
        if frames()
            .filter(effective)
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

/// Whose storage a frame runs on.
fn changed_by(frame: &Frame) -> Option<Address> {
    match frame.kind {
        FrameKind::Call => frame.to,
        FrameKind::DelegateCall | FrameKind::CallCode => Some(frame.from),
        FrameKind::StaticCall | FrameKind::Create | FrameKind::Create2 | FrameKind::SelfDestruct => None,
    }
}
