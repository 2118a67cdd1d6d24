//! HD2: evaluation of mined sends, and the effects of violations.

use super::support::{reason, request_as, verdict};
use gw_evm::{
    code::PROXY_SLOTS,
    trace::{Account, Before, Change, Frame, FrameKind, FrameLog, Outcome, Trace},
};
use gw_policy::{
    Change as GwChange, PolicySettings, Sealed, Snapshot,
    access::{
        AuthorizedRuns, MinedSend, PostExecutionViolation, RecentSend, UnreadableRun, evaluate_mined, run_digest,
        unreadable_mined,
    },
    settings::HiddenBalanceMode,
    snapshot::{AccountChange, User},
    testing::{NOW, World, address_of, did, function, org_id, user_id, world},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, ExternalId, OrgId, U256, UserId};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

fn bank() -> World {
    world()
        .org("bank")
        .group("traders")
        .every_method()
        .claim(Claim::Deploy)
        .contract("latch")
        .grant("traders")
        .contract("vault")
        .grant("traders")
        .user("thief")
        .member("traders")
        .link("thief-wallet")
        .user("friend")
        .member("traders")
        .link("friend-wallet")
        .org("rival")
        .contract("theirs")
        .org("third")
        .contract("drop-box")
        .org("bank")
}

/// A call thief → latch → `others`, in which the accounts of `writing` write a slot and those of `emitting` emit an
/// event.
fn run(others: &[&str], writing: &[&str], emitting: &[&str]) -> Sealed<Trace> {
    run_with(
        others,
        emitting,
        writing.iter().map(|name| (address_of(name), slot_write())).collect(),
    )
}

fn run_with(others: &[&str], emitting: &[&str], changes: BTreeMap<Address, Change>) -> Sealed<Trace> {
    Sealed::new(raw_run(others, emitting, changes))
}

fn raw_run(others: &[&str], emitting: &[&str], changes: BTreeMap<Address, Change>) -> Trace {
    let frame = |depth, from: &str, to: &str| Frame {
        kind: FrameKind::Call,
        from: address_of(from),
        to: Some(address_of(to)),
        input: Bytes::new(),
        output: Bytes::new(),
        value: U256::ZERO,
        gas: None,
        gas_used: None,
        error: None,
        depth,
        parent: (depth > 0).then_some(0),
        failed: false,
        undone: false,
        logs: emitting
            .iter()
            .filter(|name| **name == to)
            .map(|name| FrameLog {
                address: address_of(name),
                topics: Vec::new(),
                data: Bytes::new(),
            })
            .collect(),
    };
    let mut frames = vec![frame(0, "thief-wallet", "latch")];
    frames.extend(others.iter().map(|other| frame(1, "latch", other)));
    let code = |name: &&str| {
        (
            address_of(name),
            Account {
                code: Bytes::from_static(&[0]),
                ..Account::default()
            },
        )
    };
    let touched = others.iter().chain(&["latch"]).map(code).collect();
    Trace {
        frames,
        touched,
        changes: Some(changes),
        top: Outcome::default(),
    }
}

/// Evaluates a send of the thief for the bank.
fn evaluate_with(
    snapshot: &Snapshot,
    trace: &Sealed<Trace>,
    lately: &HashMap<Address, OrgId>,
    came: &HashSet<Address>,
) -> Option<PostExecutionViolation> {
    let external_id = did("thief");
    evaluate_mined(
        snapshot,
        &mined_send(&external_id, lately, came),
        trace,
        NOW,
        &PolicySettings::default(),
    )
}

fn mined_send<'a>(
    external_id: &'a ExternalId,
    lately: &'a HashMap<Address, OrgId>,
    came: &'a HashSet<Address>,
) -> MinedSend<'a> {
    MinedSend {
        external_id,
        org: org_id("bank"),
        orgs: &[],
        is_named: false,
        sender: address_of("thief-wallet"),
        coinbase: address_of("validator"),
        delegations: Vec::new(),
        lately,
        at: (100, 1),
        came,
        recent_sends: &[],
        authorized_runs: None,
    }
}

fn evaluate(
    snapshot: &Snapshot,
    trace: &Sealed<Trace>,
    lately: &HashMap<Address, OrgId>,
) -> Option<PostExecutionViolation> {
    evaluate_with(snapshot, trace, lately, &HashSet::new())
}

