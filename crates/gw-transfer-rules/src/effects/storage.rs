//! What the storage of a token shows about balances, so that a token that lies in its events lowers no amount.
//!
//! # What can be known
//!
//! The state diff has the slots of the token that the transaction changed, as hashes. A slot belongs to the balance of
//! a holder if it is the hash of the holder's address and the position of a mapping. This module tries the holders that
//! the run mentions (parties of logs, frames, words of calldata, of logs and of the changed slots) with the positions
//! that compilers and libraries use:
//!
//! - Solidity: positions 0 to 31, positions 51 to 251 in steps of 50 (contracts that are made to be upgraded), and the
//!   namespace `openzeppelin.storage.ERC20` (ERC-7201),
//! - Vyper: positions 0 to 31,
//! - Solady: its fixed seed.
//!
//! A mapping in which the number of one holder falls and that of another rises is taken for balances: counters,
//! timestamps and checkpoints only rise. If several mappings do so, the one that shows most counts, for each holder.
//!
//! - A holder whose number rises by more than the logs say (mints and burns included) gained the difference.
//! - If numbers fall by more in all than others rise and than the logs say was burned, an unseen holder gained the
//!   difference: the token contract stands for it.
//!
//! # What cannot be known
//!
//! - Tokens whose balances lie elsewhere (other positions, other contracts) are not seen: their logs and the calls to
//!   them count alone.
//! - A token may store balances in another unit than the amounts of its logs, such as shares of a pool. If the stored
//!   numbers are smaller than the amounts, the logs count, which is right. If they are larger, too much counts: leave
//!   such a token out of [`Transaction::balance_tokens`](super::Transaction::balance_tokens). Leave out a token whose
//!   balance shares its slot with another number that changes, and one with a mapping of votes, too.
//! - A hidden holder stays hidden if the token also logs a burn of what it hides.
//!
//! Only the tokens of [`Transaction::balance_tokens`](super::Transaction::balance_tokens) are searched: the mappings of
//! any other contract (points of a game, votes) would be taken for tokens otherwise, and an unpriced amount decides
//! nothing.

use super::{Effect, EffectKind, EffectsError, Evidence};
use crate::token::Token;
use alloy_primitives::{U512, b256, keccak256};
use gw_evm::trace::Change;
use gw_types::{Address, B256, U256};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

/// The most hashes that the search of one transaction computes.
pub const MAX_SLOT_HASHES: usize = 32_768;

/// Slots below this number are ordinary variables, such as a total supply, not elements of mappings.
const ORDINARY_SLOTS: u64 = 1 << 16;

/// The positions that are tried, the most common ones first.
static MAPPINGS: LazyLock<Vec<Mapping>> = LazyLock::new(|| {
    // keccak256(abi.encode(uint256(keccak256("openzeppelin.storage.ERC20")) - 1)) & ~bytes32(uint256(0xff))
    let namespace = b256!("52c63247e1f47db19d5ce0460030c497f067ca4cebf71ba98eeadabe20bace00");
    let near = 0..=9_u64;
    let far = (10..=31).chain((51..=251).step_by(50));
    let solidity = |position: u64| Mapping::Solidity(B256::from(U256::from(position)));
    near.map(solidity)
        .chain([Mapping::Solidity(namespace)])
        .chain(far.map(solidity))
        .chain([Mapping::Solady])
        .chain((0..=31_u64).map(|position| Mapping::Vyper(B256::from(U256::from(position)))))
        .collect()
});

/// A mapping from addresses, by the way its slots are computed.
#[derive(Clone, Copy, Debug)]
enum Mapping {
    Solidity(B256),
    Vyper(B256),
    Solady,
}

/// How the numbers of holders changed in one mapping.
#[derive(Clone, Debug, Default)]
struct Holdings {
    rises: BTreeMap<Address, U256>,
    falls: BTreeMap<Address, U256>,
}

/// Counts the hashes of one transaction.
#[derive(Debug)]
pub(super) struct HashBudget(usize);

/// The evidence about one token.
pub(super) struct TokenRun<'a> {
    /// The contract.
    pub(super) token: Address,
    /// What it changed.
    pub(super) change: &'a Change,
    /// Its logged transfers.
    pub(super) logged: &'a [Effect],
    /// The holders that its logs and calls name.
    pub(super) near: &'a BTreeSet<Address>,
    /// Those among them who pay.
    pub(super) payers: &'a BTreeSet<Address>,
    /// All addresses that the run mentions.
    pub(super) all: &'a BTreeSet<Address>,
    /// The accounts that call it.
    pub(super) callers: &'a BTreeSet<Address>,
    /// The sender of the transaction, which stands for an unknown payer.
    pub(super) sender: Address,
}

