//! HD7, HD40, B14: with an administrator beside the viewer, what only the viewer sees is as if it were not there.

use super::support::{
    filter, get_logs, number, one, rows, sealed, transaction, transfer, transfer_log, viewer, watched, within, word,
};
use alloy_primitives::B256;
use gw_evm::TopicFilter;
use gw_policy::{
    Knobs, Snapshot,
    testing::{address_of, hash_of, world},
    view,
};
use gw_types::Level;
use serde_json::{Value, json};

const TRANSFER: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;
const NOBODY: &str = "0x0000000000000000000000000000000000000000";

/// A bank with an administrator and a member, who is in another bank too.
fn scene() -> Snapshot {
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
        .snapshot()
}

fn read(shown: gw_policy::Disclosed) -> Value {
    serde_json::from_str(shown.as_str()).unwrap()
}

fn of(from: &str, to: &str) -> Value {
    let mut tx = transaction("t", address_of(from), Some(address_of(to)));
    (tx["value"], tx["input"]) = (json!("0x5"), json!("0xa9059cbb"));
    tx
}

/// RT25, HD40: what the administrator does not see is answered as what is not there, by hash, by position and as a receipt.
#[test]
fn rt25_nothing_is_said_of_what_only_the_target_sees() {
    let snapshot = scene();
    let (alone, both) = (
        viewer(&snapshot, "bob", &Knobs::SPEC),
        watched(&snapshot, "bob", "admin", "bank"),
    );
    for (from, to) in [("bob-wallet", "elsewhere"), ("bob-wallet", "foreign")] {
        assert!(
            read(view::transaction(&alone, sealed(&of(from, to)))).is_object(),
            "{to}"
        );
        assert_eq!(view::transaction(&both, sealed(&of(from, to))).as_str(), "null", "{to}");
        let mut receipt = receipt();
        (receipt["to"], receipt["logs"]) = (json!(address_of(to)), json!([transfer_log("foreign", "t", "x", "y")]));
        assert!(read(view::receipt(&alone, sealed(&receipt))).is_object(), "{to}");
        assert_eq!(view::receipt(&both, sealed(&receipt)).as_str(), "null", "{to}");
        assert_eq!(
            view::block_receipts(&both, sealed(&json!([receipt]))).as_str(),
            "[]",
            "{to}"
        );
    }
    let shared = transaction("shared", address_of("stranger"), Some(address_of("elsewhere")));
    assert!(
        read(view::transaction(&alone, sealed(&shared))).is_object(),
        "a share is the target's"
    );
    assert_eq!(view::transaction(&both, sealed(&shared)).as_str(), "null");
}

/// The wallet its owner never disclosed: shown to whoever looks through the owner's eyes alone, not beside them.
#[test]
fn hd7_b14_a_transaction_shows_what_both_see() {
    let snapshot = scene();
    let (alone, both) = (
        viewer(&snapshot, "bob", &Knobs::SPEC),
        watched(&snapshot, "bob", "admin", "bank"),
    );
    let own = of("bob-wallet", "token");
    let attack = read(view::transaction(&alone, sealed(&own)));
    assert_eq!(
        (&attack["from"], &attack["value"]),
        (&json!(address_of("bob-wallet")), &json!("0x5"))
    );

    let shown = read(view::transaction(&both, sealed(&own)));
    assert_eq!(
        shown["to"],
        json!(address_of("token")),
        "what the administrator sees anyway"
    );
    let admin = viewer(&snapshot, "admin", &Knobs::SPEC);
    assert_eq!(shown, read(view::transaction(&admin, sealed(&own))), "and no more");
    assert_eq!(
        (&shown["from"], &shown["value"], &shown["input"]),
        (&json!(NOBODY), &json!("0x0"), &json!("0x"))
    );

    // What the target does not see is not there either.
    assert_eq!(
        read(view::transaction(&both, sealed(&of("stranger", "token")))),
        Value::Null
    );
    assert_eq!(
        read(view::transaction(&admin, sealed(&of("stranger", "token"))))["value"],
        "0x0"
    );
}

fn receipt() -> Value {
    json!({
        "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0xffff",
        "effectiveGasPrice": "0x7", "from": address_of("bob-wallet"), "gasUsed": "0x5208",
        "logs": [transfer_log("token", "t", "bob-wallet", "stranger"), transfer_log("foreign", "t", "bob-wallet", "bob-wallet")],
        "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": address_of("token"),
        "transactionHash": hash_of("t"), "transactionIndex": "0x0", "type": "0x2",
    })
}

#[test]
fn hd7_receipts_and_logs_show_what_both_see() {
    let snapshot = scene();
    let (alone, both) = (
        viewer(&snapshot, "bob", &Knobs::SPEC),
        watched(&snapshot, "bob", "admin", "bank"),
    );
    let own = read(view::receipt(&alone, sealed(&receipt())));
    let shown = read(view::receipt(&both, sealed(&receipt())));
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
    assert!(within(&shown, &own));

    // Log queries match what both see: a candidate learns nothing from who looks through whose eyes (HD1).
    let logs = [
        transfer_log("token", "t", "bob-wallet", "stranger"),
        transfer_log("foreign", "t", "bob-wallet", "x"),
    ];
    let transactions = [of("bob-wallet", "token")];
    let ask = |viewer, topics| get_logs(viewer, &filter(&["token"], topics), &logs, &transactions);
    let naming = |name: &str| vec![one(transfer()), one(word(name))];
    assert_eq!(rows(&ask(&alone, naming("bob-wallet"))).len(), 1, "the owner finds it");
    assert_eq!(ask(&both, naming("bob-wallet")), ask(&both, naming("random")));
    let masked = &rows(&ask(&both, vec![TopicFilter::Any]))[0]["topics"];
    assert_eq!(*masked, json!([transfer(), B256::ZERO, B256::ZERO]));
    let foreign = get_logs(&both, &filter(&["foreign"], vec![]), &logs, &transactions);
    assert_eq!(foreign, view::LogsAnswer::NotPermitted);
}

/// HD6, HD7: accounts read zero whether the wallet is the target's, another's or nobody's; nothing marks it.
#[test]
fn hd7_accounts_tell_no_link() {
    let snapshot = scene();
    let (alone, both) = (
        viewer(&snapshot, "bob", &Knobs::SPEC),
        watched(&snapshot, "bob", "admin", "bank"),
    );
    let wallet = address_of("bob-wallet");
    assert_eq!(
        view::balance(&alone, wallet, 100, sealed(&json!("0x5"))).as_str(),
        "\"0x5\""
    );
    for name in ["bob-wallet", "admin-wallet", "random"] {
        assert_eq!(
            view::balance(&both, address_of(name), 100, sealed(&json!("0x5"))).as_str(),
            "\"0x0\"",
            "{name}"
        );
        assert!(!both.owns(address_of(name)));
    }
    assert!(both.own_addresses().is_empty() && alone.own_addresses() == [wallet]);
    assert_eq!(both.level(address_of("token")).0, Level::Full);
    assert_eq!(both.level(address_of("foreign")).0, Level::Redacted);
    let foreign = |viewer| view::code(viewer, address_of("foreign"), 100, sealed(&json!("0x6001")));
    assert!(foreign(&alone).is_some() && foreign(&both).is_none());
}
