//! Properties of values and decisions over random payments.

use crate::support::{
    SENDER, Sent, aggregate_payments,
    facts::{World, price},
    moved,
    run::Run,
    units,
};
use gw_money::{Threshold, Worth};
use gw_transfer_rules::{
    Token,
    decision::{StepResult, Verdict},
    effects::{Effect, Effects},
};
use gw_types::Address;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Recipients of payments, by number.
fn recipient(number: u8) -> Address {
    Address::repeat_byte(0x80 + number)
}

/// Accounts that only pass on, by number.
fn router(number: u8) -> Address {
    Address::repeat_byte(0x10 + number)
}

fn token(number: u8) -> Token {
    match number {
        0 => Token::Native,
        number => Token::Contract(Address::repeat_byte(0x30 + number)),
    }
}

/// A payment by the sender: recipient, token, amount.
type Payment = (u8, u8, u64);

fn payments(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Payment>> {
    prop::collection::vec((0_u8..3, 0_u8..3, 1_u64..100_000), count)
}

fn world() -> World {
    let world = World::default().priced(token(0), 18, price(2000));
    world
        .priced(token(1), 6, price(3))
        .priced(token(2), 0, price(7))
        .threshold(Threshold::ZERO)
}

fn effects(run: Vec<Effect>) -> Effects {
    Effects::from_parts(SENDER, Some(router(0)), vec![run], [])
}

/// The value that each beneficiary gains.
fn worth(effects: &Effects) -> BTreeMap<Address, Worth> {
    let decision = world().decide(effects);
    let values = decision.steps.iter().find_map(|step| match step {
        StepResult::Values(values) => Some(values.clone()),
        _ => None,
    });
    values
        .unwrap_or_default()
        .iter()
        .map(|value| (value.beneficiary, value.worth))
        .collect()
}

fn direct((to, kind, amount): Payment) -> Effect {
    moved(token(kind), SENDER, recipient(to), amount)
}

/// One payment in parts, each by a way through routers.
fn split((to, kind, amount): Payment, parts: &[(u64, Vec<u8>)]) -> Vec<Effect> {
    let mut rest = amount;
    let mut run = Vec::new();
    let last = (u64::MAX, Vec::new());
    for (part, way) in parts.iter().chain([&last]) {
        let part = (*part).min(rest);
        if part == 0 {
            continue;
        }
        rest -= part;
        let mut from = SENDER;
        for number in way {
            run.push(moved(token(kind), from, router(*number), part));
            from = router(*number);
        }
        run.push(moved(token(kind), from, recipient(to), part));
    }
    run
}

fn parts() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    prop::collection::vec((1_u64..50_000, prop::collection::vec(0_u8..4, 0..3)), 0..4)
}

