//! Net flows and beneficiaries (CO-25).

use crate::support::{ALICE, BOB, COIN, NFT, ROUTER, SENDER, effects, moved, units};
use alloy_primitives::map::AddressSet;
use gw_transfer_rules::{
    Token,
    effects::{Effect, EffectKind, Effects, Evidence},
    flow::beneficiaries,
};
use gw_types::{Address, U256};

const TOKEN: Token = Token::Contract(COIN);
const ZERO: Address = Address::ZERO;

/// The gains of the beneficiaries of one run, as (address, token, amount).
fn gains(run: Vec<Effect>) -> Vec<(Address, Token, u64)> {
    gains_of(&effects(run), &[])
}

fn gains_of(effects: &Effects, own: &[Address]) -> Vec<(Address, Token, u64)> {
    let own: AddressSet = own.iter().copied().collect();
    let all = beneficiaries(effects, &own);
    let rows = all.iter().flat_map(|beneficiary| {
        let amounts = beneficiary.gains.amounts.iter();
        amounts.map(|(token, amount)| (beneficiary.address, *token, u64::try_from(*amount).unwrap()))
    });
    rows.collect()
}

fn collectible(id: u64, from: Address, to: Address) -> Effect {
    Effect {
        kind: EffectKind::Erc721,
        id: Some(units(id)),
        ..moved(Token::Contract(NFT), from, to, 1)
    }
}

/// CO-25: a plain transfer has one beneficiary, with the amount.
#[test]
fn co25_a_plain_transfer_pays_its_recipient() {
    for token in [Token::Native, TOKEN] {
        assert_eq!(gains(vec![moved(token, SENDER, ALICE, 5)]), [(ALICE, token, 5)]);
    }
}

/// CO-25: whoever passes on what it receives is no beneficiary; what it keeps counts.
#[test]
fn co25_routers_are_no_beneficiaries() {
    let run = |kept: u64| {
        vec![
            moved(Token::Native, SENDER, ROUTER, 9),
            moved(TOKEN, SENDER, ROUTER, 5),
            moved(TOKEN, ROUTER, ALICE, 5 - kept),
            moved(Token::Native, ROUTER, BOB, 9),
        ]
    };
    assert_eq!(gains(run(0)), [(ALICE, TOKEN, 5), (BOB, Token::Native, 9)]);
    let kept = [(ROUTER, TOKEN, 2), (ALICE, TOKEN, 3), (BOB, Token::Native, 9)];
    assert_eq!(gains(run(2)), kept);
}

/// CO-25: a loan that is paid back within the transaction is no gain; the interest is one.
#[test]
fn co25_a_flash_loan_is_worth_its_interest() {
    let run = vec![moved(TOKEN, ALICE, ROUTER, 1_000), moved(TOKEN, ROUTER, ALICE, 1_001)];
    assert_eq!(gains(run), [(ALICE, TOKEN, 1)]);
}

/// CO-25: the sender and the addresses that are linked to the caller are no beneficiaries.
#[test]
fn co25_own_addresses_are_no_beneficiaries() {
    let paid = effects(vec![moved(TOKEN, ROUTER, SENDER, 5), moved(TOKEN, ROUTER, ALICE, 6)]);
    assert_eq!(gains_of(&paid, &[]), [(ALICE, TOKEN, 6)]);
    assert!(gains_of(&paid, &[ALICE]).is_empty());
    assert_eq!(gains_of(&paid, &[BOB]), [(ALICE, TOKEN, 6)]);
}

/// CO-23: mints, burns, transfers to oneself and allowances are no gains.
#[test]
fn co23_mints_burns_and_self_transfers_are_not_valued() {
    let approval = Effect {
        kind: EffectKind::Approval,
        amount: None,
        ..moved(TOKEN, SENDER, ALICE, 0)
    };
    let run = vec![moved(TOKEN, ALICE, ALICE, 5), approval];
    assert!(gains(run).is_empty());
    assert!(gains(vec![moved(TOKEN, ZERO, ALICE, 5)]).is_empty());
    assert!(gains(vec![moved(TOKEN, SENDER, ZERO, 5)]).is_empty());
    // A mint does not pay for what is passed on, nor does a burn lower what was received.
    let run = vec![moved(TOKEN, ZERO, ROUTER, 5), moved(TOKEN, ROUTER, ALICE, 5)];
    assert_eq!(gains(run), [(ALICE, TOKEN, 5)]);
    let run = vec![moved(TOKEN, SENDER, ALICE, 5), moved(TOKEN, ALICE, ZERO, 5)];
    assert_eq!(gains(run), [(ALICE, TOKEN, 5)]);
}