fn changed_addresses(violation: Option<PostExecutionViolation>) -> Vec<Address> {
    let violation = violation.unwrap();
    assert!(
        violation.closed_to_side.is_empty(),
        "a readable execution closes no account: {violation:?}"
    );
    violation.changes.into_iter().map(|(address, _)| address).collect()
}

fn orgs(names: &[&str]) -> Vec<OrgId> {
    let mut orgs: Vec<OrgId> = names.iter().map(|name| org_id(name)).collect();
    orgs.sort_unstable();
    orgs
}

fn addresses(names: &[&str]) -> Vec<Address> {
    let mut addresses: Vec<Address> = names.iter().map(|name| address_of(name)).collect();
    addresses.sort_unstable();
    addresses
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

fn slot_change() -> AccountChange {
    AccountChange {
        slots: [(B256::ZERO, (B256::ZERO, B256::with_last_byte(1)))].into(),
        ..AccountChange::default()
    }
}

fn balance_change(before: u64, after: u64) -> AccountChange {
    AccountChange {
        balance: Some((U256::from(before), U256::from(after))),
        ..AccountChange::default()
    }
}

/// A trace in which these accounts have this code and balance and these slots are read.
fn run_as(
    others: &[&str],
    accounts: &[(&str, &[u8], u64, &[B256])],
    edit: impl FnOnce(&mut Vec<Frame>),
) -> Sealed<Trace> {
    let mut trace = raw_run(others, &[], BTreeMap::new());
    for (name, code, balance, slots) in accounts {
        let account = Account {
            code: Bytes::copy_from_slice(code),
            balance: U256::from(*balance),
            nonce: 0,
            slots: slots.iter().map(|slot| (*slot, B256::ZERO)).collect(),
        };
        trace.touched.insert(address_of(name), account);
    }
    edit(&mut trace.frames);
    Sealed::new(trace)
}

/// RT21, HD28: changes that depend on withheld state are withheld, too. The sender is not suspended for them.
#[test]
fn rt21_hd28_tainted_state_taints_later_transactions() {
    let reads = || run_as(&["vault"], &[("latch", &[0], 0, &[B256::ZERO])], |_| {});
    let evaluate_in = |world: &World, trace: &Sealed<Trace>| evaluate(&world.snapshot(), trace, &HashMap::new());
    assert_eq!(evaluate_in(&bank(), &reads()), None);
    let latch = address_of("latch");
    let tainted = |change| bank().withheld(latch, 99, change);
    let violation = evaluate_in(&tainted(slot_change()), &reads()).unwrap();
    assert_eq!(
        (violation.suspends, &violation.affected_orgs, violation.reason),
        (false, &Vec::new(), DenyReason::ContractNotPermitted)
    );
    // The sender also exceeds its own rights. The affected organization may be an accomplice, so it is not listed.
    let effect_of = |world: &World| {
        let violation = evaluate_in(
            world,
            &run_as(&["drop-box"], &[("latch", &[0], 0, &[B256::ZERO])], |_| {}),
        )
        .unwrap();
        (violation.suspends, violation.affected_orgs)
    };
    assert_eq!(effect_of(&bank()), (true, orgs(&["third"])));
    assert_eq!(effect_of(&tainted(slot_change())), (true, Vec::new()));
    // HD38: sends of another side are not tainted. Otherwise one violation could withhold the transactions of
    // everybody.
    let withheld = tainted(slot_change()).snapshot();
    let bystander = BTreeSet::from([org_id("rival")]);
    assert_eq!(withheld.withheld_from(latch, (100, 0), &bystander).count(), 0);
    assert_eq!(
        withheld
            .withheld_from(latch, (100, 0), &BTreeSet::from([org_id("bank")]))
            .count(),
        1
    );
    // Another slot is read, or the withheld change is of a later block.
    let other = || run_as(&["vault"], &[("latch", &[0], 0, &[B256::repeat_byte(1)])], |_| {});
    assert_eq!(evaluate_in(&tainted(slot_change()), &other()), None);
    assert_eq!(evaluate_in(&bank().withheld(latch, 101, slot_change()), &reads()), None);
    // A balance taints only code that can read it, a payer who may depend on it, and a payment to an account whose
    // existence is withheld.
    let paid = || tainted(balance_change(0, 5));
    assert_eq!(
        evaluate_in(&paid(), &reads()),
        None,
        "the receiver of a payment is not tainted"
    );
    let reads_own = run_as(&["vault"], &[("latch", &[0x47], 5, &[])], |_| {});
    assert!(evaluate_in(&paid(), &reads_own).is_some_and(|violation| !violation.suspends));
    let other_reads_own = run_as(&["vault"], &[("vault", &[0x47], 5, &[])], |_| {});
    assert_eq!(evaluate_in(&paid(), &other_reads_own), None);
    let probes = run_as(&["vault"], &[("vault", &[0x31], 5, &[])], |_| {});
    assert!(evaluate_in(&paid(), &probes).is_some());
    let pay = |balance, value: u64| {
        run_as(
            &["friend-wallet"],
            &[("latch", &[0], balance, &[]), ("friend-wallet", &[], 1, &[])],
            move |frames| {
                frames[1].value = U256::from(value);
            },
        )
    };
    assert!(
        evaluate_in(&paid(), &pay(7, 3)).is_some(),
        "the payment depends on the withheld balance"
    );
    assert_eq!(
        evaluate_in(&paid(), &pay(7, 2)),
        None,
        "the payment does not depend on the withheld balance"
    );
    let payee_funded = bank().withheld(address_of("friend-wallet"), 99, balance_change(0, 1));
    assert!(
        evaluate_in(&payee_funded, &pay(7, 2)).is_some(),
        "the gas reveals that the payee exists"
    );
    let payee_existed = bank().withheld(address_of("friend-wallet"), 99, balance_change(1, 2));
    let pay_existing = run_as(&["friend-wallet"], &[("friend-wallet", &[], 2, &[])], |frames| {
        frames[1].value = U256::from(1)
    });
    assert_eq!(evaluate_in(&payee_existed, &pay_existing), None);
    // Withheld code, and a creation by a factory with a withheld nonce.
    let created = AccountChange {
        created: true,
        code: Some(Bytes::new()),
        ..AccountChange::default()
    };
    let child = bank().withheld(address_of("child"), 99, created);
    let enters_child = run_as(&["child"], &[("child", &[0], 0, &[])], |_| {});
    assert!(
        evaluate_in(&child, &enters_child).is_some_and(|violation| !violation.suspends),
        "the sender could not know the withheld code"
    );
    let nonce_change = AccountChange {
        nonce: Some((1, 2)),
        ..AccountChange::default()
    };
    let creation = |kind| run_as(&["made"], &[("made", &[], 0, &[])], move |frames| frames[1].kind = kind);
    assert!(evaluate_in(&tainted(nonce_change.clone()), &creation(FrameKind::Create)).is_some());
    assert_eq!(evaluate_in(&tainted(nonce_change), &creation(FrameKind::Create2)), None);
}

/// HD38: a payer is not suspended for a wallet that its owner delegated before the block, nor for code that was
/// created at the payee's address later.
#[test]
fn hd38_an_honest_payer_is_not_suspended() {
    let world = bank()
        .org("rival")
        .group("staff")
        .user("payee")
        .member("staff")
        .link("payee-wallet")
        .contract("theirs")
        .grant("staff")
        .org("bank");
    let delegate = [&[0xef, 0x01, 0x00][..], address_of("theirs").as_slice()].concat();
    let trap = |input: &'static [u8], inner_target: &'static str| {
        run_as(
            &["payee-wallet"],
            &[
                ("payee-wallet", &delegate, 1, &[]),
                ("theirs", &[0], 0, &[]),
                (inner_target, &[0], 0, &[]),
            ],
            move |frames| {
                frames[0].to = Some(address_of("payee-wallet"));
                frames[0].input = Bytes::from_static(input);
                frames.truncate(1);
                frames.push(Frame {
                    from: address_of("payee-wallet"),
                    to: Some(address_of(inner_target)),
                    depth: 1,
                    parent: Some(0),
                    ..frames[0].clone()
                });
            },
        )
    };
    let snapshot = world.snapshot();
    let no_pending = HashMap::new();
    // HD29: the late code may also read the payer and store what it reads, so there is a violation.
    let entered = evaluate(&snapshot, &trap(b"", "theirs"), &no_pending).unwrap();
    assert!(!entered.suspends, "{entered:?}");
    let framed = evaluate(&snapshot, &trap(b"", "drop-box"), &no_pending).unwrap();
    assert!(!framed.suspends, "{framed:?}");
    let called = evaluate(&snapshot, &trap(b"\x01\x02\x03\x04", "theirs"), &no_pending).unwrap();
    assert!(!called.suspends, "{called:?}");
    // Unregistered code that was created after the decision on the send.
    let came = HashSet::from([address_of("payee-2")]);
    let paid = || run_as(&["payee-2"], &[("payee-2", &[0], 0, &[])], |_| {});
    assert!(
        evaluate_with(&snapshot, &paid(), &no_pending, &HashSet::new())
            .unwrap()
            .suspends,
        "the code existed at the decision"
    );
    assert!(!evaluate_with(&snapshot, &paid(), &no_pending, &came).unwrap().suspends);
    // The thief is suspended for its own part.
    let steals = run_as(&["payee-2", "theirs"], &[("payee-2", &[0], 0, &[])], |_| {});
    assert!(evaluate_with(&snapshot, &steals, &no_pending, &came).unwrap().suspends);
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

/// RT2a, RT21, HD28, HD40: the owner of a closed wallet reads it as a hidden account, and may neither simulate nor
/// send from it, because neither its balance nor its ability to pay may show. This applies with every setting that
/// would otherwise show it.
#[test]
fn rt21_a_closed_wallet_is_closed_to_its_owner() {
    let snapshot = bank().quarantined("friend-wallet").snapshot();
    let hidden = bank().snapshot();
    let (own, foreign) = (address_of("friend-wallet"), address_of("thief-wallet"));
    let slot = PROXY_SLOTS[0];
    for query in [
        HiddenBalanceMode::Strict,
        HiddenBalanceMode::Linked,
        HiddenBalanceMode::Off,
    ] {
        let friend = request_as(&snapshot, "friend").with_settings(|settings| settings.address_query = query);
        let describe = |method: &str, params| verdict(&friend.rpc(method, params));
        for block in ["latest", "0x3e7"] {
            assert_eq!(describe("eth_getBalance", json!([own, block])), "ZERO");
            assert_eq!(describe("eth_getTransactionCount", json!([own, block])), "ZERO");
        }
        assert_eq!(describe("eth_getCode", json!([own, "latest"])), "NO-CODE");
        assert_eq!(
            describe("eth_getStorageAt", json!([own, slot, "latest"])),
            "contract_not_permitted"
        );
        assert_eq!(
            describe("eth_getProof", json!([own, [slot], "latest"])),
            "contract_not_permitted"
        );
        for method in ["eth_call", "eth_estimateGas", "eth_createAccessList"] {
            let pays = json!([{"from": own, "to": foreign, "value": "0xf4241"}]);
            assert_eq!(describe(method, pays), "contract_not_permitted", "{method}");
            let calls = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
            assert_eq!(describe(method, calls), "contract_not_permitted", "{method}");
            let pays_to = json!([{"to": own, "value": "0x1"}]);
            assert_eq!(describe(method, pays_to), "contract_not_permitted", "{method}");
        }
        assert_eq!(
            reason(&friend.send_raw(own, Some(address_of("vault")), [1])),
            DenyReason::ContractNotPermitted
        );
        let send = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
        assert_eq!(describe("eth_sendTransaction", send), "contract_not_permitted");
        // Other users cannot relay its transactions, and those without access still cannot read it.
        let thief = request_as(&snapshot, "thief").with_settings(|settings| settings.address_query = query);
        assert_eq!(
            reason(&thief.send_raw(own, Some(address_of("vault")), [1])),
            DenyReason::ContractNotPermitted
        );
        assert_eq!(verdict(&thief.rpc("eth_getBalance", json!([own, "latest"]))), "ZERO");
    }
    let friend = request_as(&hidden, "friend");
    assert_eq!(
        verdict(&friend.rpc("eth_getBalance", json!([own, "latest"]))),
        "FORWARD",
        "without the violation"
    );
    assert_eq!(
        verdict(&friend.rpc("eth_getStorageAt", json!([own, slot, "latest"]))),
        "FORWARD"
    );
}

/// HD28: shared infrastructure is closed only to the sender and to members of the sender's organizations.
#[test]
fn rt21_shared_infrastructure_is_closed_to_the_side_of_the_sender() {
    let utility = address_of("utility");
    let world = bank()
        .org("elsewhere")
        .group("g")
        .every_method()
        .user("outsider")
        .member("g")
        .shared("utility");
    let snapshot = world
        .closed_to_side(utility, "thief", &["bank"])
        .closed_to_side(Address::ZERO, "thief", &["bank"])
        .snapshot();
    let slot = PROXY_SLOTS[0];
    for (user, has_access) in [("thief", false), ("friend", false), ("outsider", true)] {
        let request = request_as(&snapshot, user);
        let describe = |method: &str, params| verdict(&request.rpc(method, params));
        let expected = |open: &str, closed: &str| if has_access { open.to_owned() } else { closed.to_owned() };
        let call = json!([{"to": utility, "data": "0x01020304"}]);
        assert_eq!(
            describe("eth_call", call),
            expected("TRACE", "contract_not_permitted"),
            "{user}"
        );
        let storage = json!([utility, slot, "latest"]);
        assert_eq!(
            describe("eth_getStorageAt", storage),
            expected("FORWARD", "contract_not_permitted"),
            "{user}"
        );
        for address in [utility, Address::ZERO] {
            assert_eq!(
                describe("eth_getBalance", json!([address, "latest"])),
                expected("FORWARD", "ZERO"),
                "{user}"
            );
        }
    }
}

/// RT20, HD37: a suspension applies to the person, even after enrollment with a new row.
#[test]
fn rt20_a_suspension_applies_after_enrolling_again() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let new_id = UserId(uuid::Uuid::from_u128(77));
    let row = User {
        id: new_id,
        ..snapshot.user(user_id("thief")).unwrap().as_ref().clone()
    };
    let later = snapshot.apply(
        snapshot.epoch(),
        [
            GwChange::User(user_id("thief"), None),
            GwChange::User(new_id, Some(row)),
        ],
    );
    assert!(later.is_suspended(new_id) && !later.is_suspended(user_id("thief")));
}

#[test]
fn hd2_a_suspended_sender_reads_but_does_not_send() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let thief = request_as(&snapshot, "thief");
    let call = json!([{"to": address_of("vault"), "data": "0x01020304"}]);
    assert_eq!(verdict(&thief.rpc("eth_call", call)), "TRACE");
    let vault = Some(address_of("vault"));
    assert_eq!(
        reason(&thief.send_raw(address_of("thief-wallet"), vault, [1, 2, 3, 4])),
        DenyReason::TraceMismatch
    );
    assert_eq!(
        reason(&thief.send_raw(address_of("thief-wallet"), None, [1])),
        DenyReason::TraceMismatch
    );
    // HD13: others cannot relay their transactions, but send their own.
    let friend = request_as(&snapshot, "friend");
    assert_eq!(
        reason(&friend.send_raw(address_of("thief-wallet"), vault, [1, 2, 3, 4])),
        DenyReason::SenderNotOwned
    );
    assert_eq!(
        verdict(&friend.send_raw(address_of("friend-wallet"), vault, [1, 2, 3, 4])),
        "SEND"
    );
}

