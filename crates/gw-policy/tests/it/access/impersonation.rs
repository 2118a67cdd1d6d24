//! HD7: decisions for an impersonated user reveal nothing that the impersonating administrator may not know.

use super::support::{RequestBuilder, permit, request_as, request_from, signed, verdict};
use alloy_primitives::{Address, keccak256};
use gw_evm::{Call, Method};
use gw_policy::{
    Snapshot,
    access::{Caller, Impersonation, Plan},
    snapshot::Constraint,
    testing::{PAST, World, address_of, calldata, function, org_id, user_id, world},
};
use serde_json::{Value, json};

const ABI: &str = r#"[{"type":"function","name":"balanceOf","stateMutability":"view",
    "inputs":[{"name":"owner","type":"address"}],"outputs":[{"type":"uint256"}]}]"#;

/// Bob belongs to the bank of the administrator, to an organization of his own, and to one that both belong to.
fn scenario() -> World {
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
        .functions([function("balanceOf(address)", [(0, Constraint::Own)])])
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

fn impersonated<'s>(snapshot: &'s Snapshot, impersonator: &str) -> RequestBuilder<'s> {
    let bob = snapshot.user(user_id("bob")).unwrap().clone();
    request_from(
        snapshot,
        Caller::Impersonated(bob, Impersonation::new(user_id(impersonator), org_id("bank"))),
    )
    .in_org("bank")
}

/// The verdicts of all requests that could reveal whether `candidate` belongs to Bob.
fn probes(request: &RequestBuilder<'_>, candidate: &str) -> Vec<String> {
    let address = address_of(candidate);
    let own = calldata("balanceOf(address)", [address.into_word()]);
    let call = |from: Value, to: &str| json!([{"from": from, "to": address_of(to), "data": "0x01020304"}]);
    let with_access_list = json!([{"to": address_of("plain"), "data": "0x01020304",
        "accessList": [{"address": address, "storageKeys": []}]}]);
    [
        request.rpc("eth_getBalance", json!([address])),
        request.rpc("eth_getTransactionCount", json!([address, "pending"])),
        request.rpc("eth_getCode", json!([address])),
        request.rpc("eth_call", call(json!(address), "plain")),
        request.rpc("eth_estimateGas", call(json!(address), "plain")),
        request.rpc("eth_call", json!([{"to": address_of("token"), "data": own}])),
        request.rpc("eth_call", with_access_list),
        request.rpc("eth_call", json!([{"to": address, "data": "0x01020304"}])),
        request.rpc("eth_sendTransaction", call(json!(address), "plain")),
        request.rpc("eth_getTransactionBySenderAndNonce", json!([address, "0x0"])),
        request.send_raw(address, Some(address_of("plain")), [1, 2, 3, 4]),
        request.send_raw(address, None, [1, 2, 3, 4]),
    ]
    .iter()
    .map(verdict)
    .collect()
}

/// HD6, HD7: no verdict reveals whether a wallet belongs to the impersonated user, to somebody else or to nobody.
/// Without impersonation, most of them do.
#[test]
fn hd7_no_verdict_reveals_a_link() {
    let linked = scenario().link("wallet").user("stranger").link("others").snapshot();
    let (own, random) = (
        probes(&request_as(&linked, "bob").in_org("bank"), "wallet"),
        probes(&request_as(&linked, "bob"), "random"),
    );
    assert!(
        own.iter().zip(&random).filter(|(own, random)| own != random).count() > 4,
        "{own:?} {random:?}"
    );
    let request = impersonated(&linked, "admin");
    assert_eq!(probes(&request, "wallet"), probes(&request, "random"));
    assert_eq!(probes(&request, "others"), probes(&request, "random"));
}

/// HD7, HD39: an impersonation is for one organization; rights in other organizations do not count.
#[test]
fn hd7_other_organizations_do_not_count() {
    let snapshot = scenario().snapshot();
    let (direct, as_admin) = (request_as(&snapshot, "bob"), impersonated(&snapshot, "admin"));
    let access_list_verdict = |request: &RequestBuilder<'_>, name: &str| {
        let list = json!([{"address": address_of(name), "storageKeys": []}]);
        verdict(&request.rpc(
            "eth_call",
            json!([{"to": address_of("plain"), "data": "0x01020304", "accessList": list}]),
        ))
    };
    for name in ["foreign", "private", "common"] {
        assert_eq!(access_list_verdict(&direct, name), "TRACE", "{name}");
    }
    let code = |name: &str| verdict(&as_admin.rpc("eth_getCode", json!([address_of(name)])));
    for name in ["foreign", "private", "common"] {
        assert_eq!(access_list_verdict(&as_admin, name), "unregistered", "{name}");
        assert_eq!(code(name), "NO-CODE", "{name}");
    }
    assert_eq!(
        (access_list_verdict(&as_admin, "plain"), code("plain")),
        ("TRACE".into(), "FORWARD".into())
    );
}

