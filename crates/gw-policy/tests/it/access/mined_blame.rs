//! Whether a mined send is to blame: tainted state, honest payers, executions that ran as evaluated (HD28, HD38).

use super::mined_support::{
    addresses, bank, evaluate, evaluate_with, mined_send, orgs, raw_run, run, run_with, slot_write,
};
use gw_evm::trace::{Account, Before, Change, Frame, FrameKind, Trace};
use gw_policy::{
    PolicySettings, Sealed,
    access::{AuthorizedRuns, MinedSend, RecentSend, evaluate_mined, run_digest},
    snapshot::AccountChange,
    testing::{NOW, World, address_of, did, function, org_id},
};
use gw_types::{B256, Bytes, DenyReason, U256};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
