//! The table of spec/60 section 7, with its thresholds, modes, claims, log rows and messages.

use crate::support::{
    ALICE, BOB, COIN, NFT, ROUTER, SENDER, effects,
    facts::{NOW, World, coins, key, payment, price, record_id, threshold},
    moved, units,
};
use gw_money::{Currency, Price, Threshold};
use gw_transfer_rules::{
    Token,
    decision::{
        CHECK_FAILED_MESSAGE, DENIED_CODE, Decision, DenialCategory, DenialReason, StepResult, ThresholdOrigin,
        TransferType, Verdict,
    },
    effects::{Effect, EffectKind, Effects, PartyRole},
    facts::EnforcementMode,
    sanctions::SanctionScope,
};
use gw_types::{Address, Seconds, U256};

const TOKEN: Token = Token::Contract(COIN);
const MISSING: DenialReason = DenialReason::RecordMissing;
const UNKNOWN: DenialReason = DenialReason::ValueUnknown;

/// The numbers of the steps of a decision.
fn steps(decision: &Decision) -> Vec<u8> {
    decision.steps.iter().map(StepResult::step).collect()
}

/// A price of so many millionths.
fn millionths(mantissa: u128) -> Price {
    Price::from_mantissa(mantissa * 10_u128.pow(12)).unwrap()
}

/// A threshold of so many hundredths.
fn hundredths(mantissa: u128) -> Threshold {
    Threshold::from_mantissa(mantissa * 10_u128.pow(6)).unwrap()
}

/// CO-21: the vectors, decided exactly.
#[test]
fn co21_vectors() {
    let decide = |decimals, price, threshold, amount| {
        let world = World::default().priced(TOKEN, decimals, price).threshold(threshold);
        let decision = world.decide(&payment(TOKEN, amount));
        let fiat = decision.log.and_then(|row| row.amount_fiat).unwrap().to_string();
        (decision.verdict, fiat)
    };
    let denied = Verdict::Deny(MISSING);
    let token = decide(6, millionths(29_080_000), hundredths(90_148), units(31_000_000));
    assert_eq!(token, (denied, "901.48".to_owned()), "equal: a record is needed");
    let below = coins(1) / units(2) - U256::ONE;
    let coin = decide(18, price(2000), threshold(1000), below);
    assert_eq!(
        coin,
        (Verdict::Allow, "1000".to_owned()),
        "below, although it rounds to the threshold"
    );
    let many = decide(77, price(1), threshold(1), U256::from(10).pow(units(77)));
    assert_eq!(many, (denied, "1".to_owned()));
    assert_eq!(
        decide(77, price(1), hundredths(101), U256::from(10).pow(units(77))).0,
        Verdict::Allow
    );
    let dust = decide(18, price(2000), Threshold::ZERO, U256::ONE);
    assert_eq!(dust, (denied, "0".to_owned()));
}

/// CO-27: exactly at the threshold needs a record; strictly below needs none. At threshold zero everything of value
/// needs one (CO-6).
#[test]
fn co6_co27_a_transfer_at_the_threshold_needs_a_record() {
    let world = World::default().priced(TOKEN, 0, price(1));
    let verdict = |world: &World, amount| world.decide(&payment(TOKEN, units(amount))).verdict;
    assert_eq!(verdict(&world, 999), Verdict::Allow);
    assert_eq!(verdict(&world, 1000), Verdict::Deny(MISSING));
    let zero = world.threshold(Threshold::ZERO);
    assert_eq!(verdict(&zero, 1), Verdict::Deny(MISSING));
    // Nothing of value: an allowance, a mint and a transfer among own addresses.
    let approval = Effect {
        kind: EffectKind::Approval,
        amount: None,
        ..moved(TOKEN, SENDER, ALICE, 0)
    };
    let mint = moved(TOKEN, Address::ZERO, ALICE, 5_000);
    let own = moved(TOKEN, ROUTER, SENDER, 5_000);
    for effect in [approval, mint, own] {
        let decision = zero.decide(&effects(vec![effect]));
        assert_eq!(decision.verdict, Verdict::Allow);
        assert!(decision.log.is_some(), "logged");
    }
}

