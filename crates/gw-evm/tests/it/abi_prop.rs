//! Compares the ABI decoding with an independent encoder and decoder.

use alloy_dyn_abi::{DynSolType as T, DynSolValue as V};
use alloy_primitives::{Address, B256, I256, U256};
use gw_evm::abi::{ContractAbi, EventShape, WalkError, zero_word};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

fn ty() -> impl Strategy<Value = T> {
    let leaf = prop_oneof![
        3 => Just(T::Address),
        1 => Just(T::Bool),
        1 => (1..=32_usize).prop_map(|n| T::Uint(n * 8)),
        1 => (1..=32_usize).prop_map(|n| T::Int(n * 8)),
        1 => (1..=32_usize).prop_map(T::FixedBytes),
        1 => Just(T::Bytes),
        1 => Just(T::String),
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|t| T::Array(Box::new(t))),
            (inner.clone(), 1..4_usize).prop_map(|(t, n)| T::FixedArray(Box::new(t), n)),
            vec(inner, 1..4).prop_map(T::Tuple),
        ]
    })
}

fn value(ty: &T) -> BoxedStrategy<V> {
    match ty.clone() {
        T::Address => any::<[u8; 20]>()
            .prop_map(|bytes| V::Address(Address::from(bytes)))
            .boxed(),
        T::Bool => any::<bool>().prop_map(V::Bool).boxed(),
        T::Uint(bits) => any::<[u8; 32]>()
            .prop_map(move |bytes| V::Uint(U256::from_be_bytes(bytes) >> (256 - bits), bits))
            .boxed(),
        T::Int(bits) => any::<[u8; 32]>()
            .prop_map(move |bytes| V::Int(I256::from_be_bytes(bytes).asr(256 - bits), bits))
            .boxed(),
        T::FixedBytes(size) => any::<[u8; 32]>()
            .prop_map(move |bytes| V::FixedBytes(B256::right_padding_from(&bytes[..size]), size))
            .boxed(),
        T::Bytes => vec(any::<u8>(), 0..70).prop_map(V::Bytes).boxed(),
        T::String => "[a-z]{0,40}".prop_map(V::String).boxed(),
        T::Array(inner) => vec(value(&inner), 0..4).prop_map(V::Array).boxed(),
        T::FixedArray(inner, size) => vec(value(&inner), size).prop_map(V::FixedArray).boxed(),
        T::Tuple(types) => types.iter().map(value).collect::<Vec<_>>().prop_map(V::Tuple).boxed(),
        other => unreachable!("{other:?}"),
    }
}

fn types_and_values() -> impl Strategy<Value = (Vec<T>, Vec<V>)> {
    vec(ty(), 0..4).prop_flat_map(|types| {
        let values = types.iter().map(value).collect::<Vec<_>>();
        (Just(types), values)
    })
}

/// The type in the format of a JSON ABI.
fn param(ty: &T) -> Value {
    match ty {
        T::Tuple(types) => {
            json!({"name": "", "type": "tuple", "components": types.iter().map(param).collect::<Vec<_>>()})
        }
        T::Array(inner) => param_with_suffix(inner, "[]"),
        T::FixedArray(inner, size) => param_with_suffix(inner, &format!("[{size}]")),
        other => json!({"name": "", "type": other.sol_type_name()}),
    }
}

fn param_with_suffix(inner: &T, suffix: &str) -> Value {
    let mut param = param(inner);
    param["type"] = format!("{}{suffix}", param["type"].as_str().unwrap()).into();
    param
}

fn function(types: &[T]) -> ContractAbi {
    let inputs: Vec<_> = types.iter().map(param).collect();
    let item = json!({"type": "function", "name": "f", "stateMutability": "view", "inputs": inputs, "outputs": []});
    ContractAbi::parse(&json!([item]).to_string()).unwrap()
}

fn event(types: &[T]) -> ContractAbi {
    let mut inputs: Vec<_> = types.iter().map(param).collect();
    inputs.iter_mut().for_each(|input| input["indexed"] = false.into());
    let item = json!({"type": "event", "name": "f", "anonymous": false, "inputs": inputs});
    ContractAbi::parse(&json!([item]).to_string()).unwrap()
}

fn collect(value: &V, addresses: &mut Vec<Address>) {
    match value {
        V::Address(address) => addresses.push(*address),
        V::Array(values) | V::FixedArray(values) | V::Tuple(values) => {
            values.iter().for_each(|v| collect(v, addresses))
        }
        _ => {}
    }
}

fn encode(values: &[V]) -> Vec<u8> {
    V::Tuple(values.to_vec()).abi_encode_params()
}

