//! Net flows: who gains what in a transaction (CO-25).
//!
//! The net of an address is what it received minus what it gave, for each asset and run. A beneficiary is an address
//! with a gain in any run, except the sender and the addresses that are linked to the caller. If the runs differ, the
//! larger gain of each asset counts.
//!
//! A transfer to oneself, a mint and a burn are no flows (CO-23), with one exception: a token that burns from one
//! holder and mints to another in one transaction has moved its amount. So what a holder was minted beyond its own
//! burns counts up to what other holders of the asset burned. A flash mint nets to nothing.
//!
//! Effects that were not observed in a run ([`Evidence::is_observed`](crate::effects::Evidence::is_observed)) raise
//! the gain of their recipient and never lower that of their payer.

use crate::{
    effects::{Effect, Effects},
    token::{Asset, Token},
};
use alloy_primitives::{U512, map::AddressSet};
use gw_types::{Address, U256};
use std::collections::{BTreeMap, BTreeSet};

/// What one address gains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gains {
    /// The amount of each token, above zero. Amounts of several ids add up; an amount beyond 256 bits saturates.
    pub amounts: BTreeMap<Token, U256>,
    /// Tokens of which it received an amount that no log tells.
    pub unreadable: BTreeSet<Token>,
}

/// Somebody who gains from a transaction and is not the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beneficiary {
    /// The address.
    pub address: Address,
    /// What it gains.
    pub gains: Gains,
}

/// The beneficiaries, by address. `own` are the addresses that are linked to the caller.
pub fn beneficiaries(effects: &Effects, own: &AddressSet) -> Vec<Beneficiary> {
    let is_foreign = |address: &Address| *address != effects.sender() && !own.contains(address);
    gains(effects.runs())
        .into_iter()
        .filter(|(address, _)| is_foreign(address))
        .map(|(address, gains)| Beneficiary { address, gains })
        .collect()
}

/// What every address gains.
pub fn gains(runs: &[Vec<Effect>]) -> BTreeMap<Address, Gains> {
    let mut largest: BTreeMap<(Address, Asset), U256> = BTreeMap::new();
    let mut gains: BTreeMap<Address, Gains> = BTreeMap::new();
    for run in runs {
        for (key, gain) in NetFlows::new(run).gains() {
            let known = largest.entry(key).or_default();
            *known = (*known).max(gain);
        }
        for effect in run.iter().filter(|effect| is_flow(effect) && effect.amount.is_none()) {
            gains.entry(effect.to).or_default().unreadable.insert(effect.token);
        }
    }
    for ((address, asset), gain) in largest {
        let sum = gains
            .entry(address)
            .or_default()
            .amounts
            .entry(asset.token)
            .or_default();
        *sum = sum.saturating_add(gain);
    }
    gains
}

/// Whether an effect moves something from one address to another.
fn is_flow(effect: &Effect) -> bool {
    effect.is_transfer() && effect.from != effect.to && !effect.from.is_zero() && !effect.to.is_zero()
}

#[derive(Clone, Copy, Default)]
struct Sums {
    received: U512,
    given: U512,
    minted: U512,
    burned: U512,
}

/// The sums of one run.
struct NetFlows {
    sums: BTreeMap<(Address, Asset), Sums>,
    /// What all holders burned.
    burned: BTreeMap<Asset, U512>,
}

impl NetFlows {
    fn new(run: &[Effect]) -> Self {
        let mut sums: BTreeMap<(Address, Asset), Sums> = BTreeMap::new();
        let transfers = run
            .iter()
            .filter(|effect| effect.is_transfer() && effect.from != effect.to);
        for effect in transfers {
            let amount = U512::saturating_from(effect.amount.unwrap_or_default());
            let add = |sum: &mut U512| *sum = sum.saturating_add(amount);
            let recipient = (effect.to, effect.asset());
            let payer = (effect.from, effect.asset());
            match (is_flow(effect), effect.evidence.is_observed()) {
                (true, observed) => {
                    add(&mut sums.entry(recipient).or_default().received);
                    if observed {
                        add(&mut sums.entry(payer).or_default().given);
                    }
                }
                (false, true) if effect.from.is_zero() => add(&mut sums.entry(recipient).or_default().minted),
                (false, true) => add(&mut sums.entry(payer).or_default().burned),
                (false, false) => {}
            }
        }
        let mut burned: BTreeMap<Asset, U512> = BTreeMap::new();
        for ((_, asset), sums) in &sums {
            let total = burned.entry(*asset).or_default();
            *total = total.saturating_add(sums.burned);
        }
        Self { sums, burned }
    }

    /// The gains, without zeros.
    fn gains(&self) -> impl Iterator<Item = ((Address, Asset), U256)> {
        self.sums.iter().filter_map(|((address, asset), sums)| {
            let burned = self.burned.get(asset).copied().unwrap_or_default();
            let by_others = burned.saturating_sub(sums.burned);
            let minted = sums.minted.saturating_sub(sums.burned).min(by_others);
            let gain = sums.received.saturating_add(minted).saturating_sub(sums.given);
            (!gain.is_zero()).then(|| ((*address, *asset), gain.saturating_to()))
        })
    }
}
