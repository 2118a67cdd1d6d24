use gw_evm::{
    VisibleTo,
    envelope::{EnvelopeError, EnvelopeErrorKind as Kind, Incoming, Request, parse},
};
use proptest::prelude::*;

fn single(body: &str) -> Result<Request<'_>, EnvelopeError> {
    match parse(body.as_bytes(), 100)? {
        Incoming::Single(request) => Ok(request),
        Incoming::Batch(_) => panic!("the body is a batch"),
    }
}

fn batch(body: &str) -> Vec<Result<Request<'_>, EnvelopeError>> {
    match parse(body.as_bytes(), 3) {
        Ok(Incoming::Batch(elements)) => elements,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_rejected(body: &str, kind: Kind, id: &str) {
    let start: String = body.chars().take(200).collect();
    let error = parse(body.as_bytes(), 3).expect_err(&start);
    assert_eq!((error.kind, error.id.as_json()), (kind, id), "{start}: {error}");
}

#[test]
fn j4_an_ordinary_request() {
    let request = single(r#" {"jsonrpc":"2.0","id":7,"method":"eth_call","params":[{},"latest"]} "#).unwrap();
    assert_eq!(request.id.as_json(), "7");
    assert_eq!(request.method, "eth_call");
    assert_eq!(request.params.unwrap().get(), r#"[{},"latest"]"#);
    assert!(request.visible_to.is_empty());
}

#[test]
fn j4_ids_are_echoed_verbatim() {
    for id in [
        "0",
        "-1",
        "1.50",
        "1e3",
        "123456789012345678901234567890",
        "\"a\"",
        r#""\u0061\"b""#,
        "null",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        assert_eq!(single(&body).unwrap().id.as_json(), id);
    }
    assert_eq!(
        single(r#"{"jsonrpc":"2.0","method":"m"}"#).unwrap().id.as_json(),
        "null",
        "a missing id"
    );
}

#[test]
fn j4_invalid_ids_are_rejected_with_id_null() {
    for id in ["true", "[1]", "{}", "[]"] {
        assert_rejected(
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#),
            Kind::InvalidRequest,
            "null",
        );
    }
}

#[test]
fn j4_version_method_and_params() {
    for version in ["", r#""jsonrpc":"1.0","#, r#""jsonrpc":2.0,"#, r#""jsonrpc":null,"#] {
        assert_rejected(
            &format!(r#"{{{version}"id":1,"method":"m"}}"#),
            Kind::InvalidRequest,
            "1",
        );
    }
    let long = format!("\"{}\"", "m".repeat(129));
    for method in ["1", "null", "[\"m\"]", long.as_str()] {
        assert_rejected(
            &format!(r#"{{"jsonrpc":"2.0","id":"x","method":{method}}}"#),
            Kind::InvalidRequest,
            "\"x\"",
        );
    }
    assert_rejected(r#"{"jsonrpc":"2.0","id":1}"#, Kind::InvalidRequest, "1");
    for params in ["{}", "1", "\"[]\"", "false"] {
        assert_rejected(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#),
            Kind::InvalidParams,
            "1",
        );
    }
    let longest = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(128));
    assert_eq!(single(&longest).unwrap().method.len(), 128);
}

#[test]
fn decision_39_null_params_are_absent_and_unknown_members_ignored() {
    let request = single(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null,"extra":{"deep":[]}}"#).unwrap();
    assert!(request.params.is_none());
}

#[test]
fn decision_39_a_known_member_in_another_case_is_refused() {
    for (name, value) in [
        ("Method", "\"m\""),
        ("PARAMS", "[]"),
        ("Id", "1"),
        ("jsonRPC", "\"2.0\""),
        ("visibleto", "[]"),
        ("privatefor", "[]"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"m","{name}":{value}}}"#);
        // `jsonRPC` and `Method` repeat a member in another case, so the kind differs.
        let kind = if matches!(name, "visibleto" | "privatefor" | "PARAMS" | "Id") {
            Kind::InvalidParams
        } else {
            Kind::InvalidRequest
        };
        assert_rejected(&body, kind, "null");
    }
    assert_rejected(r#"{"jsonrpc":"2.0","id":5,"METHOD":"m"}"#, Kind::InvalidParams, "5");
}

#[test]
fn j3_duplicate_keys_are_rejected_at_every_level_and_in_every_spelling() {
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"ID":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[{"to":"a","to":"a"}]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[{"to":"a","TO":"b"}]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[{"to":"a","\u0074o":"b"}]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[{"to":"a","\u0054O":"b"}]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","other":[[{"x":1,"x":2}]]}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"m"},{"a":1,"A":1}]"#,
    ] {
        assert_rejected(body, Kind::InvalidRequest, "null");
    }
}

#[test]
fn j3_duplicates_are_found_in_large_objects_too() {
    let names: Vec<_> = (0..5000).map(|n| format!("\"k{n}\":0")).collect();
    let body = |extra: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"m","params":[{{{},{extra}}}]}}"#,
            names.join(",")
        )
    };
    assert!(single(&body("\"fresh\":0")).is_ok());
    assert_rejected(&body("\"K3\":0"), Kind::InvalidRequest, "null");
    assert_rejected(&body("\"K4999\":0"), Kind::InvalidRequest, "null");
}

#[test]
fn j3_the_maximum_depth_is_64() {
    let body = |depth: usize| {
        // The request object and the parameter array are two levels.
        let inner = depth - 2;
        format!(
            r#"{{"jsonrpc":"2.0","method":"m","params":[{}{}]}}"#,
            "[".repeat(inner),
            "]".repeat(inner)
        )
    };
    assert!(single(&body(64)).is_ok());
    assert_rejected(&body(65), Kind::InvalidRequest, "null");
    assert_rejected(
        &format!("{}{}", "[".repeat(500_000), "]".repeat(500_000)),
        Kind::InvalidRequest,
        "null",
    );
    assert_rejected(&"[".repeat(500_000), Kind::Parse, "null");
}

#[test]
fn j3_text_that_is_not_json_is_a_parse_error() {
    for body in [
        "",
        " ",
        "<?xml version=\"1.0\"?>",
        "{",
        "{}}",
        "{'id':1}",
        "nul",
        "[1,]",
        "{\"a\":1,}",
        "\u{feff}{}",
    ] {
        assert_rejected(body, Kind::Parse, "null");
    }
    assert_eq!(parse(b"{\"\xff\":1}", 3).unwrap_err().kind, Kind::Parse);
    assert_rejected(r#"{"jsonrpc":"2.0","method":"m","\ud800":1}"#, Kind::Parse, "null");
}

#[test]
fn j3_json_that_is_not_a_request_is_invalid() {
    for body in ["1", "\"x\"", "null", "true", "{}"] {
        assert_rejected(body, Kind::InvalidRequest, "null");
    }
}

#[test]
fn j6_an_escaped_method_name_stays_escaped() {
    let request = single(r#"{"jsonrpc":"2.0","method":"eth\u005fcall"}"#).unwrap();
    assert_eq!(request.method, r"eth\u005fcall");
}

#[test]
fn j7_batch_elements_are_checked_independently() {
    let elements = batch(r#"[{"jsonrpc":"2.0","id":1,"method":"m"}, 5, {"jsonrpc":"1.0","id":2,"method":"m"}]"#);
    assert_eq!(elements[0].as_ref().unwrap().id.as_json(), "1");
    let ids: Vec<_> = elements[1..]
        .iter()
        .map(|e| e.as_ref().unwrap_err())
        .map(|e| (e.kind, e.id.as_json()))
        .collect();
    assert_eq!(ids, [(Kind::InvalidRequest, "null"), (Kind::InvalidRequest, "2")]);
}

#[test]
fn j7_batch_limits() {
    assert_rejected("[]", Kind::InvalidRequest, "null");
    assert_rejected("[1,2,3,4]", Kind::InvalidRequest, "null");
    assert_eq!(batch("[1,2,3]").len(), 3);
    let error = parse(br#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, 0).unwrap_err();
    assert!(error.message.contains("batch"), "J7: the text contains `batch`");
}

#[test]
fn w4_recipients_of_both_members_are_united() {
    let request =
        single(r#"{"jsonrpc":"2.0","method":"m","visibleTo":["did:a:b"],"privateFor":["0x1"],"params":[]}"#).unwrap();
    assert_eq!(request.visible_to.entries().unwrap(), ["did:a:b", "0x1"]);
    let malformed = single(r#"{"jsonrpc":"2.0","method":"m","visibleTo":"did:a:b"}"#).unwrap();
    assert!(
        malformed.visible_to.entries().is_err(),
        "the error is kept, because only sends use the recipients"
    );
    assert_ne!(malformed.visible_to, VisibleTo::default());
}

fn json(depth: u32) -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "\\PC{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(depth, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

fn nesting(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn j3_no_bytes_cause_a_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&body, 10);
    }

    #[test]
    fn j3_parse_errors_agree_with_serde_json(text in "[\\[\\]{}\": ,0-9a-z\\\\.-]{0,40}") {
        let is_json = !matches!(parse(text.as_bytes(), 10), Err(EnvelopeError { kind: Kind::Parse, .. }));
        prop_assert_eq!(is_json, serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
    }

    #[test]
    fn j3_duplicates_and_excessive_depth_are_found_everywhere(
        value in json(6), name in "[a-z]{1,6}", depth in 0..70_usize, duplicate in any::<bool>(),
    ) {
        let upper = name.to_ascii_uppercase();
        let last = if duplicate {
            format!(r#"{{"{name}":1,"b c":{value},"{upper}":2}}"#)
        } else {
            format!(r#"{{"{name}":{value}}}"#)
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"m","params":[{value},{}{last}{}]}}"#, "[".repeat(depth), "]".repeat(depth),
        );
        let parsed: serde_json::Value = serde_json::from_str(&body).unwrap();
        prop_assert_eq!(parse(body.as_bytes(), 10).is_ok(), !duplicate && nesting(&parsed) <= 64);
    }

    #[test]
    fn j4_params_are_kept_byte_for_byte(params in prop::collection::vec(json(4), 0..4)) {
        let params = serde_json::to_string(&params).unwrap();
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        let request = single(&body).unwrap();
        prop_assert_eq!(request.params.unwrap().get(), params);
    }
}
