#![no_main]
use gw_types::Timestamp;
use gw_zk::{
    did::Did,
    json, jwz,
    response::{self, Request},
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const DID: &str = "did:iden3:privado:main:2SeytAhJWLi5a68GX2bBmFNoaFCbRvyfLU6LUXBMfK";

fuzz_target!(|text: &str| {
    let token = jwz::trimmed(text);
    if let Ok(read) = jwz::Token::read(token) {
        assert!(jwz::looks_like_token(token));
        let mut segments = token.split('.');
        let (header, message) = (segments.next().unwrap(), segments.next().unwrap());
        assert_eq!(read.hash(), jwz::message_hash(header, message));
    }
    let Ok(message) = json::read(text.as_bytes()) else { return };
    assert_eq!(Ok(&message), serde_json::from_str::<Value>(text).as_ref().map_err(drop));
    let member = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let request = Request {
        thread: member("thid"),
        from: member("to"),
        message: String::new(),
        expires: None,
        accept: Vec::new(),
        scope: vec![1],
    };
    let subject = Did::parse(DID).unwrap();
    if let Ok(scope) = response::check_message(&message, &subject, &request, Timestamp::from_secs(0)) {
        assert_eq!(member("from"), DID);
        assert!(scope.iter().all(|entry| entry["id"] == 1));
    }
});
