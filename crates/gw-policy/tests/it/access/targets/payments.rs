//! Plain payments: they are decided by their trace (HD40).

use super::bank;
use crate::access::{
    execution::trace_builder,
    support::{payment, permit, reason, request_as, simulate, verdict},
};
use gw_evm::{Method, SimulationKind, trace::FrameKind};
use gw_policy::{access::Decision, testing::address_of};
use gw_types::{Address, DenyReason, U256};
use serde_json::json;

/// §10, third column: a plain payment and its estimate, but not its `eth_call`.
#[test]
fn hd40_plain_payments_are_decided_by_their_trace() {
    let snapshot = bank().snapshot();
    let request = request_as(&snapshot, "analyst");
    for (name, sent) in [
        ("victim-wallet", "SEND"),
        ("nobody", "SEND"),
        ("wallet", "SEND"),
        ("bond", "SEND"),
        ("ungranted", "SEND"),
        ("foreign", "SEND"),
    ] {
        let to = address_of(name);
        let payment = payment(address_of("wallet"), to);
        assert_eq!(
            verdict(&request.call(Method::SendRawTransaction, &payment)),
            sent,
            "{name}"
        );
        let estimate = request.rpc("eth_estimateGas", json!([{"to": to, "value": "0x1"}]));
        assert_eq!(verdict(&estimate), sent.replace("SEND", "TRACE"), "{name}");
    }
    let call = simulate(SimulationKind::Call, address_of("nobody"), []);
    assert_eq!(reason(&request.call(Method::Call, &call)), DenyReason::Unregistered);
}

/// HD40: an invalid payment gets the same answer whether the target is a contract of an organization without access
/// or is registered by no organization. Only the trace denies the execution of its code.
#[test]
fn hd40_an_invalid_payment_does_not_reveal_registered_contracts() {
    let snapshot = bank().snapshot();
    let stranger = address_of("a-strangers-wallet");
    let request = |with_org: bool| {
        let request = request_as(&snapshot, "analyst");
        if with_org { request.in_org("bank") } else { request }
    };
    let payment = |method: &str, from: Address, to: Address| {
        let call = json!({"from": from, "to": to, "value": "0x1"});
        if method == "debug_traceCall" {
            json!([call, "latest", {"tracer": "callTracer"}])
        } else {
            json!([call])
        }
    };
    for with_org in [false, true] {
        for (method, from, expected) in [
            ("eth_sendTransaction", stranger, "400"),
            ("eth_estimateGas", stranger, "400"),
            ("debug_traceCall", stranger, "400"),
            ("eth_sendTransaction", address_of("wallet"), "SEND"),
            ("eth_estimateGas", address_of("wallet"), "TRACE"),
            ("debug_traceCall", address_of("wallet"), "TRACE"),
            ("eth_call", address_of("wallet"), "unregistered"),
        ] {
            let unregistered = request(with_org).rpc(method, payment(method, from, address_of("nobodys")));
            assert_eq!(verdict(&unregistered), expected, "{method}");
            for theirs in ["foreign", "ungranted"] {
                let decision = request(with_org).rpc(method, payment(method, from, address_of(theirs)));
                match (&decision, &unregistered) {
                    (Decision::Deny(_), Decision::Deny(_)) => {}
                    _ => assert_eq!(verdict(&decision), expected, "{method} {theirs}"),
                }
            }
        }
        // With data it is a call, which is denied for all targets before the other checks.
        for to in ["foreign", "ungranted", "nobodys"] {
            let call = json!([{"from": stranger, "to": address_of(to), "data": "0x01020304"}]);
            assert!(
                matches!(request(with_org).rpc("eth_sendTransaction", call), Decision::Deny(_)),
                "{to}"
            );
        }
    }
}

/// X6: the code that a payment runs is evaluated in its trace. A contract without access is denied, regardless of its
/// owner.
#[test]
fn x6_a_payment_enters_no_contract_without_access() {
    let snapshot = bank().snapshot();
    let sender = address_of("wallet");
    let pay = |to: &str| {
        let permit =
            permit(request_as(&snapshot, "analyst").call(Method::SendRawTransaction, &payment(sender, address_of(to))));
        let run = trace_builder(permit, sender, FrameKind::Call, Some(to))
            .input([])
            .edit(|top| top.value = U256::from(1));
        run.wallet("wallet")
    };
    for (to, reason) in [
        ("foreign", DenyReason::CrossOrg),
        ("ungranted", DenyReason::ContractNotPermitted),
        ("nobodys", DenyReason::Unregistered),
    ] {
        assert_eq!(
            pay(to).account(to, [0x60, 0x00]).evaluate(&snapshot),
            Err(reason),
            "{to}"
        );
    }
    // A registered address without code still belongs to its organization.
    assert_eq!(
        pay("foreign").wallet("foreign").evaluate(&snapshot),
        Err(DenyReason::CrossOrg)
    );
    assert_eq!(pay("nobodys").wallet("nobodys").evaluate(&snapshot), Ok(Vec::new()));
    assert_eq!(
        pay("bond").account("bond", [0x60, 0x00]).evaluate(&snapshot),
        Ok(Vec::new())
    );
}