/// What the storage of a token shows.
#[derive(Debug, Default)]
pub(super) struct StorageEvidence {
    /// What it shows beyond the logs.
    pub(super) surplus: Vec<Effect>,
    /// Whether it shows the balances of holders.
    pub(super) shows_balances: bool,
    /// The holders whose balances rose.
    pub(super) risen: BTreeSet<Address>,
}

/// Compares the storage of a token with its logs.
///
/// # Errors
/// [`EffectsError::TooManyHolders`] if the search exceeds its budget.
pub(super) fn evidence(run: &TokenRun<'_>, budget: &mut HashBudget) -> Result<StorageEvidence, EffectsError> {
    let holdings = search(run, budget)?;
    let is_balance = |holdings: &&Holdings| !holdings.rises.is_empty() && !holdings.falls.is_empty();
    let mut balances: Vec<&Holdings> = holdings.iter().filter(is_balance).collect();
    let risen: BTreeSet<Address> = balances
        .iter()
        .flat_map(|holdings| holdings.rises.keys())
        .copied()
        .collect();
    let shows_balances = !balances.is_empty();
    if balances.is_empty() {
        // Somebody paid, and nobody that is known received.
        balances = holdings.iter().filter(|holdings| !holdings.falls.is_empty()).collect();
    }
    let logged = LoggedSums::new(run.logged);
    let mut gains: BTreeMap<Address, U256> = BTreeMap::new();
    for holdings in balances {
        for (holder, difference) in holdings.beyond(&logged, run.token) {
            let gain = gains.entry(holder).or_default();
            *gain = (*gain).max(difference);
        }
    }
    let effect = |(to, amount)| Effect {
        kind: EffectKind::Erc20,
        token: Token::Contract(run.token),
        id: None,
        from: run.sender,
        to,
        amount: Some(amount),
        evidence: Evidence::StorageDiff,
    };
    Ok(StorageEvidence {
        surplus: gains.into_iter().map(effect).collect(),
        shows_balances,
        risen,
    })
}

/// Attributes the changed slots to mappings and holders.
fn search(run: &TokenRun<'_>, budget: &mut HashBudget) -> Result<Vec<Holdings>, EffectsError> {
    let mut open = changed_slots(run.change);
    let mut found: Vec<Holdings> = vec![Holdings::default(); MAPPINGS.len()];
    // The holders that logs and calls name are tried first: most transactions change no other balances.
    let further: BTreeSet<Address> = run.all.difference(run.near).copied().collect();
    let mut knows_allowances = false;
    for holders in [run.near, &further] {
        for (index, (mapping, holdings)) in MAPPINGS.iter().zip(&mut found).enumerate() {
            if open.is_empty() {
                break;
            }
            let mut is_hit = false;
            for holder in holders {
                if let Some((before, after)) = open.remove(&budget.slot(*mapping, *holder)?) {
                    holdings.record(*holder, before, after);
                    is_hit = true;
                }
            }
            if is_hit && !knows_allowances {
                knows_allowances = true;
                remove_allowances(&mut open, index, run, budget)?;
            }
        }
    }
    found.retain(|holdings| !holdings.rises.is_empty() || !holdings.falls.is_empty());
    Ok(found)
}

/// The slots that changed, without those of ordinary variables: the number before and after.
fn changed_slots(change: &Change) -> BTreeMap<B256, (U256, U256)> {
    let changed = change.storage.iter().filter_map(|(slot, after)| {
        let before = change.before.storage.get(slot).copied().unwrap_or_default();
        let is_ordinary = U256::from_be_bytes(slot.0) < U256::from(ORDINARY_SLOTS);
        let numbers = (U256::from_be_bytes(before.0), U256::from_be_bytes(after.0));
        (before != *after && !is_ordinary).then_some((*slot, numbers))
    });
    changed.collect()
}

/// Removes the allowances that callers used. Their mapping mostly follows that of the balances, which is at `index`.
/// Finding them ends the search early.
fn remove_allowances(
    open: &mut BTreeMap<B256, (U256, U256)>,
    index: usize,
    run: &TokenRun<'_>,
    budget: &mut HashBudget,
) -> Result<(), EffectsError> {
    let following = MAPPINGS.iter().skip(index).skip(1);
    for mapping in following.chain(MAPPINGS.iter().take(index)) {
        for owner in run.payers {
            if open.is_empty() {
                return Ok(());
            }
            let inner = budget.slot(*mapping, *owner)?;
            for caller in run.callers {
                open.remove(&budget.slot(mapping.at(inner), *caller)?);
            }
        }
    }
    Ok(())
}

