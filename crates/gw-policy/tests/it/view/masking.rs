//! Masking of visible logs (spec/30 section 6.2).

use super::support::{filter, get_logs, log, number, rows, sealed, viewer, word};
use alloy_dyn_abi::DynSolValue;
use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use gw_policy::{
    PolicySettings, Snapshot,
    settings::{DynamicFields, MissingAbiMode},
    testing::{address_of, world},
    view,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Contracts with one event on which `reader` has a grant. `reader` sees the contracts and the wallet `own`.
fn snapshot(event: &Value) -> Snapshot {
    world()
        .org("a")
        .group("staff")
        .contract("emitter")
        .abi(&json!([event]).to_string())
        .grant("staff")
        .contract("plain")
        .grant("staff")
        .contract("attesting")
        .abi(&json!([event]).to_string())
        .dynamic_payload()
        .grant("staff")
        .user("reader")
        .member("staff")
        .link("own")
        .group("admins")
        .org_admin()
        .user("admin")
        .member("admins")
        .snapshot()
}

fn shown(snapshot: &Snapshot, user: &str, settings: &PolicySettings, log: Value) -> Vec<Value> {
    let emitter = ["emitter", "plain", "attesting"]
        .into_iter()
        .find(|name| log["address"] == json!(address_of(name)));
    rows(&get_logs(
        &viewer(snapshot, user, settings),
        &filter(&[emitter.unwrap()], vec![]),
        &[log],
        &[],
    ))
}

fn event(inputs: Value) -> Value {
    json!({ "type": "event", "name": "E", "anonymous": false, "inputs": inputs })
}

fn indexed(kind: &str) -> Value {
    json!({ "name": "x", "type": kind, "indexed": true })
}

fn data(kind: &str) -> Value {
    json!({ "name": "x", "type": kind, "indexed": false })
}

/// R19, R20: with an ABI, topics of type `address` are masked; small numbers are shown.
#[test]
fn r20_topics_are_masked_by_type() {
    let snapshot = snapshot(&event(json!([
        indexed("address"),
        indexed("uint256"),
        indexed("address")
    ])));
    let topic0 = keccak256("E(address,uint256,address)");
    let topics = [topic0, word("hidden"), number(100), word("own")];
    let row = &shown(
        &snapshot,
        "reader",
        &PolicySettings::SPEC,
        log(address_of("emitter"), "t", &topics, &[]),
    )[0];
    assert_eq!(row["topics"], json!([topic0, B256::ZERO, number(100), word("own")]));
}

/// R20, K3, HD31: without a matching ABI, every word that may be an address is masked in topics and data; small
/// numbers are shown.
#[test]
fn k3_without_an_abi_words_are_masked_by_shape() {
    let snapshot = snapshot(&event(json!([indexed("address")])));
    let topics = [keccak256("Other()"), word("hidden"), number(100), word("own")];
    let payload = [word("hidden"), number(100), word("own")].concat();
    let masked = [B256::ZERO, number(100), word("own")].concat();
    for emitter in ["plain", "emitter"] {
        let sent = log(address_of(emitter), "t", &topics, &payload);
        let row = &shown(&snapshot, "reader", &PolicySettings::SPEC, sent)[0];
        assert_eq!(
            row["topics"],
            json!([topics[0], B256::ZERO, number(100), word("own")]),
            "{emitter}"
        );
        assert_eq!(row["data"], json!(Bytes::from(masked.clone())), "{emitter}");
    }
    let anonymous = log(address_of("plain"), "t", &[word("hidden")], &[]);
    assert_eq!(
        shown(&snapshot, "reader", &PolicySettings::SPEC, anonymous)[0]["topics"],
        json!([B256::ZERO])
    );
}

/// K3 strict: logs that cannot be decoded are dropped, except for administrators.
#[test]
fn k3_strict_drops_logs_that_cannot_be_decoded() {
    let snapshot = snapshot(&event(json!([indexed("address")])));
    let strict = PolicySettings {
        no_abi: MissingAbiMode::Drop,
        ..PolicySettings::SPEC
    };
    let sent = || log(address_of("plain"), "t", &[keccak256("Other()")], &[]);
    assert_eq!(shown(&snapshot, "reader", &strict, sent()).len(), 0);
    assert_eq!(shown(&snapshot, "admin", &strict, sent()).len(), 1);
    assert_eq!(shown(&snapshot, "reader", &PolicySettings::SPEC, sent()).len(), 1);
}

/// R22: a topic of type `address` that is not canonical and a `bytes32` that may be an address are masked.
#[test]
fn r22_dirty_and_address_shaped_topics_are_masked() {
    let snapshot = snapshot(&event(json!([
        indexed("address"),
        indexed("bytes32"),
        indexed("bytes32")
    ])));
    let topic0 = keccak256("E(address,bytes32,bytes32)");
    let mut dirty = word("own");
    dirty.0[0] = 1;
    let full = keccak256("a whole word");
    let topics = [topic0, dirty, word("hidden"), full];
    let row = &shown(
        &snapshot,
        "reader",
        &PolicySettings::SPEC,
        log(address_of("emitter"), "t", &topics, &[]),
    )[0];
    assert_eq!(row["topics"], json!([topic0, B256::ZERO, B256::ZERO, full]));
}

/// R22: data that does not match its types becomes zero bytes of equal length.
#[test]
fn r22_data_that_cannot_be_decoded_is_zeroed() {
    let snapshot = snapshot(&event(json!([data("address"), data("bytes")])));
    let topic0 = keccak256("E(address,bytes)");
    let own = |offset: u64| [word("own").0, number(offset).0].concat();
    let mut dirty = [word("own").0, number(64).0, number(0).0].concat();
    dirty[3] = 1;
    let beyond = [own(4096), number(1).to_vec()].concat();
    let smuggled = [own(64), number(0).to_vec(), word("hidden").to_vec()].concat();
    for bad in [word("own").to_vec(), own(64), dirty, beyond, smuggled, vec![7; 5]] {
        let row = &shown(
            &snapshot,
            "reader",
            &PolicySettings::SPEC,
            log(address_of("emitter"), "t", &[topic0], &bad),
        )[0];
        assert_eq!(
            row["data"],
            json!(Bytes::from(vec![0; bad.len()])),
            "{}",
            hex::encode(&bad)
        );
    }
    let good = [own(64), number(0).to_vec()].concat();
    let row = &shown(
        &snapshot,
        "reader",
        &PolicySettings::SPEC,
        log(address_of("emitter"), "t", &[topic0], &good),
    )[0];
    assert_eq!(row["data"], json!(Bytes::from(good)));
}

/// K5, decision 50: opaque fields are shown, zeroed, or the log is dropped. Attested contracts and administrators are
/// exempt.
#[test]
fn k5_opaque_fields_by_setting() {
    let snapshot = snapshot(&event(json!([data("bytes")])));
    let topic0 = keccak256("E(bytes)");
    let encode = |content: &[u8]| DynSolValue::Tuple(vec![DynSolValue::Bytes(content.to_vec())]).abi_encode_params();
    // The content contains no word that may be an address, because such words are masked with every setting (HD31).
    let payload = encode(keccak256("content").as_slice());
    let show = |dynamic_fields, user, emitter| {
        let settings = PolicySettings {
            dynamic_fields,
            ..PolicySettings::SPEC
        };
        let rows = shown(
            &snapshot,
            user,
            &settings,
            log(address_of(emitter), "t", &[topic0], &payload),
        );
        rows.first().map(|row| row["data"].clone())
    };
    let (unmasked, zeroed) = (
        json!(Bytes::from(payload.clone())),
        json!(Bytes::from(encode(&[0; 32]))),
    );
    assert_eq!(show(DynamicFields::Pass, "reader", "emitter"), Some(unmasked.clone()));
    assert_eq!(show(DynamicFields::Zero, "reader", "emitter"), Some(zeroed));
    assert_eq!(show(DynamicFields::Drop, "reader", "emitter"), None);
    for (user, emitter) in [("reader", "attesting"), ("admin", "emitter")] {
        for mode in [DynamicFields::Zero, DynamicFields::Drop] {
            assert_eq!(show(mode, user, emitter), Some(unmasked.clone()), "{user} {emitter}");
        }
    }
}

/// HD11: an unmasked log is copied unchanged. A log with unknown members is encoded anew without them.
#[test]
fn hd11_unknown_members_of_logs_are_removed() {
    let snapshot = snapshot(&event(json!([indexed("uint256")])));
    let spec = PolicySettings::SPEC;
    let reader = viewer(&snapshot, "reader", &spec);
    let plain = log(address_of("emitter"), "t", &[keccak256("E(uint256)"), number(1)], &[]);
    let spaced = format!("[ {} ]", plain.to_string().replace(',', " ,\n"));
    let show = |text: &str| {
        view::logs(
            &reader,
            &filter(&["emitter"], vec![]),
            &[],
            &Default::default(),
            super::support::sealed_text(text),
        )
    };
    let view::LogsAnswer::Rows(copied, _) = show(&spaced) else {
        panic!("not permitted")
    };
    assert_eq!(
        copied.as_str(),
        format!("[{}]", plain.to_string().replace(',', " ,\n")),
        "copied byte for byte"
    );
    let mut extended = plain.clone();
    extended["transactionLogIndex"] = json!("0x0");
    extended["sender"] = json!(address_of("hidden"));
    assert_eq!(rows(&show(&json!([extended]).to_string())), [plain]);
}

/// Section 5.2: with a malformed log, the answer is an empty list; the body of the node is never shown.
#[test]
fn malformed_logs_are_an_empty_list() {
    let snapshot = snapshot(&event(json!([indexed("uint256")])));
    let spec = PolicySettings::SPEC;
    let reader = viewer(&snapshot, "reader", &spec);
    let good = log(address_of("emitter"), "t", &[keccak256("E(uint256)"), number(1)], &[]);
    let logs_with = |name: &str, value: Value| {
        let mut bad = good.clone();
        bad[name] = value;
        json!([good, bad])
    };
    for bad in [
        json!(null),
        json!({}),
        json!([1]),
        json!([[]]),
        logs_with("address", json!("0x12")),
        logs_with("topics", json!([number(1), number(1), number(1), number(1), number(1)])),
        logs_with("topics", json!(["0x1"])),
        logs_with("topics", json!(null)),
        logs_with("data", json!("0x123")),
        logs_with("data", json!(null)),
        logs_with("transactionHash", json!(null)),
        logs_with("logIndex", json!(7)),
        logs_with("logIndex", json!({ "a": address_of("hidden") })),
        logs_with("removed", json!("no")),
    ] {
        let answer = view::logs(
            &reader,
            &filter(&["emitter"], vec![]),
            &[],
            &Default::default(),
            sealed(&bad),
        );
        let view::LogsAnswer::Rows(rows, count) = answer else {
            panic!("{bad}")
        };
        assert_eq!((rows.as_str(), rows.is_malformed(), count), ("[]", true, 0), "{bad}");
    }
}

/// A type and a value of that type.
fn typed_value() -> impl Strategy<Value = (String, DynSolValue)> {
    let wallet = prop::sample::select(vec!["own", "hidden-1", "hidden-2", "emitter", "foreign"]);
    let leaf = prop_oneof![
        4 => wallet.prop_map(|name| ("address".to_owned(), DynSolValue::Address(address_of(name)))),
        1 => any::<u64>().prop_map(|n| ("uint256".to_owned(), DynSolValue::Uint(U256::from(n), 256))),
        1 => any::<bool>().prop_map(|b| ("bool".to_owned(), DynSolValue::Bool(b))),
        1 => any::<[u8; 32]>().prop_map(|w| ("bytes32".to_owned(), DynSolValue::FixedBytes(w.into(), 32))),
        1 => Just(("bytes32".to_owned(), DynSolValue::FixedBytes(word("hidden-1"), 32))),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|b| ("bytes".to_owned(), DynSolValue::Bytes(b))),
        1 => "[a-z]{0,40}".prop_map(|s| ("string".to_owned(), DynSolValue::String(s))),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0..4usize)
                .prop_map(|((kind, value), n)| { (format!("{kind}[]"), DynSolValue::Array(vec![value; n])) }),
            (inner.clone(), 1..3usize)
                .prop_map(|((kind, value), n)| { (format!("{kind}[{n}]"), DynSolValue::FixedArray(vec![value; n])) }),
            prop::collection::vec(inner, 1..4).prop_map(|members| {
                let (kinds, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
                (format!("({})", kinds.join(",")), DynSolValue::Tuple(values))
            }),
        ]
    })
}