/// Only administrators of the organization may impersonate, and only in it.
#[test]
fn hd7_only_an_administrator_may_impersonate() {
    let snapshot = scenario()
        .user("former")
        .member_until("bank/admins", PAST)
        .user("clerk")
        .member("bank/staff")
        .snapshot();
    let balance = json!([address_of("plain")]);
    for impersonator in ["former", "clerk", "bob", "nobody"] {
        assert_eq!(
            verdict(&impersonated(&snapshot, impersonator).rpc("eth_getBalance", balance.clone())),
            "org_mismatch"
        );
    }
    let request = impersonated(&snapshot, "admin");
    assert_eq!(verdict(&request.rpc("eth_getBalance", balance.clone())), "FORWARD");
    assert_eq!(
        verdict(&request.in_org("other").rpc("eth_getBalance", balance.clone())),
        "org_mismatch"
    );
    let banned = scenario().user("admin").banned().snapshot();
    assert_eq!(
        verdict(&impersonated(&banned, "admin").rpc("eth_getBalance", balance)),
        "org_mismatch"
    );
}

/// B14: an impersonated `eth_call` is traced even if tracing is switched off, and the permit contains the
/// impersonator.
#[test]
fn b14_impersonated_calls_are_always_traced() {
    let snapshot = scenario().snapshot();
    let direct = request_as(&snapshot, "bob")
        .in_org("bank")
        .with_settings(|settings| settings.eth_call_tracing = false);
    let call = |request: &RequestBuilder<'_>| permit(request.eth_call(address_of("plain"), [1, 2, 3, 4]));
    assert_eq!(call(&direct).plan(), Plan::Untraced);
    let as_admin = impersonated(&snapshot, "admin").with_settings(|settings| settings.eth_call_tracing = false);
    let traced = call(&as_admin);
    assert_eq!(
        (
            traced.plan(),
            traced.impersonation().map(|impersonation| impersonation.impersonator())
        ),
        (Plan::Simulate, Some(user_id("admin")))
    );
    assert_eq!(traced.method(), Some(Method::Call));
}

/// HD7: an impersonated transaction runs from an address without owner, unless the administrator owns the wallet,
/// because code can read its caller. The address is derived from a text, so nobody has its key.
#[test]
fn hd7_an_impersonated_transaction_runs_from_an_address_without_owner() {
    let digest = keccak256("ledger-gateway: an address that is nobody's");
    assert_eq!(Impersonation::NOBODY, Address::from_slice(&digest[12..]));
    let snapshot = scenario().link("wallet").user("admin").link("mine").snapshot();
    let impersonation = Impersonation::new(user_id("admin"), org_id("bank"));
    let hide_signer = |signer: &str, nonce| {
        let mut call = signed(address_of(signer), nonce, Some(address_of("plain")), [1, 2, 3, 4]);
        if let Call::SendRaw(signed) = &mut call {
            signed.request.max_fee_per_gas = Some(7);
        }
        (impersonation.hide_signer(&snapshot, &mut call), call)
    };
    let (is_hidden, mut call) = hide_signer("wallet", 5);
    assert_eq!(
        (is_hidden, &call),
        (true, &hide_signer("random", 9).1),
        "the result depends on neither signer nor nonce"
    );
    let Call::SendRaw(transaction) = &mut call else {
        panic!("not a signed transaction")
    };
    assert_eq!(
        (
            transaction.sender,
            transaction.nonce,
            transaction.request.max_fee_per_gas
        ),
        (Impersonation::NOBODY, 0, None)
    );
    assert_eq!(
        (transaction.request.from, transaction.request.nonce),
        (Some(Impersonation::NOBODY), Some(0))
    );
    let (is_hidden, call) = hide_signer("mine", 5);
    let Call::SendRaw(transaction) = call else {
        panic!("not a signed transaction")
    };
    assert_eq!(
        (is_hidden, transaction.sender, transaction.nonce),
        (false, address_of("mine"), 5)
    );
}
