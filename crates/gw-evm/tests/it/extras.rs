//! The operator's file (spec/20 §13).

use gw_evm::{
    Extra, ExtraNames, Extras, Listed, Lookup, Method,
    extras::{EntryError, ExtrasError},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// The example of N1.
fn linea() -> Value {
    json!({"version": 2, "namespaces": {"linea": {
        "explicit": [
            {"method": "linea_estimateGas", "alias": "eth_estimateGas"},
            {"method": "linea_getProof", "alias": "eth_getProof"},
            {"method": "linea_sendRaw", "alias": "ETH_sendrawtransaction"},
        ],
        "wildcard": {"prefix": "linea_", "deny": ["linea_sendBundle", "linea_sendPrivate", "linea_sign*"]},
    }}})
}

fn read(file: &Value) -> Extras {
    Extras::parse(&file.to_string(), true).unwrap()
}

fn extra(extras: &Extras, name: &str) -> Arc<Extra> {
    match extras.lookup(name) {
        Lookup::Extra(extra) => extra,
        other => panic!("{name}: {other:?}"),
    }
}

fn wrong(file: &Value) -> Vec<String> {
    problems(&file.to_string(), true)
}

fn problems(text: &str, unfiltered: bool) -> Vec<String> {
    Extras::parse(text, unfiltered)
        .unwrap_err()
        .iter()
        .map(ExtrasError::to_string)
        .collect()
}

/// One namespace of explicit methods, version 1.
fn listing(entries: Value) -> Value {
    json!({"version": 1, "namespaces": {"linea": entries}})
}

fn under(prefix: &str, deny: Value) -> Value {
    json!({"version": 2, "namespaces": {"x": {"wildcard": {"prefix": prefix, "deny": deny}}}})
}

#[test]
fn n1_n2_aliases_stand_for_their_row_and_keep_their_name() {
    let extras = read(&linea());
    let found = extra(&extras, "LINEA_ESTIMATEGAS");
    assert_eq!(
        (found.name(), found.row()),
        ("linea_estimateGas", Some(Method::EstimateGas))
    );
    assert_eq!(extra(&extras, "linea_sendRaw").row(), Some(Method::SendRawTransaction));
    assert_eq!(extras.lookup("eth_estimateGas"), Lookup::Known(Method::EstimateGas));
    let v1 = read(&listing(
        json!([{"method": "linea_estimateGas", "alias": "eth_estimateGas"}]),
    ));
    assert_eq!(extra(&v1, "linea_estimateGas").row(), Some(Method::EstimateGas));
    assert_eq!(v1.lookup("linea_getLogs"), Lookup::Unknown);
    assert_eq!(Extras::default().lookup("linea_estimateGas"), Lookup::Unknown);
}

#[test]
fn n3_a_prefix_lets_names_pass_but_those_denied() {
    let extras = read(&linea());
    let found = extra(&extras, "LiNeA_getTransactionExclusionStatusV1");
    assert_eq!(
        (found.name(), found.row()),
        ("linea_getTransactionExclusionStatusV1", None)
    );
    for denied in [
        "linea_sendBundle",
        "LINEA_SENDPRIVATE",
        "linea_sign",
        "linea_SignTypedData_v4",
    ] {
        assert_eq!(extras.lookup(denied), Lookup::Blocked, "{denied}");
    }
    let long = format!("linea_{}", "x".repeat(200));
    for no_name in [
        "linea_",
        "linea",
        "linea_a b",
        "linea_a-b",
        "linea_\u{e9}",
        "linea_a.b",
        "lineax_a",
        "*",
        "linea_*",
        &long,
    ] {
        assert_eq!(extras.lookup(no_name), Lookup::Unknown, "{no_name:?}");
    }
}

#[test]
fn n1_a_file_that_is_wrong_is_refused_with_all_that_is_wrong() {
    let entry = |method: &str, alias: &str| listing(json!([{"method": method, "alias": alias}]));
    let cases: Vec<(Value, &str)> = vec![
        (json!([]), "the file must be an object"),
        (json!({"namespaces": {}}), "`version` must be 1 or 2"),
        (json!({"version": 3, "namespaces": {}}), "`version` must be 1 or 2"),
        (json!({"version": "1", "namespaces": {}}), "`version` must be 1 or 2"),
        (json!({"version": 1}), "`namespaces` must be an object"),
        (
            json!({"version": 1, "namespaces": {}, "more": 1}),
            "the file has an unknown member `more`",
        ),
        (
            json!({"version": 1, "namespaces": {"": []}}),
            "namespace ``: a name has 1 to 64 letters, digits, `_` or `-`",
        ),
        (
            json!({"version": 1, "namespaces": {"x": {"explicit": []}}}),
            "namespace `x`: version 1 knows a list of methods only",
        ),
        (
            json!({"version": 2, "namespaces": {"x": 5}}),
            "namespace `x` must be an object",
        ),
        (
            json!({"version": 2, "namespaces": {"x": {"wild": 1}}}),
            "namespace `x` has an unknown member `wild`",
        ),
        (
            json!({"version": 2, "namespaces": {"x": {"explicit": {}}}}),
            "namespace `x`: its methods must be a list",
        ),
        (listing(json!(["a"])), "namespace `linea`: an entry must be an object"),
        (
            listing(json!([{"alias": "eth_call"}])),
            "namespace `linea`: an entry has no `method`",
        ),
        (
            listing(json!([{"method": "linea_a"}])),
            "namespace `linea`, method `linea_a`: `alias` is missing",
        ),
        (
            listing(json!([{"method": "linea_a", "alias": "eth_call", "x": 1}])),
            "namespace `linea`: an entry has an unknown member `x`",
        ),
        (
            entry("linea_a", "eth_nope"),
            "namespace `linea`, method `linea_a`: alias `eth_nope` is in no table",
        ),
        (
            entry("linea_a", "trace_block"),
            "namespace `linea`, method `linea_a`: alias `trace_block` is blocked",
        ),
        (
            entry("linea_a", "linea_a"),
            "namespace `linea`, method `linea_a`: alias `linea_a` is in no table",
        ),
        (
            entry("eth_signTypedData_v4", "eth_call"),
            "namespace `linea`, method `eth_signTypedData_v4`: blocked methods are never served",
        ),
        (
            entry("debug_traceBlock", "eth_call"),
            "namespace `linea`, method `debug_traceBlock`: blocked methods are never served",
        ),
        (
            entry("ETH_CALL", "eth_call"),
            "namespace `linea`, method `ETH_CALL`: the name is taken by the registry",
        ),
        (
            entry("gateway_authenticate", "eth_call"),
            "namespace `linea`, method `gateway_authenticate`: `gateway_` is the gateway's own",
        ),
        (
            entry("linea x", "eth_call"),
            "namespace `linea`, method `linea x`: a method is a namespace, `_`, and letters, digits or `_`, at most 128 in all",
        ),
        (
            listing(json!([{"method": "linea_a", "alias": "eth_call"}, {"method": "LINEA_A", "alias": "eth_call"}])),
            "namespace `linea`, method `LINEA_A`: stands in namespace `linea` already",
        ),
        (
            under("linea", json!([])),
            "namespace `x`, wildcard `linea`: a prefix is a namespace, `_`, and letters, digits or `_`",
        ),
        (
            under("", json!([])),
            "namespace `x`, wildcard ``: a prefix is a namespace, `_`, and letters, digits or `_`",
        ),
        (
            under("ETH_new", json!([])),
            "namespace `x`, wildcard `ETH_new`: methods of this namespace are the registry's",
        ),
        (
            under("web3_", json!([])),
            "namespace `x`, wildcard `web3_`: methods of this namespace are the registry's",
        ),
        (
            under("net_", json!([])),
            "namespace `x`, wildcard `net_`: methods of this namespace are the registry's",
        ),
        (
            under("debug_", json!([])),
            "namespace `x`, wildcard `debug_`: methods of this namespace are the registry's",
        ),
        (
            under("trace_", json!([])),
            "namespace `x`, wildcard `trace_`: covers blocked methods",
        ),
        (
            under("Personal_un", json!([])),
            "namespace `x`, wildcard `Personal_un`: covers blocked methods",
        ),
        (
            under("rpc_", json!([])),
            "namespace `x`, wildcard `rpc_`: covers blocked methods",
        ),
        (
            under("linea_", json!(["other_x"])),
            "namespace `x`, wildcard `linea_`: deny `other_x` is no name under the prefix, nor a start of one with `*`",
        ),
        (
            under("linea_", json!(["linea_*x"])),
            "namespace `x`, wildcard `linea_`: deny `linea_*x` is no name under the prefix, nor a start of one with `*`",
        ),
        (
            under("linea_", json!([5])),
            "namespace `x`, wildcard `linea_`: `deny` holds something that is no name",
        ),
        (
            under("linea_", json!("linea_a")),
            "namespace `x`, wildcard `linea_`: `deny` must be a list",
        ),
        (
            json!({"version": 2, "namespaces": {"x": {"wildcard": {}}}}),
            "namespace `x`, wildcard: `prefix` is missing",
        ),
        (
            json!({"version": 2, "namespaces": {"a": {"wildcard": {"prefix": "linea_"}}, "b": {"wildcard": {"prefix": "LINEA_get"}}}}),
            "namespace `b`, wildcard `LINEA_get`: overlaps wildcard `linea_`",
        ),
        (
            json!({"version": 2, "namespaces": {"a": {
                "explicit": [{"method": "linea_signX", "alias": "eth_call"}],
                "wildcard": {"prefix": "linea_", "deny": ["linea_SIGN*"]},
            }}}),
            "namespace `a`, method `linea_signX`: a wildcard denies it",
        ),
    ];
    for (file, text) in cases {
        assert_eq!(wrong(&file), [text], "{file}");
    }
    assert!(problems("{", true)[0].starts_with("is no JSON: "));
    assert_eq!(
        problems(r#"{"version":1,"namespaces":{},"Version":1}"#, true),
        ["a member is named twice"]
    );
    let two = listing(json!([{"method": "linea_a"}, {"method": "eth_sign", "alias": "eth_nope"}]));
    assert_eq!(wrong(&two).len(), 3, "all of it at once");
}

#[test]
fn n3_a_prefix_needs_the_operators_word() {
    let text = linea().to_string();
    let said = "namespace `linea`, wildcard `linea_`: lets calls pass unexamined, and ALLOW_UNFILTERED_WILDCARDS is not `true`";
    assert_eq!(problems(&text, false), [said]);
    assert!(Extras::parse(&listing(json!([])).to_string(), false).is_ok());
}

#[test]
fn g3_g4_lists_name_what_the_file_registers_and_nothing_else() {
    let extras = read(&linea());
    for (given, stored) in [
        ("ETH_CALL", "eth_call"),
        ("*", "*"),
        ("LINEA_estimategas", "linea_estimateGas"),
        ("LINEA_*", "linea_*"),
        ("linea_getSomething", "linea_getSomething"),
    ] {
        assert_eq!(extras.entry(given).as_deref(), Ok(stored));
    }
    for (unknown, error) in [
        ("linea*", EntryError::Unknown),
        ("linea_get*", EntryError::Unknown),
        ("eth_*", EntryError::Unknown),
        ("other_x", EntryError::Unknown),
        ("**", EntryError::Unknown),
        ("linea_signX", EntryError::Blocked),
        ("trace_block", EntryError::Blocked),
    ] {
        assert_eq!(extras.entry(unknown), Err(error), "{unknown}");
    }
    assert_eq!(Extras::default().entry("linea_*"), Err(EntryError::Unknown));
}

#[test]
fn g1_g3_g4_what_a_list_lets_through() {
    let extras = read(&linea());
    let lists = |allowed: &[&str], denied: &[&str], name: &str| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        ExtraNames::of(&owned(allowed), &owned(denied)).lists(&extra(&extras, name))
    };
    assert_eq!(
        lists(&["*"], &[], "linea_estimateGas"),
        None,
        "`*` is every method of the registry"
    );
    assert_eq!(lists(&["*"], &[], "linea_other"), None);
    assert_eq!(
        lists(&["eth_estimateGas"], &[], "linea_estimateGas"),
        None,
        "the row's name is not the method's"
    );
    assert_eq!(
        lists(&["linea_estimateGas"], &[], "linea_estimateGas"),
        Some(Listed::ByName)
    );
    assert_eq!(lists(&["linea_*"], &[], "linea_estimateGas"), Some(Listed::ByPrefix));
    assert_eq!(lists(&["linea_*"], &[], "linea_other"), Some(Listed::ByPrefix));
    assert_eq!(lists(&["linea_*"], &["linea_other"], "LINEA_OTHER"), None);
    assert_eq!(lists(&["linea_*", "linea_other"], &["linea_*"], "linea_other"), None);
    assert_eq!(lists(&["other_*"], &[], "linea_other"), None);
}

/// Names of everything that must stay out of reach, in many cases.
fn closed_name() -> impl Strategy<Value = String> {
    let whole = prop::sample::select(vec![
        "eth_sign",
        "eth_simulateV1",
        "eth_newPendingTransactionFilter",
        "rpc_modules",
        "eth_getWork",
        "eth_mining",
        "eth_sendBundle",
        "eth_callMany",
        "eth_sendUserOperation",
    ])
    .prop_map(str::to_owned);
    let family = prop::sample::select(vec![
        "trace_",
        "debug_",
        "personal_",
        "engine_",
        "admin_",
        "txpool_",
        "ots_",
        "erigon_",
        "miner_",
        "eth_signTypedData",
        "eth_getRawTransaction",
        "eth_sendPrivate",
        "eth_cancel",
        "mev_",
        "flashbots_",
        "pimlico_",
        "db_",
        "les_",
    ]);
    let name = prop_oneof![
        whole,
        (family, "[a-zA-Z0-9]{1,6}").prop_map(|(family, rest)| format!("{family}{rest}"))
    ];
    (name, any::<u64>()).prop_map(|(name, cases)| {
        let upper = |(at, letter): (usize, char)| {
            if cases >> (at % 64) & 1 == 1 {
                letter.to_ascii_uppercase()
            } else {
                letter
            }
        };
        name.chars().enumerate().map(upper).collect()
    })
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        closed_name(),
        prop::sample::select(Method::ALL).prop_map(|method| method.as_str().to_owned()),
        "[a-z]{1,8}_[a-zA-Z0-9_]{0,8}",
        "(t|tr|trace|p|e|eth|debug|d|r|rpc|m)_?",
        "linea_[a-z]{0,3}",
    ]
}

