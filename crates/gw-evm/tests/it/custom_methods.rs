//! Custom methods of the operator's file (spec/20 §13).

use gw_evm::{
    AllowListMatch, CustomMethod, CustomMethodNames, CustomMethods, Method, MethodLookup,
    custom_methods::{CustomMethodsError, EntryError},
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

fn read(file: &Value) -> CustomMethods {
    CustomMethods::parse(&file.to_string(), true).unwrap()
}

fn custom(methods: &CustomMethods, name: &str) -> Arc<CustomMethod> {
    match methods.lookup(name) {
        MethodLookup::Custom(method) => method,
        other => panic!("{name}: {other:?}"),
    }
}

fn errors_of(file: &Value) -> Vec<String> {
    errors_of_text(&file.to_string(), true)
}

fn errors_of_text(text: &str, allow_unfiltered: bool) -> Vec<String> {
    CustomMethods::parse(text, allow_unfiltered)
        .unwrap_err()
        .iter()
        .map(CustomMethodsError::to_string)
        .collect()
}

/// A version 1 file with one namespace of explicit methods.
fn explicit_file(entries: Value) -> Value {
    json!({"version": 1, "namespaces": {"linea": entries}})
}

fn wildcard_file(prefix: &str, deny: Value) -> Value {
    json!({"version": 2, "namespaces": {"x": {"wildcard": {"prefix": prefix, "deny": deny}}}})
}

#[test]
fn n1_n2_aliases_have_the_row_of_the_registry_and_their_own_name() {
    let methods = read(&linea());
    let method = custom(&methods, "LINEA_ESTIMATEGAS");
    assert_eq!(
        (method.name(), method.method()),
        ("linea_estimateGas", Some(Method::EstimateGas))
    );
    assert_eq!(
        custom(&methods, "linea_sendRaw").method(),
        Some(Method::SendRawTransaction)
    );
    assert_eq!(
        methods.lookup("eth_estimateGas"),
        MethodLookup::Registered(Method::EstimateGas)
    );
    let v1 = read(&explicit_file(
        json!([{"method": "linea_estimateGas", "alias": "eth_estimateGas"}]),
    ));
    assert_eq!(custom(&v1, "linea_estimateGas").method(), Some(Method::EstimateGas));
    assert_eq!(v1.lookup("linea_getLogs"), MethodLookup::Unknown);
    assert_eq!(
        CustomMethods::default().lookup("linea_estimateGas"),
        MethodLookup::Unknown
    );
}

#[test]
fn n3_a_prefix_passes_names_except_denied_ones() {
    let methods = read(&linea());
    let method = custom(&methods, "LiNeA_getTransactionExclusionStatusV1");
    assert_eq!(
        (method.name(), method.method()),
        ("linea_getTransactionExclusionStatusV1", None)
    );
    for denied in [
        "linea_sendBundle",
        "LINEA_SENDPRIVATE",
        "linea_sign",
        "linea_SignTypedData_v4",
    ] {
        assert_eq!(methods.lookup(denied), MethodLookup::Blocked, "{denied}");
    }
    let long = format!("linea_{}", "x".repeat(200));
    for invalid in [
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
        assert_eq!(methods.lookup(invalid), MethodLookup::Unknown, "{invalid:?}");
    }
}

#[test]
fn n1_an_invalid_file_is_rejected_with_all_its_errors() {
    let entry = |method: &str, alias: &str| explicit_file(json!([{"method": method, "alias": alias}]));
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
            "namespace `x`: in version 1, a namespace is a list of methods",
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
        (
            explicit_file(json!(["a"])),
            "namespace `linea`: an entry must be an object",
        ),
        (
            explicit_file(json!([{"alias": "eth_call"}])),
            "namespace `linea`: an entry has no `method`",
        ),
        (
            explicit_file(json!([{"method": "linea_a"}])),
            "namespace `linea`, method `linea_a`: `alias` is missing",
        ),
        (
            explicit_file(json!([{"method": "linea_a", "alias": "eth_call", "x": 1}])),
            "namespace `linea`: an entry has an unknown member `x`",
        ),
        (
            entry("linea_a", "eth_nope"),
            "namespace `linea`, method `linea_a`: alias `eth_nope` is not a registry method",
        ),
        (
            entry("linea_a", "trace_block"),
            "namespace `linea`, method `linea_a`: alias `trace_block` is blocked",
        ),
        (
            entry("linea_a", "linea_a"),
            "namespace `linea`, method `linea_a`: alias `linea_a` is not a registry method",
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
            "namespace `linea`, method `ETH_CALL`: the name belongs to the registry",
        ),
        (
            entry("gateway_authenticate", "eth_call"),
            "namespace `linea`, method `gateway_authenticate`: `gateway_` is reserved for the gateway",
        ),
        (
            entry("linea x", "eth_call"),
            "namespace `linea`, method `linea x`: a method is a namespace, `_`, and letters, digits or `_`, at most \
             128 in all",
        ),
        (
            explicit_file(
                json!([{"method": "linea_a", "alias": "eth_call"}, {"method": "LINEA_A", "alias": "eth_call"}]),
            ),
            "namespace `linea`, method `LINEA_A`: is already defined in namespace `linea`",
        ),
        (
            wildcard_file("linea", json!([])),
            "namespace `x`, wildcard `linea`: a prefix is a namespace, `_`, and letters, digits or `_`",
        ),
        (
            wildcard_file("", json!([])),
            "namespace `x`, wildcard ``: a prefix is a namespace, `_`, and letters, digits or `_`",
        ),
        (
            wildcard_file("ETH_new", json!([])),
            "namespace `x`, wildcard `ETH_new`: methods of this namespace are the registry's",
        ),
        (
            wildcard_file("web3_", json!([])),
            "namespace `x`, wildcard `web3_`: methods of this namespace are the registry's",
        ),
        (
            wildcard_file("net_", json!([])),
            "namespace `x`, wildcard `net_`: methods of this namespace are the registry's",
        ),
        (
            wildcard_file("debug_", json!([])),
            "namespace `x`, wildcard `debug_`: methods of this namespace are the registry's",
        ),
        (
            wildcard_file("trace_", json!([])),
            "namespace `x`, wildcard `trace_`: the prefix covers blocked methods",
        ),
        (
            wildcard_file("Personal_un", json!([])),
            "namespace `x`, wildcard `Personal_un`: the prefix covers blocked methods",
        ),
        (
            wildcard_file("rpc_", json!([])),
            "namespace `x`, wildcard `rpc_`: the prefix covers blocked methods",
        ),
        (
            wildcard_file("linea_", json!(["other_x"])),
            "namespace `x`, wildcard `linea_`: deny `other_x` is neither a name under the prefix nor the start of one \
             with `*`",
        ),
        (
            wildcard_file("linea_", json!(["linea_*x"])),
            "namespace `x`, wildcard `linea_`: deny `linea_*x` is neither a name under the prefix nor the start of one \
             with `*`",
        ),
        (
            wildcard_file("linea_", json!([5])),
            "namespace `x`, wildcard `linea_`: `deny` contains an entry that is not a string",
        ),
        (
            wildcard_file("linea_", json!("linea_a")),
            "namespace `x`, wildcard `linea_`: `deny` must be a list",
        ),
        (
            json!({"version": 2, "namespaces": {"x": {"wildcard": {}}}}),
            "namespace `x`, wildcard: `prefix` is missing",
        ),
        (
            json!({"version": 2, "namespaces": {"a": {"wildcard": {"prefix": "linea_"}},
                "b": {"wildcard": {"prefix": "LINEA_get"}}}}),
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
        assert_eq!(errors_of(&file), [text], "{file}");
    }
    assert!(errors_of_text("{", true)[0].starts_with("is not JSON: "));
    assert_eq!(
        errors_of_text(r#"{"version":1,"namespaces":{},"Version":1}"#, true),
        ["a member is named twice"]
    );
    let two_invalid = explicit_file(json!([{"method": "linea_a"}, {"method": "eth_sign", "alias": "eth_nope"}]));
    assert_eq!(errors_of(&two_invalid).len(), 3, "all errors are reported");
}

#[test]
fn n3_a_prefix_requires_allow_unfiltered() {
    let text = linea().to_string();
    let error = "namespace `linea`, wildcard `linea_`: its calls pass unexamined, which requires \
                 ALLOW_UNFILTERED_WILDCARDS=true";
    assert_eq!(errors_of_text(&text, false), [error]);
    assert!(CustomMethods::parse(&explicit_file(json!([])).to_string(), false).is_ok());
}

#[test]
fn g3_g4_list_entries_name_registered_or_configured_methods_only() {
    let methods = read(&linea());
    for (entry, stored) in [
        ("ETH_CALL", "eth_call"),
        ("*", "*"),
        ("LINEA_estimategas", "linea_estimateGas"),
        ("LINEA_*", "linea_*"),
        ("linea_getSomething", "linea_getSomething"),
    ] {
        assert_eq!(methods.entry(entry).as_deref(), Ok(stored));
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
        assert_eq!(methods.entry(unknown), Err(error), "{unknown}");
    }
    assert_eq!(CustomMethods::default().entry("linea_*"), Err(EntryError::Unknown));
}

#[test]
fn g1_g3_g4_methods_that_a_list_lets_through() {
    let methods = read(&linea());
    let lists = |allowed: &[&str], denied: &[&str], name: &str| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        CustomMethodNames::new(&owned(allowed), &owned(denied)).lists(&custom(&methods, name))
    };
    assert_eq!(
        lists(&["*"], &[], "linea_estimateGas"),
        None,
        "`*` means the methods of the registry only"
    );
    assert_eq!(lists(&["*"], &[], "linea_other"), None);
    assert_eq!(
        lists(&["eth_estimateGas"], &[], "linea_estimateGas"),
        None,
        "the name of the alias target does not grant the custom method"
    );
    assert_eq!(
        lists(&["linea_estimateGas"], &[], "linea_estimateGas"),
        Some(AllowListMatch::ByName)
    );
    assert_eq!(
        lists(&["linea_*"], &[], "linea_estimateGas"),
        Some(AllowListMatch::ByPrefix)
    );
    assert_eq!(lists(&["linea_*"], &[], "linea_other"), Some(AllowListMatch::ByPrefix));
    assert_eq!(lists(&["linea_*"], &["linea_other"], "LINEA_OTHER"), None);
    assert_eq!(lists(&["linea_*", "linea_other"], &["linea_*"], "linea_other"), None);
    assert_eq!(lists(&["other_*"], &[], "linea_other"), None);
}

/// Names of blocked methods, in random case.
fn blocked_name() -> impl Strategy<Value = String> {
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
        let upper = |(index, letter): (usize, char)| {
            if cases >> (index % 64) & 1 == 1 {
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
        blocked_name(),
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
        let entries = namespaces.into_iter().map(|(name, (explicit, wildcard))| {
            let mut namespace = json!({"explicit": explicit});
            if let Some(wildcard) = wildcard {
                namespace["wildcard"] = wildcard;
            }
            (name, namespace)
        });
        json!({"version": 2, "namespaces": serde_json::Map::from_iter(entries)})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// N2, N3: no file turns a blocked name into a custom method or changes the meaning of a registry method.
    #[test]
    fn n2_n3_no_file_reaches_blocked_methods(file in any_file(), names in prop::collection::vec(blocked_name(), 8)) {
        let Ok(methods) = CustomMethods::parse(&file.to_string(), true) else { return Ok(()) };
        let in_file = methods.namespaces().values().flat_map(|namespace| {
            let prefixes = namespace.wildcard.iter().map(|wildcard| format!("{}x", wildcard.prefix));
            namespace.methods.iter().map(|method| method.name().to_owned()).chain(prefixes)
        });
        for name in names.into_iter().chain(in_file) {
            match Method::lookup(&name) {
                MethodLookup::Unknown => {}
                registered => prop_assert_eq!(methods.lookup(&name), registered),
            }
        }
        for method in Method::ALL {
            prop_assert_eq!(methods.lookup(method.as_str()), MethodLookup::Registered(*method));
        }
    }
}
