//! Sanctions: who is screened, in which order, and what a list does (spec/60 section 9).

use crate::support::{
    ALICE, BOB, COIN, ROUTER, SENDER, Sent,
    calldata::{call, transfer},
    facts::World,
    run::{Run, TRANSFER},
};
use gw_evm::trace::FrameKind::DelegateCall;
use gw_transfer_rules::{
    decision::{DenialCategory, DenialReason, Verdict, decide_without_effects},
    effects::{Effects, EffectsError, PartyRole},
    facts::EnforcementMode,
    sanctions::SanctionScope,
};
use gw_types::Address;

const SPENDER: Address = Address::repeat_byte(0x5e);
const OWNER: Address = Address::repeat_byte(0x0e);
const CODE: Address = Address::repeat_byte(0xcd);
const DELEGATE: Address = Address::repeat_byte(0xde);
const KITTY: Address = Address::repeat_byte(0x17);

/// A transaction with every kind of party.
fn everybody() -> Effects {
    let approve = call("approve(address,uint256)", &[SPENDER.into(), 0.into()]);
    let run = Run::call(ROUTER, 0, [])
        .pay(ROUTER, COIN, 0)
        .transfer(COIN, OWNER, ALICE, 1)
        .pay(OWNER, COIN, 0)
        .input(approve)
        .frame(DelegateCall, COIN, CODE, 0)
        // An old collectible: its parties are not indexed.
        .log(
            KITTY,
            &[TRANSFER],
            [BOB.into_word().0, BOB.into_word().0, [1; 32]].concat(),
        )
        .pay(ROUTER, BOB, 0)
        .code(BOB, [&[0xef, 0x01, 0x00], DELEGATE.as_slice()].concat());
    Sent::call(ROUTER, 0, []).run(run).effects()
}

/// CO-33: the parties are screened in a fixed order, each once, and the zero address is none.
#[test]
fn co33_the_order_of_screening_is_fixed() {
    let effects = everybody();
    let parties: Vec<_> = effects
        .parties()
        .iter()
        .map(|party| (party.role, party.address))
        .collect();
    assert_eq!(
        parties,
        [
            (PartyRole::Sender, SENDER),
            (PartyRole::Recipient, ALICE),
            (PartyRole::Recipient, BOB),
            (PartyRole::Owner, OWNER),
            (PartyRole::CalledContract, ROUTER),
            (PartyRole::TokenContract, COIN),
            (PartyRole::Spender, SPENDER),
            (PartyRole::Delegate, DELEGATE),
            (PartyRole::Code, CODE),
        ]
    );
    let minted = Run::call(COIN, 0, []).transfer(COIN, Address::ZERO, ALICE, 1);
    let minted = Sent::call(COIN, 0, []).run(minted).effects();
    assert!(minted.parties().iter().all(|party| !party.address.is_zero()));
}

/// CO-33, CO-34: any party on either list denies, in both modes and at any amount; an override, a record and the policy
/// for unknown prices do not help. The reason names the list and the role.
#[test]
fn co33_co34_every_party_on_a_list_denies() {
    let effects = everybody();
    assert_eq!(effects.parties().len(), 9);
    for party in effects.parties() {
        for scope in [SanctionScope::Global, SanctionScope::Org] {
            for mode in [EnforcementMode::Enforce, EnforcementMode::Monitor] {
                let world = World::default()
                    .mode(mode)
                    .unknown_prices_pass()
                    .threshold_of(ALICE, u64::MAX);
                let world = world.record(1, ALICE, COIN, 5).sanction(scope, party.address);
                let decision = world.decide(&effects);
                let reason = DenialReason::Sanctioned {
                    scope,
                    role: party.role,
                };
                assert_eq!(decision.verdict, Verdict::Deny(reason), "{party:?}");
                assert_eq!(reason.category(), DenialCategory::SanctionedAddress);
                let row = decision.log.unwrap();
                assert_eq!(
                    (row.amount, row.amount_fiat, row.threshold),
                    (None, None, None),
                    "null amounts"
                );
                assert!(decision.claims.is_empty());
            }
        }
    }
    assert_eq!(
        World::default().unknown_prices_pass().decide(&effects).verdict,
        Verdict::Allow
    );
}