fn any_file() -> impl Strategy<Value = Value> {
    let alias =
        prop_oneof![4 => prop::sample::select(Method::ALL).prop_map(|m| m.as_str().to_owned()), 1 => any_name()];
    let explicit = prop::collection::vec(
        (any_name(), alias).prop_map(|(method, alias)| json!({"method": method, "alias": alias})),
        0..2,
    );
    let wildcard = prop::option::of(any_name().prop_map(|prefix| json!({"prefix": prefix, "deny": []})));
    prop::collection::btree_map("[a-z]{1,3}", (explicit, wildcard), 0..3).prop_map(|namespaces| {
        let shaped = namespaces.into_iter().map(|(name, (explicit, wildcard))| {
            let mut namespace = json!({"explicit": explicit});
            if let Some(wildcard) = wildcard {
                namespace["wildcard"] = wildcard;
            }
            (name, namespace)
        });
        json!({"version": 2, "namespaces": serde_json::Map::from_iter(shaped)})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// N2, N3: whatever the file says, no blocked name is ever a method beside the registry, and every row stays its own.
    #[test]
    fn n2_n3_no_file_reaches_what_is_blocked(file in any_file(), names in prop::collection::vec(closed_name(), 8)) {
        let Ok(extras) = Extras::parse(&file.to_string(), true) else { return Ok(()) };
        let in_file = extras.namespaces().values().flat_map(|namespace| {
            let prefixes = namespace.wildcard.iter().map(|wildcard| format!("{}x", wildcard.prefix));
            namespace.methods.iter().map(|method| method.name().to_owned()).chain(prefixes)
        });
        for name in names.into_iter().chain(in_file) {
            match Method::lookup(&name) {
                Lookup::Unknown => {}
                registered => prop_assert_eq!(extras.lookup(&name), registered),
            }
        }
        for method in Method::ALL {
            prop_assert_eq!(extras.lookup(method.as_str()), Lookup::Known(*method));
        }
    }
}
