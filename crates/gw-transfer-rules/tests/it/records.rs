//! Travel-rule records: the table of states, and the choice of a record (spec/60 section 11).

use crate::support::{
    ALICE, BOB, COIN,
    facts::{NOW, USER, World, key, payment, price, record_id},
    units,
};
use gw_transfer_rules::{
    Token,
    decision::{DenialReason, Verdict},
    record::{
        CLAIM_LEASE, NodeReply, RecordChange, RecordError, RecordEvent, RecordIndex, RecordKey, RecordState,
        RecordStatus, RecordSummary, TransactionKey,
    },
};
use gw_types::{Address, B256, Seconds, Timestamp, UserId};

const TOKEN: Token = Token::Contract(COIN);
const OURS: TransactionKey = TransactionKey::Hash(B256::repeat_byte(1));
const OTHER: TransactionKey = TransactionKey::Hash(B256::repeat_byte(2));
const HASH: B256 = B256::repeat_byte(1);
const END: Timestamp = NOW.plus(Seconds(86_400));

const fn after(seconds: u32) -> Timestamp {
    NOW.plus(Seconds(seconds))
}

const UNUSED: RecordState = RecordState::Unused { expires_at: END };
const ENDED: RecordState = RecordState::Unused { expires_at: NOW };
const EXPIRED: RecordState = RecordState::Expired { expires_at: NOW };
const RESERVED: RecordState = RecordState::Reserved {
    expires_at: END,
    transaction: OURS,
    lease_until: after(600),
};
const LEASE_OVER: RecordState = RecordState::Reserved {
    expires_at: END,
    transaction: OURS,
    lease_until: NOW,
};
const USED: RecordState = RecordState::Used {
    used_at: NOW,
    tx_hash: HASH,
    transaction: OURS,
};

/// CO-38: a record lives for `TRAVEL_RECORD_EXPIRY`, and its status follows the time.
#[test]
fn co38_a_record_expires_after_its_lifetime() {
    let record = RecordState::new(NOW, Seconds(60));
    assert_eq!(record.expires_at(), Some(after(60)));
    assert_eq!(record.status_at(after(59)), RecordStatus::Unused);
    assert_eq!(record.status_at(after(60)), RecordStatus::Expired);
    assert_eq!(
        RESERVED.status_at(END),
        RecordStatus::Reserved,
        "a claim outlives the end"
    );
    assert_eq!(USED.status_at(END), RecordStatus::Used);
    for status in RecordStatus::ALL {
        assert_eq!(RecordStatus::parse(status.as_str()), Some(status));
    }
    assert_eq!(RecordStatus::parse("open"), None);
}

