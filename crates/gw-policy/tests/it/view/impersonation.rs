//! HD7, HD40, B14: for an impersonated viewer, objects that only the viewer may see do not exist.

use super::support::{
    filter, get_logs, impersonated_viewer, is_contained_in, number, rows, sealed, topic_is, transaction, transfer,
    transfer_log, viewer, word,
};
use alloy_primitives::B256;
use gw_evm::TopicFilter;
use gw_policy::{
    PolicySettings, Snapshot,
    testing::{World, address_of, hash_of, org_id, world},
    view,
};
use gw_types::Level;
use serde_json::{Value, json};

const TRANSFER: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;
const NOBODY: &str = "0x0000000000000000000000000000000000000000";

/// A bank with an administrator and a member who also belongs to another bank.
fn scenario() -> Snapshot {
    bank_and_member().snapshot()
}

fn bank_and_member() -> World {
    world()
        .org("bank")
        .group("admins")
        .org_admin()
        .every_method()
        .group("staff")
        .every_method()
        .contract("token")
        .abi(TRANSFER)
        .grant("staff")
        .org("other")
        .group("staff")
        .every_method()
        .contract("foreign")
        .abi(TRANSFER)
        .grant("staff")
        .user("admin")
        .member("bank/admins")
        .link("admin-wallet")
        .user("bob")
        .member("bank/staff")
        .member("other/staff")
        .link("bob-wallet")
        .share("shared", &["bob"])
}

fn read(shown: gw_policy::Disclosed) -> Value {
    serde_json::from_str(shown.as_str()).unwrap()
}

fn payment(from: &str, to: &str) -> Value {
    let mut tx = transaction("t", address_of(from), Some(address_of(to)));
    (tx["value"], tx["input"]) = (json!("0x5"), json!("0xa9059cbb"));
    tx
}

/// RT25, HD40: objects that the administrator may not see are answered as missing: transactions, receipts and the
/// receipts of a block.
#[test]
fn rt25_objects_that_only_the_user_sees_do_not_exist() {
    let snapshot = scenario();
    let (direct, impersonated) = (
        viewer(&snapshot, "bob", &PolicySettings::SPEC),
        impersonated_viewer(&snapshot, "bob", "admin", "bank"),
    );
    for (from, to) in [("bob-wallet", "elsewhere"), ("bob-wallet", "foreign")] {
        assert!(
            read(view::transaction(&direct, sealed(&payment(from, to)))).is_object(),
            "{to}"
        );
        assert_eq!(
            view::transaction(&impersonated, sealed(&payment(from, to))).as_str(),
            "null",
            "{to}"
        );
        let mut receipt = receipt();
        (receipt["to"], receipt["logs"]) = (json!(address_of(to)), json!([transfer_log("foreign", "t", "x", "y")]));
        assert!(read(view::receipt(&direct, sealed(&receipt))).is_object(), "{to}");
        assert_eq!(view::receipt(&impersonated, sealed(&receipt)).as_str(), "null", "{to}");
        assert_eq!(
            view::block_receipts(&impersonated, sealed(&json!([receipt]))).as_str(),
            "[]",
            "{to}"
        );
    }
    let shared = transaction("shared", address_of("stranger"), Some(address_of("elsewhere")));
    assert!(
        read(view::transaction(&direct, sealed(&shared))).is_object(),
        "the share is for the impersonated user"
    );
    assert_eq!(view::transaction(&impersonated, sealed(&shared)).as_str(), "null");
}

/// HD7, HD40, B14: the own transactions of the user are missing under impersonation, as those of strangers are, until
/// the user discloses the wallet to the administrator. A transaction that is shown masked, and only in the view of its
/// sender, would tell who sent it.
#[test]
fn hd7_b14_a_transaction_shows_only_what_both_may_see() {
    let snapshot = scenario();
    let own = payment("bob-wallet", "token");
    let shown_to = |snapshot: &Snapshot, tx: &Value| {
        let impersonated = impersonated_viewer(snapshot, "bob", "admin", "bank");
        read(view::transaction(&impersonated, sealed(tx)))
    };
    let direct = viewer(&snapshot, "bob", &PolicySettings::SPEC);
    let direct_view = read(view::transaction(&direct, sealed(&own)));
    assert_eq!(
        (&direct_view["from"], &direct_view["value"]),
        (&json!(address_of("bob-wallet")), &json!("0x5"))
    );
    assert_eq!(shown_to(&snapshot, &own), Value::Null);
    assert_eq!(shown_to(&snapshot, &payment("stranger", "token")), Value::Null);
    let admin = viewer(&snapshot, "admin", &PolicySettings::SPEC);
    for sender in ["bob-wallet", "stranger"] {
        let masked = read(view::transaction(&admin, sealed(&payment(sender, "token"))));
        assert_eq!(
            (&masked["from"], &masked["value"], &masked["to"]),
            (&json!(NOBODY), &json!("0x0"), &json!(address_of("token"))),
            "the administrator's own view of {sender}"
        );
    }

    let disclosed = bank_and_member()
        .disclosed_to("admin", Level::Full)
        .with_disclosures(|grant| grant.org = org_id("bank"))
        .snapshot();
    let shown = shown_to(&disclosed, &own);
    let admin = viewer(&disclosed, "admin", &PolicySettings::SPEC);
    assert_eq!(
        (&shown["from"], &shown["value"]),
        (&json!(address_of("bob-wallet")), &json!("0x5")),
        "a full grant admits the transaction in the administrator's own view, too"
    );
    assert_eq!(shown, read(view::transaction(&admin, sealed(&own))));
    assert_eq!(shown_to(&disclosed, &payment("stranger", "token")), Value::Null);
}

