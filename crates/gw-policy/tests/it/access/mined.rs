//! HD2: what a send did once mined, and what follows from it.

use super::support::{ask, reason, verdict};
use gw_evm::{
    code::PROXY_SLOTS,
    trace::{Account, Before, Change, Frame, FrameKind, FrameLog, Outcome, Trace},
};
use gw_policy::{
    Change as GwChange, Knobs, Sealed, Snapshot,
    access::{
        JudgedRuns, MinedFinding, MinedSend, RecentSend, UnreadableRun, judge_mined, run_digest, unreadable_mined,
    },
    knobs::AddressQuery,
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

/// thief → latch → the others, each of them writing if it is in `writing`.
fn run(others: &[&str], writing: &[&str], speaking: &[&str]) -> Sealed<Trace> {
    run_with(
        others,
        speaking,
        writing.iter().map(|name| (address_of(name), written())).collect(),
    )
}

fn run_with(others: &[&str], speaking: &[&str], changes: BTreeMap<Address, Change>) -> Sealed<Trace> {
    Sealed::new(raw_run(others, speaking, changes))
}

fn raw_run(others: &[&str], speaking: &[&str], changes: BTreeMap<Address, Change>) -> Trace {
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
        logs: speaking
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

/// A send of the thief's under the bank.
fn judged(
    snapshot: &Snapshot,
    trace: &Sealed<Trace>,
    lately: &HashMap<Address, OrgId>,
    came: &HashSet<Address>,
) -> Option<MinedFinding> {
    let external_id = did("thief");
    judge_mined(
        snapshot,
        &sent(&external_id, lately, came),
        trace,
        NOW,
        &Knobs::default(),
    )
}

fn sent<'a>(
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
        judged: None,
    }
}

fn found(snapshot: &Snapshot, trace: &Sealed<Trace>, lately: &HashMap<Address, OrgId>) -> Option<MinedFinding> {
    judged(snapshot, trace, lately, &HashSet::new())
}

