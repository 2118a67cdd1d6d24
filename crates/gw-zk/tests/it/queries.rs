//! The configured query, and the queries that requests may contain (ZK-2, ZK-75, D8).

use gw_zk::credential::{self, CredentialError};
use gw_zk::did::Did;
use gw_zk::query::{self, CredentialQuery, QueryError, Settings, SettingsError};
use gw_zk::schema::{Documents, SchemaError};
use serde_json::{Value, json};

use crate::hashes::documents;
use crate::support;

const CONTEXT: &str = "https://schemas.example/kyc.jsonld";
const ISSUER: &str = "did:iden3:polygon:amoy:xCRp75DgAdS63W65fmXHz6p9DwdonuRU9e46DifhX";
const VERIFIER: &str = "did:iden3:polygon:amoy:x7Z95VkUuyo6mqraJw2VGwCfqTzdqhM1RVjRHzcpK";

fn settings<'a>(issuers: &'a [String], file: &'a [u8]) -> Settings<'a> {
    Settings {
        verifier: VERIFIER,
        circuit: "credentialAtomicQueryMTPV2",
        issuers,
        context: CONTEXT,
        type_name: "KYCEmployee",
        file,
        split: false,
        nullifier_session: None,
    }
}

fn configured(file: &Value) -> Result<CredentialQuery, Vec<SettingsError>> {
    CredentialQuery::new(&settings(&[ISSUER.to_owned()], file.to_string().as_bytes()))
}

fn schema() -> Option<Documents> {
    support::file("jwz/schemas/kyc-v101.json-ld")?;
    Some(documents(&json!({ CONTEXT: "schemas/kyc-v101.json-ld" })))
}

#[test]
fn zk2_the_scope_is_the_agreed_entry_with_the_subject_as_it_was_written() {
    let subject = json!({ "documentType": { "$in": [1, 99] } });
    for file in [json!({ "credentialSubject": subject }), subject.clone()] {
        let query = configured(&file).unwrap();
        let entry = json!({
            "id": 1,
            "circuitId": "credentialAtomicQueryMTPV2",
            "query": {
                "allowedIssuers": [ISSUER],
                "credentialSubject": subject,
                "context": CONTEXT,
                "type": "KYCEmployee",
            },
        });
        assert_eq!(query.scope(), [entry]);
        assert!(!query.is_unanswerable());
    }
}

#[test]
fn d8_several_predicates_are_one_entry_that_nobody_can_answer_or_one_entry_each() {
    let file = json!({ "documentType": { "$ne": 5, "$gt": 1 }, "position": { "$eq": "boss" } }).to_string();
    let issuers = [ISSUER.to_owned()];
    let mut settings = settings(&issuers, file.as_bytes());
    let whole = CredentialQuery::new(&settings).unwrap();
    assert_eq!(whole.scope().len(), 1);
    assert!(whole.is_unanswerable());
    settings.split = true;
    settings.circuit = "credentialAtomicQueryV3";
    settings.nullifier_session = Some("12345");
    let parts = CredentialQuery::new(&settings).unwrap();
    assert!(!parts.is_unanswerable());
    let subjects: Vec<&Value> = parts
        .scope()
        .iter()
        .map(|entry| &entry["query"]["credentialSubject"])
        .collect();
    assert_eq!(
        subjects,
        [
            &json!({ "documentType": { "$gt": 1 } }),
            &json!({ "documentType": { "$ne": 5 } }),
            &json!({ "position": { "$eq": "boss" } }),
        ]
    );
    let ids: Vec<u64> = parts.scope().iter().filter_map(|entry| entry["id"].as_u64()).collect();
    assert_eq!(ids, [1, 2, 3]);
    // ZK-77: one nullifier identifies the person.
    assert_eq!(
        parts.scope()[0]["params"],
        json!({ "nullifierSessionId": "12345", "verifierDid": VERIFIER })
    );
    assert!(parts.scope()[1].get("params").is_none());
    let Some(documents) = schema() else { return };
    let requested = parts.proof_requests(&documents).unwrap();
    assert!(requested.iter().all(|entry| entry.predicates.len() == 1));
    assert_eq!(
        requested[0].nullification.map(|asked| asked.session),
        Some(12345_u64.into())
    );
}