#[test]
fn hd2_a_quarantined_contract_is_read_by_nobody() {
    let snapshot = bank()
        .group("admins")
        .org_admin()
        .every_method()
        .user("boss")
        .member("admins")
        .quarantined("vault")
        .snapshot();
    let vault = address_of("vault");
    for user in ["friend", "boss"] {
        let request = request_as(&snapshot, user);
        let describe = |method: &str, params| verdict(&request.rpc(method, params));
        assert_eq!(
            describe("eth_call", json!([{"to": vault, "data": "0x01020304"}])),
            "contract_not_permitted",
            "{user}"
        );
        assert_eq!(
            describe("eth_getStorageAt", json!([vault, B256::ZERO, "latest"])),
            "contract_not_permitted",
            "{user}"
        );
        assert_eq!(
            describe("eth_getProof", json!([vault, [], "latest"])),
            "contract_not_permitted",
            "{user}"
        );
        assert_eq!(describe("eth_getBalance", json!([vault, "latest"])), "ZERO", "{user}");
        assert_eq!(describe("eth_getCode", json!([vault, "latest"])), "NO-CODE", "{user}");
        assert_eq!(
            describe("eth_getLogs", json!([{"address": vault}])),
            "OWN+SHARED",
            "{user}"
        );
        assert_eq!(
            describe("eth_call", json!([{"to": address_of("latch"), "data": "0x01020304"}])),
            "TRACE",
            "{user}"
        );
    }
    // Access through another contract is denied, too, by a frame or a touch.
    let inner = evaluate(&snapshot, &run(&["vault"], &["latch"], &[]), &HashMap::new());
    assert_eq!(
        inner.map(|violation| violation.reason),
        Some(DenyReason::ContractNotPermitted)
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

/// HD38: a mined execution that is the same as the evaluated one is not a violation, even if rights have ended since
/// or the block has another beneficiary. Any other frame, touch or write is a violation. An execution that was mined
/// much later is evaluated again (HD13).
#[test]
fn hd38_an_execution_that_ran_as_evaluated_is_not_a_violation() {
    let snapshot = bank().snapshot();
    let (deleted_user, lately, came) = (did("gone"), HashMap::new(), HashSet::new());
    let honest = || raw_run(&["vault"], &[], BTreeMap::from([(address_of("latch"), slot_write())]));
    let validator = address_of("then-validator");
    let authorized_runs = |number| AuthorizedRuns {
        block: B256::ZERO,
        number,
        digests: vec![B256::ZERO, run_digest(&Sealed::new(honest()), validator)],
        may_vary: false,
        changes: None,
    };
    let is_violation = |number, mined: Trace| {
        let authorized = authorized_runs(number);
        let send = MinedSend {
            authorized_runs: Some(&authorized),
            ..mined_send(&deleted_user, &lately, &came)
        };
        evaluate_mined(&snapshot, &send, &Sealed::new(mined), NOW, &PolicySettings::default()).is_some()
    };
    assert!(!is_violation(100, honest()) && !is_violation(36, honest()));
    let by_another_validator = |mut trace: Trace| {
        trace.touched.insert(address_of("validator"), Account::default());
        trace
    };
    assert!(!is_violation(100, by_another_validator(honest())));
    assert!(
        is_violation(35, honest()),
        "64 blocks later, the current policy applies"
    );
    type Edit = fn(&mut Trace);
    let edits: [(&str, Edit); 8] = [
        ("input", |trace| trace.frames[1].input = Bytes::from_static(&[1])),
        ("value", |trace| trace.frames[1].value = U256::from(1)),
        ("kind", |trace| trace.frames[1].kind = FrameKind::DelegateCall),
        ("another frame", |trace| trace.frames.push(trace.frames[1].clone())),
        ("a touch", |trace| {
            drop(trace.touched.insert(address_of("theirs"), Account::default()))
        }),
        ("other code", |trace| {
            trace.touched.get_mut(&address_of("vault")).unwrap().code = Bytes::from_static(&[0x31]);
        }),
        ("another slot", |trace| {
            let changes = trace.changes.as_mut().unwrap();
            changes.insert(
                address_of("vault"),
                Change {
                    storage: [(B256::ZERO, B256::ZERO)].into(),
                    ..Change::default()
                },
            );
        }),
        ("the beneficiary called", |trace| {
            trace.frames[1].to = Some(address_of("validator"));
        }),
    ];
    for (difference, edit) in edits {
        let mut mined = honest();
        edit(&mut mined);
        assert!(is_violation(100, mined), "{difference}");
    }
}

/// HD38: an execution that differs only because earlier transactions of others changed the state suspends nobody.
/// Changes by the evaluated amounts are not withheld; one difference withholds all of them. If the code reads the
/// block, or the send was mined much later, the difference counts as the sender's.
#[test]
fn hd38_a_sender_is_not_suspended_for_state_changes_of_others() {
    let snapshot = bank().snapshot();
    let (thief, lately, came) = (did("thief"), HashMap::new(), HashSet::new());
    let slot_change_by = |before: u64, after: u64| {
        let word = |value: u64| B256::from(U256::from(value));
        let before = Before {
            storage: [(B256::ZERO, word(before))].into(),
            ..Before::default()
        };
        Change {
            storage: [(B256::ZERO, word(after))].into(),
            before,
            ..Change::default()
        }
    };
    let amount = AccountChange {
        slots: [(B256::ZERO, (B256::ZERO, B256::with_last_byte(1)))].into(),
        ..AccountChange::default()
    };
    let authorized_runs = |number, may_vary| AuthorizedRuns {
        block: B256::ZERO,
        number,
        digests: vec![B256::ZERO],
        may_vary,
        changes: Some([(address_of("latch"), amount.clone())].into()),
    };
    let effect = |authorized: &AuthorizedRuns, changes: &[(&str, Change)]| {
        let changes = changes
            .iter()
            .map(|(name, change)| (address_of(name), change.clone()))
            .collect();
        let framer = recent_send("framer", "rival", "latch");
        let send = MinedSend {
            authorized_runs: Some(authorized),
            recent_sends: &[&framer],
            ..mined_send(&thief, &lately, &came)
        };
        let violation = evaluate_mined(
            &snapshot,
            &send,
            &run_with(&["theirs"], &[], changes),
            NOW,
            &PolicySettings::default(),
        )
        .unwrap();
        assert_eq!(violation.reason, DenyReason::CrossOrg);
        (
            violation.suspends,
            violation
                .changes
                .into_iter()
                .map(|(address, _)| address)
                .collect::<Vec<_>>(),
        )
    };
    let theirs = ("theirs", slot_change_by(0, 9));
    let both_accounts = addresses(&["latch", "theirs"]);
    let honest = authorized_runs(100, false);
    assert_eq!(
        effect(&honest, &[("latch", slot_change_by(0, 1)), theirs.clone()]),
        (false, addresses(&["theirs"]))
    );
    assert_eq!(
        effect(&honest, &[("latch", slot_change_by(7, 8)), theirs.clone()]),
        (false, addresses(&["theirs"]))
    );
    assert_eq!(
        effect(&honest, &[("latch", slot_change_by(7, 9)), theirs.clone()]),
        (false, both_accounts.clone())
    );
    assert_eq!(
        effect(&honest, &[("vault", slot_change_by(0, 1)), theirs.clone()]),
        (false, addresses(&["theirs", "vault"]))
    );
    // Payments to the sender or the beneficiary are not part of the evaluated changes.
    let paid = Change {
        balance: Some(U256::from(7)),
        ..Change::default()
    };
    for payee in ["thief-wallet", "validator"] {
        let changes = [("latch", slot_change_by(0, 1)), (payee, paid.clone())];
        assert_eq!(effect(&honest, &changes), (false, addresses(&[payee])), "{payee}");
    }
    assert_eq!(
        effect(
            &authorized_runs(100, true),
            &[("latch", slot_change_by(0, 1)), theirs.clone()]
        ),
        (true, both_accounts.clone())
    );
    // Members of the sender's organization and the sender's other wallets do not count as others. The change must
    // also be in an account that the execution touched, and by a send of the gateway.
    let suspends = |recent: &[RecentSend]| {
        let recent_sends: Vec<&RecentSend> = recent.iter().collect();
        let send = MinedSend {
            authorized_runs: Some(&honest),
            recent_sends: &recent_sends,
            ..mined_send(&thief, &lately, &came)
        };
        evaluate_mined(
            &snapshot,
            &send,
            &run(&["theirs"], &["latch"], &[]),
            NOW,
            &PolicySettings::default(),
        )
        .unwrap()
        .suspends
    };
    assert!(!suspends(&[recent_send("framer", "rival", "latch")]));
    assert!(suspends(&[recent_send("thief", "rival", "latch")]) && suspends(&[recent_send("pal", "bank", "latch")]));
    assert!(suspends(&[recent_send("framer", "rival", "drop-box")]) && suspends(&[]));
    assert!(suspends(&[
        recent_send("framer", "rival", "latch"),
        recent_send("pal", "bank", "theirs")
    ]));
    assert_eq!(
        effect(&authorized_runs(35, false), &[("latch", slot_change_by(0, 1)), theirs]),
        (true, both_accounts)
    );
}

/// A recent send by this person for this organization that changed this account.
fn recent_send(name: &str, org: &str, changed: &str) -> RecentSend {
    RecentSend {
        external_id: did(name),
        orgs: vec![org_id(org)],
        changed: [address_of(changed)].into(),
    }
}

fn slot_write() -> Change {
    Change {
        storage: BTreeMap::from([(B256::ZERO, B256::with_last_byte(1))]),
        ..Change::default()
    }
}

/// HD38: if a guest exceeds a function rule, the owner of the contract is affected, not only the organization of the
/// send.
#[test]
fn hd38_a_violation_of_a_guest_affects_the_owner_of_the_contract() {
    let world = bank()
        .org("rival")
        .group("guests")
        .user("thief")
        .member("guests")
        .contract("safe");
    let world = world.grant("guests").functions([function("poke()", [])]).org("bank");
    let violation = evaluate(&world.snapshot(), &run(&["safe"], &["latch"], &[]), &HashMap::new()).unwrap();
    assert_eq!(violation.reason, DenyReason::FunctionNotPermitted);
    assert!(
        violation.affected_orgs.contains(&org_id("rival")),
        "{:?}",
        violation.affected_orgs
    );
}
