//! Call trees for clients (section 9, class TRACE): hidden frames are removed and values are masked.

use super::support::{sealed, transaction, viewer};
use gw_evm::trace::{Account, Frame, FrameKind, Outcome, Trace};
use gw_policy::{
    PolicySettings, Sealed, Snapshot,
    settings::AdminTx,
    testing::{address_of, world},
    view,
};
use gw_types::{Bytes, U256};
use serde_json::{Value, json};

fn bank() -> Snapshot {
    world()
        .org("bank")
        .group("traders")
        .every_method()
        .group("admins")
        .org_admin()
        .contract("token")
        .grant("traders")
        .contract("vault")
        .user("payer")
        .member("traders")
        .link("payer")
        .user("boss")
        .member("admins")
        .user("friend")
        .org("rival")
        .contract("foreign")
        .snapshot()
}

fn frame(kind: FrameKind, depth: u32, parent: Option<usize>, from: &str, to: &str) -> Frame {
    Frame {
        kind,
        from: address_of(from),
        to: Some(address_of(to)),
        input: Bytes::from_static(&[1, 2, 3, 4]),
        output: Bytes::from_static(&[9]),
        value: U256::from(7),
        gas: Some(100),
        gas_used: Some(50),
        error: None,
        depth,
        parent,
        failed: false,
        undone: false,
        logs: Vec::new(),
    }
}

/// payer → token → { vault → token, somebody, token by delegatecall }
fn run() -> Sealed<Trace> {
    let frames = vec![
        frame(FrameKind::Call, 0, None, "payer", "token"),
        frame(FrameKind::Call, 1, Some(0), "token", "vault"),
        frame(FrameKind::StaticCall, 2, Some(1), "vault", "token"),
        frame(FrameKind::Call, 1, Some(0), "token", "somebody"),
        frame(FrameKind::DelegateCall, 1, Some(0), "token", "token"),
    ];
    let code = |name: &str| {
        (
            address_of(name),
            Account {
                code: Bytes::from_static(&[0]),
                ..Account::default()
            },
        )
    };
    let touched = [code("token"), code("vault")].into();
    Sealed::new(Trace {
        frames,
        touched,
        changes: None,
        top: Outcome::default(),
    })
}

fn shown(snapshot: &Snapshot, user: &str, settings: &PolicySettings) -> Option<Value> {
    let sent = sealed(&transaction("tx", address_of("payer"), Some(address_of("token"))));
    let viewer = viewer(snapshot, user, settings);
    assert_eq!(
        view::traceable(&viewer, &sent).is_some(),
        user == "payer" || user == "boss",
        "{user}"
    );
    view::mined_call_tree(&viewer, &sent, run()).map(|tree| serde_json::from_str(tree.as_str()).unwrap())
}

const NOBODY: &str = "0x0000000000000000000000000000000000000000";

/// A party sees its own tree without frames of contracts that it has no grant on, and without hidden wallets.
#[test]
fn section_9_the_tree_of_a_party_is_pruned_and_masked() {
    let tree = shown(&bank(), "payer", &PolicySettings::SPEC).unwrap();
    assert_eq!(tree["from"], json!(address_of("payer")));
    assert_eq!(
        (&tree["input"], &tree["output"], &tree["value"]),
        (&json!("0x01020304"), &json!("0x09"), &json!("0x7"))
    );
    assert_eq!((&tree["gas"], &tree["gasUsed"]), (&json!("0x64"), &json!("0x32")));
    let calls = tree["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2, "{tree}");
    let [paid, inner] = &calls[..] else {
        panic!("expected two calls")
    };
    assert_eq!(
        (&paid["to"], &paid["value"], &paid["input"]),
        (&json!(NOBODY), &json!("0x0"), &json!("0x"))
    );
    assert_eq!((&paid["type"], paid.get("output")), (&json!("CALL"), None));
    assert_eq!(
        (&inner["type"], &inner["to"]),
        (&json!("DELEGATECALL"), &json!(address_of("token")))
    );
}

/// K7: an administrator of the target sees the structure of the execution, but neither the wallet nor the calldata.
#[test]
fn section_9_the_tree_of_an_administrator_is_masked_like_the_transaction() {
    let snapshot = bank();
    let tree = shown(&snapshot, "boss", &PolicySettings::SPEC).unwrap();
    assert_eq!(
        (&tree["from"], &tree["input"], tree.get("output")),
        (&json!(NOBODY), &json!("0x"), None)
    );
    assert_eq!(tree["calls"].as_array().unwrap().len(), 3, "{tree}");
    let full = shown(
        &snapshot,
        "boss",
        &PolicySettings {
            admin_tx: AdminTx::Full,
            ..PolicySettings::SPEC
        },
    )
    .unwrap();
    assert_eq!(
        (&full["from"], &full["input"]),
        (&json!(NOBODY), &json!("0x")),
        "one side is masked"
    );
    assert_eq!(full["calls"][0]["input"], json!("0x01020304"));
    for other in ["friend", "nobody"] {
        assert_eq!(shown(&snapshot, other, &PolicySettings::SPEC), None);
    }
}
