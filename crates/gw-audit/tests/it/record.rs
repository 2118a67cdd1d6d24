//! Encoding and decoding of records.

use crate::world::{Counter, any_record, at, chain, chain_id, full_access};
use gw_audit::{Chain, Content, EncodedRecord, Entry, EntryError, Record, Stream, cbor, erased, tree};
use proptest::prelude::*;

/// The entry of [`full_access`], written out by hand from RFC 8949, so that the format does not change by accident.
#[test]
fn rule_4_the_bytes_of_an_entry_are_fixed() {
    let entries = chain(Stream::Access, [9; 32], &[full_access().into()]);
    let printed = diagnose(&entries[1].bytes);
    let expected = format!(
        "{{\"v\": 1, \"seq\": 1, \"body\": {{\"method\": \"eth_call\", \"ip_address\": h'{ip}', \
         \"trace_kind\": \"simulation\", \"auth_method\": \"bearer\", \"duration_us\": 1234, \
         \"external_id\": h'{external_id}', \"matched_via\": \"method\", \"node_called\": true, \"status_code\": 403, \
         \"upstream_ms\": 3, \"policy_epoch\": 77, \"denial_reason\": \"method_not_allowed\", \
         \"correlation_id\": \"c0ffee\", \"request_params\": h'{params}', \"response_status\": 404}}, \
         \"kind\": \"access\", \"prev\": h'{prev}', \"time\": 1700000000000010, \
         \"shard\": h'00000000000000000000000000000007', \"org_id\": h'00000000000000000000000000000005', \
         \"stream\": \"access\", \"org_seq\": 0, \"org_prev\": h'{zero}'}}",
        ip = commitment(0, "192.0.2.7"),
        external_id = commitment(2, "did:test:alice"),
        params = commitment(4, r#"["0x1"]"#),
        prev = hex::encode(entries[0].hash),
        zero = "00".repeat(32),
    );
    assert_eq!(printed, expected);
    assert_eq!(entries[1].hash, tree::leaf(&entries[1].bytes));
    let digest = "294d08f3d43d0f24b9e3fc4975b0585b";
    assert_eq!(
        hex::encode(&entries[1].hash[..16]),
        digest,
        "the format of stored entries changed"
    );
}

/// Rule 5: SHA-256(salt16 ‖ value), where the salt is two consecutive numbers of [`Counter`].
fn commitment(counter: u64, value: &str) -> String {
    use sha2::Digest;
    let salt = [counter.to_le_bytes(), (counter + 1).to_le_bytes()].concat();
    hex::encode(sha2::Sha256::digest([&salt, value.as_bytes()].concat()))
}

/// CBOR diagnostic notation, from a reader that shares no code with the reader under test.
fn diagnose(bytes: &[u8]) -> String {
    fn item(value: &ciborium::Value) -> String {
        match value {
            ciborium::Value::Integer(n) => i128::from(*n).to_string(),
            ciborium::Value::Bytes(bytes) => format!("h'{}'", hex::encode(bytes)),
            ciborium::Value::Text(text) => format!("{text:?}"),
            ciborium::Value::Bool(b) => b.to_string(),
            ciborium::Value::Map(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(k, v)| format!("{}: {}", item(k), item(v)))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            other => format!("{other:?}"),
        }
    }
    item(&ciborium::from_reader(bytes).unwrap())
}

proptest! {
    #[test]
    fn rule_4_every_stored_field_comes_back(record in any_record()) {
        let entries = chain(record.stream(), [9; 32], std::slice::from_ref(&record));
        let entry = Entry::decode(&entries[1].bytes, &entries[1].openings).unwrap();
        prop_assert_eq!(entry.content, Content::Record(record));
        prop_assert_eq!(entry.erased, 0);
        prop_assert_eq!(entry.header, entries[1].header);
    }

    /// Rule 4: the bytes are the deterministic encoding according to another implementation.
    #[test]
    fn rule_4_keys_are_sorted_and_lengths_definite(record in any_record()) {
        let entries = chain(record.stream(), [9; 32], &[record]);
        let value: ciborium::Value = ciborium::from_reader(&entries[1].bytes[..]).unwrap();
        assert_sorted(&value);
        let mut reencoded = Vec::new();
        ciborium::into_writer(&value, &mut reencoded).unwrap();
        prop_assert_eq!(&reencoded, &entries[1].bytes, "shortest heads, definite lengths");
    }

    /// Rule 5: erasing every personal value changes neither the hash nor the chain.
    #[test]
    fn rule_5_personal_values_can_be_erased(record in any_record()) {
        let entries = chain(record.stream(), [9; 32], &[record]);
        let entry = &entries[1];
        let openings = erased(&entry.openings).unwrap();
        prop_assert!(openings.iter().all(|byte| *byte == 0xf6), "only nulls are left");
        let decoded = Entry::decode(&entry.bytes, &openings).unwrap();
        prop_assert_eq!(decoded.erased as usize, openings.len());
        prop_assert_eq!(decoded.header, entry.header);
    }

    #[test]
    fn rule_5_every_changed_byte_of_an_opening_is_noticed(record in any_record(), at in any::<prop::sample::Index>(),
        bit in 0..8) {
        let entries = chain(record.stream(), [9; 32], &[record]);
        let mut openings = entries[1].openings.clone();
        prop_assume!(!openings.is_empty());
        let at = at.index(openings.len());
        openings[at] ^= 1_u8 << bit;
        let error = Entry::decode(&entries[1].bytes, &openings).unwrap_err();
        prop_assert!(matches!(error, EntryError::Commitment | EntryError::Openings(_)), "{:?}", error);
    }

    #[test]
    fn bytes_that_are_not_an_entry_are_rejected_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Entry::decode(&bytes, &bytes).is_err());
        let _ = cbor::Reader::new(&bytes).skip();
    }
}

