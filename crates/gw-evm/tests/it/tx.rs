use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxEnvelope, TxLegacy};
use alloy_eips::{
    eip2718::Encodable2718,
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_network::TxSignerSync;
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, address, keccak256, uint};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use gw_evm::{Call, ChainRules, Method, ParamError, SignedTransaction, call, tx};
use proptest::prelude::*;
use serde_json::{json, value::to_raw_value};

const CHAIN: ChainRules = ChainRules { chain_id: 31337 };
const TO: Address = address!("0x5fbdb2315678afecb367f032d93f642f64180aa3");
const HALF_ORDER_TIMES_2: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

fn signer() -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(7)).unwrap()
}

fn sign<T>(mut tx: T) -> (T, Signature)
where
    T: SignableTransaction<Signature>,
{
    let signature = signer().sign_transaction_sync(&mut tx).unwrap();
    (tx, signature)
}

fn encode<T>((tx, signature): (T, Signature)) -> Bytes
where
    T: SignableTransaction<Signature>,
    TxEnvelope: From<alloy_consensus::Signed<T>>,
{
    TxEnvelope::from(tx.into_signed(signature)).encoded_2718().into()
}

fn legacy() -> TxLegacy {
    TxLegacy {
        chain_id: Some(31337),
        nonce: 3,
        gas_price: 10,
        gas_limit: 21000,
        to: TxKind::Call(TO),
        value: U256::from(5),
        input: Bytes::from_static(&[1, 2, 3, 4, 5]),
    }
}

fn access_list() -> AccessList {
    AccessList(vec![AccessListItem {
        address: TO,
        storage_keys: vec![B256::repeat_byte(1)],
    }])
}

fn dynamic() -> TxEip1559 {
    TxEip1559 {
        chain_id: 31337,
        nonce: 4,
        gas_limit: 50000,
        max_fee_per_gas: 20,
        max_priority_fee_per_gas: 1,
        to: TxKind::Create,
        value: U256::ZERO,
        access_list: access_list(),
        input: Bytes::from_static(&[0x60]),
    }
}

fn authorization(chain_id: u64) -> SignedAuthorization {
    let inner = Authorization {
        chain_id: U256::from(chain_id),
        address: TO,
        nonce: 1,
    };
    let signature = signer().sign_hash_sync(&inner.signature_hash()).unwrap();
    inner.into_signed(signature)
}

fn delegating() -> TxEip7702 {
    TxEip7702 {
        chain_id: 31337,
        nonce: 5,
        gas_limit: 90000,
        max_fee_per_gas: 20,
        max_priority_fee_per_gas: 2,
        to: TO,
        value: U256::ONE,
        access_list: AccessList::default(),
        authorization_list: vec![authorization(31337), authorization(0)],
        input: Bytes::new(),
    }
}

fn decode(raw: &Bytes) -> Result<SignedTransaction, ParamError> {
    tx::decode(raw.clone(), CHAIN)
}

#[track_caller]
fn decode_error(raw: impl Into<Bytes>) -> String {
    let error = decode(&raw.into()).unwrap_err();
    assert_eq!(error.code(), -32602);
    error.to_string()
}

#[test]
fn w1_legacy_is_decoded_with_its_sender() {
    let raw = encode(sign(legacy()));
    let signed = decode(&raw).unwrap();
    assert_eq!(
        (signed.tx_type, signed.sender, signed.nonce),
        (0, signer().address(), 3)
    );
    assert_eq!((signed.hash, &signed.raw), (keccak256(&raw), &raw));
    let request = signed.request;
    assert_eq!(
        (request.from, request.to, request.nonce),
        (Some(signer().address()), Some(TO), Some(3))
    );
    assert_eq!((request.value, request.gas), (Some(U256::from(5)), Some(21000)));
    assert_eq!(
        (
            request.gas_price,
            request.max_fee_per_gas,
            request.max_priority_fee_per_gas
        ),
        (Some(10), None, None)
    );
    assert_eq!(
        (request.input.as_ref(), request.chain_id),
        (&[1, 2, 3, 4, 5][..], Some(31337))
    );
    assert!(request.access_list.is_none() && request.authorization_list.is_empty());
}

#[test]
fn w1_types_1_2_and_4_contain_every_field_that_affects_execution() {
    let with_access_list = TxEip2930 {
        chain_id: 31337,
        nonce: 1,
        gas_price: 7,
        gas_limit: 30000,
        to: TxKind::Call(TO),
        value: U256::ZERO,
        access_list: access_list(),
        input: Bytes::new(),
    };
    let signed = decode(&encode(sign(with_access_list))).unwrap();
    assert_eq!(
        (signed.tx_type, signed.request.gas_price, signed.request.max_fee_per_gas),
        (1, Some(7), None)
    );
    assert_eq!(signed.request.access_list, Some(access_list()));

    let signed = decode(&encode(sign(dynamic()))).unwrap();
    assert_eq!(
        (signed.tx_type, signed.sender, signed.request.to),
        (2, signer().address(), None)
    );
    assert_eq!(
        (signed.request.gas_price, signed.request.max_fee_per_gas),
        (None, Some(20))
    );
    assert_eq!(signed.request.max_priority_fee_per_gas, Some(1));

    let signed = decode(&encode(sign(delegating()))).unwrap();
    assert_eq!((signed.tx_type, signed.request.to), (4, Some(TO)));
    assert_eq!(signed.request.authorization_list, delegating().authorization_list);
}