/// CO-33: zero-value calls and empty calls are screened; without a hit they pass without a log row.
#[test]
fn co33_calls_without_effects_are_screened() {
    let effects = Sent::call(ROUTER, 0, [])
        .run(Run::call(ROUTER, 0, []).pay(ROUTER, BOB, 0))
        .effects();
    assert!(effects.is_empty());
    let passing = World::default().decide(&effects);
    assert_eq!((passing.verdict, passing.log), (Verdict::Allow, None));
    for address in [SENDER, ROUTER, BOB] {
        for scope in [SanctionScope::Global, SanctionScope::Org] {
            let decision = World::default().sanction(scope, address).decide(&effects);
            assert!(!decision.verdict.passes() && decision.log.is_some());
        }
    }
}

/// CO-33: a recipient whose call was undone has received nothing, and code below it did not run.
#[test]
fn co33_undone_frames_have_no_parties() {
    let run = Run::call(ROUTER, 0, []).pay(ROUTER, BOB, 3).fails();
    let effects = Sent::call(ROUTER, 0, []).run(run).effects();
    assert!(effects.parties().iter().all(|party| party.address != BOB));
}

/// CO-35: a change of a list counts for the next decision, and the row tells the versions.
#[test]
fn co35_the_next_decision_uses_the_changed_list() {
    let effects = Sent::call(ALICE, 1, []).effects();
    let world = World::default();
    assert_eq!(world.decide(&effects).verdict, Verdict::Allow);
    let changed = world.sanction(SanctionScope::Org, ALICE);
    let row = changed.decide(&effects).log.unwrap();
    assert!(!row.verdict.passes());
    assert_eq!((row.list_versions.global, row.list_versions.org), (1, 2));
}

/// CO-34: the global list binds organizations without enabled rules, unless `SANCTIONS_ALWAYS` is off; their own list
/// does not bind them.
#[test]
fn co34_the_global_list_binds_every_organization() {
    let effects = Sent::call(ALICE, 1, []).effects();
    for world in [World::default().unconfigured(), World::default().disabled()] {
        let sanctioned = world.clone().sanction(SanctionScope::Global, ALICE);
        let decision = sanctioned.decide(&effects);
        assert!(!decision.verdict.passes() && decision.log.is_some());
        let decision = sanctioned.sanctions_only_with_rules().decide(&effects);
        assert_eq!((decision.verdict, decision.log), (Verdict::Allow, None));
        let decision = world.sanction(SanctionScope::Org, ALICE).decide(&effects);
        assert_eq!((decision.verdict, decision.log), (Verdict::Allow, None));
    }
    let enabled = World::default()
        .sanction(SanctionScope::Global, ALICE)
        .sanctions_only_with_rules();
    assert!(!enabled.decide(&effects).verdict.passes());
}

/// CO-28: parties that cannot be told cannot be screened: denied in both modes wherever a list applies.
#[test]
fn co28_a_transaction_that_cannot_be_read_is_denied() {
    let error = EffectsError::TooManyContainedCalls;
    let decide = |world: &World| world.with_facts(|facts, now| decide_without_effects(facts, SENDER, None, error, now));
    for world in [
        World::default(),
        World::default().mode(EnforcementMode::Monitor),
        World::default().unconfigured(),
    ] {
        let decision = decide(&world);
        let reason = DenialReason::EffectsUnknown(error);
        assert_eq!(decision.verdict, Verdict::Deny(reason));
        assert_eq!(reason.category(), DenialCategory::BlockedByPolicy);
        assert!(decision.log.is_some_and(|row| row.from == SENDER && row.to.is_none()));
    }
    let unbound = World::default().unconfigured().sanctions_only_with_rules();
    assert_eq!(decide(&unbound).verdict, Verdict::Allow);
}

/// CO-33: case and checksum of a text do not matter, because lists hold bytes.
#[test]
fn co33_addresses_are_compared_as_bytes() {
    let text = ALICE.to_checksum(None);
    for spelling in [
        text.clone(),
        text.to_lowercase(),
        text.to_uppercase().replace("0X", "0x"),
    ] {
        let listed = spelling.parse().unwrap();
        let world = World::default().sanction(SanctionScope::Global, listed);
        assert!(!world.decide(&Sent::call(ALICE, 1, []).effects()).verdict.passes());
    }
    // Both directions: the listed address is the owner.
    let effects = Sent::call(COIN, 0, transfer(ALICE, 1)).effects();
    let world = World::default().sanction(SanctionScope::Global, SENDER);
    assert!(!world.decide(&effects).verdict.passes());
}