impl Mapping {
    /// The slot of a holder.
    fn slot(self, holder: Address) -> B256 {
        let key = holder.into_word();
        match self {
            Self::Solidity(position) => keccak256([key.0, position.0].concat()),
            Self::Vyper(position) => keccak256([position.0, key.0].concat()),
            Self::Solady => {
                const SEED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0x87, 0xa2, 0x11, 0xa2];
                keccak256([holder.as_slice(), &SEED].concat())
            }
        }
    }

    /// The mapping of the same compiler at another position.
    const fn at(self, position: B256) -> Self {
        match self {
            Self::Solidity(_) => Self::Solidity(position),
            Self::Vyper(_) => Self::Vyper(position),
            Self::Solady => Self::Solady,
        }
    }
}

impl Holdings {
    /// The zero address stands for burned tokens, which the logs tell.
    fn record(&mut self, holder: Address, before: U256, after: U256) {
        if holder.is_zero() {
            return;
        }
        if after > before {
            self.rises.insert(holder, after.saturating_sub(before));
        } else {
            self.falls.insert(holder, before.saturating_sub(after));
        }
    }

    /// What holders gained beyond the logs. The contract stands for unseen holders.
    fn beyond(&self, logged: &LoggedSums, contract: Address) -> Vec<(Address, U256)> {
        let mut gains = Vec::new();
        for (holder, rise) in &self.rises {
            let difference = logged.difference(*holder, *rise);
            if !difference.is_zero() {
                gains.push((*holder, difference));
            }
        }
        let total = |numbers: &BTreeMap<Address, U256>| {
            numbers.values().fold(U512::ZERO, |sum, number| {
                sum.saturating_add(U512::saturating_from(*number))
            })
        };
        let explained = total(&self.rises)
            .saturating_add(logged.burned)
            .saturating_sub(logged.minted.min(logged.burned));
        let unseen = total(&self.falls).saturating_sub(explained).saturating_to::<U256>();
        if !unseen.is_zero() {
            gains.push((contract, unseen));
        }
        gains
    }
}

/// The sums of logged transfers, mints and burns included.
#[derive(Default)]
struct LoggedSums {
    received: BTreeMap<Address, U512>,
    sent: BTreeMap<Address, U512>,
    minted: U512,
    burned: U512,
}

impl LoggedSums {
    fn new(logged: &[Effect]) -> Self {
        let mut sums = Self::default();
        for effect in logged {
            let amount = U512::saturating_from(effect.amount.unwrap_or_default());
            let add = |sum: &mut U512| *sum = sum.saturating_add(amount);
            add(sums.received.entry(effect.to).or_default());
            add(sums.sent.entry(effect.from).or_default());
            if effect.from.is_zero() {
                add(&mut sums.minted);
            }
            if effect.to.is_zero() {
                add(&mut sums.burned);
            }
        }
        sums
    }

    /// How far a rise exceeds what the holder received in all by the logs.
    fn difference(&self, holder: Address, rise: U256) -> U256 {
        let sent = self.sent.get(&holder).copied().unwrap_or_default();
        let received = self.received.get(&holder).copied().unwrap_or_default();
        let actual = U512::saturating_from(rise).saturating_add(sent);
        actual.saturating_sub(received).saturating_to()
    }
}

impl HashBudget {
    pub(super) const fn new() -> Self {
        Self(MAX_SLOT_HASHES)
    }

    fn slot(&mut self, mapping: Mapping, holder: Address) -> Result<B256, EffectsError> {
        self.0 = self.0.checked_sub(1).ok_or(EffectsError::TooManyHolders)?;
        Ok(mapping.slot(holder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_that_of_erc7201() {
        let inner = U256::from_be_bytes(keccak256("openzeppelin.storage.ERC20").0) - U256::ONE;
        let mut outer = keccak256(inner.to_be_bytes::<32>());
        outer.0[31] = 0;
        assert!(
            MAPPINGS
                .iter()
                .any(|mapping| matches!(mapping, Mapping::Solidity(position) if *position == outer)),
            "{outer}"
        );
    }

    /// A transaction with more holders than can be tried is refused.
    #[test]
    fn a_search_among_too_many_holders_is_refused() {
        let token = Address::repeat_byte(1);
        let mut change = Change::default();
        // A slot that belongs to nobody keeps the search going.
        change.storage.insert(B256::repeat_byte(9), B256::repeat_byte(1));
        let (none, all) = (BTreeSet::new(), BTreeSet::from([token]));
        let run = TokenRun {
            token,
            change: &change,
            logged: &[],
            near: &none,
            payers: &none,
            all: &all,
            callers: &none,
            sender: token,
        };
        let search = |hashes| evidence(&run, &mut HashBudget(hashes)).map(|evidence| evidence.shows_balances);
        assert_eq!(search(MAPPINGS.len()), Ok(false));
        assert_eq!(search(MAPPINGS.len() - 1), Err(EffectsError::TooManyHolders));
        assert_eq!(HashBudget::new().0, MAX_SLOT_HASHES);
    }
}
