#![no_main]
use gw_zk::{
    did::{Did, Id},
    number,
    state::{self, Outcome},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(did) = Did::parse(text) {
        assert_eq!(did.as_str(), text);
        assert_eq!(Did::from_id(did.id()), Ok(did.clone()));
        assert_eq!(Id::from_scalar(&did.id().scalar()), Ok(did.id()));
    }
    if let Ok(id) = Id::from_base58(text) {
        assert_eq!(id.to_string(), text);
        assert_eq!(Id::new(*id.bytes()), Ok(id));
    }
    if let Ok(scalar) = number::scalar(text) {
        assert_eq!(number::word(&scalar).to_string(), text);
        assert_eq!(number::scalar_from_word(number::word(&scalar)), Some(scalar));
        let _ = Id::from_scalar(&scalar).map(|id| id.is_genesis(&scalar));
        for outcome in [Outcome::Returned(text.as_bytes()), Outcome::Reverted { data: &[], message: text }] {
            let _ = state::read_root(&scalar, outcome);
        }
    }
});
