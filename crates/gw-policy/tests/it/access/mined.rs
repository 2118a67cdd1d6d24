//! HD2: what a send did once mined, and what follows from it.

use super::support::{ask, reason, verdict};
use gw_evm::{
    code::PROXY_SLOTS,
    trace::{Account, Change, Frame, FrameKind, FrameLog, Outcome, Trace},
};
use gw_policy::{
    Change as GwChange, Knobs, Sealed, Snapshot,
    access::{MinedFinding, MinedSend, UnreadableRun, judge_mined, unreadable_mined},
    knobs::AddressQuery,
    snapshot::User,
    testing::{NOW, World, address_of, did, org_id, user_id, world},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, ExternalId, OrgId, U256, UserId};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};

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
    let change = || Change { storage: BTreeMap::from([(B256::ZERO, B256::with_last_byte(1))]), ..Change::default() };
    run_with(others, speaking, writing.iter().map(|name| (address_of(name), change())).collect())
}

fn run_with(others: &[&str], speaking: &[&str], changes: BTreeMap<Address, Change>) -> Sealed<Trace> {
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
            .map(|name| FrameLog { address: address_of(name), topics: Vec::new(), data: Bytes::new() })
            .collect(),
    };
    let mut frames = vec![frame(0, "thief-wallet", "latch")];
    frames.extend(others.iter().map(|other| frame(1, "latch", other)));
    let code = |name: &&str| (address_of(name), Account { code: Bytes::from_static(&[0]), ..Account::default() });
    let touched = others.iter().chain(&["latch"]).map(code).collect();
    Sealed::new(Trace { frames, touched, changes: Some(changes), top: Outcome::default() })
}

/// A send of the thief's under the bank.
fn judged(
    snapshot: &Snapshot,
    trace: &Sealed<Trace>,
    lately: &HashMap<Address, OrgId>,
    tainted: &HashSet<Address>,
) -> Option<MinedFinding> {
    let external_id = did("thief");
    judge_mined(snapshot, &sent(&external_id, lately, tainted), trace, NOW, &Knobs::default())
}

fn sent<'a>(
    external_id: &'a ExternalId,
    lately: &'a HashMap<Address, OrgId>,
    tainted: &'a HashSet<Address>,
) -> MinedSend<'a> {
    MinedSend {
        external_id,
        org: org_id("bank"),
        orgs: &[],
        sender: address_of("thief-wallet"),
        coinbase: address_of("validator"),
        delegations: Vec::new(),
        lately,
        tainted,
    }
}

fn found(snapshot: &Snapshot, trace: &Sealed<Trace>, lately: &HashMap<Address, OrgId>) -> Option<MinedFinding> {
    judged(snapshot, trace, lately, &HashSet::new())
}

