//! What convicted transactions changed, and the state without it (HD28): nobody is shown it, and nothing runs on it.
//!
//! Invariant: what is shown of an account does not depend on what a withheld transaction did to it, whatever the chain
//! holds. Rows of one account stand in the order their transactions ran; what a later one began with is undone before what
//! it rests on.

use super::Snapshot;
use gw_evm::{
    trace::Change,
    wire::{AccountOverride, StateOverrides},
};
use gw_types::{Address, B256, Bytes, OrgId, U256, WithheldId};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What a transaction changed of one account, with the values before and after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountChange {
    /// The balance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<(U256, U256)>,
    /// The nonce; never one that somebody needs to go on sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<(u64, u64)>,
    /// The code before, where the account got other code or lost it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Bytes>,
    /// Whether it got its first code: without the transaction there is no contract.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub created: bool,
    /// Written slots.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub slots: BTreeMap<B256, (B256, B256)>,
}

impl AccountChange {
    /// What a diff tells; `keeps_nonce` for an account whose owner goes on sending.
    pub fn of(change: &Change, keeps_nonce: bool) -> Self {
        let before = &change.before;
        let after = if change.removed { Some(U256::ZERO) } else { change.balance };
        let nonce = if change.removed { Some(0) } else { change.nonce };
        let old = |slot: &B256| before.storage.get(slot).copied().unwrap_or_default();
        Self {
            balance: after.filter(|after| *after != before.balance).map(|after| (before.balance, after)),
            nonce: nonce.filter(|after| !keeps_nonce && *after != before.nonce).map(|after| (before.nonce, after)),
            code: None,
            created: false,
            slots: change.storage.iter().map(|(slot, new)| (*slot, (old(slot), *new))).collect(),
        }
    }

    /// Whether nothing changed.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a convicted transaction changed of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// Row id.
    pub id: WithheldId,
    /// The account.
    pub address: Address,
    /// Number of the block.
    pub block: u64,
    /// Place of the transaction in the block.
    pub place: u64,
    /// The sender's side: the organizations its sender was an active member of.
    pub side: Vec<OrgId>,
    /// What changed.
    pub change: AccountChange,
}

/// All of them, by row and by account.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WithheldRows {
    addresses: Arc<BTreeMap<WithheldId, Address>>,
    rows: Arc<BTreeMap<Address, Vec<Arc<Withheld>>>>,
}

impl WithheldRows {
    pub(super) fn put(&mut self, id: WithheldId, row: Option<Withheld>) {
        if let Some(old) = Arc::make_mut(&mut self.addresses).remove(&id) {
            let rows = Arc::make_mut(&mut self.rows);
            let left = rows.get_mut(&old).is_none_or(|rows| {
                rows.retain(|row| row.id != id);
                rows.is_empty()
            });
            if left {
                rows.remove(&old);
            }
        }
        if let Some(row) = row {
            Arc::make_mut(&mut self.addresses).insert(id, row.address);
            let rows = Arc::make_mut(&mut self.rows).entry(row.address).or_default();
            let key = |row: &Withheld| (row.block, row.place, row.id);
            rows.insert(rows.partition_point(|other| key(other) < key(&row)), Arc::new(row));
        }
    }
}

impl Snapshot {
    /// Whether anything is withheld of the state of this block.
    pub fn withholds_state(&self, block: u64) -> bool {
        self.withheld.rows.values().flatten().any(|row| row.block <= block)
    }

    /// What is withheld of an account, as of this block, in the order it came about.
    pub fn withheld_of(&self, address: Address, block: u64) -> impl DoubleEndedIterator<Item = &AccountChange> {
        let rows = self.withheld.rows.get(&address).map_or(&[][..], Vec::as_slice);
        rows.iter().filter(move |row| row.block <= block).map(|row| &row.change)
    }

    /// The same before the transaction at this place of the block.
    pub fn withheld_before(&self, address: Address, at: (u64, u64)) -> impl DoubleEndedIterator<Item = &AccountChange> {
        let rows = self.withheld.rows.get(&address).map_or(&[][..], Vec::as_slice);
        rows.iter().filter(move |row| (row.block, row.place) < at).map(|row| &row.change)
    }

