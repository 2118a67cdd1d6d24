//! HD31: an ABI may only add masking. Neither an upload nor a withdrawal of an ABI reveals a wallet.

use super::support::{filter, get_logs, log, number, rows, topic_is, transaction, transfer, viewer, word};
use alloy_primitives::{B256, Bytes, U256, keccak256};
use gw_evm::TopicFilter;
use gw_policy::{
    PolicySettings, Snapshot,
    settings::{DynamicFields, MissingAbiMode},
    testing::{address_of, world},
    view,
};
use serde_json::{Value, json};

/// A token whose owner uploaded this ABI. `None`: never uploaded, or withdrawn.
fn token(abi: Option<&Value>) -> Snapshot {
    let token = world()
        .org("a")
        .group("staff")
        .group("admins")
        .org_admin()
        .contract("token")
        .grant("staff");
    let token = match abi {
        Some(abi) => token.abi(&abi.to_string()),
        None => token,
    };
    let token = token
        .user("reader")
        .member("staff")
        .link("own")
        .user("admin")
        .member("admins");
    token.user("friend").user("sender").share("t", &["friend"]).snapshot()
}

fn event(name: &str, inputs: &[(&str, bool)]) -> Value {
    let inputs: Vec<_> = inputs
        .iter()
        .map(|(kind, indexed)| json!({"name": "x", "type": kind, "indexed": indexed}))
        .collect();
    json!({"type": "event", "name": name, "anonymous": false, "inputs": inputs})
}

fn anonymous(inputs: &[(&str, bool)]) -> Value {
    let mut event = event("Any", inputs);
    event["anonymous"] = json!(true);
    event
}

fn shown(snapshot: &Snapshot, user: &str, topics: Vec<TopicFilter>, log: &Value) -> Vec<Value> {
    rows(&get_logs(
        &viewer(snapshot, user, &PolicySettings::SPEC),
        &filter(&["token"], topics),
        std::slice::from_ref(log),
        &[],
    ))
}

fn erc20_transfer() -> Value {
    log(
        address_of("token"),
        "t",
        &[transfer(), word("payer"), word("victim")],
        amount().as_slice(),
    )
}

/// 25 tokens of 18 decimals: above 2^64.
fn amount() -> B256 {
    B256::from(U256::from(25_000_000_000_000_000_000_u128))
}

/// ABIs with every combination of the `indexed` flags of `Transfer`, an empty ABI, none, and an anonymous event.
fn uploads() -> Vec<Option<Value>> {
    let with_flags = |flags: [bool; 3]| {
        let kinds = ["address", "address", "uint256"];
        let inputs: Vec<_> = kinds.into_iter().zip(flags).collect();
        Some(json!([event("Transfer", &inputs)]))
    };
    let mut uploads: Vec<_> = (0..8)
        .map(|bits| with_flags([bits & 1 == 0, bits & 2 == 0, bits & 4 == 0]))
        .collect();
    uploads.push(Some(json!([])));
    uploads.push(None);
    uploads.push(Some(json!([anonymous(&[
        ("uint256", true),
        ("uint256", true),
        ("uint256", true),
        ("bytes", false)
    ])])));
    uploads
}

/// The attack: an ABI with wrong `indexed` flags declared the receiver as a number, and a topic filter confirmed its
/// value.
#[test]
fn rt4_hd31_wrong_flags_reveal_no_wallet() {
    for upload in uploads() {
        let snapshot = token(upload.as_ref());
        for user in ["reader", "admin"] {
            let row = &shown(&snapshot, user, vec![], &erc20_transfer())[0];
            assert_eq!(
                row["topics"],
                json!([transfer(), B256::ZERO, B256::ZERO]),
                "{user}: {upload:?}"
            );
            assert_eq!(
                row["data"],
                json!(amount()),
                "{user}: the amount of a well-known event is a number: {upload:?}"
            );
            let filtered_by = |name| {
                shown(
                    &snapshot,
                    user,
                    vec![TopicFilter::Any, TopicFilter::Any, topic_is(word(name))],
                    &erc20_transfer(),
                )
            };
            assert_eq!(filtered_by("victim"), filtered_by("random"), "{user}: {upload:?}");
        }
        let upstream_filter_by = |name| {
            view::upstream_filter(
                &viewer(&snapshot, "reader", &PolicySettings::SPEC),
                &filter(&["token"], vec![TopicFilter::Any, topic_is(word(name))]),
            )
        };
        assert_eq!(upstream_filter_by("victim"), upstream_filter_by("random"));
    }
}