fn closed(found: Option<MinedFinding>) -> Vec<Address> {
    let mut closed = found.unwrap().closed;
    closed.sort_unstable();
    closed
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
fn hd2_what_touches_others_taints_what_it_wrote_and_what_spoke() {
    let snapshot = bank().snapshot();
    let none = HashMap::new();
    assert_eq!(found(&snapshot, &run(&["vault"], &["latch", "vault"], &["vault"]), &none), None);
    let stolen = found(&snapshot, &run(&["theirs", "vault"], &["latch"], &["vault"]), &none).unwrap();
    assert_eq!((stolen.reason, stolen.suspends), (DenyReason::CrossOrg, true));
    assert_eq!((&stolen.touched, &stolen.wronged), (&orgs(&["rival"]), &orgs(&["rival"])));
    assert_eq!(stolen.side, orgs(&["bank"]));
    assert_eq!(closed(Some(stolen)), addresses(&["latch", "vault"]));
}

/// RT23, HD38: what another organization registered is closed by nobody else's send, however many it touches, and also
/// where something in it belongs to nobody; then only a super admin clears.
#[test]
fn rt23_no_other_organizations_contract_is_closed() {
    let (snapshot, none) = (bank().snapshot(), HashMap::new());
    let written = found(&snapshot, &run(&["theirs"], &["latch", "theirs"], &["theirs"]), &none);
    assert_eq!(closed(written), addresses(&["latch"]));
    let dropped =
        found(&snapshot, &run(&["theirs", "drop-box"], &["latch", "drop-box"], &["drop-box"]), &none).unwrap();
    assert_eq!((&dropped.touched, &dropped.wronged), (&orgs(&["rival", "third"]), &orgs(&["rival", "third"])));
    assert_eq!(closed(Some(dropped)), addresses(&["latch"]));
    let unowned = found(&snapshot, &run(&["nobody's", "theirs"], &["nobody's", "theirs"], &[]), &none).unwrap();
    assert_eq!((&unowned.touched, &unowned.wronged), (&orgs(&["rival"]), &Vec::new()));
    assert_eq!(closed(Some(unowned)), addresses(&["nobody's"]));
    // Nor what another organization deployed a moment ago.
    let lately = HashMap::from([(address_of("new"), org_id("rival"))]);
    let fresh = found(&snapshot, &run(&["new"], &["new", "latch"], &[]), &lately);
    assert_eq!(closed(fresh), addresses(&["latch"]));
}

/// RT2a, RT21, HD28: a balance or a nonce that changed is loot as a slot is. What everybody uses is closed to the sender's
/// side; the beneficiary of the block is paid by every transaction.
#[test]
fn rt21_whatever_was_paid_or_changed_is_closed() {
    let snapshot = bank().shared("utility").snapshot();
    let paid = || Change { balance: Some(U256::from(1_000_000)), ..Change::default() };
    let used = || Change { nonce: Some(1), ..Change::default() };
    let gone = || Change { removed: true, ..Change::default() };
    let identity = Address::with_last_byte(4);
    let trace = changing(
        &["theirs"],
        &[
            (address_of("thief-wallet"), used()),
            (address_of("friend-wallet"), paid()),
            (address_of("unknown"), paid()),
            (address_of("bomb"), gone()),
            (address_of("idle"), Change::default()),
            (address_of("validator"), paid()),
            (Address::ZERO, paid()),
            (identity, paid()),
            (address_of("utility"), paid()),
        ],
    );
    let stolen = found(&snapshot, &trace, &HashMap::new()).unwrap();
    let mut to_side = stolen.closed_to_side.clone();
    to_side.sort_unstable();
    let mut shared = vec![Address::ZERO, identity, address_of("utility")];
    shared.sort_unstable();
    assert_eq!(to_side, shared);
    assert_eq!(closed(Some(stolen)), addresses(&["thief-wallet", "friend-wallet", "unknown", "bomb"]));
}

/// What was wronged inside the sender's own organization is its administrators' to clear.
#[test]
fn rt23_a_finding_at_home_is_for_the_own_administrators() {
    let snapshot = bank().org("bank").contract("safe").snapshot();
    let trace = run(&["safe"], &["latch"], &[]);
    let authored = bank().org("bank").contract("safe").org("other").group("g").user("thief").member("g").snapshot();
    // A member of two organizations: both are the sender's side.
    let two = found(&authored, &run(&["theirs"], &["latch"], &[]), &HashMap::new()).unwrap();
    assert_eq!(two.side, orgs(&["bank", "other"]));
    let inner = judge_mined(
        &snapshot,
        &sent(&did("thief"), &HashMap::new(), &HashSet::new()),
        &trace,
        NOW,
        &Knobs { intra_org_grant_tracing: true, ..Knobs::default() },
    )
    .unwrap();
    assert_eq!((inner.touched, inner.wronged), (Vec::new(), orgs(&["bank"])));
}

/// RT20, HD37: a send whose user is gone is judged as having no rights; the organizations of the time of sending are its
/// side all the same.
#[test]
fn rt20_a_watch_without_its_user_has_no_rights() {
    let snapshot = bank().snapshot();
    let (lately, tainted) = (HashMap::new(), HashSet::new());
    let honest = run(&["vault"], &["latch", "vault"], &[]);
    let gone = did("gone");
    let orgs_then = [org_id("bank"), org_id("third")];
    let sent = MinedSend { orgs: &orgs_then, ..sent(&gone, &lately, &tainted) };
    let found = judge_mined(&snapshot, &sent, &honest, NOW, &Knobs::default()).unwrap();
    assert_eq!((found.reason, found.suspends), (DenyReason::CrossOrg, true));
    assert_eq!(found.side, orgs(&["bank", "third"]));
    assert_eq!(closed(Some(found)), addresses(&["latch", "vault"]));
}

/// RT21: what an earlier transaction of the block brought home a later one does not carry on; who only touched it unawares
/// sends on.
#[test]
fn rt21_loot_is_not_carried_on_by_the_next_transaction() {
    let snapshot = bank().snapshot();
    let carried = run(&["vault"], &["vault"], &["vault"]);
    let tainted = HashSet::from([address_of("latch")]);
    assert_eq!(judged(&snapshot, &carried, &HashMap::new(), &HashSet::new()), None);
    let found = judged(&snapshot, &carried, &HashMap::new(), &tainted).unwrap();
    assert!(!found.suspends);
    assert_eq!((&found.wronged, found.reason), (&Vec::new(), DenyReason::ContractNotPermitted));
    assert_eq!(closed(Some(found)), addresses(&["vault"]));
    // Also where policy knows of it by now, and for a payment by the closed wallet itself.
    let snapshot = bank().quarantined("thief-wallet").snapshot();
    let found = judged(&snapshot, &carried, &HashMap::new(), &HashSet::new()).unwrap();
    assert!(!found.suspends);
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

/// RT2c: nothing speaks for what cannot be read to its end; emitters, the sender and what it paid are closed, and others'
/// contracts are not.
#[test]
fn rt2c_what_cannot_be_read_to_its_end_speaks_for_nobody() {
    let snapshot = bank().snapshot();
    let (external_id, lately, tainted) = (did("thief"), HashMap::new(), HashSet::new());
    let run = UnreadableRun {
        written: vec![address_of("latch"), address_of("theirs"), Address::ZERO],
        touched: vec![address_of("drop-box")],
    };
    let found = unreadable_mined(&snapshot, &sent(&external_id, &lately, &tainted), &run, NOW, &Knobs::default());
    assert_eq!((found.reason, found.suspends), (DenyReason::TraceDepthExceeded, true));
    assert_eq!((&found.touched, &found.wronged), (&orgs(&["rival", "third"]), &Vec::new()));
    assert_eq!(found.closed_to_side, [Address::ZERO]);
    assert_eq!(closed(Some(found)), addresses(&["latch", "thief-wallet"]));
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
        assert_eq!(told("eth_getStorageAt", json!([own, slot, "latest"])), "contract_not_permitted");
        assert_eq!(told("eth_getProof", json!([own, [slot], "latest"])), "contract_not_permitted");
        for method in ["eth_call", "eth_estimateGas", "eth_createAccessList"] {
            let pays = json!([{"from": own, "to": foreign, "value": "0xf4241"}]);
            assert_eq!(told(method, pays), "contract_not_permitted", "{method}");
            let calls = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
            assert_eq!(told(method, calls), "contract_not_permitted", "{method}");
            let to = json!([{"to": own, "value": "0x1"}]);
            assert_eq!(told(method, to), "contract_not_permitted", "{method}");
        }
        assert_eq!(reason(&friend.send_raw(own, Some(address_of("vault")), [1])), DenyReason::ContractNotPermitted);
        let send = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
        assert_eq!(told("eth_sendTransaction", send), "contract_not_permitted");
        // Nobody relays what it signed either, nor reads it who never could.
        let thief = ask(&snapshot, "thief").with(|knobs| knobs.address_query = query);
        assert_eq!(reason(&thief.send_raw(own, Some(address_of("vault")), [1])), DenyReason::ContractNotPermitted);
        assert_eq!(verdict(&thief.rpc("eth_getBalance", json!([own, "latest"]))), "ZERO");
    }
    let friend = ask(&hidden, "friend");
    assert_eq!(verdict(&friend.rpc("eth_getBalance", json!([own, "latest"]))), "FORWARD", "without the finding");
    assert_eq!(verdict(&friend.rpc("eth_getStorageAt", json!([own, slot, "latest"]))), "FORWARD");
}

/// HD28: what everybody uses is closed to the sender and the members of the sender's organizations only.
#[test]
fn rt21_what_everybody_uses_is_closed_to_the_senders_side() {
    let utility = address_of("utility");
    let world = bank().org("elsewhere").group("g").every_method().user("outsider").member("g").shared("utility");
    let snapshot =
        world.closed_to_side(utility, "thief", &["bank"]).closed_to_side(Address::ZERO, "thief", &["bank"]).snapshot();
    let slot = PROXY_SLOTS[0];
    for (who, sees) in [("thief", false), ("friend", false), ("outsider", true)] {
        let asked = ask(&snapshot, who);
        let told = |method: &str, params| verdict(&asked.rpc(method, params));
        let opened = |open: &str, shut: &str| if sees { open.to_owned() } else { shut.to_owned() };
        let call = json!([{"to": utility, "data": "0x01020304"}]);
        assert_eq!(told("eth_call", call), opened("TRACE", "contract_not_permitted"), "{who}");
        let storage = json!([utility, slot, "latest"]);
        assert_eq!(told("eth_getStorageAt", storage), opened("FORWARD", "contract_not_permitted"), "{who}");
        for address in [utility, Address::ZERO] {
            assert_eq!(told("eth_getBalance", json!([address, "latest"])), opened("FORWARD", "ZERO"), "{who}");
        }
    }
}

/// RT20, HD37: a suspension is the person's, whatever row they enroll under.
#[test]
fn rt20_a_suspension_binds_who_enrolls_again() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let again = UserId(uuid::Uuid::from_u128(77));
    let row = User { id: again, ..snapshot.user(user_id("thief")).unwrap().as_ref().clone() };
    let later =
        snapshot.apply(snapshot.epoch(), [GwChange::User(user_id("thief"), None), GwChange::User(again, Some(row))]);
    assert!(later.is_suspended(again) && !later.is_suspended(user_id("thief")));
}