/// CO-41, CO-42: the whole table of section 11: every state with every event.
#[test]
fn co41_co42_every_state_answers_every_event() {
    use RecordChange::{Keep, Remove, To};
    use RecordError::{DeleteUsed, Expired, NotClaimed, Taken};
    let claim = |transaction| RecordEvent::Claim { transaction };
    let accepted = |transaction| RecordEvent::Accepted {
        transaction,
        tx_hash: HASH,
    };
    let refused = |transaction| RecordEvent::Refused { transaction };
    let unknown = |transaction| RecordEvent::OutcomeUnknown { transaction };
    let asked = |transaction, reply| RecordEvent::Reconciled { transaction, reply };
    let known = NodeReply::Known { tx_hash: HASH };
    let events = [
        claim(OURS),
        claim(OTHER),
        accepted(OURS),
        accepted(OTHER),
        refused(OURS),
        refused(OTHER),
        unknown(OURS),
        unknown(OTHER),
        asked(OURS, known),
        asked(OURS, NodeReply::Unknown),
        asked(OURS, NodeReply::NonceUsed),
        asked(OTHER, known),
        RecordEvent::Expire,
        RecordEvent::Delete,
    ];
    let reserved_by = |transaction| RecordState::Reserved {
        expires_at: END,
        transaction,
        lease_until: NOW.plus(CLAIM_LEASE),
    };
    let none = Err(NotClaimed);
    let taken = Err(Taken);
    let rows: [(RecordState, [Result<RecordChange, RecordError>; 14]); 6] = [
        (
            UNUSED,
            [
                Ok(To(reserved_by(OURS))),
                Ok(To(reserved_by(OTHER))),
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                Ok(Keep),
                Ok(Remove),
            ],
        ),
        (
            ENDED,
            [
                Err(Expired),
                Err(Expired),
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                Ok(To(EXPIRED)),
                Ok(Remove),
            ],
        ),
        (
            EXPIRED,
            [
                Err(Expired),
                Err(Expired),
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                none,
                Ok(Keep),
                Ok(Remove),
            ],
        ),
        (
            RESERVED,
            [
                Ok(Keep),
                taken,
                Ok(To(USED)),
                taken,
                Ok(To(UNUSED)),
                taken,
                Ok(Keep),
                taken,
                Ok(To(USED)),
                Ok(Keep),
                Ok(Keep),
                taken,
                Ok(Keep),
                Err(DeleteUsed),
            ],
        ),
        (
            LEASE_OVER,
            [
                Ok(Keep),
                taken,
                Ok(To(USED)),
                taken,
                Ok(To(UNUSED)),
                taken,
                Ok(Keep),
                taken,
                Ok(To(USED)),
                Ok(Keep),
                Ok(To(UNUSED)),
                taken,
                Ok(Keep),
                Err(DeleteUsed),
            ],
        ),
        (
            USED,
            [
                Ok(Keep),
                taken,
                Ok(Keep),
                taken,
                Ok(Keep),
                taken,
                Ok(Keep),
                taken,
                Ok(Keep),
                Ok(Keep),
                Ok(Keep),
                taken,
                Ok(Keep),
                Err(DeleteUsed),
            ],
        ),
    ];
    for (state, results) in rows {
        for (event, expected) in events.into_iter().zip(results) {
            assert_eq!(state.apply(event, NOW), expected, "{state:?} {event:?}");
        }
    }
    assert_eq!(
        RecordError::DeleteUsed.to_string(),
        "cannot delete used travel rule record"
    );
}

/// CO-41: of many claims of one record exactly one succeeds, and the record is used once.
#[test]
fn co41_one_record_has_one_user() {
    let mut state = UNUSED;
    let mut claimed = 0;
    for index in 0..100_u8 {
        let event = RecordEvent::Claim {
            transaction: TransactionKey::Hash(B256::repeat_byte(index)),
        };
        if let Ok(RecordChange::To(next)) = state.apply(event, NOW) {
            state = next;
            claimed += 1;
        }
    }
    assert_eq!((claimed, state.status_at(NOW)), (1, RecordStatus::Reserved));
}

/// The number of the record that a payment of this amount to Alice claims.
fn chosen(world: &World, amount: u64) -> Option<u128> {
    let decision = world.decide(&payment(TOKEN, units(amount)));
    let claims: Vec<u128> = decision.claims.iter().map(|claim| claim.record.0.as_u128()).collect();
    assert!(claims.len() <= 1);
    assert_eq!(
        claims.is_empty(),
        decision.verdict == Verdict::Deny(DenialReason::RecordMissing)
    );
    claims.first().copied()
}

/// A world in which every transfer of the coin needs a record.
fn world() -> World {
    World::default()
        .priced(TOKEN, 0, price(1))
        .change_config(|config| config.threshold = gw_money::Threshold::ZERO)
}