/// Variants of the attack: types of which only a hash is stored, all number types, and an NFT id that equals the
/// address of a wallet.
#[test]
fn rt4_hd31_no_declared_type_unmasks_a_topic() {
    for kind in [
        "string",
        "bytes",
        "address[]",
        "uint256",
        "uint160",
        "int256",
        "bytes32",
        "bool",
        "bytes20",
    ] {
        let snapshot = token(Some(&json!([event("E", &[(kind, true), ("uint64", true)])])));
        let topic0 = keccak256(format!("E({kind},uint64)"));
        let row = &shown(
            &snapshot,
            "reader",
            vec![],
            &log(address_of("token"), "t", &[topic0, word("victim"), number(100)], &[]),
        )[0];
        assert_eq!(row["topics"], json!([topic0, B256::ZERO, number(100)]), "{kind}");
        let own = log(address_of("token"), "t", &[topic0, word("own"), number(u64::MAX)], &[]);
        assert_eq!(
            shown(&snapshot, "reader", vec![], &own)[0]["topics"],
            own["topics"],
            "{kind}: addresses with level Full and small numbers are shown"
        );
    }
    for upload in [
        None,
        Some(json!([event(
            "Transfer",
            &[("address", true), ("address", true), ("uint256", true)]
        )])),
    ] {
        let snapshot = token(upload.as_ref());
        let nft = |id| {
            log(
                address_of("token"),
                "t",
                &[transfer(), word("payer"), word("own"), id],
                &[],
            )
        };
        let topics = |id| shown(&snapshot, "reader", vec![], &nft(id))[0]["topics"].clone();
        assert_eq!(
            topics(number(100)),
            json!([transfer(), B256::ZERO, word("own"), number(100)])
        );
        assert_eq!(
            topics(word("victim")),
            json!([transfer(), B256::ZERO, word("own"), B256::ZERO])
        );
    }
}

/// The attack: `null`, `"[]"` or an unrelated ABI removed the masking of the data.
#[test]
fn rt27_hd31_without_a_matching_abi_data_stays_masked() {
    let paid = event("Paid", &[("address", false), ("uint256", false), ("bytes32", false)]);
    let topic0 = keccak256("Paid(address,uint256,bytes32)");
    let payload = [word("victim"), number(100), word("victim"), word("own")].concat();
    let payload = &payload[..];
    let masked = |words: [B256; 4]| json!(Bytes::from(words.concat()));
    let uploads = [
        None,
        Some(json!([])),
        Some(json!([event("Other", &[("address", false)])])),
    ];
    for upload in &uploads {
        let snapshot = token(upload.as_ref());
        for user in ["reader", "admin", "friend"] {
            let row = &shown(
                &snapshot,
                user,
                vec![],
                &log(address_of("token"), "t", &[topic0], payload),
            )[0];
            // The reader's own wallet is hidden from the other users.
            let own = if user == "reader" { word("own") } else { B256::ZERO };
            assert_eq!(
                row["data"],
                masked([B256::ZERO, number(100), B256::ZERO, own]),
                "{user}: {upload:?}"
            );
        }
        // Data that is not a list of words cannot be masked by word, so it is zeroed.
        let cut = log(address_of("token"), "t", &[topic0], &payload[12..]);
        assert_eq!(
            shown(&snapshot, "reader", vec![], &cut)[0]["data"],
            json!(Bytes::from(vec![0; payload.len() - 12]))
        );
        // A party of the transaction sees all data.
        let own = [transaction("t", address_of("own"), Some(address_of("token")))];
        let sent = [log(address_of("token"), "t", &[topic0], payload)];
        let spec = PolicySettings::SPEC;
        assert_eq!(
            rows(&get_logs(
                &viewer(&snapshot, "reader", &spec),
                &filter(&["token"], vec![]),
                &sent,
                &own
            )),
            sent
        );
    }
    let snapshot = token(Some(&json!([paid])));
    let three = &payload[..96];
    let row = &shown(
        &snapshot,
        "reader",
        vec![],
        &log(address_of("token"), "t", &[topic0], three),
    )[0];
    assert_eq!(
        row["data"],
        json!(Bytes::from([B256::ZERO, number(100), B256::ZERO].concat())),
        "the same with the ABI as without"
    );
}