/// CO-23: a token that burns from one holder and mints to another has moved the amount. A flash mint nets to nothing.
#[test]
fn co23_a_burn_with_a_mint_elsewhere_is_a_transfer() {
    let run = |burned, minted| vec![moved(TOKEN, SENDER, ZERO, burned), moved(TOKEN, ZERO, ALICE, minted)];
    assert_eq!(gains(run(5, 5)), [(ALICE, TOKEN, 5)]);
    assert_eq!(gains(run(5, 3)), [(ALICE, TOKEN, 3)]);
    assert_eq!(gains(run(3, 5)), [(ALICE, TOKEN, 3)]);
    let flash = vec![moved(TOKEN, ZERO, ALICE, 1_000), moved(TOKEN, ALICE, ZERO, 1_000)];
    assert!(gains(flash).is_empty());
    // A mint to the payer does not turn the transfer into an issue.
    let hidden = [run(5, 5), vec![moved(TOKEN, ZERO, SENDER, 5)]].concat();
    assert_eq!(gains(hidden), [(ALICE, TOKEN, 5)]);
    let other = vec![moved(TOKEN, SENDER, ZERO, 5), moved(Token::Native, ZERO, ALICE, 5)];
    assert!(gains(other).is_empty(), "another token does not move");
}

/// CO-25: one collectible does not pay for another, and amounts of several ids add up.
#[test]
fn co25_ids_do_not_offset_each_other() {
    let token = Token::Contract(NFT);
    assert_eq!(
        gains(vec![collectible(1, SENDER, ALICE), collectible(2, ALICE, SENDER)]),
        [(ALICE, token, 1)]
    );
    assert_eq!(
        gains(vec![collectible(1, SENDER, ALICE), collectible(2, SENDER, ALICE)]),
        [(ALICE, token, 2)]
    );
    assert!(gains(vec![collectible(1, ROUTER, ALICE), collectible(1, ALICE, SENDER)]).is_empty());
}

/// CO-25: what was only ordered, or only differs, lowers nobody's gain.
#[test]
fn co25_only_what_was_observed_lowers_a_gain() {
    for evidence in [Evidence::Calldata, Evidence::StorageDiff, Evidence::BalanceDiff] {
        let ordered = Effect {
            evidence,
            ..moved(TOKEN, ALICE, BOB, 4)
        };
        let expected = [(ALICE, TOKEN, 5), (BOB, TOKEN, 4)];
        assert_eq!(gains(vec![moved(TOKEN, SENDER, ALICE, 5), ordered]), expected);
    }
}

/// CO-25: if the runs differ, the larger gain counts, for each address and asset.
#[test]
fn co25_the_larger_run_counts() {
    let runs = vec![
        vec![moved(TOKEN, SENDER, ALICE, 5), moved(Token::Native, SENDER, BOB, 1)],
        vec![moved(TOKEN, SENDER, ALICE, 4), moved(TOKEN, SENDER, BOB, 2)],
    ];
    let effects = Effects::from_parts(SENDER, None, runs, []);
    let expected = [(ALICE, TOKEN, 5), (BOB, Token::Native, 1), (BOB, TOKEN, 2)];
    let mut found = gains_of(&effects, &[]);
    found.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// CO-25: sums beyond 256 bits saturate and never wrap.
#[test]
fn co25_sums_do_not_wrap() {
    let most = Effect {
        amount: Some(U256::MAX),
        ..moved(TOKEN, SENDER, ALICE, 0)
    };
    let all = beneficiaries(&effects(vec![most; 3]), &AddressSet::default());
    assert_eq!(all[0].gains.amounts[&TOKEN], U256::MAX);
    let back = Effect {
        from: ALICE,
        to: BOB,
        ..most
    };
    let all = beneficiaries(&effects(vec![most, most, back, back]), &AddressSet::default());
    assert_eq!(all.len(), 1, "sums above 256 bits are exact");
}

/// CO-25: an amount that no log tells is a gain of unknown size, unless nothing moved.
#[test]
fn co25_an_unreadable_amount_is_a_gain() {
    let unknown = |from, to| Effect {
        amount: None,
        ..moved(TOKEN, from, to, 0)
    };
    let all = beneficiaries(&effects(vec![unknown(SENDER, ALICE)]), &AddressSet::default());
    assert_eq!(all[0].address, ALICE);
    assert!(all[0].gains.amounts.is_empty() && all[0].gains.unreadable.contains(&TOKEN));
    for nothing in [unknown(ALICE, ALICE), unknown(ZERO, ALICE), unknown(ALICE, ZERO)] {
        assert!(beneficiaries(&effects(vec![nothing]), &AddressSet::default()).is_empty());
    }
}
