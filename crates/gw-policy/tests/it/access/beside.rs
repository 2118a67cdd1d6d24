//! HD7: decisions for somebody with an administrator beside them tell nothing that the administrator does not know.

use super::support::{Ask, ask, ask_as, permit, signed, verdict};
use alloy_primitives::{Address, keccak256};
use gw_evm::{Call, Method};
use gw_policy::{
    Snapshot,
    access::{Beside, Caller, Plan},
    snapshot::MustBe,
    testing::{PAST, World, address_of, calldata, function, org_id, user_id, world},
};
use serde_json::{Value, json};

const ABI: &str = r#"[{"type":"function","name":"balanceOf","stateMutability":"view",
    "inputs":[{"name":"owner","type":"address"}],"outputs":[{"type":"uint256"}]}]"#;

/// Bob is in the administrator's bank and in another; the administrator is in a third with him.
fn scene() -> World {
    world()
        .org("bank")
        .group("admins")
        .org_admin()
        .every_method()
        .group("staff")
        .every_method()
        .contract("token")
        .abi(ABI)
        .grant("staff")
        .functions([function("balanceOf(address)", [(0, MustBe::Own)])])
        .contract("plain")
        .grant("staff")
        .org("other")
        .group("staff")
        .every_method()
        .contract("foreign")
        .grant("staff")
        .org("club")
        .group("both")
        .every_method()
        .contract("common")
        .grant("both")
        .group("bobs")
        .every_method()
        .contract("private")
        .grant("bobs")
        .user("admin")
        .member("bank/admins")
        .member("club/both")
        .user("bob")
        .member("bank/staff")
        .member("other/staff")
        .member("club/both")
        .member("club/bobs")
}

fn watched<'s>(snapshot: &'s Snapshot, operator: &str) -> Ask<'s> {
    let bob = snapshot.user(user_id("bob")).unwrap().clone();
    ask_as(
        snapshot,
        Caller::Beside(bob, Beside::new(user_id(operator), org_id("bank"))),
    )
    .naming("bank")
}

/// Everything that could tell whether `candidate` is Bob's.
fn probes(asked: &Ask<'_>, candidate: &str) -> Vec<String> {
    let address = address_of(candidate);
    let own = calldata("balanceOf(address)", [address.into_word()]);
    let call = |from: Value, to: &str| json!([{"from": from, "to": address_of(to), "data": "0x01020304"}]);
    let listed = json!([{"to": address_of("plain"), "data": "0x01020304",
        "accessList": [{"address": address, "storageKeys": []}]}]);
    [
        asked.rpc("eth_getBalance", json!([address])),
        asked.rpc("eth_getTransactionCount", json!([address, "pending"])),
        asked.rpc("eth_getCode", json!([address])),
        asked.rpc("eth_call", call(json!(address), "plain")),
        asked.rpc("eth_estimateGas", call(json!(address), "plain")),
        asked.rpc("eth_call", json!([{"to": address_of("token"), "data": own}])),
        asked.rpc("eth_call", listed),
        asked.rpc("eth_call", json!([{"to": address, "data": "0x01020304"}])),
        asked.rpc("eth_sendTransaction", call(json!(address), "plain")),
        asked.rpc("eth_getTransactionBySenderAndNonce", json!([address, "0x0"])),
        asked.send_raw(address, Some(address_of("plain")), [1, 2, 3, 4]),
        asked.send_raw(address, None, [1, 2, 3, 4]),
    ]
    .iter()
    .map(verdict)
    .collect()
}

/// HD6, HD7: whether a wallet is the target's, somebody else's or nobody's shows in no verdict. Without an administrator
/// beside, most of these tell.
#[test]
fn hd7_no_verdict_tells_of_a_link() {
    let linked = scene().link("wallet").user("stranger").link("others").snapshot();
    let (own, random) = (
        probes(&ask(&linked, "bob").naming("bank"), "wallet"),
        probes(&ask(&linked, "bob"), "random"),
    );
    assert!(
        own.iter().zip(&random).filter(|(own, random)| own != random).count() > 4,
        "{own:?} {random:?}"
    );
    let asked = watched(&linked, "admin");
    assert_eq!(probes(&asked, "wallet"), probes(&asked, "random"));
    assert_eq!(probes(&asked, "others"), probes(&asked, "random"));
}