/// CO-27: an override replaces the threshold of the organization even if it is higher; of two, the lower wins.
#[test]
fn co27_overrides_replace_the_threshold() {
    let origin = |world: World, beneficiary| {
        let effects = effects(vec![moved(TOKEN, SENDER, beneficiary, 1)]);
        let decision = world.priced(TOKEN, 0, price(1)).decide(&effects);
        let found = decision.steps.iter().find_map(|step| match step {
            StepResult::Thresholds(found) => found.first().map(|found| (found.threshold, found.origin)),
            _ => None,
        });
        found.unwrap()
    };
    use ThresholdOrigin::{Beneficiary, Org, Sender};
    let world = World::default;
    assert_eq!(origin(world(), ALICE), (threshold(1000), Org));
    assert_eq!(
        origin(world().threshold_of(ALICE, 5_000), ALICE),
        (threshold(5_000), Beneficiary)
    );
    assert_eq!(
        origin(world().threshold_of(SENDER, 5_000), ALICE),
        (threshold(5_000), Sender)
    );
    let both = world().threshold_of(SENDER, 5_000).threshold_of(ALICE, 4_000);
    assert_eq!(origin(both.clone(), ALICE), (threshold(4_000), Beneficiary));
    assert_eq!(origin(both.threshold_of(BOB, 6_000), BOB), (threshold(5_000), Sender));
}

/// CO-27: the override of one beneficiary does not change the threshold of another.
#[test]
fn co27_an_override_is_that_of_one_beneficiary() {
    let world = World::default().priced(TOKEN, 0, price(1)).threshold_of(BOB, 1_000_000);
    let both = effects(vec![moved(TOKEN, SENDER, ALICE, 1000), moved(TOKEN, SENDER, BOB, 1)]);
    let decision = world.decide(&both);
    assert_eq!(decision.verdict, Verdict::Deny(MISSING));
    assert_eq!(decision.log.unwrap().to, Some(ALICE));
}

/// Section 7: the order of the steps. Each world breaks several rules, and the first of them decides.
#[test]
fn section_7_the_first_step_that_applies_decides() {
    let paid = payment(TOKEN, units(5_000));
    let above = || World::default().priced(TOKEN, 0, price(1));
    let global = |world: World| world.sanction(SanctionScope::Global, ALICE);
    let org = |world: World| world.sanction(SanctionScope::Org, ALICE);
    let sanctioned = |scope| {
        Verdict::Deny(DenialReason::Sanctioned {
            scope,
            role: PartyRole::Recipient,
        })
    };
    let none = effects(Vec::new());
    type Row<'a> = (&'a str, World, &'a Effects, Verdict, bool, &'a [u8]);
    let rows: Vec<Row<'_>> = vec![
        ("nothing moves", above(), &none, Verdict::Allow, false, &[1, 2, 3, 4]),
        (
            "no configuration",
            above().unconfigured(),
            &paid,
            Verdict::Allow,
            false,
            &[1, 2, 3],
        ),
        (
            "switched off",
            above().disabled(),
            &paid,
            Verdict::Allow,
            false,
            &[1, 2, 3],
        ),
        (
            "both lists",
            org(global(above())),
            &paid,
            sanctioned(SanctionScope::Global),
            true,
            &[1, 2],
        ),
        (
            "global list, switched off",
            global(above().disabled()),
            &paid,
            sanctioned(SanctionScope::Global),
            true,
            &[1, 2],
        ),
        (
            "list before price",
            org(World::default()),
            &paid,
            sanctioned(SanctionScope::Org),
            true,
            &[1, 2, 3, 4],
        ),
        (
            "list before record",
            org(above().record(1, ALICE, COIN, 5_000)),
            &paid,
            sanctioned(SanctionScope::Org),
            true,
            &[1, 2, 3, 4],
        ),
        (
            "no price",
            World::default().threshold_of(ALICE, 9_000),
            &paid,
            Verdict::Deny(UNKNOWN),
            true,
            &[1, 2, 3, 4, 5],
        ),
        (
            "no price, allowed",
            World::default().unknown_prices_pass(),
            &paid,
            Verdict::Allow,
            true,
            &[1, 2, 3, 4, 5, 6, 7],
        ),
        (
            "below",
            above().threshold_of(ALICE, 5_001).record(1, ALICE, COIN, 5_000),
            &paid,
            Verdict::Allow,
            true,
            &[1, 2, 3, 4, 5, 6, 7],
        ),
        (
            "record",
            above().record(1, ALICE, COIN, 5_000),
            &paid,
            Verdict::Allow,
            true,
            &[1, 2, 3, 4, 5, 6, 7, 8],
        ),
        (
            "no record",
            above().record(1, ALICE, COIN, 4_999),
            &paid,
            Verdict::Deny(MISSING),
            true,
            &[1, 2, 3, 4, 5, 6, 7, 8, 9],
        ),
    ];
    for (name, world, effects, verdict, is_logged, expected) in rows {
        let decision = world.decide(effects);
        assert_eq!(decision.verdict, verdict, "{name}");
        assert_eq!(decision.log.is_some(), is_logged, "{name}");
        assert_eq!(decision.log.map_or(verdict, |row| row.verdict), verdict, "{name}");
        assert_eq!(decision.claims.len(), usize::from(name == "record"), "{name}");
        assert_eq!(steps(&world.decide(effects)), expected, "{name}");
    }
}

