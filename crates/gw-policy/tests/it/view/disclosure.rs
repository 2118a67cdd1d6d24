//! Grants of disclosure on `/rpc` (spec/30 section 5, spec/50 rules 22 to 28): which transactions, receipts and blocks
//! a grantee is shown.

use super::support::{sealed, transaction, viewer};
use gw_policy::{
    PolicySettings, Snapshot,
    disclosure::ClassCheck,
    snapshot::{DisclosureGrant, DisclosureScope},
    testing::{FUTURE, NOW, PAST, World, address_of, did, org_id, world},
    view::{self, BlockTransactions},
};
use gw_types::Level;
use serde_json::{Value, json};

const EVERY_LEVEL: [Level; 4] = [Level::Full, Level::Pseudonymous, Level::Redacted, Level::Hidden];

/// An organization in which `owner` and `auditor` are members.
fn bank() -> World {
    world()
        .org("bank")
        .group("staff")
        .every_method()
        .org("other")
        .group("staff")
        .user("auditor")
        .member("bank/staff")
        .link("auditor-wallet")
        .user("owner")
        .member("bank/staff")
        .link("wallet")
        .link("second-wallet")
        .system_link("relayed")
        .org("bank")
}

fn payment(from: &str, to: &str) -> Value {
    let mut tx = transaction("t", address_of(from), Some(address_of(to)));
    (tx["value"], tx["input"]) = (json!("0x5"), json!("0xa9059cbb"));
    tx
}

fn receipt(from: &str, to: &str) -> Value {
    let tx = payment(from, to);
    json!({"blockHash": tx["blockHash"], "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0x5208",
        "effectiveGasPrice": "0x1", "from": tx["from"], "gasUsed": "0x5208", "logs": [],
        "logsBloom": format!("0x{}", "0".repeat(512)), "status": "0x1", "to": tx["to"], "transactionHash": tx["hash"],
        "transactionIndex": "0x0", "type": "0x0"})
}

/// Whether the auditor sees a transaction: all methods have to agree, and a shown one is shown whole.
fn is_shown(snapshot: &Snapshot, settings: &PolicySettings, from: &str, to: &str) -> bool {
    let viewer = viewer(snapshot, "auditor", settings);
    let tx = payment(from, to);
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let shown = read(view::transaction(&viewer, sealed(&tx)).as_str());
    let by_receipt = read(view::receipt(&viewer, sealed(&receipt(from, to))).as_str());
    let receipts = read(view::block_receipts(&viewer, sealed(&json!([receipt(from, to)]))).as_str());
    let block = json!({"number": "0x64", "hash": tx["blockHash"], "timestamp": "0x6553f100", "transactions": [tx]});
    let count = read(view::block_transaction_count(&viewer, sealed(&block)).as_str());
    let full = BlockTransactions::Full;
    let block = read(view::block(&viewer, full, None, sealed(&block)).as_str());
    let in_block = block["transactions"].as_array().unwrap();
    if shown.is_null() {
        assert_eq!((&by_receipt, receipts, count), (&Value::Null, json!([]), json!("0x0")));
        assert!(in_block.is_empty());
        return false;
    }
    assert_eq!(shown, payment(from, to));
    assert_eq!((&by_receipt["from"], &by_receipt["to"]), (&shown["from"], &shown["to"]));
    assert_eq!(in_block, &vec![shown]);
    assert_eq!((receipts, count), (json!([by_receipt]), json!("0x1")));
    true
}