fn call(abi: &ContractAbi, data: &[u8]) -> bool {
    let selector = abi.json().functions().next().unwrap().selector();
    abi.arguments(&[selector.as_slice(), data].concat()).is_ok()
}

fn shape(abi: &ContractAbi) -> &EventShape {
    let topic0 = abi.json().events().next().unwrap().selector();
    abi.event(&[topic0]).unwrap()
}

/// Removes the bits that do not belong to the type, because the decoder keeps wrong padding.
fn clean(value: V) -> V {
    let clean_values = |values: Vec<V>| values.into_iter().map(clean).collect();
    match value {
        V::Uint(n, bits) => V::Uint((n << (256 - bits)) >> (256 - bits), bits),
        V::Int(n, bits) => V::Int((n << (256 - bits)).asr(256 - bits), bits),
        V::FixedBytes(word, size) => V::FixedBytes(B256::right_padding_from(&word[..size]), size),
        V::Array(values) => V::Array(clean_values(values)),
        V::FixedArray(values) => V::FixedArray(clean_values(values)),
        V::Tuple(values) => V::Tuple(clean_values(values)),
        other => other,
    }
}

/// The decoder rejects strings that are not UTF-8, but contracts do not. `bytes` has the same encoding.
fn bytes_for_strings(ty: &T) -> T {
    match ty {
        T::String => T::Bytes,
        T::Array(inner) => T::Array(Box::new(bytes_for_strings(inner))),
        T::FixedArray(inner, size) => T::FixedArray(Box::new(bytes_for_strings(inner)), *size),
        T::Tuple(types) => T::Tuple(types.iter().map(bytes_for_strings).collect()),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn r22_decoding_finds_exactly_the_encoded_addresses((types, values) in types_and_values()) {
        let abi = event(&types);
        let shape = shape(&abi);
        let mut data = encode(&values);
        let decoded = shape.data(&data).unwrap();

        let mut expected = Vec::new();
        values.iter().for_each(|value| collect(value, &mut expected));
        expected.sort();
        let mut slots: Vec<_> = decoded.addresses.iter().map(|slot| slot.address).collect();
        slots.sort();
        prop_assert_eq!(slots, expected);

        for slot in &decoded.addresses {
            zero_word(&mut data, slot.offset);
        }
        let masked = shape.data(&data).unwrap();
        prop_assert!(masked.addresses.iter().all(|slot| slot.address.is_zero()));
        prop_assert_eq!(masked.addresses.len(), decoded.addresses.len());
        prop_assert_eq!(masked.opaque, decoded.opaque);
    }

    #[test]
    fn f3_encoded_calldata_is_accepted((types, values) in types_and_values()) {
        prop_assert!(call(&function(&types), &encode(&values)));
    }

    #[test]
    fn f3_calldata_is_accepted_exactly_if_it_is_its_own_re_encoding(
        (types, values) in types_and_values(),
        changes in vec((any::<prop::sample::Index>(),
            prop_oneof![Just(0_u8), Just(1), Just(32), Just(64), any::<u8>()]), 0..3),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        tail in vec(Just(0_u8), 0..2),
    ) {
        let mut data = encode(&values);
        for (index, byte) in changes {
            if !data.is_empty() {
                let position = index.index(data.len());
                data[position] = byte;
            }
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len() + 1));
        }
        data.extend(tail);
        let tuple = bytes_for_strings(&T::Tuple(types.clone()));
        let is_canonical = tuple.abi_decode_params(&data).is_ok_and(|value| clean(value).abi_encode_params() == data);
        prop_assert_eq!(call(&function(&types), &data), is_canonical);
    }

    #[test]
    fn r22_decoding_any_data_stays_within_its_bounds(
        types in vec(ty(), 0..4),
        data in vec(prop_oneof![3 => Just(0_u8), 1 => Just(32), 1 => Just(64), 1 => any::<u8>()], 0..400),
    ) {
        let abi = event(&types);
        let shape = shape(&abi);
        if let Ok(decoded) = shape.data(&data) {
            for slot in decoded.addresses.iter().chain(&decoded.perhaps) {
                prop_assert_eq!(&data[slot.offset + 12..slot.offset + 32], slot.address.as_slice());
            }
            for opaque in decoded.opaque {
                prop_assert!(opaque.offset + opaque.len <= data.len());
            }
        }
    }

    #[test]
    fn r22_data_shorter_than_a_word_is_an_error(types in vec(ty(), 1..4), data in vec(any::<u8>(), 0..31)) {
        // Data of less than one word cannot encode a value of any type.
        let abi = event(&types);
        let shape = shape(&abi);
        prop_assert_eq!(shape.data(&data), Err(WalkError::Short));
    }
}
