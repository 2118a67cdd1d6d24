//! `hash.json`: hashes and encodings.

use ark_bn254::Fr;
use gw_zk::encode::{self, Datatype, EncodeError};
use gw_zk::schema::{Documents, Schema, SchemaError};
use gw_zk::{hash, poseidon};
use serde_json::{Value, json};

use crate::support::{self, fr};

#[test]
fn zk31_poseidon_has_circoms_constants_for_1_to_16_inputs() {
    let Some(data) = support::json("jwz/hash.json") else {
        return;
    };
    for case in data["poseidon"].as_array().unwrap() {
        let inputs: Vec<Fr> = case["inputs"].as_array().unwrap().iter().map(fr).collect();
        assert_eq!(
            poseidon::hash(&inputs),
            Some(fr(&case["hash"])),
            "{} inputs",
            inputs.len()
        );
        if let [one] = inputs[..] {
            assert_eq!(poseidon::hash_one(one), fr(&case["hash"]));
        }
    }
}

#[test]
fn poseidon_takes_nothing_else() {
    assert_eq!(poseidon::hash(&[]), None);
    assert_eq!(poseidon::hash(&[Fr::from(1); 17]), None);
}

#[test]
fn zk75_byte_strings_hash_in_frames_of_sixteen() {
    let Some(data) = support::json("jwz/hash.json") else {
        return;
    };
    for case in data["hash_bytes"].as_array().unwrap() {
        let input = match case.get("repeat") {
            Some(repeat) => repeat["char"]
                .as_str()
                .unwrap()
                .repeat(usize::try_from(repeat["count"].as_u64().unwrap()).unwrap()),
            None => case["input_ascii"].as_str().unwrap().to_owned(),
        };
        assert_eq!(hash::bytes(input.as_bytes()), Some(fr(&case["hash"])), "{input}");
    }
    assert_eq!(hash::bytes(b""), None);
}

#[test]
fn zk73_values_hash_in_frames_of_six() {
    let Some(data) = support::json("jwz/hash.json") else {
        return;
    };
    for case in data["sponge_frame6_of_64"].as_array().unwrap() {
        let mut values: Vec<Fr> = case["values"].as_array().unwrap().iter().map(fr).collect();
        values.resize(64, Fr::from(0));
        assert_eq!(hash::sponge(values), Some(fr(&case["hash"])));
    }
}

/// The documents of a vector, by the URLs that it gives them.
pub(crate) fn documents(paths: &Value) -> Documents {
    let mut documents = Documents::default();
    for (url, path) in paths.as_object().unwrap() {
        documents.insert(url, support::file(&format!("jwz/{}", path.as_str().unwrap())).unwrap());
    }
    documents
}

#[test]
fn zk65_zk69_schemas_and_fields_have_the_published_hashes_and_keys() {
    let Some(data) = support::json("jwz/hash.json") else {
        return;
    };
    for case in data["schema"].as_array().unwrap() {
        let url = case["context"].as_str().unwrap();
        let documents = documents(&json!({ url: case["document"] }));
        let schema = Schema::read(url, case["type"].as_str().unwrap(), &documents).unwrap();
        assert_eq!(schema.iri(), case["type_id"]);
        assert_eq!(schema.hash().to_string(), case["schema_hash_int"]);
        assert_eq!(schema.merklized(), case["merklized"]);
        for expected in case["fields"].as_array().unwrap() {
            let field = schema.field(expected["field"].as_str().unwrap()).unwrap();
            assert_eq!(field.slot, expected["slot_index"]);
            assert_eq!(field.key, fr(&expected["claim_path_key"]));
            assert_eq!(field.datatype, Datatype::from_iri(expected["datatype"].as_str()));
            assert_eq!(
                encode::value(&expected["example_value"], field.datatype),
                Ok(fr(&expected["example_encoded"]))
            );
        }
        assert_eq!(schema.field("absent"), Err(SchemaError::UnknownField("absent".into())));
    }
}

#[test]
fn zk68_values_have_the_published_encodings() {
    let Some(data) = support::json("jwz/hash.json") else {
        return;
    };
    for case in data["value_encoding"].as_array().unwrap() {
        let encoded = encode::value(&case["value"], Datatype::from_iri(case["datatype"].as_str()));
        match case.get("encoded") {
            Some(expected) => assert_eq!(encoded, Ok(fr(expected)), "{case}"),
            None => assert!(encoded.is_err(), "{case}"),
        }
    }
}

#[test]
fn zk75_negative_and_odd_values_are_refused() {
    for (value, datatype) in [
        (json!(-1), Datatype::Integer),
        (json!("-1"), Datatype::Integer),
        (json!(-1.5), Datatype::Double),
    ] {
        assert!(
            matches!(encode::value(&value, datatype), Err(EncodeError::Negative(_))),
            "{value}"
        );
    }
    assert!(matches!(
        encode::value(&json!("1969-12-31"), Datatype::DateTime),
        Err(EncodeError::Negative(_))
    ));
    assert!(matches!(
        encode::value(&json!("9".repeat(77)), Datatype::Integer),
        Err(EncodeError::TooLarge(_))
    ));
    for (value, datatype) in [
        (json!(1.5), Datatype::Integer),
        (json!(18_446_744_073_709_551_616.0), Datatype::Integer),
        (json!("0x10"), Datatype::Integer),
        (json!(""), Datatype::Integer),
        (json!(2), Datatype::Boolean),
        (json!(5), Datatype::DateTime),
        (json!("yesterday"), Datatype::DateTime),
        (json!("NaN"), Datatype::Double),
        (json!([1]), Datatype::Text),
        (json!(null), Datatype::Text),
    ] {
        assert!(
            matches!(encode::value(&value, datatype), Err(EncodeError::NotA { .. })),
            "{value}"
        );
    }
}

#[test]
fn zk73_linked_queries_have_the_published_hashes() {
    let Some(data) = support::json("jwz/hash.json") else {
        return;
    };
    let url = "urn:kyc";
    let schema = Schema::read(
        url,
        "KYCEmployee",
        &documents(&json!({ url: "schemas/kyc-v101.json-ld" })),
    )
    .unwrap();
    for case in data["linked_query_hash"]["queries"].as_array().unwrap() {
        let operator = match case["operator"].as_str().unwrap() {
            "$eq" => 1,
            "$ne" => 6,
            _ => 0,
        };
        let field = case["field"].as_str().map(|field| schema.field(field).unwrap());
        let values: Vec<Fr> = field
            .iter()
            .map(|field| encode::value(&case["value"], field.datatype).unwrap())
            .collect();
        let query = hash::LinkedQuery {
            schema: Fr::from(schema.hash()),
            slot: 0,
            operator,
            key: field.as_ref().map(|field| field.key).unwrap_or_default(),
            merklized: schema.merklized(),
            values: &values,
        };
        assert_eq!(query.hash(), Some(fr(&case["query_hash"])), "{case}");
    }
}
