//! Under which organization a call is judged and filed (O1-O4, decision 40, L2, HD12).

use super::support::{ask, ask_as, denial, permit, reason, verdict};
use gw_evm::Method;
use gw_policy::{
    access::NamedOrg,
    testing::{World, address_of, org_id, world},
};
use gw_types::{Claim, DenyReason};
use serde_json::json;

/// A member of two banks: one grants reads, the other sends and deployments.
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
fn o2_the_owner_of_the_target_is_chosen_and_nothing_else_lends_its_methods() {
    let snapshot = two_banks().snapshot();
    let asked = ask(&snapshot, "trader");
    assert_eq!(
        permit(asked.eth_call(address_of("bond"), [1, 2, 3, 4])).org(),
        Some(org_id("meridian"))
    );
    assert_eq!(
        permit(asked.eth_call(address_of("fund"), [1, 2, 3, 4])).org(),
        Some(org_id("harbour"))
    );
    // Harbour grants sends; they do not reach Meridian's contract.
    let sent = asked.send_raw(address_of("wallet"), Some(address_of("bond")), [1, 2, 3, 4]);
    assert_eq!(denial(&sent), (DenyReason::MethodNotAllowed, Some(org_id("meridian"))));
}

#[test]
fn d40_calls_without_an_owner_need_any_one_organization_that_allows_them() {
    let snapshot = two_banks().snapshot();
    let asked = ask(&snapshot, "trader");
    let syncing = permit(asked.rpc("eth_syncing", json!([])));
    assert_eq!(syncing.org(), None, "several organizations, none named");
    assert_eq!(
        verdict(&asked.rpc("eth_getBlockByNumber", json!(["latest", false]))),
        "FORWARD"
    );
    assert_eq!(
        verdict(&asked.rpc("eth_getBalance", json!([address_of("nobody")]))),
        "ZERO"
    );
    assert_eq!(
        verdict(&asked.rpc("eth_estimateGas", json!([{"to": address_of("nobody"), "value": "0x1"}]))),
        "TRACE"
    );
    assert_eq!(
        reason(&asked.rpc("eth_feeHistory", json!(["0x1", "latest", []]))),
        DenyReason::MethodNotAllowed
    );
}

#[test]
fn d40_sends_and_deployments_without_an_owner_are_ambiguous() {
    let snapshot = two_banks().snapshot();
    let asked = ask(&snapshot, "trader");
    for to in [None, Some(address_of("nobody"))] {
        let data: &[u8] = if to.is_none() { &[1] } else { &[] };
        let decision = asked.send_raw(address_of("wallet"), to, data.to_vec());
        assert_eq!(denial(&decision), (DenyReason::OrgAmbiguous, None));
        let named = ask(&snapshot, "trader")
            .naming("harbour")
            .send_raw(address_of("wallet"), to, data.to_vec());
        assert_eq!(permit(named).org(), Some(org_id("harbour")));
    }
    let deployment = json!([{"data": "0x6001"}]);
    assert_eq!(
        reason(&asked.rpc("eth_estimateGas", deployment.clone())),
        DenyReason::OrgAmbiguous
    );
    assert_eq!(
        verdict(
            &ask(&snapshot, "trader")
                .naming("harbour")
                .rpc("eth_estimateGas", deployment)
        ),
        "TRACE"
    );
}

#[test]
fn d40_the_default_organization_does_not_count_beside_another() {
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
        |user: &str, wallet: &str| ask(&snapshot, user).send_raw(address_of(wallet), Some(address_of("x")), []);
    assert_eq!(permit(payment("solo", "solo-wallet")).org(), Some(org_id("harbour")));
    assert_eq!(
        permit(payment("newcomer", "newcomer-wallet")).org(),
        Some(org_id("default"))
    );
    assert_eq!(
        reason(&ask(&snapshot, "solo").rpc("net_peerCount", json!([]))),
        DenyReason::MethodNotAllowed
    );
    assert_eq!(
        verdict(&ask(&snapshot, "solo").naming("default").rpc("net_peerCount", json!([]))),
        "FORWARD"
    );
}

