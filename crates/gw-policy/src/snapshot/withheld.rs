//! What convicted transactions changed, and the state without it (HD28): nobody is shown it, and nothing runs on it.
//!
//! Invariant: what is shown of an account does not depend on what a withheld transaction did to it, whatever the chain
//! holds. Rows of one account stand in the order their transactions ran; what a later one began with is undone before what
//! it rests on.

use super::Snapshot;
use gw_evm::{
    trace::{Account, Change},
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
        let after = if change.removed {
            Some(U256::ZERO)
        } else {
            change.balance
        };
        let nonce = if change.removed { Some(0) } else { change.nonce };
        let old = |slot: &B256| before.storage.get(slot).copied().unwrap_or_default();
        Self {
            balance: after
                .filter(|after| *after != before.balance)
                .map(|after| (before.balance, after)),
            nonce: nonce
                .filter(|after| !keeps_nonce && *after != before.nonce)
                .map(|after| (before.nonce, after)),
            code: None,
            created: false,
            slots: change
                .storage
                .iter()
                .map(|(slot, new)| (*slot, (old(slot), *new)))
                .collect(),
        }
    }

    /// Whether nothing changed.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether another run changed the same parts of the account by the same amounts. Amounts only: a run that could choose
    /// between the same amount and the same value would tell something by its choice.
    pub fn is_as_much_as(&self, other: &Self) -> bool {
        let amount = |(before, after): (U256, U256)| after.wrapping_sub(before);
        let slot = |words: &(B256, B256)| amount((words.0.into(), words.1.into()));
        let nonce = |change: Option<(u64, u64)>| change.map(|(before, after)| after.wrapping_sub(before));
        self.balance.map(amount) == other.balance.map(amount)
            && nonce(self.nonce) == nonce(other.nonce)
            && (self.created, self.code.is_some()) == (other.created, other.code.is_some())
            && self.slots.keys().eq(other.slots.keys())
            && self.slots.values().map(slot).eq(other.slots.values().map(slot))
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

    /// What is withheld of an account, as of this block, in the order it came about.
    fn of(&self, address: Address, block: u64) -> impl DoubleEndedIterator<Item = &AccountChange> {
        let rows = self.rows.get(&address).map_or(&[][..], Vec::as_slice);
        rows.iter().filter(move |row| row.block <= block).map(|row| &row.change)
    }

    fn balance(&self, address: Address, block: u64, held: U256) -> U256 {
        undone_balance(self.of(address, block), held)
    }

    fn nonce(&self, address: Address, block: u64, held: U256) -> U256 {
        let used = self.of(address, block).filter_map(|change| change.nonce).rev();
        used.fold(held, |held, (before, after)| {
            if held == U256::from(after) {
                U256::from(before)
            } else {
                held
            }
        })
    }

    fn code(&self, address: Address, block: u64) -> Option<&Bytes> {
        self.of(address, block).find_map(|change| change.code.as_ref())
    }

    fn slot(&self, address: Address, slot: B256, block: u64, held: B256) -> B256 {
        let written = self
            .of(address, block)
            .filter_map(|change| change.slots.get(&slot))
            .rev();
        written.fold(
            held,
            |held, (before, after)| if held == *after { *before } else { held },
        )
    }
}

impl Snapshot {
    /// Whether anything is withheld of the state of this block.
    pub fn withholds_state(&self, block: u64) -> bool {
        self.withheld.rows.values().flatten().any(|row| row.block <= block)
    }

    /// What is withheld of an account, as of this block, in the order it came about.
    pub fn withheld_of(&self, address: Address, block: u64) -> impl DoubleEndedIterator<Item = &AccountChange> {
        self.withheld.of(address, block)
    }

    /// The same before the transaction at this place of the block.
    pub fn withheld_before(&self, address: Address, at: (u64, u64)) -> impl DoubleEndedIterator<Item = &AccountChange> {
        let rows = self.withheld.rows.get(&address).map_or(&[][..], Vec::as_slice);
        rows.iter()
            .filter(move |row| (row.block, row.place) < at)
            .map(|row| &row.change)
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
        rows.iter()
            .filter(move |row| (row.block, row.place) < at)
            .filter(is_theirs)
            .map(|row| &row.change)
    }

    /// The balance to show where the chain holds `held`: what everybody else paid and took since stays.
    pub fn shown_balance(&self, address: Address, block: u64, held: U256) -> U256 {
        self.withheld.balance(address, block, held)
    }

    /// The nonce to show where the chain holds `held`: like a slot, for what others created since stands at the addresses of
    /// the chain's own nonces.
    pub fn shown_nonce(&self, address: Address, block: u64, held: U256) -> U256 {
        self.withheld.nonce(address, block, held)
    }

    /// The code that stands in the place of the chain's, if another one does.
    pub fn shown_code(&self, address: Address, block: u64) -> Option<&Bytes> {
        self.withheld.code(address, block)
    }

    /// The word to show of a slot where the chain holds `held`: one that a withheld transaction left there is undone.
    pub fn shown_slot(&self, address: Address, slot: B256, block: u64, held: B256) -> B256 {
        self.withheld.slot(address, slot, block, held)
    }