/// CO-29: the messages are fixed texts.
#[test]
fn co29_messages_are_fixed() {
    let texts = DenialCategory::ALL.map(DenialCategory::message);
    assert_eq!(
        texts,
        [
            "compliance denied: sanctioned address",
            "compliance denied: transaction value cannot be computed",
            "compliance denied: transaction exceeds threshold",
            "compliance denied: travel-rule record required",
            "compliance denied: transaction blocked by compliance policy",
        ]
    );
    assert_eq!(MISSING.category(), DenialCategory::ExceedsThreshold);
    assert_eq!(MISSING.hint(), Some("travel-rule record required"));
    assert_eq!(
        (UNKNOWN.category(), UNKNOWN.hint()),
        (DenialCategory::ValueUnknown, None)
    );
    assert_eq!((DENIED_CODE, CHECK_FAILED_MESSAGE), (-32003, "compliance check failed"));
    let reason = DenialReason::Sanctioned {
        scope: SanctionScope::Org,
        role: PartyRole::Spender,
    };
    assert_eq!(
        reason.to_string(),
        "the organization's list of sanctions has the spender"
    );
    assert_eq!(reason.hint(), None);
}

/// CO-31: monitoring turns an unknown price and a missing record into a pass with a log row that would block; the mode
/// of the organization wins over that of the system.
#[test]
fn co31_monitoring_passes_what_it_would_block() {
    use EnforcementMode::{Enforce, Monitor};
    let unpriced = World::default();
    let priced = World::default().priced(TOKEN, 0, price(1));
    let paid = payment(TOKEN, units(1000));
    for (own, system, monitors) in [
        (None, Enforce, false),
        (None, Monitor, true),
        (Some(Enforce), Monitor, false),
        (Some(Monitor), Enforce, true),
    ] {
        for (world, reason) in [(&unpriced, UNKNOWN), (&priced, MISSING)] {
            let mut world = world.clone().change_config(|config| config.mode = own);
            world.mode = system;
            let decision = world.decide(&paid);
            let expected = if monitors {
                Verdict::Monitored(reason)
            } else {
                Verdict::Deny(reason)
            };
            assert_eq!(decision.verdict, expected);
            assert_eq!(decision.verdict.passes(), monitors);
            let row = decision.log.unwrap();
            assert_eq!(row.verdict.reason(), Some(reason), "the row has the reason");
            assert!(decision.claims.is_empty());
        }
    }
}