/// HD7, HD39: an administrator is beside somebody in one organization, and no other one counts.
#[test]
fn hd7_other_organizations_count_for_both_or_not() {
    let snapshot = scene().snapshot();
    let (alone, both) = (ask(&snapshot, "bob"), watched(&snapshot, "admin"));
    let listing = |asked: &Ask<'_>, name: &str| {
        let list = json!([{"address": address_of(name), "storageKeys": []}]);
        verdict(&asked.rpc(
            "eth_call",
            json!([{"to": address_of("plain"), "data": "0x01020304", "accessList": list}]),
        ))
    };
    for name in ["foreign", "private", "common"] {
        assert_eq!(listing(&alone, name), "TRACE", "{name}");
    }
    let code = |name: &str| verdict(&both.rpc("eth_getCode", json!([address_of(name)])));
    for name in ["foreign", "private", "common"] {
        assert_eq!(listing(&both, name), "unregistered", "{name}");
        assert_eq!(code(name), "NO-CODE", "{name}");
    }
    assert_eq!(
        (listing(&both, "plain"), code("plain")),
        ("TRACE".into(), "FORWARD".into())
    );
}

/// Only for who administers the organization, and in it.
#[test]
fn hd7_only_an_administrator_is_beside_anybody() {
    let snapshot = scene()
        .user("former")
        .member_until("bank/admins", PAST)
        .user("clerk")
        .member("bank/staff")
        .snapshot();
    let balance = json!([address_of("plain")]);
    for operator in ["former", "clerk", "bob", "nobody"] {
        assert_eq!(
            verdict(&watched(&snapshot, operator).rpc("eth_getBalance", balance.clone())),
            "org_mismatch"
        );
    }
    let asked = watched(&snapshot, "admin");
    assert_eq!(verdict(&asked.rpc("eth_getBalance", balance.clone())), "FORWARD");
    assert_eq!(
        verdict(&asked.naming("other").rpc("eth_getBalance", balance.clone())),
        "org_mismatch"
    );
    let banned = scene().user("admin").banned().snapshot();
    assert_eq!(
        verdict(&watched(&banned, "admin").rpc("eth_getBalance", balance)),
        "org_mismatch"
    );
}

/// B14: `eth_call` is traced although its tracing is switched off; and the permit says who is beside.
#[test]
fn b14_nothing_goes_untraced() {
    let snapshot = scene().snapshot();
    let alone = ask(&snapshot, "bob")
        .naming("bank")
        .with(|knobs| knobs.eth_call_tracing = false);
    let call = |asked: &Ask<'_>| permit(asked.eth_call(address_of("plain"), [1, 2, 3, 4]));
    assert_eq!(call(&alone).plan(), Plan::Untraced);
    let both = watched(&snapshot, "admin").with(|knobs| knobs.eth_call_tracing = false);
    let traced = call(&both);
    assert_eq!(
        (traced.plan(), traced.beside().map(|b| b.operator())),
        (Plan::Simulate, Some(user_id("admin")))
    );
    assert_eq!(traced.method(), Some(Method::Call));
}

/// HD7: what runs for an administrator runs from nobody's address, unless the wallet is the administrator's own:
/// code sees who calls it. The address is derived from a text, so nobody has its key.
#[test]
fn hd7_a_signed_transaction_runs_as_nobodys() {
    let digest = keccak256("ledger-gateway: an address that is nobody's");
    assert_eq!(Beside::NOBODY, Address::from_slice(&digest[12..]));
    let snapshot = scene().link("wallet").user("admin").link("mine").snapshot();
    let beside = Beside::new(user_id("admin"), org_id("bank"));
    let hidden = |signer: &str, nonce| {
        let mut call = signed(address_of(signer), nonce, Some(address_of("plain")), [1, 2, 3, 4]);
        if let Call::SendRaw(signed) = &mut call {
            signed.request.max_fee_per_gas = Some(7);
        }
        (beside.hide_signer(&snapshot, &mut call), call)
    };
    let (did, mut own) = hidden("wallet", 5);
    assert_eq!(
        (did, &own),
        (true, &hidden("random", 9).1),
        "whoever signed it, and when"
    );
    let Call::SendRaw(run) = &mut own else {
        panic!("a signed transaction")
    };
    assert_eq!(
        (run.sender, run.nonce, run.request.max_fee_per_gas),
        (Beside::NOBODY, 0, None)
    );
    assert_eq!((run.request.from, run.request.nonce), (Some(Beside::NOBODY), Some(0)));
    let (did, own) = hidden("mine", 5);
    let Call::SendRaw(run) = own else {
        panic!("a signed transaction")
    };
    assert_eq!((did, run.sender, run.nonce), (false, address_of("mine"), 5));
}
