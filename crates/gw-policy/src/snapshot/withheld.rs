//! The withheld changes of convicted transactions, and the state without them (HD28), which is the only state that is
//! shown and that executions run on.
//!
//! Invariant: the shown state of an account does not depend on the withheld changes to it. The rows of an account are
//! ordered as their transactions ran; changes are undone from the last to the first.

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

/// The changes of a transaction to one account, each with the values before and after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountChange {
    /// The balance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<(U256, U256)>,
    /// The nonce, except nonces of senders and wallets, which their owners need to keep sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<(u64, u64)>,
    /// The code before the transaction, if the account got other code or lost its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Bytes>,
    /// Whether the transaction created the contract.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub created: bool,
    /// The storage slots.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub slots: BTreeMap<B256, (B256, B256)>,
}

impl AccountChange {
    /// The changes in a state diff. With `keeps_nonce` the nonce is left out, for accounts whose owner needs it to keep
    /// sending.
    pub fn from_change(change: &Change, keeps_nonce: bool) -> Self {
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

    /// Whether another execution changed the same parts of the account by equal amounts. Equal absolute values do not
    /// count: an execution that could choose between an equal amount and an equal value could convey information by its
    /// choice.
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

/// The withheld changes of a convicted transaction to one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldState {
    /// Row id.
    pub id: WithheldId,
    /// The account.
    pub address: Address,
    /// Number of the block.
    pub block: u64,
    /// Index of the transaction in the block.
    pub place: u64,
    /// The sender's side: the organizations that the sender was an active member of.
    pub side: Vec<OrgId>,
    /// The changes.
    pub change: AccountChange,
}

/// All withheld changes, by row id and by account.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WithheldRows {
    addresses: Arc<BTreeMap<WithheldId, Address>>,
    rows: Arc<BTreeMap<Address, Vec<Arc<WithheldState>>>>,
}

impl WithheldRows {
    pub(super) fn put(&mut self, id: WithheldId, row: Option<WithheldState>) {
        if let Some(old) = Arc::make_mut(&mut self.addresses).remove(&id) {
            let rows = Arc::make_mut(&mut self.rows);
            let is_empty = rows.get_mut(&old).is_none_or(|rows| {
                rows.retain(|row| row.id != id);
                rows.is_empty()
            });
            if is_empty {
                rows.remove(&old);
            }
        }
        if let Some(row) = row {
            Arc::make_mut(&mut self.addresses).insert(id, row.address);
            let rows = Arc::make_mut(&mut self.rows).entry(row.address).or_default();
            let key = |row: &WithheldState| (row.block, row.place, row.id);
            rows.insert(rows.partition_point(|other| key(other) < key(&row)), Arc::new(row));
        }
    }

    /// The withheld changes to an account up to this block, in chain order.
    fn changes_of(&self, address: Address, block: u64) -> impl DoubleEndedIterator<Item = &AccountChange> {
        let rows = self.rows.get(&address).map_or(&[][..], Vec::as_slice);
        rows.iter().filter(move |row| row.block <= block).map(|row| &row.change)
    }

    fn balance(&self, address: Address, block: u64, actual: U256) -> U256 {
        undone_balance(self.changes_of(address, block), actual)
    }

    fn nonce(&self, address: Address, block: u64, actual: U256) -> U256 {
        let changes = self.changes_of(address, block).filter_map(|change| change.nonce).rev();
        changes.fold(actual, |actual, (before, after)| {
            if actual == U256::from(after) {
                U256::from(before)
            } else {
                actual
            }
        })
    }

    fn code(&self, address: Address, block: u64) -> Option<&Bytes> {
        self.changes_of(address, block).find_map(|change| change.code.as_ref())
    }

    fn slot(&self, address: Address, slot: B256, block: u64, actual: B256) -> B256 {
        let written = self
            .changes_of(address, block)
            .filter_map(|change| change.slots.get(&slot))
            .rev();
        written.fold(
            actual,
            |actual, (before, after)| if actual == *after { *before } else { actual },
        )
    }
}