fn receipt() -> Value {
    json!({
        "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0xffff",
        "effectiveGasPrice": "0x7", "from": address_of("bob-wallet"), "gasUsed": "0x5208",
        "logs": [transfer_log("token", "t", "bob-wallet", "stranger"),
        transfer_log("foreign", "t", "bob-wallet", "bob-wallet")],
        "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": address_of("token"),
        "transactionHash": hash_of("t"), "transactionIndex": "0x0", "type": "0x2",
    })
}

#[test]
fn hd7_receipts_and_logs_show_only_what_both_may_see() {
    let snapshot = scenario();
    let (direct, impersonated) = (
        viewer(&snapshot, "bob", &PolicySettings::SPEC),
        impersonated_viewer(&snapshot, "bob", "admin", "bank"),
    );
    let own = read(view::receipt(&direct, sealed(&receipt())));
    let shown = read(view::receipt(&impersonated, sealed(&receipt())));
    assert_eq!(
        (&own["from"], &shown["from"]),
        (&json!(address_of("bob-wallet")), &json!(NOBODY))
    );
    assert_eq!(
        shown["logs"][0]["topics"],
        json!([transfer(), B256::ZERO, B256::ZERO]),
        "{shown}"
    );
    assert_eq!(shown["logs"][0]["data"], json!(number(7)));
    assert_eq!(
        shown["logs"].as_array().unwrap().len(),
        1,
        "RT25, another organization's contract: {shown}"
    );
    assert!(is_contained_in(&shown, &own));

    // Log queries match only values that both may see, so a query reveals nothing about a candidate address (HD1).
    let logs = [
        transfer_log("token", "t", "bob-wallet", "stranger"),
        transfer_log("foreign", "t", "bob-wallet", "x"),
    ];
    let transactions = [payment("bob-wallet", "token")];
    let query = |viewer, topics| get_logs(viewer, &filter(&["token"], topics), &logs, &transactions);
    let by_sender = |name: &str| vec![topic_is(transfer()), topic_is(word(name))];
    assert_eq!(
        rows(&query(&direct, by_sender("bob-wallet"))).len(),
        1,
        "the owner finds it"
    );
    assert_eq!(
        query(&impersonated, by_sender("bob-wallet")),
        query(&impersonated, by_sender("random"))
    );
    let masked = &rows(&query(&impersonated, vec![TopicFilter::Any]))[0]["topics"];
    assert_eq!(*masked, json!([transfer(), B256::ZERO, B256::ZERO]));
    let foreign = get_logs(&impersonated, &filter(&["foreign"], vec![]), &logs, &transactions);
    assert_eq!(foreign, view::LogsAnswer::NotPermitted);
}

/// HD6, HD7: accounts read zero, whether the wallet belongs to the user, to somebody else or to nobody.
#[test]
fn hd7_accounts_reveal_no_link() {
    let snapshot = scenario();
    let (direct, impersonated) = (
        viewer(&snapshot, "bob", &PolicySettings::SPEC),
        impersonated_viewer(&snapshot, "bob", "admin", "bank"),
    );
    let wallet = address_of("bob-wallet");
    assert_eq!(
        view::balance(&direct, wallet, 100, sealed(&json!("0x5"))).as_str(),
        "\"0x5\""
    );
    for name in ["bob-wallet", "admin-wallet", "random"] {
        assert_eq!(
            view::balance(&impersonated, address_of(name), 100, sealed(&json!("0x5"))).as_str(),
            "\"0x0\"",
            "{name}"
        );
        assert!(!impersonated.owns(address_of(name)));
    }
    assert!(impersonated.own_addresses().is_empty() && direct.own_addresses() == [wallet]);
    assert_eq!(impersonated.level(address_of("token")).0, Level::Full);
    assert_eq!(impersonated.level(address_of("foreign")).0, Level::Redacted);
    let foreign = |viewer| view::code(viewer, address_of("foreign"), 100, sealed(&json!("0x6001")));
    assert!(foreign(&direct).is_some() && foreign(&impersonated).is_none());
}