fn changed(found: Option<MinedFinding>) -> Vec<Address> {
    let found = found.unwrap();
    assert!(
        found.closed_to_side.is_empty(),
        "what is read closes nothing: {found:?}"
    );
    found.changes.into_iter().map(|(address, _)| address).collect()
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

/// A run that changes these accounts so.
fn changing(others: &[&str], changes: &[(Address, Change)]) -> Sealed<Trace> {
    run_with(others, &[], changes.iter().cloned().collect())
}

#[test]
fn hd2_what_touches_others_withholds_what_it_wrote() {
    let snapshot = bank().snapshot();
    let none = HashMap::new();
    assert_eq!(
        found(&snapshot, &run(&["vault"], &["latch", "vault"], &["vault"]), &none),
        None
    );
    let stolen = found(&snapshot, &run(&["theirs", "vault"], &["latch"], &["vault"]), &none).unwrap();
    assert_eq!((stolen.reason, stolen.suspends), (DenyReason::CrossOrg, true));
    assert_eq!((&stolen.wronged, &stolen.side), (&orgs(&["rival"]), &orgs(&["bank"])));
    assert_eq!(changed(Some(stolen)), addresses(&["latch"]));
}

/// RT23, HD38: nobody's contract is closed; what was written there is withheld, whoever's it is (F4). Where something in it
/// belongs to nobody, only a super admin clears.
#[test]
fn rt23_hd28_nothing_is_closed_and_all_that_was_written_withheld() {
    let (snapshot, none) = (bank().snapshot(), HashMap::new());
    let written = found(&snapshot, &run(&["theirs"], &["latch", "theirs"], &["theirs"]), &none);
    assert_eq!(changed(written), addresses(&["latch", "theirs"]));
    let dropped = found(
        &snapshot,
        &run(&["theirs", "drop-box"], &["latch", "drop-box"], &["drop-box"]),
        &none,
    )
    .unwrap();
    assert_eq!(&dropped.wronged, &orgs(&["rival", "third"]));
    assert_eq!(changed(Some(dropped)), addresses(&["latch", "drop-box"]));
    let unowned = found(
        &snapshot,
        &run(&["nobody's", "theirs"], &["nobody's", "theirs"], &[]),
        &none,
    )
    .unwrap();
    assert_eq!(&unowned.wronged, &Vec::new());
    assert_eq!(changed(Some(unowned)), addresses(&["nobody's", "theirs"]));
}

/// RT2a, RT21, HD28: balances, nonces of contracts, slots and code are withheld with their values before: also those of the
/// beneficiary, of precompiles and of what everybody uses (F5). Nonces that somebody needs to send on are not.
#[test]
fn rt21_whatever_was_paid_or_changed_is_withheld() {
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
    let gone = || Change {
        removed: true,
        before: before.clone(),
        ..Change::default()
    };
    let identity = Address::with_last_byte(4);
    let both = Change {
        nonce: Some(4),
        ..paid()
    };
    let trace = changing(
        &["theirs", "factory", "bomb"],
        &[
            (address_of("thief-wallet"), both),
            (address_of("friend-wallet"), paid()),
            (address_of("delegate"), used()),
            (address_of("factory"), used()),
            (address_of("bomb"), gone()),
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
    let stolen = found(&snapshot, &trace, &HashMap::new()).unwrap();
    let of = |address: Address| {
        stolen
            .changes
            .iter()
            .find(|(at, _)| *at == address)
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
        assert_eq!(of(paid), Some(balance(9)), "{paid}");
    }
    assert_eq!(
        of(address_of("factory")),
        Some(AccountChange {
            nonce: Some((3, 4)),
            ..AccountChange::default()
        })
    );
    assert_eq!((of(address_of("delegate")), of(address_of("idle"))), (None, None));
    let gone = AccountChange {
        nonce: Some((3, 0)),
        code: Some(Bytes::from_static(&[0])),
        ..balance(0)
    };
    assert_eq!(of(address_of("bomb")), Some(gone));
}

/// What was wronged inside the sender's own organization is its administrators' to clear.
#[test]
fn rt23_a_finding_at_home_is_for_the_own_administrators() {
    let snapshot = bank().org("bank").contract("safe").snapshot();
    let trace = run(&["safe"], &["latch"], &[]);
    let authored = bank()
        .org("bank")
        .contract("safe")
        .org("other")
        .group("g")
        .user("thief")
        .member("g")
        .snapshot();
    // A member of two organizations: both are the sender's side.
    let two = found(&authored, &run(&["theirs"], &["latch"], &[]), &HashMap::new()).unwrap();
    assert_eq!(two.side, orgs(&["bank", "other"]));
    let inner = judge_mined(
        &snapshot,
        &sent(&did("thief"), &HashMap::new(), &HashSet::new()),
        &trace,
        NOW,
        &Knobs {
            intra_org_grant_tracing: true,
            ..Knobs::default()
        },
    )
    .unwrap();
    assert_eq!(inner.wronged, orgs(&["bank"]));
}

/// RT20, HD37: a send whose user is gone is judged as having no rights; the organizations of the time of sending are its
/// side all the same.
#[test]
fn rt20_a_watch_without_its_user_has_no_rights() {
    let snapshot = bank().snapshot();
    let (lately, came) = (HashMap::new(), HashSet::new());
    let honest = run(&["vault"], &["latch", "vault"], &[]);
    let gone = did("gone");
    let orgs_then = [org_id("bank"), org_id("third")];
    let sent = MinedSend {
        orgs: &orgs_then,
        ..sent(&gone, &lately, &came)
    };
    let found = judge_mined(&snapshot, &sent, &honest, NOW, &Knobs::default()).unwrap();
    assert_eq!((found.reason, found.suspends), (DenyReason::CrossOrg, true));
    assert_eq!(found.side, orgs(&["bank", "third"]));
    assert_eq!(changed(Some(found)), addresses(&["latch", "vault"]));
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

/// A run in which these accounts are as told: code, balance, slots read.
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

/// RT21, HD28 (C3): what rests on what is withheld is withheld too, and its sender sends on.
#[test]
fn rt21_hd28_loot_is_not_carried_on_by_the_next_transaction() {
    let reads = || run_as(&["vault"], &[("latch", &[0], 0, &[B256::ZERO])], |_| {});
    let judge = |world: &World, trace: &Sealed<Trace>| found(&world.snapshot(), trace, &HashMap::new());
    assert_eq!(judge(&bank(), &reads()), None);
    let latch = address_of("latch");
    let tainted = |change| bank().withheld(latch, 99, change);
    let carried = judge(&tainted(slot_change()), &reads()).unwrap();
    assert_eq!(
        (carried.suspends, &carried.wronged, carried.reason),
        (false, &Vec::new(), DenyReason::ContractNotPermitted)
    );
    // One that goes beyond its own rights as well: who is wronged by that may be the carrier's accomplice.
    let carries = |world: &World| {
        let found = judge(
            world,
            &run_as(&["drop-box"], &[("latch", &[0], 0, &[B256::ZERO])], |_| {}),
        )
        .unwrap();
        (found.suspends, found.wronged)
    };
    assert_eq!(carries(&bank()), (true, orgs(&["third"])));
    assert_eq!(carries(&tainted(slot_change())), (true, Vec::new()));
    // HD38: what somebody of another side sends rests on nothing: one thief must not have everybody's transactions withheld.
    let withheld = tainted(slot_change()).snapshot();
    let bystander = BTreeSet::from([org_id("rival")]);
    assert_eq!(withheld.withheld_from(latch, (100, 0), &bystander).count(), 0);
    assert_eq!(
        withheld
            .withheld_from(latch, (100, 0), &BTreeSet::from([org_id("bank")]))
            .count(),
        1
    );
    // Another slot, a later transaction, one of a later block.
    let other = || run_as(&["vault"], &[("latch", &[0], 0, &[B256::repeat_byte(1)])], |_| {});
    assert_eq!(judge(&tainted(slot_change()), &other()), None);
    assert_eq!(judge(&bank().withheld(latch, 101, slot_change()), &reads()), None);
    // A balance: only for who can ask for it, may lack it, or meets an account that is not to be seen.
    let paid = || tainted(balance_change(0, 5));
    assert_eq!(judge(&paid(), &reads()), None, "who was paid goes on");
    let asks = run_as(&["vault"], &[("latch", &[0x47], 5, &[])], |_| {});
    assert!(judge(&paid(), &asks).is_some_and(|found| !found.suspends));
    let others_ask = run_as(&["vault"], &[("vault", &[0x47], 5, &[])], |_| {});
    assert_eq!(judge(&paid(), &others_ask), None);
    let probes = run_as(&["vault"], &[("vault", &[0x31], 5, &[])], |_| {});
    assert!(judge(&paid(), &probes).is_some());
    let pays = |held, value: u64| {
        run_as(
            &["friend-wallet"],
            &[("latch", &[0], held, &[]), ("friend-wallet", &[], 1, &[])],
            move |frames| {
                frames[1].value = U256::from(value);
            },
        )
    };
    assert!(judge(&paid(), &pays(7, 3)).is_some(), "out of what is not to be seen");
    assert_eq!(judge(&paid(), &pays(7, 2)), None, "out of what it had anyway");
    let dusted = bank().withheld(address_of("friend-wallet"), 99, balance_change(0, 1));
    assert!(
        judge(&dusted, &pays(7, 2)).is_some(),
        "its gas tells that the payee is there"
    );
    let richer = bank().withheld(address_of("friend-wallet"), 99, balance_change(1, 2));
    let to_richer = run_as(&["friend-wallet"], &[("friend-wallet", &[], 2, &[])], |frames| {
        frames[1].value = U256::from(1)
    });
    assert_eq!(judge(&richer, &to_richer), None);
    // Code that is not to be seen, and what a factory with a withheld nonce makes.
    let created = AccountChange {
        created: true,
        code: Some(Bytes::new()),
        ..AccountChange::default()
    };
    let child = bank().withheld(address_of("child"), 99, created);
    let enters = run_as(&["child"], &[("child", &[0], 0, &[])], |_| {});
    assert!(
        judge(&child, &enters).is_some_and(|found| !found.suspends),
        "nobody could know of it"
    );
    let counted = AccountChange {
        nonce: Some((1, 2)),
        ..AccountChange::default()
    };
    let makes = |kind| run_as(&["made"], &[("made", &[], 0, &[])], move |frames| frames[1].kind = kind);
    assert!(judge(&tainted(counted.clone()), &makes(FrameKind::Create)).is_some());
    assert_eq!(judge(&tainted(counted), &makes(FrameKind::Create2)), None);
}

/// C7, HD38: an honest payer answers neither for a wallet that its owner delegated before the block, nor for code that came
/// to a payee's address; who calls it with data is judged as ever.
#[test]
fn hd38_an_honest_payer_is_not_framed() {
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
    let trap = |input: &'static [u8], beyond: &'static str| {
        run_as(
            &["payee-wallet"],
            &[
                ("payee-wallet", &delegate, 1, &[]),
                ("theirs", &[0], 0, &[]),
                (beyond, &[0], 0, &[]),
            ],
            move |frames| {
                frames[0].to = Some(address_of("payee-wallet"));
                frames[0].input = Bytes::from_static(input);
                frames.truncate(1);
                frames.push(Frame {
                    from: address_of("payee-wallet"),
                    to: Some(address_of(beyond)),
                    depth: 1,
                    parent: Some(0),
                    ..frames[0].clone()
                });
            },
        )
    };
    let snapshot = world.snapshot();
    let none = HashMap::new();
    // HD29: what the late code may enter it may also look at, and keep what it sees of the payer.
    let entered = found(&snapshot, &trap(b"", "theirs"), &none).unwrap();
    assert!(!entered.suspends, "{entered:?}");
    let framed = found(&snapshot, &trap(b"", "drop-box"), &none).unwrap();
    assert!(!framed.suspends, "{framed:?}");
    let called = found(&snapshot, &trap(b"\x01\x02\x03\x04", "theirs"), &none).unwrap();
    assert!(!called.suspends, "{called:?}");
    // Code that came after the send was judged, nobody's.
    let came = HashSet::from([address_of("payee-2")]);
    let paid = || run_as(&["payee-2"], &[("payee-2", &[0], 0, &[])], |_| {});
    assert!(
        judged(&snapshot, &paid(), &none, &HashSet::new()).unwrap().suspends,
        "it was there"
    );
    assert!(!judged(&snapshot, &paid(), &none, &came).unwrap().suspends);
    // The thief's own part is the thief's.
    let steals = run_as(&["payee-2", "theirs"], &[("payee-2", &[0], 0, &[])], |_| {});
    assert!(judged(&snapshot, &steals, &none, &came).unwrap().suspends);
}

/// A contract of the last blocks is its deployer's although its registration is still under way.
#[test]
fn hd2_what_was_deployed_a_moment_ago_is_no_strangers() {
    let snapshot = bank().snapshot();
    let trace = run(&["new"], &["new"], &[]);
    let lately = |org| HashMap::from([(address_of("new"), org_id(org))]);
    assert_eq!(found(&snapshot, &trace, &lately("bank")), None);
    assert!(found(&snapshot, &trace, &lately("rival")).is_some());
    assert!(found(&snapshot, &trace, &HashMap::new()).is_some());
}

/// RT2c, HD28 (C5): nothing speaks for what cannot be read to its end. What it changed is withheld where at least that is
/// known; otherwise what is known of it is closed to its sender's side.
#[test]
fn rt2c_what_cannot_be_read_to_its_end_speaks_for_nobody() {
    let snapshot = bank().snapshot();
    let (external_id, lately, came) = (did("thief"), HashMap::new(), HashSet::new());
    let sent = sent(&external_id, &lately, &came);
    let run = UnreadableRun {
        changes: None,
        created: vec![address_of("child")],
        emitters: vec![address_of("latch")],
    };
    let unknown = unreadable_mined(&snapshot, &sent, &run, NOW, &Knobs::default());
    assert_eq!(
        (unknown.reason, unknown.suspends, &unknown.wronged),
        (DenyReason::TraceDepthExceeded, true, &Vec::new())
    );
    assert_eq!(unknown.closed_to_side, addresses(&["latch", "thief-wallet"]));
    let made = AccountChange {
        created: true,
        code: Some(Bytes::new()),
        ..AccountChange::default()
    };
    assert_eq!(unknown.changes, [(address_of("child"), made)]);
    let paid = Change {
        balance: Some(U256::from(5)),
        ..Change::default()
    };
    let run = UnreadableRun {
        changes: Some(BTreeMap::from([(address_of("friend-wallet"), paid)])),
        ..run
    };
    let known = unreadable_mined(&snapshot, &sent, &run, NOW, &Knobs::default());
    assert_eq!((known.changes.len(), &known.closed_to_side), (2, &Vec::new()));
}

/// RT2a, RT21, HD28, HD40: the owner of a closed wallet reads it as a hidden one, and runs and sends nothing as it: neither
/// a balance nor whether it pays for something may show. The same with every ground that opened it before.
#[test]
fn rt21_a_closed_wallet_is_closed_to_its_owner() {
    let snapshot = bank().quarantined("friend-wallet").snapshot();
    let hidden = bank().snapshot();
    let (own, foreign) = (address_of("friend-wallet"), address_of("thief-wallet"));
    let slot = PROXY_SLOTS[0];
    for query in [AddressQuery::Strict, AddressQuery::Linked, AddressQuery::Off] {
        let friend = ask(&snapshot, "friend").with(|knobs| knobs.address_query = query);
        let told = |method: &str, params| verdict(&friend.rpc(method, params));
        for block in ["latest", "0x3e7"] {
            assert_eq!(told("eth_getBalance", json!([own, block])), "ZERO");
            assert_eq!(told("eth_getTransactionCount", json!([own, block])), "ZERO");
        }
        assert_eq!(told("eth_getCode", json!([own, "latest"])), "NO-CODE");
        assert_eq!(
            told("eth_getStorageAt", json!([own, slot, "latest"])),
            "contract_not_permitted"
        );
        assert_eq!(
            told("eth_getProof", json!([own, [slot], "latest"])),
            "contract_not_permitted"
        );
        for method in ["eth_call", "eth_estimateGas", "eth_createAccessList"] {
            let pays = json!([{"from": own, "to": foreign, "value": "0xf4241"}]);
            assert_eq!(told(method, pays), "contract_not_permitted", "{method}");
            let calls = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
            assert_eq!(told(method, calls), "contract_not_permitted", "{method}");
            let to = json!([{"to": own, "value": "0x1"}]);
            assert_eq!(told(method, to), "contract_not_permitted", "{method}");
        }
        assert_eq!(
            reason(&friend.send_raw(own, Some(address_of("vault")), [1])),
            DenyReason::ContractNotPermitted
        );
        let send = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
        assert_eq!(told("eth_sendTransaction", send), "contract_not_permitted");
        // Nobody relays what it signed either, nor reads it who never could.
        let thief = ask(&snapshot, "thief").with(|knobs| knobs.address_query = query);
        assert_eq!(
            reason(&thief.send_raw(own, Some(address_of("vault")), [1])),
            DenyReason::ContractNotPermitted
        );
        assert_eq!(verdict(&thief.rpc("eth_getBalance", json!([own, "latest"]))), "ZERO");
    }
    let friend = ask(&hidden, "friend");
    assert_eq!(
        verdict(&friend.rpc("eth_getBalance", json!([own, "latest"]))),
        "FORWARD",
        "without the finding"
    );
    assert_eq!(
        verdict(&friend.rpc("eth_getStorageAt", json!([own, slot, "latest"]))),
        "FORWARD"
    );
}

/// HD28: what everybody uses is closed to the sender and the members of the sender's organizations only.
#[test]
fn rt21_what_everybody_uses_is_closed_to_the_senders_side() {
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
    for (who, sees) in [("thief", false), ("friend", false), ("outsider", true)] {
        let asked = ask(&snapshot, who);
        let told = |method: &str, params| verdict(&asked.rpc(method, params));
        let opened = |open: &str, shut: &str| if sees { open.to_owned() } else { shut.to_owned() };
        let call = json!([{"to": utility, "data": "0x01020304"}]);
        assert_eq!(
            told("eth_call", call),
            opened("TRACE", "contract_not_permitted"),
            "{who}"
        );
        let storage = json!([utility, slot, "latest"]);
        assert_eq!(
            told("eth_getStorageAt", storage),
            opened("FORWARD", "contract_not_permitted"),
            "{who}"
        );
        for address in [utility, Address::ZERO] {
            assert_eq!(
                told("eth_getBalance", json!([address, "latest"])),
                opened("FORWARD", "ZERO"),
                "{who}"
            );
        }
    }
}

/// RT20, HD37: a suspension is the person's, whatever row they enroll under.
#[test]
fn rt20_a_suspension_binds_who_enrolls_again() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let again = UserId(uuid::Uuid::from_u128(77));
    let row = User {
        id: again,
        ..snapshot.user(user_id("thief")).unwrap().as_ref().clone()
    };
    let later = snapshot.apply(
        snapshot.epoch(),
        [GwChange::User(user_id("thief"), None), GwChange::User(again, Some(row))],
    );
    assert!(later.is_suspended(again) && !later.is_suspended(user_id("thief")));
}

#[test]
fn hd2_a_suspended_sender_reads_and_sends_nothing() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let thief = ask(&snapshot, "thief");
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
    // HD13: nobody relays what they signed; others send on.
    let friend = ask(&snapshot, "friend");
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
    for who in ["friend", "boss"] {
        let asked = ask(&snapshot, who);
        let told = |method: &str, params| verdict(&asked.rpc(method, params));
        assert_eq!(
            told("eth_call", json!([{"to": vault, "data": "0x01020304"}])),
            "contract_not_permitted",
            "{who}"
        );
        assert_eq!(
            told("eth_getStorageAt", json!([vault, B256::ZERO, "latest"])),
            "contract_not_permitted",
            "{who}"
        );
        assert_eq!(
            told("eth_getProof", json!([vault, [], "latest"])),
            "contract_not_permitted",
            "{who}"
        );
        assert_eq!(told("eth_getBalance", json!([vault, "latest"])), "ZERO", "{who}");
        assert_eq!(told("eth_getCode", json!([vault, "latest"])), "NO-CODE", "{who}");
        assert_eq!(told("eth_getLogs", json!([{"address": vault}])), "OWN+SHARED", "{who}");
        assert_eq!(
            told("eth_call", json!([{"to": address_of("latch"), "data": "0x01020304"}])),
            "TRACE",
            "{who}"
        );
    }
    // Nor through another: a frame or a look at it is denied.
    let inner = found(&snapshot, &run(&["vault"], &["latch"], &[]), &HashMap::new());
    assert_eq!(inner.map(|found| found.reason), Some(DenyReason::ContractNotPermitted));
}

/// HD39: a send that names its organization has no other rights in its block than in its trace.
#[test]
fn hd39_a_named_send_is_judged_by_the_organization_it_named() {
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
    let entered = || run(&["open"], &["latch"], &[]);
    for (is_named, reason) in [(false, None), (true, Some(DenyReason::CrossOrg))] {
        let sent = MinedSend {
            is_named,
            ..sent(&external_id, &lately, &came)
        };
        let found = judge_mined(&snapshot, &sent, &entered(), NOW, &Knobs::default());
        assert_eq!(found.map(|found| found.reason), reason, "named: {is_named}");
    }
}

/// HD38: who did in the block what was allowed when it was judged is convicted of nothing, whatever rights ended since, and
/// whoever became the block's beneficiary. Anything else that was entered, looked at or written is a finding, and so is what
/// waited for long (HD13).
#[test]
fn hd38_who_ran_as_judged_is_not_convicted() {
    let snapshot = bank().snapshot();
    let (gone, lately, came) = (did("gone"), HashMap::new(), HashSet::new());
    let honest = || raw_run(&["vault"], &[], BTreeMap::from([(address_of("latch"), written())]));
    let validator = address_of("then-validator");
    let judged = |number| JudgedRuns {
        block: B256::ZERO,
        number,
        digests: vec![B256::ZERO, run_digest(&Sealed::new(honest()), validator)],
        may_vary: false,
        changes: None,
    };
    let found = |number, mined: Trace| {
        let judged = judged(number);
        let sent = MinedSend {
            judged: Some(&judged),
            ..sent(&gone, &lately, &came)
        };
        judge_mined(&snapshot, &sent, &Sealed::new(mined), NOW, &Knobs::default()).is_some()
    };
    assert!(!found(100, honest()) && !found(36, honest()));
    let by_another_validator = |mut trace: Trace| {
        trace.touched.insert(address_of("validator"), Account::default());
        trace
    };
    assert!(!found(100, by_another_validator(honest())));
    assert!(found(35, honest()), "64 blocks later the newest policy judges");
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
    for (what, edit) in edits {
        let mut mined = honest();
        edit(&mut mined);
        assert!(found(100, mined), "{what}");
    }
}

/// HD38: a run that went another way only because others changed the state in front of it suspends nobody. What it did as
/// judged, by as much, is not withheld; one difference withholds all of it. Code that asks for its block, and what waited for
/// long, is the sender's own choice.
#[test]
fn hd38_what_others_changed_in_front_is_not_the_senders() {
    let snapshot = bank().snapshot();
    let (thief, lately, came) = (did("thief"), HashMap::new(), HashSet::new());
    let counted = |before: u64, after: u64| {
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
    let judged = |number, may_vary| JudgedRuns {
        block: B256::ZERO,
        number,
        digests: vec![B256::ZERO],
        may_vary,
        changes: Some([(address_of("latch"), amount.clone())].into()),
    };
    let found = |judged: &JudgedRuns, changes: &[(&str, Change)]| {
        let changes = changes
            .iter()
            .map(|(name, change)| (address_of(name), change.clone()))
            .collect();
        let framer = other("framer", "rival", "latch");
        let sent = MinedSend {
            judged: Some(judged),
            recent_sends: &[&framer],
            ..sent(&thief, &lately, &came)
        };
        let found = judge_mined(
            &snapshot,
            &sent,
            &run_with(&["theirs"], &[], changes),
            NOW,
            &Knobs::default(),
        )
        .unwrap();
        assert_eq!(found.reason, DenyReason::CrossOrg);
        (
            found.suspends,
            found
                .changes
                .into_iter()
                .map(|(address, _)| address)
                .collect::<Vec<_>>(),
        )
    };
    let theirs = ("theirs", counted(0, 9));
    let both = addresses(&["latch", "theirs"]);
    let honest = judged(100, false);
    assert_eq!(
        found(&honest, &[("latch", counted(0, 1)), theirs.clone()]),
        (false, addresses(&["theirs"]))
    );
    assert_eq!(
        found(&honest, &[("latch", counted(7, 8)), theirs.clone()]),
        (false, addresses(&["theirs"]))
    );
    assert_eq!(
        found(&honest, &[("latch", counted(7, 9)), theirs.clone()]),
        (false, both.clone())
    );
    assert_eq!(
        found(&honest, &[("vault", counted(0, 1)), theirs.clone()]),
        (false, addresses(&["theirs", "vault"]))
    );
    // What it paid its sender or the beneficiary is no part of it.
    let paid = Change {
        balance: Some(U256::from(7)),
        ..Change::default()
    };
    for payee in ["thief-wallet", "validator"] {
        let changes = [("latch", counted(0, 1)), (payee, paid.clone())];
        assert_eq!(found(&honest, &changes), (false, addresses(&[payee])), "{payee}");
    }
    assert_eq!(
        found(&judged(100, true), &[("latch", counted(0, 1)), theirs.clone()]),
        (true, both.clone())
    );
    // Whoever shares an organization, and the sender's own second wallet, are no others; nor is who changed nothing it met, nor
    // a state that nobody of ours changed.
    let suspends = |recent: &[RecentSend]| {
        let recent_sends: Vec<&RecentSend> = recent.iter().collect();
        let sent = MinedSend {
            judged: Some(&honest),
            recent_sends: &recent_sends,
            ..sent(&thief, &lately, &came)
        };
        judge_mined(
            &snapshot,
            &sent,
            &run(&["theirs"], &["latch"], &[]),
            NOW,
            &Knobs::default(),
        )
        .unwrap()
        .suspends
    };
    assert!(!suspends(&[other("framer", "rival", "latch")]));
    assert!(suspends(&[other("thief", "rival", "latch")]) && suspends(&[other("pal", "bank", "latch")]));
    assert!(suspends(&[other("framer", "rival", "drop-box")]) && suspends(&[]));
    assert!(suspends(&[
        other("framer", "rival", "latch"),
        other("pal", "bank", "theirs")
    ]));
    assert_eq!(
        found(&judged(35, false), &[("latch", counted(0, 1)), theirs]),
        (true, both)
    );
}

/// A send of this person under this organization that changed this account.
fn other(name: &str, org: &str, changed: &str) -> RecentSend {
    RecentSend {
        external_id: did(name),
        orgs: vec![org_id(org)],
        changed: [address_of(changed)].into(),
    }
}

fn written() -> Change {
    Change {
        storage: BTreeMap::from([(B256::ZERO, B256::with_last_byte(1))]),
        ..Change::default()
    }
}

/// HD38: a guest who goes beyond a function granted wrongs whose contract it is, not the organization sent under alone.
#[test]
fn hd38_a_guest_wrongs_whose_contract_it_is() {
    let world = bank()
        .org("rival")
        .group("guests")
        .user("thief")
        .member("guests")
        .contract("safe");
    let world = world.grant("guests").functions([function("poke()", [])]).org("bank");
    let found = found(&world.snapshot(), &run(&["safe"], &["latch"], &[]), &HashMap::new()).unwrap();
    assert_eq!(found.reason, DenyReason::FunctionNotPermitted);
    assert!(found.wronged.contains(&org_id("rival")), "{:?}", found.wronged);
}
