//! Whose addresses may stand in a call: its sender (X10) and the authorities of its delegations (W1).

use super::bank;
use crate::access::support::{reason, request_as, signed, verdict};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use gw_evm::{Call, Method, VisibleTo};
use gw_policy::{Snapshot, access::Decision, testing::address_of};
use gw_types::{Address, DenyReason, U256};
use serde_json::json;

/// Decision 38, X10: the message names the endpoint that links a sender.
#[test]
fn x10_the_sender_of_a_call_belongs_to_the_caller_or_is_zero() {
    let snapshot = bank()
        .user("analyst")
        .system_link("victim-wallet")
        .system_link("inferred")
        .snapshot();
    let call = |from: Address| {
        let object = json!({"from": from, "to": address_of("bond"), "data": "0x01020304"});
        request_as(&snapshot, "analyst").rpc("eth_call", json!([object]))
    };
    for from in [address_of("wallet"), address_of("inferred"), Address::ZERO] {
        assert_eq!(verdict(&call(from)), "TRACE", "{from}");
    }
    for from in ["victim-wallet", "nobody", "bond"] {
        match call(address_of(from)) {
            Decision::Invalid(invalid) => {
                assert_eq!(invalid.reason, DenyReason::SenderNotLinked);
                let text = invalid.error.message();
                assert!(
                    text.starts_with("invalid sender") && text.contains("/eth/link/challenge"),
                    "{text}"
                );
                assert_eq!(invalid.error.code(), -32602);
            }
            other => panic!("{from}: {other:?}"),
        }
    }
    // The target is checked first: a foreign contract is denied regardless of the sender.
    let object = json!({"from": address_of("nobody"), "to": address_of("foreign"), "data": "0x01"});
    assert_eq!(
        reason(&request_as(&snapshot, "analyst").rpc("eth_call", json!([object]))),
        DenyReason::ForeignOrg
    );
    assert!(VisibleTo::default().is_empty());
}

/// W1, B7: delegations of foreign wallets, and delegations to code without access.
#[test]
fn w1_authorizations_need_an_own_authority_and_a_delegate_with_access() {
    let authorization = |delegate: &str| {
        let authorization = Authorization {
            chain_id: U256::from(1),
            address: address_of(delegate),
            nonce: 0,
        };
        SignedAuthorization::new_unchecked(authorization, 0, U256::from(1), U256::from(9))
    };
    let send = |snapshot: &Snapshot, delegate: &str| {
        let mut call = signed(address_of("wallet"), 0, Some(address_of("bond")), [1, 2, 3, 4]);
        if let Call::SendRaw(signed) = &mut call {
            signed.request.authorization_list = vec![authorization(delegate)];
        }
        verdict(&request_as(snapshot, "analyst").call(Method::SendRawTransaction, &call))
    };
    let authority = |delegate: &str| authorization(delegate).recover_authority().unwrap();
    assert_eq!(send(&bank().snapshot(), "bond"), "sender_not_owned");
    let own = |delegate: &str| bank().user("analyst").link_address(authority(delegate)).snapshot();
    assert_eq!(send(&own("bond"), "bond"), "SEND");
    // The zero address ends a delegation. This is allowed for own wallets only.
    let clearing = Authorization {
        chain_id: U256::from(1),
        address: Address::ZERO,
        nonce: 0,
    };
    let clearing = SignedAuthorization::new_unchecked(clearing, 0, U256::from(1), U256::from(9));
    let clear = |snapshot: &Snapshot| {
        let mut call = signed(address_of("wallet"), 0, Some(Address::ZERO), []);
        if let Call::SendRaw(signed) = &mut call {
            signed.request.authorization_list = vec![clearing.clone()];
        }
        verdict(&request_as(snapshot, "analyst").call(Method::SendRawTransaction, &call))
    };
    let authority_of_clearing = clearing.recover_authority().unwrap();
    assert_eq!(
        clear(&bank().user("analyst").link_address(authority_of_clearing).snapshot()),
        "SEND"
    );
    assert_eq!(clear(&bank().snapshot()), "sender_not_owned");
    for delegate in ["ungranted", "foreign", "unregistered"] {
        assert_eq!(send(&own(delegate), delegate), "contract_not_permitted", "{delegate}");
    }
    // An authority that cannot be recovered does not belong to the caller.
    let mut call = signed(address_of("wallet"), 0, Some(address_of("bond")), [1, 2, 3, 4]);
    if let Call::SendRaw(signed) = &mut call {
        let inner = authorization("bond").strip_signature();
        signed.request.authorization_list = vec![SignedAuthorization::new_unchecked(inner, 0, U256::ZERO, U256::ZERO)];
    }
    let decision = request_as(&own("bond"), "analyst").call(Method::SendRawTransaction, &call);
    assert_eq!(reason(&decision), DenyReason::SenderNotOwned);
}
