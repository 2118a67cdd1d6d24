//! The organization that a call is decided and recorded for (O1-O4, decision 40, L2, HD12).

use super::support::{denial, permit, reason, request_as, request_from, verdict};
use gw_evm::Method;
use gw_policy::{
    access::NamedOrg,
    testing::{World, address_of, org_id, world},
};
use gw_types::{Claim, DenyReason};
use serde_json::json;

/// A member of two banks: one allows reads, the other sends and deployments.
fn two_banks() -> World {
    world()
        .org("meridian")
        .group("readers")
        .methods([
            Method::Call,
            Method::GetLogs,
            Method::GetBalance,
            Method::GetBlockByNumber,
        ])
        .contract("bond")
        .grant("readers")
        .org("harbour")
        .group("traders")
        .methods([
            Method::Call,
            Method::SendRawTransaction,
            Method::EstimateGas,
            Method::Syncing,
        ])
        .claim(Claim::Deploy)
        .contract("fund")
        .grant("traders")
        .org("rival")
        .group("members")
        .every_method()
        .contract("secret")
        .grant("members")
        .user("trader")
        .member("meridian/readers")
        .member("harbour/traders")
        .member("default/default")
        .link("wallet")
}

#[test]
fn o2_only_the_method_lists_of_the_target_owner_apply() {
    let snapshot = two_banks().snapshot();
    let request = request_as(&snapshot, "trader");
    assert_eq!(
        permit(request.eth_call(address_of("bond"), [1, 2, 3, 4])).org(),
        Some(org_id("meridian"))
    );
    assert_eq!(
        permit(request.eth_call(address_of("fund"), [1, 2, 3, 4])).org(),
        Some(org_id("harbour"))
    );
    // Harbour allows sends, but not to a contract of Meridian.
    let decision = request.send_raw(address_of("wallet"), Some(address_of("bond")), [1, 2, 3, 4]);
    assert_eq!(
        denial(&decision),
        (DenyReason::MethodNotAllowed, Some(org_id("meridian")))
    );
}

#[test]
fn d40_calls_without_a_target_owner_need_one_organization_that_allows_them() {
    let snapshot = two_banks().snapshot();
    let request = request_as(&snapshot, "trader");
    let syncing = permit(request.rpc("eth_syncing", json!([])));
    assert_eq!(syncing.org(), None, "several organizations, none named");
    assert_eq!(
        verdict(&request.rpc("eth_getBlockByNumber", json!(["latest", false]))),
        "FORWARD"
    );
    assert_eq!(
        verdict(&request.rpc("eth_getBalance", json!([address_of("nobody")]))),
        "ZERO"
    );
    assert_eq!(
        verdict(&request.rpc("eth_estimateGas", json!([{"to": address_of("nobody"), "value": "0x1"}]))),
        "TRACE"
    );
    assert_eq!(
        reason(&request.rpc("eth_feeHistory", json!(["0x1", "latest", []]))),
        DenyReason::MethodNotAllowed
    );
}

#[test]
fn d40_sends_and_deployments_without_a_target_owner_are_ambiguous() {
    let snapshot = two_banks().snapshot();
    let request = request_as(&snapshot, "trader");
    for to in [None, Some(address_of("nobody"))] {
        let data: &[u8] = if to.is_none() { &[1] } else { &[] };
        let decision = request.send_raw(address_of("wallet"), to, data.to_vec());
        assert_eq!(denial(&decision), (DenyReason::OrgAmbiguous, None));
        let named_decision =
            request_as(&snapshot, "trader")
                .in_org("harbour")
                .send_raw(address_of("wallet"), to, data.to_vec());
        assert_eq!(permit(named_decision).org(), Some(org_id("harbour")));
    }
    let deployment = json!([{"data": "0x6001"}]);
    assert_eq!(
        reason(&request.rpc("eth_estimateGas", deployment.clone())),
        DenyReason::OrgAmbiguous
    );
    assert_eq!(
        verdict(
            &request_as(&snapshot, "trader")
                .in_org("harbour")
                .rpc("eth_estimateGas", deployment)
        ),
        "TRACE"
    );
}

#[test]
fn d40_the_default_organization_does_not_count_with_another_one() {
    let snapshot = two_banks()
        .org("default")
        .group("default")
        .methods([Method::SendRawTransaction, Method::PeerCount])
        .user("solo")
        .member("harbour/traders")
        .member("default/default")
        .link("solo-wallet")
        .user("newcomer")
        .member("default/default")
        .link("newcomer-wallet")
        .snapshot();
    let payment =
        |user: &str, wallet: &str| request_as(&snapshot, user).send_raw(address_of(wallet), Some(address_of("x")), []);
    assert_eq!(permit(payment("solo", "solo-wallet")).org(), Some(org_id("harbour")));
    assert_eq!(
        permit(payment("newcomer", "newcomer-wallet")).org(),
        Some(org_id("default"))
    );
    assert_eq!(
        reason(&request_as(&snapshot, "solo").rpc("net_peerCount", json!([]))),
        DenyReason::MethodNotAllowed
    );
    assert_eq!(
        verdict(
            &request_as(&snapshot, "solo")
                .in_org("default")
                .rpc("net_peerCount", json!([]))
        ),
        "FORWARD"
    );
}