/// CO-32: monitoring still claims a matching record, and `monitor_until` ends it by itself.
#[test]
fn co32_monitoring_claims_records_and_ends_by_itself() {
    let paid = payment(TOKEN, units(1000));
    let world = World::default()
        .priced(TOKEN, 0, price(1))
        .mode(EnforcementMode::Monitor);
    let claimed = world.clone().record(1, ALICE, COIN, 1000).decide(&paid);
    assert_eq!((claimed.verdict, claimed.claims.len()), (Verdict::Allow, 1));
    let until = |at| {
        world
            .clone()
            .change_config(|config| config.monitor_until = Some(at))
            .decide(&paid)
            .verdict
    };
    assert_eq!(until(NOW.plus(Seconds(1))), Verdict::Monitored(MISSING));
    assert_eq!(until(NOW), Verdict::Deny(MISSING));
    let mut inherited = World::default().priced(TOKEN, 0, price(1));
    inherited.mode = EnforcementMode::Monitor;
    let inherited = inherited.change_config(|config| config.monitor_until = Some(NOW));
    assert_eq!(inherited.decide(&paid).verdict, Verdict::Deny(MISSING));
}

/// CO-25: values add up over tokens, so that a batch is not split below the threshold.
#[test]
fn co25_values_add_up_over_tokens() {
    let world = World::default()
        .priced(TOKEN, 2, price(1))
        .priced(Token::Contract(NFT), 0, price(300));
    let batch = |coin, nft| {
        let collectible = Effect {
            kind: EffectKind::Erc721,
            id: Some(units(7)),
            ..moved(Token::Contract(NFT), SENDER, ALICE, nft)
        };
        effects(vec![moved(TOKEN, SENDER, ALICE, coin), collectible])
    };
    assert_eq!(world.decide(&batch(69_999, 1)).verdict, Verdict::Allow);
    let denied = world.decide(&batch(70_000, 1));
    assert_eq!(denied.verdict, Verdict::Deny(MISSING));
    let row = denied.log.unwrap();
    assert_eq!(
        (row.transfer_type, row.token, row.amount),
        (TransferType::Mixed, None, None)
    );
    assert_eq!(row.amount_fiat.map(|fiat| fiat.to_string()), Some("1000".to_owned()));
    assert_eq!(row.price, None, "several prices");
}

/// Section 7, step 8: a beneficiary above its threshold needs a record for each token, and others need none; all
/// records are claimed or none.
#[test]
fn section_7_records_are_claimed_all_or_none() {
    let world = World::default()
        .priced(TOKEN, 0, price(1))
        .priced(Token::Contract(NFT), 0, price(1))
        .record(1, ALICE, COIN, 600)
        .record(4, BOB, COIN, 2_000);
    let nft = Token::Contract(NFT);
    let paid = effects(vec![
        moved(TOKEN, SENDER, ALICE, 600),
        moved(nft, SENDER, ALICE, 400),
        moved(TOKEN, SENDER, ROUTER, 999),
        moved(TOKEN, SENDER, BOB, 1_000),
    ]);
    let denied = world.decide(&paid);
    assert_eq!(denied.verdict, Verdict::Deny(MISSING));
    assert!(denied.claims.is_empty());
    let row = denied.log.as_ref().unwrap();
    assert_eq!((row.to, row.records.len()), (Some(ALICE), 0));
    let found = denied.steps.iter().find_map(|step| match step {
        StepResult::Records(found) => Some(found.clone()),
        _ => None,
    });
    let found: Vec<_> = found.unwrap().iter().map(|found| (found.key, found.record)).collect();
    let expected = [
        (key(ALICE, TOKEN), Some(record_id(1))),
        (key(ALICE, nft), None),
        (key(BOB, TOKEN), Some(record_id(4))),
    ];
    assert_eq!(found, expected);

    let allowed = world.record(2, ALICE, NFT, 400).decide(&paid);
    assert_eq!(allowed.verdict, Verdict::Allow);
    let claims: Vec<_> = allowed
        .claims
        .iter()
        .map(|claim| (claim.key, claim.amount, claim.record))
        .collect();
    let expected = [
        (key(ALICE, TOKEN), units(600), record_id(1)),
        (key(ALICE, nft), units(400), record_id(2)),
        (key(BOB, TOKEN), units(1_000), record_id(4)),
    ];
    assert_eq!(claims, expected);
    assert_eq!(allowed.log.unwrap().records, [record_id(1), record_id(2), record_id(4)]);
}