/// The expected result of masking: the value with hidden addresses zeroed, computed before encoding.
fn mask_value(value: &DynSolValue, hidden: &dyn Fn(Address) -> bool) -> DynSolValue {
    let mask_values = |values: &[DynSolValue]| values.iter().map(|value| mask_value(value, hidden)).collect();
    match value {
        DynSolValue::Address(address) if hidden(*address) => DynSolValue::Address(Address::ZERO),
        DynSolValue::FixedBytes(word, 32) if word.starts_with(&[0; 12]) && hidden(Address::from_slice(&word[12..])) => {
            DynSolValue::FixedBytes(B256::ZERO, 32)
        }
        DynSolValue::Array(values) => DynSolValue::Array(mask_values(values)),
        DynSolValue::FixedArray(values) => DynSolValue::FixedArray(mask_values(values)),
        DynSolValue::Tuple(values) => DynSolValue::Tuple(mask_values(values)),
        other => other.clone(),
    }
}

/// A parameter in the format of an ABI, with the components of tuples.
fn component(kind: &str) -> Value {
    let Some(inside) = kind.strip_prefix('(') else {
        return json!({ "name": "x", "type": kind });
    };
    let (members, suffix) = inside.rsplit_once(')').unwrap();
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for letter in members.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    let components: Vec<Value> = parts.iter().map(|part| component(part)).collect();
    json!({ "name": "x", "type": format!("tuple{suffix}"), "components": components })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// R21, R22: masking an encoded value equals encoding the masked value, for every type and nesting.
    #[test]
    fn r22_masking_zeroes_every_hidden_address_and_nothing_else(members in prop::collection::vec(typed_value(), 1..4)) {
        let (kinds, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let inputs: Vec<Value> = kinds
            .iter()
            .map(|kind| {
                let mut input = component(kind);
                input["indexed"] = json!(false);
                input
            })
            .collect();
        let snapshot = snapshot(&event(json!(inputs)));
        let topic0 = keccak256(format!("E({})", kinds.join(",")));
        let value = DynSolValue::Tuple(values);
        let visible = [address_of("own"), address_of("emitter"), Address::ZERO];
        let expected = mask_value(&value, &|address| !visible.contains(&address)).abi_encode_params();
        let sent = log(address_of("emitter"), "t", &[topic0], &value.abi_encode_params());
        let row = &shown(&snapshot, "reader", &PolicySettings::SPEC, sent)[0];
        prop_assert_eq!(&row["data"], &json!(Bytes::from(expected)), "{:?}", kinds);
    }
}
