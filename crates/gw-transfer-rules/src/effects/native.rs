//! Native value of a run: its frames, and the state diff where it shows more.

use super::{Effect, EffectKind, Evidence, Transaction};
use crate::token::Token;
use alloy_primitives::U512;
use gw_evm::trace::Trace;
use gw_types::{Address, U256};
use std::collections::BTreeMap;

/// The native effects of a run, without those that were undone. CREATE frames pay the contract that they create, and
/// SELFDESTRUCT frames pay the beneficiary.
pub(super) fn effects(trace: &Trace, transaction: &Transaction<'_>) -> Vec<Effect> {
    let mut effects = of_frames(trace, transaction.request.value.unwrap_or_default());
    let surplus = surplus(trace, transaction, &effects);
    effects.extend(surplus);
    effects
}

/// A native payment that a frame or a call shows.
pub(super) const fn payment(from: Address, to: Address, amount: U256, evidence: Evidence) -> Effect {
    Effect {
        kind: EffectKind::Native,
        token: Token::Native,
        id: None,
        from,
        to,
        amount: Some(amount),
        evidence,
    }
}

/// `top_value` is the value of the transaction, which counts even if a node does not report it in the top frame.
fn of_frames(trace: &Trace, top_value: U256) -> Vec<Effect> {
    let paid = |(index, frame): (usize, &gw_evm::trace::Frame)| {
        let value = if index == 0 {
            frame.value.max(top_value)
        } else {
            frame.value
        };
        let to = frame.to.filter(|_| !frame.undone && !value.is_zero())?;
        Some(payment(frame.from, to, value, Evidence::Frame))
    };
    trace.frames.iter().enumerate().filter_map(paid).collect()
}

/// What accounts gained beyond the frames. Some nodes do not report the payout of a SELFDESTRUCT as a frame.
///
/// The sender is left out: it pays the fee, and what it gains is not valued.
fn surplus(trace: &Trace, transaction: &Transaction<'_>, paid: &[Effect]) -> Vec<Effect> {
    let Some(changes) = &trace.changes else {
        return Vec::new();
    };
    let mut sums: BTreeMap<Address, (U512, U512)> = BTreeMap::new();
    for effect in paid {
        let amount = U512::saturating_from(effect.amount.unwrap_or_default());
        let received = &mut sums.entry(effect.to).or_default().0;
        *received = received.saturating_add(amount);
        let sent = &mut sums.entry(effect.from).or_default().1;
        *sent = sent.saturating_add(amount);
    }
    let is_excluded = |address: &Address| {
        *address == transaction.sender || address.is_zero() || transaction.fee_recipients.contains(address)
    };
    let gained = |(address, change): (&Address, &gw_evm::trace::Change)| {
        let after = change.balance.filter(|_| !change.removed)?;
        let (received, sent) = sums.get(address).copied().unwrap_or_default();
        // after - before > received - sent
        let actual = U512::saturating_from(after).saturating_add(sent);
        let shown = U512::saturating_from(change.before.balance).saturating_add(received);
        let difference = actual.saturating_sub(shown).saturating_to::<U256>();
        let surplus = payment(transaction.sender, *address, difference, Evidence::BalanceDiff);
        (!difference.is_zero()).then_some(surplus)
    };
    let accounts = changes.iter().filter(|(address, _)| !is_excluded(address));
    accounts.filter_map(gained).collect()
}