#[test]
fn hd2_a_suspended_sender_reads_and_sends_nothing() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let thief = ask(&snapshot, "thief");
    let call = json!([{"to": address_of("vault"), "data": "0x01020304"}]);
    assert_eq!(verdict(&thief.rpc("eth_call", call)), "TRACE");
    let vault = Some(address_of("vault"));
    assert_eq!(reason(&thief.send_raw(address_of("thief-wallet"), vault, [1, 2, 3, 4])), DenyReason::TraceMismatch);
    assert_eq!(reason(&thief.send_raw(address_of("thief-wallet"), None, [1])), DenyReason::TraceMismatch);
    // HD13: nobody relays what they signed; others send on.
    let friend = ask(&snapshot, "friend");
    assert_eq!(reason(&friend.send_raw(address_of("thief-wallet"), vault, [1, 2, 3, 4])), DenyReason::SenderNotOwned);
    assert_eq!(verdict(&friend.send_raw(address_of("friend-wallet"), vault, [1, 2, 3, 4])), "SEND");
}

#[test]
fn hd2_a_quarantined_contract_is_read_by_nobody() {
    let snapshot =
        bank().group("admins").org_admin().every_method().user("boss").member("admins").quarantined("vault").snapshot();
    let vault = address_of("vault");
    for who in ["friend", "boss"] {
        let asked = ask(&snapshot, who);
        let told = |method: &str, params| verdict(&asked.rpc(method, params));
        assert_eq!(told("eth_call", json!([{"to": vault, "data": "0x01020304"}])), "contract_not_permitted", "{who}");
        assert_eq!(told("eth_getStorageAt", json!([vault, B256::ZERO, "latest"])), "contract_not_permitted", "{who}");
        assert_eq!(told("eth_getProof", json!([vault, [], "latest"])), "contract_not_permitted", "{who}");
        assert_eq!(told("eth_getBalance", json!([vault, "latest"])), "ZERO", "{who}");
        assert_eq!(told("eth_getCode", json!([vault, "latest"])), "NO-CODE", "{who}");
        assert_eq!(told("eth_getLogs", json!([{"address": vault}])), "OWN+SHARED", "{who}");
        assert_eq!(told("eth_call", json!([{"to": address_of("latch"), "data": "0x01020304"}])), "TRACE", "{who}");
    }
    // Nor through another: a frame or a look at it is denied.
    let inner = found(&snapshot, &run(&["vault"], &["latch"], &[]), &HashMap::new());
    assert_eq!(inner.map(|found| found.reason), Some(DenyReason::ContractNotPermitted));
}
