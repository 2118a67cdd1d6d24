//! HD2: evaluation of mined sends.

use super::mined_support::{addresses, bank, evaluate, mined_send, orgs, run, run_with};
use gw_evm::trace::{Before, Change, Trace};
use gw_policy::{
    PolicySettings, Sealed,
    access::{MinedSend, PostExecutionViolation, UnreadableRun, evaluate_mined, unreadable_mined},
    snapshot::AccountChange,
    testing::{NOW, address_of, did, org_id},
};
use gw_types::{Address, Bytes, DenyReason, U256};
use std::collections::{BTreeMap, HashMap, HashSet};

fn changed_addresses(violation: Option<PostExecutionViolation>) -> Vec<Address> {
    let violation = violation.unwrap();
    assert!(
        violation.closed_to_side.is_empty(),
        "a readable execution closes no account: {violation:?}"
    );
    violation.changes.into_iter().map(|(address, _)| address).collect()
}

/// The trace of an execution with these changes.
fn run_with_changes(others: &[&str], changes: &[(Address, Change)]) -> Sealed<Trace> {
    run_with(others, &[], changes.iter().cloned().collect())
}

#[test]
fn hd2_the_changes_of_a_send_that_enters_foreign_contracts_are_withheld() {
    let snapshot = bank().snapshot();
    let no_pending = HashMap::new();
    assert_eq!(
        evaluate(
            &snapshot,
            &run(&["vault"], &["latch", "vault"], &["vault"]),
            &no_pending
        ),
        None
    );
    let violation = evaluate(
        &snapshot,
        &run(&["theirs", "vault"], &["latch"], &["vault"]),
        &no_pending,
    )
    .unwrap();
    assert_eq!((violation.reason, violation.suspends), (DenyReason::CrossOrg, true));
    assert_eq!(
        (&violation.affected_orgs, &violation.side),
        (&orgs(&["rival"]), &orgs(&["bank"]))
    );
    assert_eq!(changed_addresses(Some(violation)), addresses(&["latch"]));
}

/// RT23, HD38: a violation closes no contract; its changes are withheld, regardless of the owner of the account. If
/// an unregistered contract is involved, only a super admin may clear the violation.
#[test]
fn rt23_hd28_a_violation_withholds_all_changes_and_closes_nothing() {
    let (snapshot, no_pending) = (bank().snapshot(), HashMap::new());
    let violation = evaluate(
        &snapshot,
        &run(&["theirs"], &["latch", "theirs"], &["theirs"]),
        &no_pending,
    );
    assert_eq!(changed_addresses(violation), addresses(&["latch", "theirs"]));
    let with_drop_box = evaluate(
        &snapshot,
        &run(&["theirs", "drop-box"], &["latch", "drop-box"], &["drop-box"]),
        &no_pending,
    )
    .unwrap();
    assert_eq!(&with_drop_box.affected_orgs, &orgs(&["rival", "third"]));
    assert_eq!(
        changed_addresses(Some(with_drop_box)),
        addresses(&["latch", "drop-box"])
    );
    let unowned = evaluate(
        &snapshot,
        &run(&["nobody's", "theirs"], &["nobody's", "theirs"], &[]),
        &no_pending,
    )
    .unwrap();
    assert_eq!(&unowned.affected_orgs, &Vec::new());
    assert_eq!(changed_addresses(Some(unowned)), addresses(&["nobody's", "theirs"]));
}