    /// The state of this block that everybody is shown.
    pub fn visible_state(&self, block: u64) -> VisibleState {
        let is_shown_whole = !self.withholds_state(block);
        let withheld = if is_shown_whole {
            WithheldRows::default()
        } else {
            self.withheld.clone()
        };
        VisibleState {
            withheld,
            block,
            new: BTreeSet::new(),
        }
    }
}

/// The most slots, and the most created accounts, that a run is told of without having met them: nodes limit the size of a
/// request.
const MOST_SLOTS: usize = 4096;
const MOST_CREATED: usize = 1024;

/// The state of a block that everybody is shown, and everything runs on: what convicted transactions changed is as before them
/// (HD28), and accounts whose existence gas would tell look new (RT9).
#[derive(Clone, Debug, Default)]
pub struct VisibleState {
    withheld: WithheldRows,
    block: u64,
    new: BTreeSet<Address>,
}

impl VisibleState {
    /// Whether it withholds anything, so that nothing must run on the chain's own state.
    pub fn withholds(&self) -> bool {
        !self.withheld.rows.is_empty()
    }

    /// The same, with accounts that look as if they had never been there: no balance, no nonce.
    #[must_use]
    pub fn with_new<'a>(&self, accounts: impl IntoIterator<Item = &'a Address>) -> Self {
        let mut state = self.clone();
        state.new.extend(accounts);
        state
    }

    /// The accounts that look new.
    pub const fn new_accounts(&self) -> &BTreeSet<Address> {
        &self.new
    }

    /// Whether balance, nonce or code of an account are withheld.
    pub fn differs(&self, address: Address) -> bool {
        let is_more = |change: &AccountChange| {
            change.balance.is_some() || change.nonce.is_some() || change.code.is_some() || change.created
        };
        self.withheld.of(address, self.block).any(is_more)
    }

    /// What a run must find in place of these accounts and slots, as the chain holds them. The work is theirs alone, however
    /// much is withheld (HD36).
    pub fn overrides<'a>(&self, held: impl IntoIterator<Item = (&'a Address, &'a Account)>) -> StateOverrides {
        let of = |(address, held): (&Address, &Account)| Some((*address, self.account(*address, held)?));
        StateOverrides::new(held.into_iter().filter_map(of).collect())
    }

    /// The same of all that is withheld of these accounts, read or not, and of what the transactions created that changed them:
    /// for a run that meets it one after the other, so that how far it comes does not tell what there is (HD40). What was not
    /// read is taken to be as the last withheld transaction left it.
    pub fn whole_overrides<'a>(&self, held: impl IntoIterator<Item = (&'a Address, &'a Account)>) -> StateOverrides {
        let mut all = BTreeMap::new();
        let mut transactions = BTreeSet::new();
        let mut slots = 0_usize;
        for (address, held) in held {
            let rows = self
                .withheld
                .rows
                .get(address)
                .into_iter()
                .flatten()
                .filter(|row| row.block <= self.block);
            let mut assumed = BTreeMap::new();
            for row in rows {
                transactions.insert((row.block, row.place));
                assumed.extend(row.change.slots.iter().map(|(slot, (_, after))| (*slot, *after)));
            }
            slots = slots.saturating_add(assumed.len());
            if slots > MOST_SLOTS {
                assumed.clear();
            }
            assumed.extend(held.slots.iter().map(|(slot, word)| (*slot, *word)));
            let held = Account {
                slots: assumed,
                ..held.clone()
            };
            all.extend(self.account(*address, &held).map(|shown| (*address, shown)));
        }
        let created = self.withheld.rows.values().flatten().filter(|row| {
            row.change.created && row.block <= self.block && transactions.contains(&(row.block, row.place))
        });
        for row in created.take(MOST_CREATED) {
            let left = |change: Option<(u64, u64)>| change.map_or(0, |(_, after)| after);
            let balance = row.change.balance.map_or(U256::ZERO, |(_, after)| after);
            let held = Account {
                balance,
                nonce: left(row.change.nonce),
                ..Account::default()
            };
            if let Some(shown) = self.account(row.address, &held) {
                all.entry(row.address).or_insert(shown);
            }
        }
        StateOverrides::new(all)
    }

    fn account(&self, address: Address, held: &Account) -> Option<AccountOverride> {
        let (withheld, block) = (&self.withheld, self.block);
        let is_new = self.new.contains(&address);
        if !is_new && withheld.of(address, block).next().is_none() {
            return None;
        }
        let has = |part: fn(&AccountChange) -> bool| withheld.of(address, block).any(part);
        let balance = has(|change| change.balance.is_some());
        let nonce = has(|change| change.nonce.is_some());
        let slots = held.slots.iter().filter_map(|(slot, word)| {
            let shown = withheld.slot(address, *slot, block, *word);
            (shown != *word).then_some((*slot, shown))
        });
        let mut shown = AccountOverride {
            balance: balance.then(|| withheld.balance(address, block, held.balance)),
            nonce: nonce.then(|| withheld.nonce(address, block, U256::from(held.nonce)).saturating_to()),
            code: withheld.code(address, block).cloned(),
            slots: slots.collect(),
        };
        if is_new {
            (shown.balance, shown.nonce) = (Some(U256::ZERO), Some(0));
        }
        Some(shown)
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
