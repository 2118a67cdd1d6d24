//! HD2: what a send did once mined, and what follows from it.

use super::support::{ask, reason, verdict};
use gw_evm::trace::{Account, Change, Frame, FrameKind, FrameLog, Outcome, Trace};
use gw_policy::{
    Knobs, Sealed, Snapshot,
    access::{MinedFinding, MinedSend, judge_mined, unreadable_mined},
    testing::{NOW, World, address_of, org_id, user_id, world},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, OrgId, U256};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

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
    let change = || Change { storage: BTreeMap::from([(B256::ZERO, B256::with_last_byte(1))]), ..Change::default() };
    let changes = writing.iter().map(|name| (address_of(name), change())).collect();
    Sealed::new(Trace { frames, touched, changes: Some(changes), top: Outcome::default() })
}

fn found(snapshot: &Snapshot, trace: &Sealed<Trace>, lately: &HashMap<Address, OrgId>) -> Option<MinedFinding> {
    let sent = MinedSend {
        user: user_id("thief"),
        org: org_id("bank"),
        sender: address_of("thief-wallet"),
        coinbase: address_of("validator"),
        delegations: Vec::new(),
        lately,
    };
    judge_mined(snapshot, &sent, trace, NOW, &Knobs::default())
}

fn tainted(found: Option<MinedFinding>) -> Vec<Address> {
    let mut tainted = found.unwrap().tainted;
    tainted.sort_unstable();
    tainted
}

fn addresses(names: &[&str]) -> Vec<Address> {
    let mut addresses: Vec<Address> = names.iter().map(|name| address_of(name)).collect();
    addresses.sort_unstable();
    addresses
}

#[test]
fn hd2_what_touches_others_taints_what_it_wrote_and_what_spoke() {
    let snapshot = bank().snapshot();
    let none = HashMap::new();
    assert_eq!(found(&snapshot, &run(&["vault"], &["latch", "vault"], &["vault"]), &none), None);
    let stolen = found(&snapshot, &run(&["theirs", "vault"], &["latch"], &["vault"]), &none);
    assert_eq!(stolen.as_ref().map(|found| found.reason), Some(DenyReason::CrossOrg));
    assert_eq!(tainted(stolen), addresses(&["latch", "vault"]));
}

/// Nobody shuts another organization's contract by being found out touching it; a third one may be a drop box.
#[test]
fn hd2_the_wronged_organizations_own_contract_stays_open() {
    let (snapshot, none) = (bank().snapshot(), HashMap::new());
    let written = found(&snapshot, &run(&["theirs"], &["latch", "theirs"], &["theirs"]), &none);
    assert_eq!(tainted(written), addresses(&["latch"]));
    let dropped = found(&snapshot, &run(&["theirs", "drop-box"], &["drop-box"], &[]), &none);
    assert_eq!(tainted(dropped), addresses(&["drop-box"]));
    let unowned = found(&snapshot, &run(&["nobody's", "theirs"], &["theirs"], &[]), &none);
    assert_eq!(tainted(unowned), addresses(&["theirs"]));
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

#[test]
fn hd2_what_cannot_be_read_to_its_end_speaks_for_nobody() {
    let found = unreadable_mined([address_of("latch"), Address::ZERO]);
    assert_eq!((found.reason, found.tainted), (DenyReason::TraceDepthExceeded, addresses(&["latch"])));
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