#[test]
fn zk75_start_up_refuses_what_no_proof_could_show() {
    let field = || "age".to_owned();
    let errors = |file: Value| configured(&file).unwrap_err();
    for file in [
        json!({}),
        json!([]),
        json!(5),
        json!({ "credentialSubject": {} }),
        json!({ "credentialSubject": [] }),
    ] {
        assert_eq!(errors(file.clone()), [SettingsError::NoPredicate], "{file}");
    }
    assert_eq!(
        errors(json!({ "credentialSubject": { "age": { "$eq": 1 } }, "type": "x" })),
        [SettingsError::ExtraMember("type".into())]
    );
    for asked in [json!({}), json!(5), json!([1])] {
        assert_eq!(errors(json!({ "age": asked })), [SettingsError::NoOperator(field())]);
    }
    for operator in ["$gte", "$lte", "$between", "$exists", "$noop", "$sd", "eq", "zip"] {
        let refused = SettingsError::Operator {
            field: field(),
            operator: operator.into(),
        };
        assert_eq!(errors(json!({ "age": { operator: 1 } })), [refused]);
    }
    let long: Vec<u64> = (0..65).collect();
    for asked in [
        json!({ "$in": long }),
        json!({ "$in": [] }),
        json!({ "$in": 5 }),
        json!({ "$eq": [5, 6] }),
    ] {
        assert!(
            matches!(errors(json!({ "age": asked }))[..], [SettingsError::Values { .. }]),
            "{asked}"
        );
    }
    assert!(configured(&json!({ "age": { "$in": &long[1..] } })).is_ok());
    for value in [json!(-1), json!(-0.5)] {
        assert!(matches!(
            errors(json!({ "age": { "$gt": value } }))[..],
            [SettingsError::Negative { .. }]
        ));
    }
    assert!(matches!(
        errors(json!({ "age": { "$eq": null } }))[..],
        [SettingsError::Value { .. }]
    ));
}

#[test]
fn zk75_all_mistakes_are_told_together() {
    let issuers = ["*".to_owned()];
    let settings = Settings {
        verifier: "did:pkh:eip155:1:0x00",
        circuit: "linkedMultiQuery",
        context: "http://schemas.example/kyc",
        type_name: "",
        nullifier_session: Some("0"),
        ..settings(&issuers, b"{\"age\":{\"$eq\":-1}}")
    };
    let errors = CredentialQuery::new(&settings).unwrap_err();
    let assert_reported = |wanted: fn(&SettingsError) -> bool| assert!(errors.iter().any(wanted), "{errors:#?}");
    assert_reported(|error| matches!(error, SettingsError::Circuit(_)));
    assert_reported(|error| matches!(error, SettingsError::Issuer { .. }));
    assert_reported(|error| matches!(error, SettingsError::Context(_)));
    assert_reported(|error| matches!(error, SettingsError::NoType));
    assert_reported(|error| matches!(error, SettingsError::NullifierSession(_)));
    assert_reported(|error| matches!(error, SettingsError::Verifier(_)));
    assert_reported(|error| matches!(error, SettingsError::Negative { .. }));
    let no_issuer = CredentialQuery::new(&self::settings(&[], b"nonsense")).unwrap_err();
    assert!(matches!(
        no_issuer[..],
        [SettingsError::NoIssuer, SettingsError::Json(_)]
    ));
    let issuers = [ISSUER.to_owned()];
    let v2 = Settings {
        nullifier_session: Some("5"),
        ..self::settings(&issuers, b"{\"age\":{\"$eq\":1}}")
    };
    assert_eq!(
        CredentialQuery::new(&v2).unwrap_err(),
        [SettingsError::NoNullifier("credentialAtomicQueryMTPV2".into())]
    );
}

#[test]
fn zk75_the_schema_refuses_unknown_fields_and_operators_its_types_forbid() {
    let Some(documents) = schema() else { return };
    let compute = |subject: Value| configured(&subject).unwrap().proof_requests(&documents).map(drop);
    for field in ["position", "salary", "ZKPexperiance"] {
        let value = if field == "position" {
            json!("boss")
        } else {
            json!(true)
        };
        let value = if field == "salary" { json!(1.5) } else { value };
        assert_eq!(compute(json!({ field: { "$eq": value } })), Ok(()), "{field}");
        assert_eq!(compute(json!({ field: { "$ne": value } })), Ok(()), "{field}");
        for operator in ["$lt", "$gt"] {
            let refused = compute(json!({ field: { operator: value } }));
            assert!(
                matches!(refused, Err(QueryError::Forbidden { .. })),
                "{field} {operator}: {refused:?}"
            );
        }
        let of_list = compute(json!({ field: { "$in": [value] } }));
        assert_eq!(of_list.is_ok(), field != "ZKPexperiance", "{field}");
    }
    for operator in ["$eq", "$ne", "$lt", "$gt"] {
        assert_eq!(compute(json!({ "documentType": { operator: 5 } })), Ok(()));
        assert_eq!(compute(json!({ "hireDate": { operator: "2023-12-11" } })), Ok(()));
    }
    assert_eq!(
        compute(json!({ "age": { "$eq": 1 } })),
        Err(QueryError::Schema(SchemaError::UnknownField("age".into())))
    );
    assert!(matches!(
        compute(json!({ "documentType": { "$eq": "many" } })),
        Err(QueryError::Value { .. })
    ));
    assert!(matches!(
        configured(&json!({ "age": { "$eq": 1 } })).unwrap().proof_requests(&Documents::default()),
        Err(QueryError::Schema(SchemaError::Missing(url))) if url == CONTEXT
    ));
}