#[test]
fn o3_a_named_organization_must_own_the_target_and_include_the_caller() {
    let snapshot = two_banks().snapshot();
    let bond = address_of("bond");
    let call_in = |org: &str| request_as(&snapshot, "trader").in_org(org).eth_call(bond, [1, 2, 3, 4]);
    assert_eq!(verdict(&call_in("meridian")), "TRACE");
    assert_eq!(
        denial(&call_in("harbour")),
        (DenyReason::OrgMismatch, Some(org_id("harbour")))
    );
    // A foreign and an unknown organization get the same reason, recorded for no organization.
    for org in ["rival", "nowhere"] {
        assert_eq!(denial(&call_in(org)), (DenyReason::OrgMismatch, None));
    }
    let mut unreadable = request_as(&snapshot, "trader");
    unreadable.named_org = NamedOrg::Unreadable;
    assert_eq!(
        denial(&unreadable.eth_call(bond, [1, 2, 3, 4])),
        (DenyReason::OrgMismatch, None)
    );
    assert_eq!(verdict(&unreadable.rpc("eth_chainId", json!([]))), "FORWARD");
}

#[test]
fn o4_a_foreign_target_is_denied_before_its_other_checks() {
    let snapshot = two_banks()
        .user("solo")
        .member("harbour/traders")
        .link("solo-wallet")
        .snapshot();
    let secret = address_of("secret");
    let request = request_as(&snapshot, "solo");
    // L2: recorded for the caller's only organization, never for the probed one.
    assert_eq!(
        denial(&request.eth_call(secret, [1, 2, 3, 4])),
        (DenyReason::ForeignOrg, Some(org_id("harbour")))
    );
    let send_decision = request.send_raw(address_of("solo-wallet"), Some(secret), [1, 2, 3, 4]);
    assert_eq!(
        denial(&send_decision),
        (DenyReason::ForeignOrg, Some(org_id("harbour")))
    );
    let two_orgs_request = request_as(&snapshot, "trader");
    assert_eq!(
        denial(&two_orgs_request.eth_call(secret, [1, 2, 3, 4])),
        (DenyReason::ForeignOrg, None)
    );
    let named_decision = request_as(&snapshot, "trader")
        .in_org("harbour")
        .eth_call(secret, [1, 2, 3, 4]);
    assert_eq!(
        denial(&named_decision),
        (DenyReason::ForeignOrg, Some(org_id("harbour")))
    );
}

#[test]
fn o1_metadata_needs_no_organization_and_is_recorded_for_the_only_one() {
    let snapshot = two_banks().user("solo").member("harbour/traders").snapshot();
    assert_eq!(
        permit(request_as(&snapshot, "solo").rpc("eth_chainId", json!([]))).org(),
        Some(org_id("harbour"))
    );
    assert_eq!(
        permit(request_as(&snapshot, "trader").rpc("eth_chainId", json!([]))).org(),
        None
    );
    assert_eq!(
        permit(
            request_as(&snapshot, "trader")
                .in_org("rival")
                .rpc("eth_chainId", json!([]))
        )
        .org(),
        None
    );
}

#[test]
fn d40_each_log_address_is_decided_with_the_rights_in_its_organization() {
    let snapshot = two_banks().snapshot();
    let logs = |org_name: Option<&str>, addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(|name| address_of(name)).collect();
        let request = request_as(&snapshot, "trader");
        let request = match org_name {
            Some(org) => request.in_org(org),
            None => request,
        };
        request.rpc("eth_getLogs", json!([{"address": addresses}]))
    };
    let own = permit(logs(None, &["bond"]));
    assert_eq!((own.org(), own.shared_logs_only()), (Some(org_id("meridian")), &[][..]));
    // The contract is granted in Harbour, but Harbour does not list `eth_getLogs`.
    assert_eq!(
        denial(&logs(None, &["fund"])),
        (DenyReason::MethodNotAllowed, Some(org_id("harbour")))
    );
    let mixed = permit(logs(None, &["bond", "fund", "secret"]));
    assert_eq!(mixed.shared_logs_only(), [address_of("fund"), address_of("secret")]);
    assert_eq!(
        reason(&logs(Some("meridian"), &["bond", "fund"])),
        DenyReason::OrgMismatch
    );
}

#[test]
fn a_former_member_has_no_access() {
    let snapshot = two_banks().snapshot();
    let caller = request_as(&snapshot, "trader").caller;
    let after_expiry = two_banks()
        .user("trader")
        .member_until("meridian/readers", gw_policy::testing::PAST)
        .snapshot();
    assert_eq!(
        reason(&request_from(&after_expiry, caller).eth_call(address_of("bond"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
}