fn assert_sorted(value: &ciborium::Value) {
    if let ciborium::Value::Map(fields) = value {
        let keys: Vec<_> = fields
            .iter()
            .map(|(key, _)| {
                let mut bytes = Vec::new();
                ciborium::into_writer(key, &mut bytes).unwrap();
                bytes
            })
            .collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "{fields:?}");
        fields.iter().for_each(|(_, value)| assert_sorted(value));
    }
}

#[test]
fn rule_5_equal_values_have_different_commitments() {
    let entries = chain(Stream::Access, [9; 32], &[full_access().into(), full_access().into()]);
    let external_id = |n: usize| {
        let value: ciborium::Value = ciborium::from_reader(&entries[n].bytes[..]).unwrap();
        let body = value
            .as_map()
            .unwrap()
            .iter()
            .find(|(key, _)| key.as_text() == Some("body"))
            .unwrap()
            .1
            .clone();
        body.as_map()
            .unwrap()
            .iter()
            .find(|(key, _)| key.as_text() == Some("external_id"))
            .unwrap()
            .1
            .clone()
    };
    assert_ne!(external_id(1), external_id(2));
}

#[test]
fn rule_16_time_never_decreases_in_a_chain() {
    let first = chain(Stream::Access, [9; 32], &[]);
    let (mut chain, header, _) = Chain::replay(chain_id(Stream::Access), &first[0].bytes).unwrap();
    assert_eq!(header.time, at(0));
    let record: Record = full_access().into();
    let entry = chain
        .entry(EncodedRecord::new(&record, &Counter::default()), at(-5_000_000))
        .unwrap();
    assert_eq!(
        entry.header.time,
        at(0),
        "the clock went back, the time in the chain did not"
    );
}

#[test]
fn rule_4_organizations_have_their_own_chain_within_the_chain() {
    let access = |org| {
        let mut record = full_access();
        record.org_id = org;
        Record::from(record)
    };
    let (a, b) = (gw_types::OrgId::fixed(1), gw_types::OrgId::fixed(2));
    let entries = chain(
        Stream::Access,
        [9; 32],
        &[access(Some(a)), access(Some(b)), access(None), access(Some(a))],
    );
    let org = |n: usize| entries[n].header.org;
    assert_eq!((org(1).unwrap().seq, org(1).unwrap().prev), (0, gw_audit::Hash::ZERO));
    assert_eq!((org(2).unwrap().seq, org(2).unwrap().prev), (0, gw_audit::Hash::ZERO));
    assert_eq!(org(3), None);
    assert_eq!((org(4).unwrap().seq, org(4).unwrap().prev), (1, entries[1].hash));
}

#[test]
fn a_replayed_chain_continues_where_it_ended() {
    let records: Vec<Record> = (0..5).map(|_| full_access().into()).collect();
    let entries = chain(Stream::Access, [9; 32], &records);
    let (mut chain, ..) = Chain::replay(chain_id(Stream::Access), &entries[0].bytes).unwrap();
    for entry in &entries[1..] {
        let (header, hash) = chain.accept(&entry.bytes).unwrap();
        assert_eq!((header, hash), (entry.header, entry.hash));
    }
    let error = chain.clone().accept(&entries[5].bytes).unwrap_err();
    assert_eq!(error, gw_audit::ChainError::Seq { expected: 6, actual: 5 });
    let resumed = Chain::resume(chain.id(), chain.head(), chain.orgs());
    let next = |mut chain: Chain| {
        chain
            .entry(EncodedRecord::new(&records[0], &Counter::default()), at(100))
            .unwrap()
    };
    assert_eq!(next(resumed), next(chain));
}