/// CO-41: a claim that another transaction won leaves the decision of step 9, in the mode of the decision.
#[test]
fn co41_a_lost_claim_denies() {
    let paid = payment(TOKEN, units(1000));
    let world = World::default().priced(TOKEN, 0, price(1)).record(1, ALICE, COIN, 1000);
    for (mode, verdict) in [
        (EnforcementMode::Enforce, Verdict::Deny(DenialReason::RecordTaken)),
        (EnforcementMode::Monitor, Verdict::Monitored(DenialReason::RecordTaken)),
    ] {
        let lost = world.clone().mode(mode).decide(&paid).without_records();
        assert_eq!(lost.verdict, verdict);
        assert_eq!(steps(&lost).last(), Some(&9));
        let row = lost.log.unwrap();
        assert_eq!(
            (row.verdict, row.records.len(), row.amount),
            (verdict, 0, Some(units(1000)))
        );
        assert!(lost.claims.is_empty());
    }
    let without = world.threshold(threshold(5_000)).decide(&paid);
    assert_eq!(without.clone().without_records(), without, "nothing was claimed");
    assert_eq!(DenialReason::RecordTaken.category(), DenialCategory::ExceedsThreshold);
}

/// Section 7, step 5: under the policy `allowed`, what has a price is valued all the same. An unpriced token in the
/// same transaction does not let a large transfer pass.
#[test]
fn section_7_an_unpriced_token_does_not_hide_a_priced_one() {
    let world = World::default().priced(TOKEN, 0, price(1)).unknown_prices_pass();
    let nft = Token::Contract(NFT);
    let both = |amount| effects(vec![moved(TOKEN, SENDER, ALICE, amount), moved(nft, SENDER, ALICE, 9)]);
    assert_eq!(world.decide(&both(1000)).verdict, Verdict::Deny(MISSING));
    assert_eq!(world.decide(&both(999)).verdict, Verdict::Allow);
    // A record covers what has a price; none can be made for the rest.
    assert_eq!(
        world
            .clone()
            .record(1, ALICE, COIN, 1000)
            .decide(&both(1000))
            .claims
            .len(),
        1
    );
    // Alone, it passes without an amount, also at threshold zero.
    let alone = effects(vec![moved(nft, SENDER, ALICE, 9)]);
    let decision = world.threshold(Threshold::ZERO).decide(&alone);
    assert_eq!(decision.verdict, Verdict::Allow);
    let row = decision.log.unwrap();
    assert_eq!((row.amount_fiat, row.threshold, row.price), (None, None, None));
    assert_eq!((row.token, row.amount), (Some(nft), Some(units(9))));
}

/// Section 7, step 5: an amount that no log tells has no value: forbidden, or not counted.
#[test]
fn section_7_an_unreadable_amount_has_no_value() {
    let world = World::default().priced(TOKEN, 0, price(1));
    let unknown = Effect {
        amount: None,
        ..moved(TOKEN, SENDER, ALICE, 0)
    };
    let paid = effects(vec![unknown, moved(TOKEN, SENDER, ALICE, 1000)]);
    let denied = world.decide(&paid);
    assert_eq!(denied.verdict, Verdict::Deny(UNKNOWN));
    assert_eq!(denied.log.unwrap().amount, None);
    assert_eq!(
        world.unknown_prices_pass().decide(&paid).verdict,
        Verdict::Deny(MISSING)
    );
    let alone = World::default().priced(TOKEN, 0, price(1)).unknown_prices_pass();
    assert_eq!(alone.decide(&effects(vec![unknown])).verdict, Verdict::Allow);
}