/// CO-39: organization, user, beneficiary, token, state and end must match, and the amount must cover.
#[test]
fn co39_a_record_matches_in_every_member() {
    let matching = key(ALICE, TOKEN);
    let with = |key: RecordKey, state| world().record_in(1, key, units(10), state);
    assert_eq!(chosen(&with(matching, UNUSED), 10), Some(1));
    assert_eq!(chosen(&with(matching, UNUSED), 11), None, "the amount must cover");
    for (other, state) in [
        (
            RecordKey {
                originator: UserId::fixed(2),
                ..matching
            },
            UNUSED,
        ),
        (key(BOB, TOKEN), UNUSED),
        (key(ALICE, Token::Native), UNUSED),
        (key(ALICE, Token::Contract(BOB)), UNUSED),
        (matching, ENDED),
        (matching, EXPIRED),
        (matching, RESERVED),
        (matching, USED),
    ] {
        assert_eq!(chosen(&with(other, state), 10), None, "{other:?} {state:?}");
    }
}

/// CO-39: the amount in token units covers, whatever the price did since.
#[test]
fn co39_a_rising_price_does_not_refuse_the_planned_transfer() {
    let world = World::default()
        .priced(TOKEN, 0, price(1_000_000))
        .record(1, ALICE, COIN, 10);
    assert_eq!(chosen(&world, 10), Some(1));
}

/// CO-40: the smallest covering amount is chosen, then the record that expires first.
#[test]
fn co40_the_smallest_record_that_expires_first_is_chosen() {
    let state = |seconds| RecordState::Unused {
        expires_at: after(seconds),
    };
    let key = key(ALICE, TOKEN);
    let add = |world: World, number, amount, seconds| world.record_in(number, key, units(amount), state(seconds));
    let mut world = world();
    for (number, amount, seconds) in [(1, 100, 10), (2, 30, 50), (3, 30, 40), (4, 29, 10), (5, 30, 60)] {
        world = add(world, number, amount, seconds);
    }
    assert_eq!(chosen(&world, 30), Some(3));
    assert_eq!(chosen(&world, 29), Some(4));
    assert_eq!(chosen(&world, 31), Some(1));
    assert_eq!(chosen(&world, 101), None);
    // An expired record is passed over.
    assert_eq!(chosen(&add(world, 6, 30, 0), 30), Some(3));
}

/// CO-41: the same transaction, sent again, gets the record that it has claimed.
#[test]
fn co41_a_repeated_send_reuses_its_claim() {
    let mut world = world()
        .record(2, ALICE, COIN, 10)
        .record_in(1, key(ALICE, TOKEN), units(50), RESERVED);
    assert_eq!(
        chosen(&world, 10),
        Some(2),
        "the claim of another transaction is not used"
    );
    world.transaction = Some(OURS);
    assert_eq!(chosen(&world, 10), Some(1));
    assert_eq!(chosen(&world, 51), None, "a claim covers no more than its record");
    world.records[1].1.state = USED;
    assert_eq!(chosen(&world, 10), Some(1));
    world.transaction = Some(OTHER);
    assert_eq!(chosen(&world, 10), Some(2));
}

/// The index holds the same records however they came into it.
#[test]
fn the_index_follows_changes() {
    let summary = |number, amount, state| RecordSummary {
        id: record_id(number),
        amount: units(amount),
        state,
    };
    let key = key(ALICE, TOKEN);
    let all = [
        (key, summary(1, 5, UNUSED)),
        (key, summary(2, 3, UNUSED)),
        (key, summary(3, 4, RESERVED)),
    ];
    let built = RecordIndex::new(all);
    let mut changed = RecordIndex::default();
    for (key, record) in all.into_iter().rev() {
        changed.insert(key, record);
    }
    assert_eq!(changed, built);
    changed.remove(&key, record_id(2));
    changed.insert(key, summary(2, 3, RESERVED));
    let choose = |index: &RecordIndex| index.choose(&key, units(1), None, NOW).map(|record| record.id);
    assert_eq!(
        (choose(&built), choose(&changed)),
        (Some(record_id(2)), Some(record_id(1)))
    );
    for number in 1..=3 {
        changed.remove(&key, record_id(number));
    }
    assert_eq!(changed, RecordIndex::default());
    assert_eq!(key.originator, USER);
    assert_ne!(key.beneficiary, Address::ZERO);
}