proptest! {
    /// CO-25: splitting payments inside a transaction, batching them, in any order and by any way through routers,
    /// changes neither who is a beneficiary nor what it gains.
    #[test]
    fn co25_splitting_and_routing_change_nothing(
        (paid, run) in prop::collection::vec(((0_u8..3, 0_u8..3, 1_u64..100_000), parts()), 1..5).prop_flat_map(|list| {
            let run: Vec<Effect> = list.iter().flat_map(|(payment, parts)| split(*payment, parts)).collect();
            let paid: Vec<Payment> = list.into_iter().map(|(payment, _)| payment).collect();
            (Just(paid), Just(run).prop_shuffle())
        })
    ) {
        let plain = effects(paid.iter().copied().map(direct).collect());
        prop_assert_eq!(worth(&effects(run)), worth(&plain));
    }

    /// CO-25: a further payment in the same transaction never lowers what a beneficiary gains.
    #[test]
    fn co25_batching_never_lowers_a_value(first in payments(1..4), second in payments(0..4)) {
        let run = |payments: &[Payment]| payments.iter().copied().map(direct).collect::<Vec<_>>();
        let alone = worth(&effects(run(&first)));
        let both = worth(&effects([run(&first), run(&second)].concat()));
        for (beneficiary, value) in alone {
            prop_assert!(both[&beneficiary] >= value);
        }
    }

    /// CO-25: the calls of a container are worth what the same payments are worth one by one: with a run, by its
    /// frames, and without one, by the calldata.
    #[test]
    fn co25_a_container_is_worth_its_payments(paid in payments(1..6)) {
        let native: Vec<(Address, u64)> = paid.iter().map(|(to, _, amount)| (recipient(*to), *amount)).collect();
        let total: u64 = native.iter().map(|(_, amount)| amount).sum();
        let input = aggregate_payments(&native);
        let plain = native.iter().map(|(to, amount)| moved(Token::Native, SENDER, *to, *amount)).collect();
        let plain = worth(&effects(plain));
        let run = native.iter().fold(Run::call(router(0), total, input.clone()), |run, (to, amount)| {
            run.pay(router(0), *to, *amount)
        });
        let traced = Sent::call(router(0), total, input.clone()).run(run).effects();
        prop_assert_eq!(&worth(&traced), &plain);
        let mut from_calldata = worth(&Sent::call(router(0), total, input).effects());
        // Without a run, nothing shows that the container passes its value on.
        from_calldata.remove(&router(0));
        prop_assert_eq!(&from_calldata, &plain);
    }

    /// CO-25: effects of other addresses never let a transaction pass that one beneficiary makes fail.
    #[test]
    fn co25_effects_of_others_never_undo_a_denial(
        paid in payments(1..4),
        limit in 0_u64..2_000,
        policy in any::<bool>(),
        others in prop::collection::vec((0_u8..5, 0_u8..5, 0_u8..4, 1_u64..1_000_000, any::<bool>()), 0..8),
        at in any::<prop::sample::Index>(),
    ) {
        let mut world = world().threshold(crate::support::facts::threshold(limit));
        if policy {
            world = world.unknown_prices_pass();
        }
        let run: Vec<Effect> = paid.iter().copied().map(direct).collect();
        let denied = world.decide(&effects(run.clone()));
        prop_assume!(!denied.verdict.passes());
        let beneficiary = denied.log.and_then(|row| row.to).unwrap();
        // The parties of other effects: routers, the sender, and the zero address.
        let party = |number: u8| match number {
            3 => SENDER,
            4 => Address::ZERO,
            number => router(number),
        };
        let mut changed = run;
        for (from, to, kind, amount, is_known) in others {
            let effect = moved(token(kind), party(from), party(to), amount);
            let effect = Effect { amount: effect.amount.filter(|_| is_known), ..effect };
            changed.insert(at.index(changed.len() + 1), effect);
        }
        let decision = world.decide(&effects(changed));
        prop_assert!(matches!(decision.verdict, Verdict::Deny(_)), "{beneficiary}");
    }

    /// A larger threshold never denies what a smaller one lets pass, and a transfer of more never passes where one of
    /// less is denied.
    #[test]
    fn section_7_decisions_are_monotone(
        payment in (0_u8..3, 0_u8..3, 1_u64..100_000),
        more in 0_u64..1_000,
        limits in (0_u64..2_000, 0_u64..2_000),
    ) {
        let (low, high) = (limits.0.min(limits.1), limits.0.max(limits.1));
        let passes = |amount: u64, limit: u64| {
            let world = world().threshold(crate::support::facts::threshold(limit));
            world.decide(&effects(vec![direct((payment.0, payment.1, amount))])).verdict.passes()
        };
        let amount = payment.2;
        prop_assert!(!passes(amount, low) || passes(amount, high));
        prop_assert!(!passes(amount + more, low) || passes(amount, low));
    }

    /// Arbitrary calldata neither panics nor costs more than its limits.
    #[test]
    fn co22_arbitrary_calldata_is_read(
        selector in prop::sample::select(crate::support::calldata::KNOWN.to_vec()),
        words in prop::collection::vec(prop_oneof![0_u64..300, any::<u64>()], 0..40),
        cut in 0_usize..40,
    ) {
        let mut input = selector.to_vec();
        input.extend(words.iter().flat_map(|word| units(*word).to_be_bytes::<32>()));
        input.truncate(input.len().saturating_sub(cut));
        let _ = Sent::call(router(0), 1, input).try_effects();
    }

    /// Arbitrary logs neither panic nor lower what a beneficiary gains by other logs.
    #[test]
    fn co22_arbitrary_logs_lower_nothing_of_other_tokens(
        topics in prop::collection::vec(0_u8..6, 0..5),
        event in prop::sample::select(crate::support::run::EVENTS.to_vec()),
        data in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let coin = Address::repeat_byte(0x31);
        let other = Address::repeat_byte(0x32);
        let paid = || Run::call(router(0), 0, []).transfer(coin, SENDER, recipient(0), 5);
        let mut all = vec![event];
        all.extend(topics.iter().map(|number| recipient(*number).into_word()));
        let with_log = Sent::call(router(0), 0, []).run(paid().log(other, &all, data)).effects();
        let plain = Sent::call(router(0), 0, []).run(paid()).effects();
        let gain = |effects: &Effects| {
            let gains = gw_transfer_rules::flow::gains(effects.runs());
            gains[&recipient(0)].amounts[&Token::Contract(coin)]
        };
        prop_assert_eq!(gain(&with_log), gain(&plain));
    }
}
