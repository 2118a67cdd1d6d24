//! The row of the compliance log, and the steps that explain a decision.

use crate::support::{
    ALICE, BOB, COIN, NFT, ROUTER, SENDER, effects,
    facts::{World, price, threshold},
    moved, units,
};
use gw_money::Currency;
use gw_transfer_rules::{
    Token,
    decision::{DenialReason, OrgStatus, StepResult, TransferType, Verdict},
    effects::{Effect, EffectKind},
    facts::{EnforcementMode, UnknownPricePolicy},
    prices::{KnownPrice, PriceSource, UnknownPrice},
};

const TOKEN: Token = Token::Contract(COIN);
const MISSING: DenialReason = DenialReason::RecordMissing;

/// Section 12: the row of a plain transfer has all its columns.
#[test]
fn section_12_the_row_of_a_plain_transfer_is_complete() {
    let world = World::default().priced(TOKEN, 2, price(3)).threshold_of(ALICE, 50);
    let owner = effects(vec![moved(TOKEN, BOB, ALICE, 1_500)]);
    let row = world.decide(&owner).log.unwrap();
    assert_eq!((row.transfer_type, row.token), (TransferType::Erc20, Some(TOKEN)));
    assert_eq!((row.from, row.to, row.amount), (BOB, Some(ALICE), Some(units(1_500))));
    assert_eq!(row.amount_fiat.map(|fiat| fiat.to_string()), Some("45".to_owned()));
    assert_eq!((row.threshold, row.currency), (Some(threshold(50)), Currency::USD));
    assert_eq!((row.verdict, row.records.len()), (Verdict::Allow, 0));
    let known = KnownPrice {
        price: price(3),
        decimals: 2.try_into().unwrap(),
        source: PriceSource::Manual,
    };
    assert_eq!(row.price, Some(known));
    assert_eq!((row.list_versions.global, row.list_versions.org), (1, 1));
    assert_eq!(row.effects, owner.distinct_effects());
}

/// Section 12: the row describes the beneficiary that decided.
#[test]
fn section_12_the_row_describes_who_decided() {
    let world = World::default().priced(TOKEN, 0, price(1));
    let to = |world: &World, run: Vec<Effect>| {
        let row = world.decide(&effects(run)).log.unwrap();
        (row.from, row.to.unwrap(), row.amount)
    };
    let small = vec![moved(TOKEN, SENDER, ALICE, 5), moved(TOKEN, ROUTER, BOB, 6)];
    assert_eq!(to(&world, small), (ROUTER, BOB, Some(units(6))), "the largest");
    let above = vec![moved(TOKEN, SENDER, ALICE, 1_000), moved(TOKEN, ROUTER, BOB, 6_000)];
    assert_eq!(
        to(&world, above.clone()),
        (SENDER, ALICE, Some(units(1_000))),
        "the first without a record"
    );
    let covered = world.clone().record(1, ALICE, COIN, 1_000);
    assert_eq!(to(&covered, above), (ROUTER, BOB, Some(units(6_000))));
    let unpriced = vec![
        moved(TOKEN, SENDER, ALICE, 5),
        moved(Token::Contract(NFT), ROUTER, BOB, 6),
    ];
    assert_eq!(
        to(&world, unpriced),
        (ROUTER, BOB, Some(units(6))),
        "the first without a price"
    );
    let twice = vec![moved(TOKEN, SENDER, ALICE, 5), moved(TOKEN, ROUTER, ALICE, 6)];
    assert_eq!(to(&world, twice), (SENDER, ALICE, Some(units(11))), "several payers");
}

/// Section 12: the type of what moves.
#[test]
fn section_12_the_type_follows_the_effects() {
    let of = |kinds: &[EffectKind]| {
        let effects: Vec<Effect> = kinds
            .iter()
            .map(|kind| Effect {
                kind: *kind,
                ..moved(TOKEN, SENDER, ALICE, 1)
            })
            .collect();
        TransferType::of(&effects).as_str()
    };
    use EffectKind::{Approval, Erc20, Erc721, Erc1155, Native};
    assert_eq!(of(&[]), "eth");
    assert_eq!(of(&[Native, Native]), "eth");
    assert_eq!(of(&[Erc20, Approval]), "erc20", "allowances count only alone");
    assert_eq!(of(&[Erc721]), "erc721");
    assert_eq!(of(&[Erc1155]), "erc1155");
    assert_eq!(of(&[Approval]), "approval");
    assert_eq!(of(&[Native, Erc20]), "mixed");
}

/// The steps explain a decision: prices, their sources and why one is unknown.
#[test]
fn findings_tell_what_each_step_found() {
    let nft = Token::Contract(NFT);
    let world = World::default().priced(TOKEN, 0, price(1)).unknown_prices_pass();
    let both = effects(vec![moved(TOKEN, SENDER, ALICE, 1000), moved(nft, SENDER, ALICE, 9)]);
    let steps = world.decide(&both).steps;
    assert_eq!(steps[0], StepResult::Effects(2));
    let status = OrgStatus::Enabled {
        mode: EnforcementMode::Enforce,
        currency: Currency::USD,
        unknown_price: UnknownPricePolicy::Allowed,
    };
    assert_eq!(steps[2], StepResult::Organization(status));
    let StepResult::Prices(prices) = &steps[4] else {
        panic!("{steps:?}")
    };
    let found: Vec<_> = prices
        .iter()
        .map(|found| (found.token, found.price.clone().err()))
        .collect();
    assert_eq!(found, [(TOKEN, None), (nft, Some(UnknownPrice::NoRow))]);
    let StepResult::Values(values) = &steps[6] else {
        panic!("{steps:?}")
    };
    assert_eq!((values[0].beneficiary, values[0].is_below), (ALICE, false));
    assert_eq!(
        values[0].fiat_amount().map(|fiat| fiat.to_string()),
        Some("1000".to_owned())
    );
    assert_eq!(steps[8], StepResult::Otherwise(Verdict::Deny(MISSING)));
}