/// An ABI shows nothing that is hidden without one, including opaque fields and anonymous events.
#[test]
fn rt27_hd31_no_upload_shows_more_than_none() {
    let topic0 = keccak256("Sent(uint256,uint256,address)");
    let payload = [number(32), number(32), word("victim")].concat();
    let sent = log(address_of("token"), "t", &[topic0], &payload);
    let without_abi = shown(&token(None), "reader", vec![], &sent)[0]["data"].clone();
    assert_eq!(
        without_abi,
        json!(Bytes::from([number(32), number(32), B256::ZERO].concat()))
    );
    // The words 32, 32, victim are also the encoding of the victim's address as `bytes`.
    for upload in [
        anonymous(&[("bytes32", true), ("bytes", false)]),
        anonymous(&[
            ("bytes32", true),
            ("uint256", false),
            ("uint256", false),
            ("uint256", false),
        ]),
    ] {
        let row = &shown(&token(Some(&json!([upload]))), "reader", vec![], &sent)[0];
        assert_eq!(row["data"], without_abi, "{upload}");
    }
    let topic0 = keccak256("Note(bytes)");
    let note = log(address_of("token"), "t", &[topic0], &payload);
    let row = &shown(
        &token(Some(&json!([event("Note", &[("bytes", false)])]))),
        "reader",
        vec![],
        &note,
    )[0];
    assert_eq!(row["data"], without_abi);
}

/// The well-known events keep their types with every ABI. The settings K3 and K5 still apply.
#[test]
fn rt4_hd31_well_known_events_keep_their_shape() {
    let event_log = |signature: &str, indexed: &[B256], data: &[B256]| {
        log(
            address_of("token"),
            "t",
            &[&[keccak256(signature)], indexed].concat(),
            &data.concat(),
        )
    };
    let (a, v, big) = (word("payer"), word("victim"), amount());
    let cases = [
        (
            event_log("Approval(address,address,uint256)", &[a, v], &[big]),
            vec![big],
        ),
        (
            event_log("ApprovalForAll(address,address,bool)", &[a, v], &[number(1)]),
            vec![number(1)],
        ),
        (
            event_log(
                "TransferSingle(address,address,address,uint256,uint256)",
                &[a, a, v],
                &[number(7), big],
            ),
            vec![number(7), big],
        ),
        (
            event_log(
                "TransferBatch(address,address,address,uint256[],uint256[])",
                &[a, a, v],
                &[number(64), number(128), number(1), big, number(1), big],
            ),
            vec![number(64), number(128), number(1), big, number(1), big],
        ),
        (event_log("Deposit(address,uint256)", &[v], &[big]), vec![big]),
        (event_log("Withdrawal(address,uint256)", &[v], &[big]), vec![big]),
    ];
    let wrong_flags: Vec<Value> = [
        event("Approval", &[("address", true), ("address", false), ("uint256", true)]),
        event("Deposit", &[("address", false), ("uint256", true)]),
        event("Withdrawal", &[("address", false), ("uint256", true)]),
        event(
            "ApprovalForAll",
            &[("address", false), ("address", true), ("bool", true)],
        ),
    ]
    .into();
    for upload in [None, Some(json!(wrong_flags))] {
        let snapshot = token(upload.as_ref());
        for (sent, data) in &cases {
            let row = &shown(&snapshot, "reader", vec![], sent)[0];
            let topics = row["topics"].as_array().unwrap();
            assert!(topics[1..].iter().all(|topic| *topic == json!(B256::ZERO)), "{row}");
            assert_eq!(row["data"], json!(Bytes::from(data.concat())), "{upload:?}");
        }
        let strict = PolicySettings {
            no_abi: MissingAbiMode::Drop,
            dynamic_fields: DynamicFields::Drop,
            ..PolicySettings::SPEC
        };
        let answer = get_logs(
            &viewer(&snapshot, "reader", &strict),
            &filter(&["token"], vec![]),
            &[erc20_transfer()],
            &[],
        );
        assert_eq!(rows(&answer).len(), 0, "K3: no ABI declares it");
    }
}