#[test]
fn o3_a_named_organization_must_be_the_callers_and_the_targets() {
    let snapshot = two_banks().snapshot();
    let bond = address_of("bond");
    let as_named = |org: &str| ask(&snapshot, "trader").naming(org).eth_call(bond, [1, 2, 3, 4]);
    assert_eq!(verdict(&as_named("meridian")), "TRACE");
    assert_eq!(
        denial(&as_named("harbour")),
        (DenyReason::OrgMismatch, Some(org_id("harbour")))
    );
    // Not the caller's, or no organization at all: the same, filed nowhere.
    for org in ["rival", "nowhere"] {
        assert_eq!(denial(&as_named(org)), (DenyReason::OrgMismatch, None));
    }
    let mut unreadable = ask(&snapshot, "trader");
    unreadable.named = NamedOrg::Unreadable;
    assert_eq!(
        denial(&unreadable.eth_call(bond, [1, 2, 3, 4])),
        (DenyReason::OrgMismatch, None)
    );
    assert_eq!(verdict(&unreadable.rpc("eth_chainId", json!([]))), "FORWARD");
}

#[test]
fn o4_a_foreign_target_is_denied_before_anything_else_about_it() {
    let snapshot = two_banks()
        .user("solo")
        .member("harbour/traders")
        .link("solo-wallet")
        .snapshot();
    let secret = address_of("secret");
    let asked = ask(&snapshot, "solo");
    // L2: filed under the caller's only organization, never the probed one's.
    assert_eq!(
        denial(&asked.eth_call(secret, [1, 2, 3, 4])),
        (DenyReason::ForeignOrg, Some(org_id("harbour")))
    );
    let sent = asked.send_raw(address_of("solo-wallet"), Some(secret), [1, 2, 3, 4]);
    assert_eq!(denial(&sent), (DenyReason::ForeignOrg, Some(org_id("harbour"))));
    let two = ask(&snapshot, "trader");
    assert_eq!(
        denial(&two.eth_call(secret, [1, 2, 3, 4])),
        (DenyReason::ForeignOrg, None)
    );
    let named = ask(&snapshot, "trader")
        .naming("harbour")
        .eth_call(secret, [1, 2, 3, 4]);
    assert_eq!(denial(&named), (DenyReason::ForeignOrg, Some(org_id("harbour"))));
}

#[test]
fn o1_metadata_needs_no_organization_and_files_under_the_only_one() {
    let snapshot = two_banks().user("solo").member("harbour/traders").snapshot();
    assert_eq!(
        permit(ask(&snapshot, "solo").rpc("eth_chainId", json!([]))).org(),
        Some(org_id("harbour"))
    );
    assert_eq!(
        permit(ask(&snapshot, "trader").rpc("eth_chainId", json!([]))).org(),
        None
    );
    assert_eq!(
        permit(ask(&snapshot, "trader").naming("rival").rpc("eth_chainId", json!([]))).org(),
        None
    );
}

#[test]
fn d40_each_log_address_is_judged_in_its_owner() {
    let snapshot = two_banks().snapshot();
    let logs = |named: Option<&str>, addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(|name| address_of(name)).collect();
        let asked = ask(&snapshot, "trader");
        let asked = match named {
            Some(org) => asked.naming(org),
            None => asked,
        };
        asked.rpc("eth_getLogs", json!([{"address": addresses}]))
    };
    let own = permit(logs(None, &["bond"]));
    assert_eq!((own.org(), own.shared_logs_only()), (Some(org_id("meridian")), &[][..]));
    // Granted in Harbour, but Harbour does not list eth_getLogs.
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
fn a_former_member_is_a_stranger() {
    let snapshot = two_banks().snapshot();
    let caller = ask(&snapshot, "trader").caller;
    let left = two_banks()
        .user("trader")
        .member_until("meridian/readers", gw_policy::testing::PAST)
        .snapshot();
    assert_eq!(
        reason(&ask_as(&left, caller).eth_call(address_of("bond"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
}