/// RT2a, RT21, HD28: balances, nonces of contracts, slots and code are withheld and shown with their previous values,
/// including those of the beneficiary, of precompiles and of shared infrastructure. Nonces of wallets are not
/// withheld, because their owners need them to send.
#[test]
fn rt21_all_changed_values_are_withheld() {
    let snapshot = bank().shared("utility").snapshot();
    let before = Before {
        balance: U256::from(7),
        nonce: 3,
        storage: BTreeMap::new(),
    };
    let paid = || Change {
        balance: Some(U256::from(9)),
        before: before.clone(),
        ..Change::default()
    };
    let used = || Change {
        nonce: Some(4),
        before: before.clone(),
        ..Change::default()
    };
    let removed = || Change {
        removed: true,
        before: before.clone(),
        ..Change::default()
    };
    let identity = Address::with_last_byte(4);
    let paid_and_used = Change {
        nonce: Some(4),
        ..paid()
    };
    let trace = run_with_changes(
        &["theirs", "factory", "bomb"],
        &[
            (address_of("thief-wallet"), paid_and_used),
            (address_of("friend-wallet"), paid()),
            (address_of("delegate"), used()),
            (address_of("factory"), used()),
            (address_of("bomb"), removed()),
            (
                address_of("idle"),
                Change {
                    before: before.clone(),
                    ..Change::default()
                },
            ),
            (address_of("validator"), paid()),
            (Address::ZERO, paid()),
            (identity, paid()),
            (address_of("utility"), paid()),
        ],
    );
    let violation = evaluate(&snapshot, &trace, &HashMap::new()).unwrap();
    let change_of = |address: Address| {
        violation
            .changes
            .iter()
            .find(|(changed, _)| *changed == address)
            .map(|(_, change)| change.clone())
    };
    let balance = |after: u64| AccountChange {
        balance: Some((U256::from(7), U256::from(after))),
        ..AccountChange::default()
    };
    for paid in ["thief-wallet", "friend-wallet", "validator", "utility"]
        .map(address_of)
        .into_iter()
        .chain([Address::ZERO, identity])
    {
        assert_eq!(change_of(paid), Some(balance(9)), "{paid}");
    }
    assert_eq!(
        change_of(address_of("factory")),
        Some(AccountChange {
            nonce: Some((3, 4)),
            ..AccountChange::default()
        })
    );
    assert_eq!(
        (change_of(address_of("delegate")), change_of(address_of("idle"))),
        (None, None)
    );
    let removed = AccountChange {
        nonce: Some((3, 0)),
        code: Some(Bytes::from_static(&[0])),
        ..balance(0)
    };
    assert_eq!(change_of(address_of("bomb")), Some(removed));
}

/// The administrators of the sender's organization may clear a violation within that organization.
#[test]
fn rt23_a_violation_within_the_own_organization_is_for_its_administrators() {
    let snapshot = bank().org("bank").contract("safe").snapshot();
    let trace = run(&["safe"], &["latch"], &[]);
    let in_two_orgs = bank()
        .org("bank")
        .contract("safe")
        .org("other")
        .group("g")
        .user("thief")
        .member("g")
        .snapshot();
    // Both organizations of a member of two are the sender's side.
    let violation = evaluate(&in_two_orgs, &run(&["theirs"], &["latch"], &[]), &HashMap::new()).unwrap();
    assert_eq!(violation.side, orgs(&["bank", "other"]));
    let within_org = evaluate_mined(
        &snapshot,
        &mined_send(&did("thief"), &HashMap::new(), &HashSet::new()),
        &trace,
        NOW,
        &PolicySettings {
            intra_org_grant_tracing: true,
            ..PolicySettings::default()
        },
    )
    .unwrap();
    assert_eq!(within_org.affected_orgs, orgs(&["bank"]));
}

/// RT20, HD37: a send of a deleted user is evaluated without rights. Its side is still the organizations at the time
/// of sending.
#[test]
fn rt20_a_watched_send_of_a_deleted_user_has_no_rights() {
    let snapshot = bank().snapshot();
    let (lately, came) = (HashMap::new(), HashSet::new());
    let honest = run(&["vault"], &["latch", "vault"], &[]);
    let deleted_user = did("gone");
    let orgs_at_send = [org_id("bank"), org_id("third")];
    let send = MinedSend {
        orgs: &orgs_at_send,
        ..mined_send(&deleted_user, &lately, &came)
    };
    let violation = evaluate_mined(&snapshot, &send, &honest, NOW, &PolicySettings::default()).unwrap();
    assert_eq!((violation.reason, violation.suspends), (DenyReason::CrossOrg, true));
    assert_eq!(violation.side, orgs(&["bank", "third"]));
    assert_eq!(changed_addresses(Some(violation)), addresses(&["latch", "vault"]));
}