#[test]
fn w1_authorities_are_recovered() {
    assert_eq!(tx::authority(&authorization(31337), CHAIN), Some(signer().address()));
    assert_eq!(tx::authority(&authorization(0), CHAIN), Some(signer().address()));
    assert_eq!(tx::authority(&authorization(1), CHAIN), None, "for another chain");
    let inner = authorization(0).inner().clone();
    let parity = SignedAuthorization::new_unchecked(inner.clone(), 2, U256::ONE, U256::ONE);
    assert_eq!(tx::authority(&parity, CHAIN), None);
    let good = authorization(0);
    let high = SignedAuthorization::new_unchecked(inner, 1 - good.y_parity(), good.r(), HALF_ORDER_TIMES_2 - good.s());
    assert_eq!(tx::authority(&high, CHAIN), None, "EIP-2 applies to authorizations");
}

#[test]
fn w1_decision_47_blobs_and_unknown_types_are_not_supported() {
    let blob = TxEip4844 {
        chain_id: 31337,
        to: TO,
        blob_versioned_hashes: vec![B256::ZERO],
        ..Default::default()
    };
    assert_eq!(decode_error(encode(sign(blob))), "transaction type not supported");
    for byte in [0x05, 0x7f, 0x80, 0xbf] {
        assert_eq!(decode_error(vec![byte, 0xc0]), "transaction type not supported");
    }
}

#[test]
fn w1_the_chain_id_must_be_that_of_the_node() {
    assert!(
        decode_error(encode(sign(TxLegacy {
            chain_id: None,
            ..legacy()
        })))
        .contains("EIP-155")
    );
    assert!(
        decode_error(encode(sign(TxLegacy {
            chain_id: Some(1),
            ..legacy()
        })))
        .contains("another chain")
    );
    assert!(
        decode_error(encode(sign(TxEip1559 {
            chain_id: 1,
            ..dynamic()
        })))
        .contains("another chain")
    );
}

#[test]
fn w1_high_s_is_refused() {
    for (raw, high_s) in [
        {
            let (tx, sig) = sign(legacy());
            (
                encode((tx.clone(), sig)),
                encode((tx, Signature::new(sig.r(), HALF_ORDER_TIMES_2 - sig.s(), !sig.v()))),
            )
        },
        {
            let (tx, sig) = sign(dynamic());
            (
                encode((tx.clone(), sig)),
                encode((tx, Signature::new(sig.r(), HALF_ORDER_TIMES_2 - sig.s(), !sig.v()))),
            )
        },
    ] {
        assert!(decode(&raw).is_ok());
        assert_eq!(decode_error(high_s), "invalid signature");
    }
}

#[test]
fn w1_only_canonical_bytes_are_accepted() {
    let good = encode(sign(dynamic()));
    let trailing = [&good[..], &[0]].concat();
    decode_error(trailing);
    decode_error(good[..good.len() - 1].to_vec());
    decode_error(Vec::new());
    decode_error(vec![0]);
    decode_error([&[0][..], &encode(sign(legacy()))].concat());

    // The length of the list in a longer form than necessary: 0xf8 <len> becomes 0xf9 0x00 <len>.
    let legacy = encode(sign(legacy()));
    assert_eq!(legacy[0], 0xf8);
    decode_error([&[0xf9, 0x00][..], &legacy[1..]].concat());
    // A leading zero in the nonce: 0x03 becomes 0x82 0x00 0x03.
    let mut padded = legacy.to_vec();
    assert_eq!(padded[2], 3);
    padded.splice(2..3, [0x82, 0, 3]);
    padded[1] += 2;
    decode_error(padded);
}

#[test]
fn w1_more_than_128_kib_are_refused() {
    let raw_with_input = |len: usize| {
        encode(sign(TxLegacy {
            input: vec![1; len].into(),
            ..legacy()
        }))
    };
    let overhead = raw_with_input(131_000).len() - 131_000;
    assert!(decode(&raw_with_input(tx::MAX_RAW - overhead)).is_ok());
    assert!(decode_error(raw_with_input(tx::MAX_RAW - overhead + 1)).contains("128 KiB"));
}

#[test]
fn w1_send_raw_transaction_with_recipients() {
    let raw = encode(sign(legacy()));
    let params = to_raw_value(&json!([raw, {"visibleTo": ["did:a:b"]}])).unwrap();
    let parsed = call::parse(Method::SendRawTransaction, Some(&params), CHAIN).unwrap();
    assert_eq!(parsed.visible_to.entries().unwrap(), ["did:a:b"]);
    let Call::SendRaw(signed) = parsed.call else {
        panic!("not a raw send")
    };
    assert_eq!(signed.raw, raw);
}

#[test]
fn r1_plain_creation_address() {
    // The first contract of anvil's first account.
    let sender = address!("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
    assert_eq!(tx::create_address(sender, 0), TO);
}

proptest! {
    #[test]
    fn w1_any_bytes_are_handled_and_accepted_ones_are_canonical(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), kind in 0..3_u8,
    ) {
        let raw = match kind {
            0 => encode(sign(legacy())),
            1 => encode(sign(dynamic())),
            _ => encode(sign(delegating())),
        };
        let mut bytes = raw.to_vec();
        for (index, value) in flips {
            let position = index.index(bytes.len());
            bytes[position] = value;
        }
        if let Ok(signed) = decode(&bytes.clone().into()) {
            prop_assert_eq!(signed.raw.as_ref(), &bytes[..]);
            prop_assert_eq!(signed.request.chain_id, Some(31337));
            prop_assert_eq!(signed.request.from, Some(signed.sender));
        }
    }
}