/// CO-25: within the window of the organization, earlier transfers to the same beneficiary add to the value, at the
/// prices and in the currency of today; without a window they do not.
#[test]
fn co25_earlier_transfers_add_up_within_the_window() {
    let mut world = World::default().priced_in(TOKEN, 0, &[(Currency::USD, price(1)), (Currency::AED, price(4))]);
    world.earlier.add(ALICE, TOKEN, units(300));
    world.earlier.add(ALICE, TOKEN, units(300));
    world.earlier.add(BOB, TOKEN, units(5_000));
    let verdict = |world: &World, amount| world.decide(&payment(TOKEN, units(amount))).verdict;
    assert_eq!(verdict(&world, 999), Verdict::Allow, "no window");
    let window = world.change_config(|config| config.linked_window_hours = 24);
    assert_eq!(verdict(&window, 399), Verdict::Allow);
    assert_eq!(verdict(&window, 400), Verdict::Deny(MISSING));
    let mut other = window.clone();
    other.currency = Currency::AED;
    assert_eq!(verdict(&other, 1), Verdict::Deny(MISSING));
    // The record covers this transaction alone.
    let covered = window
        .clone()
        .record(1, ALICE, COIN, 400)
        .decide(&payment(TOKEN, units(400)));
    assert_eq!((covered.verdict, covered.claims.len()), (Verdict::Allow, 1));
    let value = covered.steps.iter().find_map(|step| match step {
        StepResult::Values(values) => values.first().copied(),
        _ => None,
    });
    let value = value.unwrap();
    let texts = [value.worth, value.earlier].map(|worth| worth.fiat_amount().unwrap().to_string());
    assert_eq!(texts, ["1000", "600"]);
    // An earlier transfer without a price today is an unknown value.
    let mut unpriced = window;
    unpriced.earlier.add(ALICE, Token::Contract(NFT), U256::ONE);
    assert_eq!(verdict(&unpriced, 1), Verdict::Deny(UNKNOWN));
    assert_eq!(verdict(&unpriced.unknown_prices_pass(), 399), Verdict::Allow);
}

/// CO-25: a transaction whose runs differ is decided by the larger gain.
#[test]
fn co25_the_larger_run_decides() {
    let world = World::default().priced(TOKEN, 0, price(1));
    let runs = |first, second| {
        let runs = vec![
            vec![moved(TOKEN, SENDER, ALICE, first)],
            vec![moved(TOKEN, SENDER, ALICE, second)],
        ];
        Effects::from_parts(SENDER, Some(ROUTER), runs, [])
    };
    assert_eq!(world.decide(&runs(999, 999)).verdict, Verdict::Allow);
    assert_eq!(world.decide(&runs(1, 1000)).verdict, Verdict::Deny(MISSING));
    assert_eq!(world.decide(&runs(1000, 1)).verdict, Verdict::Deny(MISSING));
}

/// CO-19: a sum that leaves 512 bits counts as above every threshold, and has no rounded value.
#[test]
fn co19_a_saturated_value_is_above() {
    let world = World::default()
        .priced(TOKEN, 0, price(1))
        .priced(Token::Contract(NFT), 77, price(1))
        .threshold(Threshold::MAX);
    let most = |token| Effect {
        amount: Some(U256::MAX),
        ..moved(token, SENDER, ALICE, 0)
    };
    let decision = world.decide(&effects(vec![most(TOKEN), most(Token::Contract(NFT))]));
    assert_eq!(decision.verdict, Verdict::Deny(MISSING));
    assert_eq!(decision.log.unwrap().amount_fiat, None);
}