/// A contract that was deployed in the last blocks belongs to its deployer's organization even before its
/// registration is complete.
#[test]
fn hd2_a_recent_deployment_belongs_to_its_organization() {
    let snapshot = bank().snapshot();
    let trace = run(&["new"], &["new"], &[]);
    let pending = |org| HashMap::from([(address_of("new"), org_id(org))]);
    assert_eq!(evaluate(&snapshot, &trace, &pending("bank")), None);
    assert!(evaluate(&snapshot, &trace, &pending("rival")).is_some());
    assert!(evaluate(&snapshot, &trace, &HashMap::new()).is_some());
}

/// RT2c, HD28: an execution whose trace cannot be parsed is a violation. If its changes are known, they are withheld;
/// otherwise the known accounts are closed to the sender's side.
#[test]
fn rt2c_an_unreadable_execution_is_a_violation() {
    let snapshot = bank().snapshot();
    let (external_id, lately, came) = (did("thief"), HashMap::new(), HashSet::new());
    let send = mined_send(&external_id, &lately, &came);
    let run = UnreadableRun {
        changes: None,
        created: vec![address_of("child")],
        emitters: vec![address_of("latch")],
        is_state_missing: false,
    };
    let without_changes = unreadable_mined(&snapshot, &send, &run, NOW, &PolicySettings::default());
    assert_eq!(
        (
            without_changes.reason,
            without_changes.suspends,
            &without_changes.affected_orgs
        ),
        (DenyReason::TraceDepthExceeded, true, &Vec::new())
    );
    assert_eq!(without_changes.closed_to_side, addresses(&["latch", "thief-wallet"]));
    let creation = AccountChange {
        created: true,
        code: Some(Bytes::new()),
        ..AccountChange::default()
    };
    assert_eq!(without_changes.changes, [(address_of("child"), creation)]);
    let paid = Change {
        balance: Some(U256::from(5)),
        ..Change::default()
    };
    // HD36: a node without the state before the block is no fault of the sender.
    let state_missing = UnreadableRun {
        is_state_missing: true,
        ..run.clone()
    };
    let withheld = unreadable_mined(&snapshot, &send, &state_missing, NOW, &PolicySettings::default());
    assert_eq!(
        (withheld.reason, withheld.suspends),
        (DenyReason::StateUnavailable, false)
    );
    assert_eq!(withheld.closed_to_side, without_changes.closed_to_side);
    let run = UnreadableRun {
        changes: Some(BTreeMap::from([(address_of("friend-wallet"), paid)])),
        ..run
    };
    let with_changes = unreadable_mined(&snapshot, &send, &run, NOW, &PolicySettings::default());
    assert_eq!(
        (with_changes.changes.len(), &with_changes.closed_to_side),
        (2, &Vec::new())
    );
}

/// HD39: a send that names its organization is evaluated in its block with the rights of that organization only, as
/// in its trace.
#[test]
fn hd39_a_mined_send_is_evaluated_with_the_organization_it_named() {
    let world = bank()
        .org("rival")
        .group("guests")
        .user("thief")
        .member("guests")
        .contract("open")
        .grant("guests")
        .org("bank");
    let snapshot = world.snapshot();
    let (external_id, lately, came) = (did("thief"), HashMap::new(), HashSet::new());
    let enters_open = || run(&["open"], &["latch"], &[]);
    for (is_named, reason) in [(false, None), (true, Some(DenyReason::CrossOrg))] {
        let send = MinedSend {
            is_named,
            ..mined_send(&external_id, &lately, &came)
        };
        let violation = evaluate_mined(&snapshot, &send, &enters_open(), NOW, &PolicySettings::default());
        assert_eq!(violation.map(|violation| violation.reason), reason, "named: {is_named}");
    }
}