/// Rules 22, 26 and 28: only a grant of level full that is in force, of an owner's proved address, to a current member.
#[test]
fn ds22_ds26_ds28_a_full_grant_admits_the_transactions_of_its_owner() {
    let spec = PolicySettings::SPEC;
    assert!(
        !is_shown(&bank().snapshot(), &spec, "wallet", "shop"),
        "without a grant"
    );
    for level in EVERY_LEVEL {
        let snapshot = bank().disclosed_to("auditor", level).snapshot();
        let is_full = level == Level::Full;
        for (from, to) in [("wallet", "shop"), ("shop", "wallet"), ("second-wallet", "wallet")] {
            assert_eq!(is_shown(&snapshot, &spec, from, to), is_full, "{level:?} {from} {to}");
        }
        assert!(!is_shown(&snapshot, &spec, "shop", "market"), "{level:?}: of nobody");
        assert!(
            !is_shown(&snapshot, &spec, "relayed", "shop"),
            "{level:?}: an inferred link"
        );
    }
    let base = bank().disclosed_to("auditor", Level::Full);
    let shown_if = |change: &dyn Fn(&mut DisclosureGrant)| {
        let snapshot = base.clone().with_disclosures(change).snapshot();
        is_shown(&snapshot, &PolicySettings::SPEC, "wallet", "shop")
    };
    assert!(shown_if(&|_| {}));
    assert!(!shown_if(&|grant| grant.expires_at = NOW), "ended");
    assert!(!shown_if(&|grant| grant.revoked_at = Some(PAST)), "revoked");
    assert!(!shown_if(&|grant| grant.revoked_at = Some(NOW)), "revoked now");
    assert!(!shown_if(&|grant| grant.grantee = did("owner")), "of another grantee");
    assert!(
        !shown_if(&|grant| grant.org = org_id("other")),
        "of another organization"
    );
    assert!(!shown_if(&|grant| grant.scope = DisclosureScope::nothing()));
}

/// Rules 23, 24 and 27 on `/rpc`: the scope limits the rows. Objects of the node name no time, so no grant with dates
/// covers them.
#[test]
fn ds23_ds24_ds27_the_scope_of_a_grant_limits_what_rpc_shows() {
    let spec = PolicySettings::SPEC;
    let loose = PolicySettings {
        disclosure_classes: ClassCheck::ActivityOnly,
        ..PolicySettings::SPEC
    };
    let scope = |level, addresses: Option<&[&str]>, methods: Option<&[&str]>| DisclosureScope {
        level,
        dates: None,
        addresses: addresses.map(|names| names.iter().map(|name| address_of(name)).collect()),
        methods: methods.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
    };
    let granted = |scope: DisclosureScope| bank().disclosed_within("auditor", scope).snapshot();
    let with_shop = granted(scope(Level::Full, Some(&["shop"]), None));
    assert!(is_shown(&with_shop, &spec, "wallet", "shop") && is_shown(&with_shop, &spec, "shop", "wallet"));
    assert!(!is_shown(&with_shop, &spec, "wallet", "market"));
    assert!(!is_shown(&with_shop, &spec, "market", "shop"), "the owner is no side");
    for (methods, strict, otherwise) in [
        (&["transaction_history"][..], true, true),
        (&["full_disclosure"], true, true),
        (&["activity_logs"], false, true),
        (&["activity_logs", "eth_call"], false, true),
        (&["eth_call"], true, true),
        (&[], false, false),
    ] {
        let snapshot = granted(scope(Level::Full, None, Some(methods)));
        assert_eq!(is_shown(&snapshot, &spec, "wallet", "shop"), strict, "{methods:?}");
        assert_eq!(is_shown(&snapshot, &loose, "wallet", "shop"), otherwise, "{methods:?}");
    }
    let dated = DisclosureScope {
        dates: Some((PAST, FUTURE)),
        ..scope(Level::Full, None, None)
    };
    assert!(!is_shown(&granted(dated), &spec, "wallet", "shop"));
    // Rule 27: the highest level of the grants that cover the row.
    let both = bank()
        .disclosed_to("auditor", Level::Redacted)
        .disclosed_within("auditor", scope(Level::Full, Some(&["shop"]), None))
        .snapshot();
    assert!(is_shown(&both, &spec, "wallet", "shop") && !is_shown(&both, &spec, "wallet", "market"));
    // HD8: no balance by a grant that covers rows only.
    let settings = PolicySettings::SPEC;
    assert!(!viewer(&both, "auditor", &settings).shows_account(address_of("wallet")));
}
