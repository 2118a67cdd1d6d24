//! The JSON-LD context reader, tested on documents that are not in the public data.

use gw_zk::encode::Datatype;
use gw_zk::hash::{self, PathPart};
use gw_zk::schema::{Documents, MAX_DOCUMENT, Schema, SchemaError};
use serde_json::{Value, json};

const URL: &str = "https://schemas.example/person.jsonld";

fn documents(context: &Value) -> Documents {
    let mut documents = Documents::default();
    documents.insert(URL, json!({ "@context": context }).to_string());
    documents
}

fn read(context: &Value) -> Result<Schema, SchemaError> {
    Schema::read(URL, "Person", &documents(context))
}

fn key(parts: &[PathPart]) -> ark_bn254::Fr {
    hash::claim_path(parts).unwrap()
}

#[test]
fn zk76_nested_fields_lists_and_vocabularies_resolve() {
    let schema = read(&json!({
        "@vocab": "https://v.example#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
        "Person": { "@id": "https://v.example/Person", "@context": {
            "home": { "@id": "https://v.example/home",
            "@context": { "zip": { "@id": "https://v.example/zip", "@type": "xsd:integer" } } },
            "name": {},
            "old": null
        }}
    }))
    .unwrap();
    assert_eq!(schema.iri(), "https://v.example/Person");
    let iri = |text: &str| PathPart::Iri(text.into());
    let zip = schema.field("home.2.zip").unwrap();
    assert_eq!(
        zip.key,
        key(&[
            iri("https://v.example/home"),
            PathPart::Index(2),
            iri("https://v.example/zip")
        ])
    );
    assert_eq!(zip.datatype, Datatype::Integer);
    assert_eq!(schema.field("name").unwrap().key, key(&[iri("https://v.example#name")]));
    assert_eq!(schema.field("name").unwrap().datatype, Datatype::Text);
    // A field's own context ends with the field; aliases of keywords and removed terms are not fields.
    for path in ["zip", "old", "home.absent"] {
        assert_eq!(
            schema.field(path),
            Err(SchemaError::UnknownField(path.into())),
            "{path}"
        );
    }
    for path in ["", "home.", "home.99999999999999999999", &"home.".repeat(20)] {
        assert_eq!(schema.field(path), Err(SchemaError::Path(path.into())), "{path}");
    }
}

#[test]
fn zk76_documents_are_asked_for_never_fetched() {
    let context = json!(["https://other.example/base", { "Person": "base:Person" }]);
    assert_eq!(
        read(&context).unwrap_err(),
        SchemaError::Missing("https://other.example/base".into())
    );
    let mut both = documents(&context);
    both.insert(
        "https://other.example/base",
        json!({ "@context": { "base": "https://base.example/" } }).to_string(),
    );
    assert_eq!(
        Schema::read(URL, "Person", &both).unwrap().iri(),
        "https://base.example/Person"
    );
    assert!(
        matches!(Schema::read("urn:absent", "Person", &both), Err(SchemaError::Missing(url)) if url == "urn:absent")
    );
}

#[test]
fn zk76_documents_that_refer_to_themselves_end() {
    assert_eq!(read(&json!([URL])).unwrap_err(), SchemaError::TooDeep);
    let circle = json!({ "Person": "a:x", "a": "b:y", "b": "a:z" });
    // Prefixes that refer to each other are not prefixes, so the text is taken as written.
    assert_eq!(read(&circle).unwrap().iri(), "a:x");
    let own = json!({ "Person": { "@id": "https://v.example/Person", "@context": [URL] } });
    assert_eq!(read(&own).unwrap().iri(), "https://v.example/Person");
}

#[test]
fn zk76_size_depth_and_number_of_terms_are_bounded() {
    let mut documents = Documents::default();
    documents.insert(URL, vec![b' '; MAX_DOCUMENT + 1]);
    assert_eq!(
        Schema::read(URL, "Person", &documents).unwrap_err(),
        SchemaError::TooLarge(MAX_DOCUMENT + 1)
    );
    documents.insert(URL, "[".repeat(1_000));
    assert!(matches!(
        Schema::read(URL, "Person", &documents),
        Err(SchemaError::Json(_))
    ));
    let nested = (0..20).fold(json!({}), |inner, _| json!([inner]));
    assert_eq!(read(&nested).unwrap_err(), SchemaError::TooDeep);
    let chain: serde_json::Map<String, Value> = (0..40)
        .map(|i| (format!("t{i}"), json!(format!("t{}:", i + 1))))
        .collect();
    assert_eq!(read(&Value::Object(chain)).unwrap_err(), SchemaError::TooDeep);
    let many: serde_json::Map<String, Value> = (0..5_000).map(|i| (format!("t{i}"), json!("urn:x"))).collect();
    assert_eq!(read(&Value::Object(many)).unwrap_err(), SchemaError::TooManyTerms);
}

#[test]
fn zk76_protected_terms_stay_what_they_are() {
    let redefined = |inner: &str| {
        read(&json!([
            { "@protected": true, "name": "https://v.example/name" },
            { "Person": { "@id": "https://v.example/Person", "@context": { "name": inner } } }
        ]))
    };
    assert!(redefined("https://v.example/name").is_ok());
    assert_eq!(
        redefined("https://evil.example/name").unwrap_err(),
        SchemaError::Protected("name".into())
    );
}

#[test]
fn zk76_nonsense_is_refused_with_its_name() {
    for (context, error) in [
        (json!({}), SchemaError::UnknownType("Person".into())),
        (json!({ "Person": "@type" }), SchemaError::UnknownType("Person".into())),
        (json!({ "Person": "nowhere" }), SchemaError::Term("Person".into())),
        (json!({ "Person": 5 }), SchemaError::Term("Person".into())),
        (json!({ "Person": { "@id": 5 } }), SchemaError::Term("Person".into())),
        (
            json!({ "Person": { "@id": "urn:p", "@type": [] } }),
            SchemaError::Term("Person".into()),
        ),
        (
            json!({ "@import": "urn:x" }),
            SchemaError::Unsupported("@import".into()),
        ),
        (json!(5), SchemaError::NoContext),
    ] {
        assert_eq!(read(&context).unwrap_err(), error, "{context}");
    }
    let slots = |text: &str| {
        read(&json!({ "Person": { "@id": "urn:p", "@context": {
            "iden3_serialization": text, "a": "urn:a", "b": "urn:b" } } }))
    };
    let schema = slots("iden3:v1:slotIndexA=a&slotValueB=b").unwrap();
    assert!(!schema.merklized());
    assert_eq!(
        (schema.field("a").unwrap().slot, schema.field("b").unwrap().slot),
        (2, 7)
    );
    let only_a = slots("iden3:v1:slotIndexA=a").unwrap();
    assert_eq!(only_a.field("b"), Err(SchemaError::NoSlot("b".into())));
    for text in [
        "iden3:v2:slotIndexA=a",
        "iden3:v1:slotIndexC=a",
        "iden3:v1:slotIndexA",
        "iden3:v1:slotIndexA=a&slotIndexA=b",
    ] {
        assert!(matches!(slots(text), Err(SchemaError::Serialization(_))), "{text}");
    }
}