    /// The same of transactions that were sent from one of these organizations.
    pub fn withheld_from<'s>(
        &'s self,
        address: Address,
        at: (u64, u64),
        orgs: &'s BTreeSet<OrgId>,
    ) -> impl Iterator<Item = &'s AccountChange> {
        let rows = self.withheld.rows.get(&address).map_or(&[][..], Vec::as_slice);
        let is_theirs = move |row: &&Arc<Withheld>| row.side.iter().any(|org| orgs.contains(org));
        rows.iter().filter(move |row| (row.block, row.place) < at).filter(is_theirs).map(|row| &row.change)
    }

    /// The balance to show where the chain holds `held`: what everybody else paid and took since stays.
    pub fn shown_balance(&self, address: Address, block: u64, held: U256) -> U256 {
        undone_balance(self.withheld_of(address, block), held)
    }

    /// The nonce to show where the chain holds `held`.
    pub fn shown_nonce(&self, address: Address, block: u64, held: U256) -> U256 {
        let changes = self.withheld_of(address, block).filter_map(|change| change.nonce);
        undone(changes.map(|(before, after)| (U256::from(before), U256::from(after))), held)
    }

    /// The code that stands in the place of the chain's, if another one does.
    pub fn shown_code(&self, address: Address, block: u64) -> Option<&Bytes> {
        self.withheld_of(address, block).find_map(|change| change.code.as_ref())
    }

    /// The word to show of a slot where the chain holds `held`: one that a withheld transaction left there is undone.
    pub fn shown_slot(&self, address: Address, slot: B256, block: u64, held: B256) -> B256 {
        let written = self.withheld_of(address, block).filter_map(|change| change.slots.get(&slot)).rev();
        written.fold(held, |held, (before, after)| if held == *after { *before } else { held })
    }

    /// The accounts whose balance is withheld as of this block.
    pub fn withheld_balances(&self, block: u64) -> Vec<Address> {
        let has = |address: &&Address| self.withheld_of(**address, block).any(|change| change.balance.is_some());
        self.withheld.rows.keys().filter(has).copied().collect()
    }

    /// The state to run on at this block, where the chain holds these balances.
    pub fn shown_state(&self, block: u64, held: &BTreeMap<Address, U256>) -> StateOverrides {
        let accounts = self.withheld.rows.keys().filter(|address| self.withheld_of(**address, block).next().is_some());
        StateOverrides::new(accounts.map(|address| (*address, self.shown_account(*address, block, held))).collect())
    }

    fn shown_account(&self, address: Address, block: u64, held: &BTreeMap<Address, U256>) -> AccountOverride {
        let changes = || self.withheld_of(address, block);
        let slots: BTreeSet<B256> = changes().flat_map(|change| change.slots.keys().copied()).collect();
        let last = |slot: &B256| changes().filter_map(|change| change.slots.get(slot)).next_back();
        let shown = |slot: B256| {
            let (_, after) = last(&slot)?;
            Some((slot, self.shown_slot(address, slot, block, *after)))
        };
        let nonce = changes().filter_map(|change| change.nonce).next_back();
        let nonce = nonce.map(|(_, after)| self.shown_nonce(address, block, U256::from(after)));
        AccountOverride {
            balance: held.get(&address).map(|held| self.shown_balance(address, block, *held)),
            nonce: nonce.and_then(|nonce| nonce.try_into().ok()),
            code: self.shown_code(address, block).cloned(),
            slots: slots.into_iter().filter_map(shown).collect(),
        }
    }
}

/// A balance without these changes.
pub(crate) fn undone_balance<'a>(changes: impl Iterator<Item = &'a AccountChange>, held: U256) -> U256 {
    undone(changes.filter_map(|change| change.balance), held)
}

/// A number without these changes. All that was taken is put back before what was given is taken away: on the way no number
/// may fall below zero, or the next one would tell by how much.
fn undone(changes: impl Iterator<Item = (U256, U256)>, held: U256) -> U256 {
    let (put_back, taken_away) = changes.fold((held, U256::ZERO), |(held, taken), (before, after)| {
        (held.saturating_add(before), taken.saturating_add(after))
    });
    put_back.saturating_sub(taken_away)
}