#[test]
fn zk73_linked_queries_need_the_credential_they_are_linked_to() {
    let Some(documents) = schema() else { return };
    let entry = |id: u64, circuit: &str, group: u64| {
        json!({ "id": id, "circuitId": circuit, "query": {
            "context": CONTEXT, "type": "KYCEmployee", "groupId": group,
            "credentialSubject": { "documentType": { "$eq": 1 } } } })
    };
    let compute = |scope: &[Value]| query::parse_scope(scope, VERIFIER, &documents).map(|all| all.len());
    let anchor = entry(1, "credentialAtomicQueryV3", 1);
    assert_eq!(compute(&[anchor.clone(), entry(2, "linkedMultiQuery", 1)]), Ok(2));
    assert_eq!(
        compute(&[anchor.clone(), entry(2, "linkedMultiQuery", 2)]),
        Err(QueryError::Unlinked(2))
    );
    assert_eq!(
        compute(&[entry(2, "linkedMultiQuery", 0)]),
        Err(QueryError::Unlinked(2))
    );
    assert_eq!(compute(&[anchor.clone(), anchor]), Err(QueryError::SameId(1)));
    assert_eq!(
        compute(&[entry(1, "authV2", 0)]),
        Err(QueryError::Circuit("authV2".into()))
    );
}

/// A list of one value is the same as the value: other tools write `$eq` that way.
#[test]
fn rts14_a_list_of_one_value_is_that_value() {
    let values = |asked: &Value| {
        let documents = schema()?;
        let query = configured(&json!({ "documentType": asked })).unwrap();
        assert_eq!(
            query.scope()[0]["query"]["credentialSubject"]["documentType"],
            *asked,
            "asked for as it is written"
        );
        Some(query.proof_requests(&documents).unwrap()[0].predicates.clone())
    };
    for operator in ["$eq", "$ne", "$lt", "$gt"] {
        assert_eq!(
            values(&json!({ operator: [99] })),
            values(&json!({ operator: 99 })),
            "{operator}"
        );
    }
    assert!(matches!(
        configured(&json!({ "documentType": { "$eq": [[99]] } })).unwrap_err()[..],
        [SettingsError::Value { .. }]
    ));
}

/// An optional query may be left unanswered. If it is answered it is checked as any other, and a linked one needs its
/// credential.
#[test]
fn rts14_an_optional_query_may_be_left_out() {
    let Some(documents) = schema() else { return };
    let entry = |id: u64, circuit: &str, optional: bool| {
        json!({ "id": id, "circuitId": circuit, "optional": optional, "query": {
            "context": CONTEXT, "type": "KYCEmployee", "groupId": 1,
            "credentialSubject": { "documentType": { "$eq": 1 } } } })
    };
    let user = Did::parse(ISSUER).unwrap().id();
    let judge = |optional: [bool; 2], answered: &[u64]| {
        let asked = [
            entry(1, "credentialAtomicQueryV3", optional[0]),
            entry(2, "linkedMultiQuery", optional[1]),
        ];
        let requested = query::parse_scope(&asked, VERIFIER, &documents).unwrap();
        let proof = json!({ "pi_a": ["1", "2", "1"], "pi_b": [["1", "2"], ["1", "2"], ["1", "0"]],
            "pi_c": ["1", "2", "1"], "protocol": "groth16" });
        let answer =
            |id| json!({ "id": id, "circuitId": "credentialAtomicQueryV3", "proof": proof, "pub_signals": [] });
        let answers: Vec<Value> = answered.iter().map(answer).collect();
        credential::verify_proofs(&requested, &answers, user, gw_types::Timestamp::from_secs(0)).map(|_| ())
    };
    assert_eq!(judge([true, true], &[]), Ok(()));
    assert_eq!(judge([false, true], &[]), Err(CredentialError::Absent(1)));
    assert_eq!(judge([true, false], &[]), Err(CredentialError::Absent(2)));
    assert_eq!(
        judge([true, true], &[2]),
        Err(CredentialError::Link),
        "about nobody's credential"
    );
    assert!(
        matches!(judge([true, true], &[1]), Err(error) if error != CredentialError::Absent(1)),
        "it is judged"
    );
}
