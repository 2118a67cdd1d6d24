#![no_main]
use gw_zk::schema::{Documents, Schema, SchemaError};
use libfuzzer_sys::fuzz_target;

const URL: &str = "https://schemas.example/kyc";

// Whatever the document says, reading it ends, and reads the same again. Paths come from the document's own first
// words.
fuzz_target!(|document: &[u8]| {
    let mut documents = Documents::default();
    documents.insert(URL, document);
    let text = String::from_utf8_lossy(document);
    let words: Vec<&str> = text.split('"').skip(1).step_by(2).take(64).collect();
    for name in words.iter().take(8) {
        let read = Schema::read(URL, name, &documents);
        match &read {
            Err(SchemaError::Missing(url)) => assert_ne!(url, URL, "a document that is at hand is not missing"),
            Err(_) => {}
            Ok(schema) => {
                assert!(schema.iri().contains(':') && !schema.iri().starts_with('@'));
                let again = Schema::read(URL, name, &documents).expect("it was read before");
                for path in words.iter().copied().chain(["a.0.b", "..", ""]) {
                    let field = schema.field(path);
                    assert_eq!(field, again.field(path));
                    if let Ok(field) = field {
                        // In the tree or in a slot, never in neither or both.
                        assert_eq!(field.slot == 0, schema.merklized());
                    }
                }
            }
        }
    }
});