impl Snapshot {
    /// Whether any change to the state of this block is withheld.
    pub fn withholds_state(&self, block: u64) -> bool {
        self.withheld.rows.values().flatten().any(|row| row.block <= block)
    }

    /// The withheld changes to an account up to this block, in chain order.
    pub fn withheld_of(&self, address: Address, block: u64) -> impl DoubleEndedIterator<Item = &AccountChange> {
        self.withheld.changes_of(address, block)
    }

    /// The withheld changes to an account before the transaction at this block number and index, in chain order.
    pub fn withheld_before(&self, address: Address, at: (u64, u64)) -> impl DoubleEndedIterator<Item = &AccountChange> {
        let rows = self.withheld.rows.get(&address).map_or(&[][..], Vec::as_slice);
        rows.iter()
            .filter(move |row| (row.block, row.place) < at)
            .map(|row| &row.change)
    }

    /// Like [`Self::withheld_before`], only of transactions whose sender's side includes one of these organizations.
    pub fn withheld_from<'s>(
        &'s self,
        address: Address,
        at: (u64, u64),
        orgs: &'s BTreeSet<OrgId>,
    ) -> impl Iterator<Item = &'s AccountChange> {
        let rows = self.withheld.rows.get(&address).map_or(&[][..], Vec::as_slice);
        let is_of_orgs = move |row: &&Arc<WithheldState>| row.side.iter().any(|org| orgs.contains(org));
        rows.iter()
            .filter(move |row| (row.block, row.place) < at)
            .filter(is_of_orgs)
            .map(|row| &row.change)
    }

    /// The balance to show instead of the `actual` one. Only withheld amounts are undone; later payments by others
    /// stay.
    pub fn shown_balance(&self, address: Address, block: u64, actual: U256) -> U256 {
        self.withheld.balance(address, block, actual)
    }

    /// The nonce to show instead of the `actual` one. Undone by value like a slot, not by amount, because contracts
    /// that others created since have addresses derived from the actual nonces.
    pub fn shown_nonce(&self, address: Address, block: u64, actual: U256) -> U256 {
        self.withheld.nonce(address, block, actual)
    }

    /// The code to show instead of the actual one, if they differ.
    pub fn shown_code(&self, address: Address, block: u64) -> Option<&Bytes> {
        self.withheld.code(address, block)
    }

    /// The word to show of a slot instead of the `actual` one. A word that a withheld transaction wrote is undone.
    pub fn shown_slot(&self, address: Address, slot: B256, block: u64, actual: B256) -> B256 {
        self.withheld.slot(address, slot, block, actual)
    }

    /// The state of this block without withheld changes.
    pub fn visible_state(&self, block: u64) -> VisibleState {
        let is_unchanged = !self.withholds_state(block);
        let withheld = if is_unchanged {
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

/// Maximum number of slots, and of created accounts, that are overridden without having been read by the execution:
/// nodes limit the size of a request.
const MOST_SLOTS: usize = 4096;
const MOST_CREATED: usize = 1024;

/// The state of a block that users are shown and that executions run on: without the changes of convicted
/// transactions (HD28), and with new accounts in place of those whose existence the gas would reveal (RT9).
#[derive(Clone, Debug, Default)]
pub struct VisibleState {
    withheld: WithheldRows,
    block: u64,
    new: BTreeSet<Address>,
}

impl VisibleState {
    /// Whether any change is withheld, so that nothing may run on the actual state.
    pub fn withholds(&self) -> bool {
        !self.withheld.rows.is_empty()
    }

    /// Makes these accounts look as if they did not exist: no balance, no nonce.
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
        let changes_account = |change: &AccountChange| {
            change.balance.is_some() || change.nonce.is_some() || change.code.is_some() || change.created
        };
        self.withheld.changes_of(address, self.block).any(changes_account)
    }

    /// The state overrides of an execution for these accounts and slots, given with their actual values. The cost
    /// depends only on these accounts, not on the total number of withheld changes (HD36).
    pub fn overrides<'a>(&self, actual: impl IntoIterator<Item = (&'a Address, &'a Account)>) -> StateOverrides {
        let account_override =
            |(address, actual): (&Address, &Account)| Some((*address, self.account(*address, actual)?));
        StateOverrides::new(actual.into_iter().filter_map(account_override).collect())
    }

    /// Like [`Self::overrides`], for all withheld slots of these accounts, read or not, and for all contracts created
    /// by the transactions that changed these accounts. Used for an execution that reads them one after the other, so
    /// that the number of retries does not reveal what is withheld (HD40). A slot that was not read is assumed to hold
    /// the value that the last withheld transaction wrote.
    pub fn whole_overrides<'a>(&self, actual: impl IntoIterator<Item = (&'a Address, &'a Account)>) -> StateOverrides {
        let mut overrides = BTreeMap::new();
        let mut transactions = BTreeSet::new();
        let mut slots = 0_usize;
        for (address, actual) in actual {
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
            assumed.extend(actual.slots.iter().map(|(slot, word)| (*slot, *word)));
            let actual = Account {
                slots: assumed,
                ..actual.clone()
            };
            overrides.extend(self.account(*address, &actual).map(|shown| (*address, shown)));
        }
        let created = self.withheld.rows.values().flatten().filter(|row| {
            row.change.created && row.block <= self.block && transactions.contains(&(row.block, row.place))
        });
        for row in created.take(MOST_CREATED) {
            let value_after = |change: Option<(u64, u64)>| change.map_or(0, |(_, after)| after);
            let balance = row.change.balance.map_or(U256::ZERO, |(_, after)| after);
            let actual = Account {
                balance,
                nonce: value_after(row.change.nonce),
                ..Account::default()
            };
            if let Some(shown) = self.account(row.address, &actual) {
                overrides.entry(row.address).or_insert(shown);
            }
        }
        StateOverrides::new(overrides)
    }

    fn account(&self, address: Address, actual: &Account) -> Option<AccountOverride> {
        let (withheld, block) = (&self.withheld, self.block);
        let is_new = self.new.contains(&address);
        if !is_new && withheld.changes_of(address, block).next().is_none() {
            return None;
        }
        let any_change = |test: fn(&AccountChange) -> bool| withheld.changes_of(address, block).any(test);
        let balance = any_change(|change| change.balance.is_some());
        let nonce = any_change(|change| change.nonce.is_some());
        let slots = actual.slots.iter().filter_map(|(slot, word)| {
            let shown = withheld.slot(address, *slot, block, *word);
            (shown != *word).then_some((*slot, shown))
        });
        let mut shown = AccountOverride {
            balance: balance.then(|| withheld.balance(address, block, actual.balance)),
            nonce: nonce.then(|| withheld.nonce(address, block, U256::from(actual.nonce)).saturating_to()),
            code: withheld.code(address, block).cloned(),
            slots: slots.collect(),
        };
        if is_new {
            (shown.balance, shown.nonce) = (Some(U256::ZERO), Some(0));
        }
        Some(shown)
    }
}

/// The balance `actual` without these changes.
pub(crate) fn undone_balance<'a>(changes: impl Iterator<Item = &'a AccountChange>, actual: U256) -> U256 {
    undone(changes.filter_map(|change| change.balance), actual)
}

/// The number `actual` without these changes. All values before are added before any value after is subtracted: an
/// intermediate result must not saturate at zero, since the final result would then reveal by how much.
fn undone(changes: impl Iterator<Item = (U256, U256)>, actual: U256) -> U256 {
    let (added, subtracted) = changes.fold((actual, U256::ZERO), |(added, subtracted), (before, after)| {
        (added.saturating_add(before), subtracted.saturating_add(after))
    });
    added.saturating_sub(subtracted)
}
