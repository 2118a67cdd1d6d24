//! `did.json`: identifiers and DIDs.

use alloy_primitives::hex;
use gw_zk::{
    did::{Did, Id, Network},
    number,
};

use crate::support::{fr, json};

#[test]
fn di1_di2_di3_valid_dids_are_one_with_their_ids() {
    let Some(data) = json("jwz/did.json") else { return };
    for case in data["valid"].as_array().unwrap() {
        let text = case["did"].as_str().unwrap();
        let did = Did::parse(text).unwrap();
        assert_eq!(did.as_str(), text);
        assert_eq!(did.id().to_string(), case["id_base58"].as_str().unwrap());
        assert_eq!(hex::encode(did.id().bytes()), case["id_hex"].as_str().unwrap());
        assert_eq!(did.id().scalar(), fr(&case["id_int"]));
        assert_eq!(
            Did::from_id(Id::from_scalar(&fr(&case["id_int"])).unwrap()),
            Ok(did.clone())
        );
        assert_eq!(
            did.id().network().unwrap().key(),
            case["resolver_key"].as_str().unwrap()
        );
    }
}

#[test]
fn di1_di3_invalid_dids_are_refused() {
    let Some(data) = json("jwz/did.json") else { return };
    for case in data["invalid"].as_array().unwrap() {
        if let Some(text) = case["input"].as_str() {
            assert!(Did::parse(text).is_err(), "{text}: {}", case["reason"]);
        }
        if let Some(text) = case["input_int"].as_str() {
            let id = number::scalar(text).map(|number| Id::from_scalar(&number));
            assert!(!matches!(id, Ok(Ok(_))), "{text}: {}", case["reason"]);
        }
    }
}

#[test]
fn di2_the_network_table_is_the_published_one() {
    let Some(data) = json("jwz/did.json") else { return };
    for (key, byte) in data["network_bytes"].as_object().unwrap() {
        if key == "readonly:" {
            continue;
        }
        assert_eq!(
            u64::from(Network::from_key(key).unwrap().byte),
            byte.as_u64().unwrap(),
            "{key}"
        );
    }
    for (key, chain) in data["chain_ids"].as_object().unwrap() {
        assert_eq!(
            Network::from_key(key).unwrap().chain_id,
            chain.as_u64().unwrap(),
            "{key}"
        );
    }
}
