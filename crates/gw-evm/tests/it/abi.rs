use alloy_dyn_abi::DynSolValue as V;
use alloy_primitives::{Address, B256, U256, address, hex, keccak256};
use gw_evm::abi::{
    AbiTextError, AbiWord, AddressCandidate, CallDataError, ContractAbi, Opaque, WalkError, WordKind, builtin,
    possible_addresses, well_known, zero_opaque, zero_word,
};
use serde_json::{Value, json};

const A: Address = address!("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
const B: Address = address!("0x5fbdb2315678afecb367f032d93f642f64180aa3");

fn abi(items: Value) -> ContractAbi {
    ContractAbi::parse(&items.to_string()).unwrap()
}

/// An ABI with one event `E` with unnamed inputs. The prefix `indexed ` marks an indexed input.
fn event(inputs: &[&str]) -> ContractAbi {
    let inputs: Vec<_> = inputs
        .iter()
        .map(|input| match input.strip_prefix("indexed ") {
            Some(ty) => json!({"name": "", "type": ty, "indexed": true}),
            None => json!({"name": "", "type": input, "indexed": false}),
        })
        .collect();
    abi(json!([{"type": "event", "name": "E", "anonymous": false, "inputs": inputs}]))
}

fn topics(signature: &str, indexed: &[B256]) -> Vec<B256> {
    [&[keccak256(signature)], indexed].concat()
}

fn encode(values: Vec<V>) -> Vec<u8> {
    V::Tuple(values).abi_encode_params()
}

fn walk(inputs: &[&str], data: &[u8]) -> Result<gw_evm::abi::DecodedAbi, WalkError> {
    let types: Vec<_> = inputs
        .iter()
        .filter(|input| !input.starts_with("indexed "))
        .copied()
        .collect();
    event(inputs)
        .event(&topics(&format!("E({})", types.join(",")), &[]))
        .expect("the event is declared")
        .data(data)
}

fn addresses(inputs: &[&str], values: Vec<V>) -> Vec<(usize, Address)> {
    walk(inputs, &encode(values))
        .unwrap()
        .addresses
        .iter()
        .map(|slot| (slot.offset, slot.address))
        .collect()
}

fn word(n: u64) -> [u8; 32] {
    U256::from(n).to_be_bytes()
}

#[test]
fn r22_addresses_in_arrays_tuples_and_nested_dynamic_values() {
    let (a, b) = (V::Address(A), V::Address(B));
    assert_eq!(
        addresses(&["uint256", "address"], vec![V::Uint(U256::ONE, 256), a.clone()]),
        [(32, A)]
    );
    let pair = V::FixedArray(vec![a.clone(), b.clone()]);
    assert_eq!(
        addresses(&["address[2]", "address"], vec![pair.clone(), b.clone()]),
        [(0, A), (32, B), (64, B)]
    );
    let list = V::Array(vec![b.clone(), a.clone()]);
    assert_eq!(
        addresses(&["address[]", "address"], vec![list.clone(), a.clone()]),
        [(32, A), (96, B), (128, A)]
    );
    let nested = V::Array(vec![V::Array(vec![a.clone()]), V::Array(vec![]), list]);
    assert_eq!(addresses(&["address[][]"], vec![nested]).len(), 3);
}

#[test]
fn r22_static_and_dynamic_tuples() {
    let inputs = json!([
        {"name": "s", "type": "tuple", "indexed": false, "components": [
            {"name": "x", "type": "uint8"}, {"name": "who", "type": "address"}]},
        {"name": "d", "type": "tuple[]", "indexed": false, "components": [
            {"name": "note", "type": "string"}, {"name": "who", "type": "address"}]},
    ]);
    let abi = abi(json!([{"type": "event", "name": "E", "anonymous": false, "inputs": inputs}]));
    let shape = abi
        .event(&topics("E((uint8,address),(string,address)[])", &[]))
        .unwrap();
    let row = |text: &str, who| V::Tuple(vec![V::String(text.into()), V::Address(who)]);
    let data = encode(vec![
        V::Tuple(vec![V::Uint(U256::from(3), 8), V::Address(A)]),
        V::Array(vec![row("a", B), row("a longer text than one word can hold", A)]),
    ]);
    let decoded = shape.data(&data).unwrap();
    assert_eq!(
        decoded.addresses.iter().map(|slot| slot.address).collect::<Vec<_>>(),
        [A, B, A]
    );
    assert_eq!(
        decoded.opaque.iter().map(|opaque| opaque.len).collect::<Vec<_>>(),
        [1, 36]
    );
    assert!(shape.has_opaque());
}

#[test]
fn r22_short_data_and_offsets_out_of_range() {
    let good = encode(vec![V::Array(vec![V::Address(A)])]);
    assert!(walk(&["address[]"], &good).is_ok());
    for cut in 0..good.len() {
        assert_eq!(walk(&["address[]"], &good[..cut]), Err(WalkError::Short), "{cut}");
    }
    let walk_with = |position: usize, value: [u8; 32]| {
        let mut data = good.clone();
        data[position..position + 32].copy_from_slice(&value);
        walk(&["address[]"], &data)
    };
    for far in [word(97), word(1 << 40), U256::MAX.to_be_bytes(), word(u64::MAX)] {
        assert_eq!(walk_with(0, far), Err(WalkError::Short), "offset");
        assert_eq!(walk_with(32, far), Err(WalkError::Short), "length");
    }
    assert_eq!(
        walk(&["bytes"], &[word(32), word(33), [0; 32]].concat()),
        Err(WalkError::Short)
    );
    assert_eq!(walk(&["address"], &[]), Err(WalkError::Short));
}

#[test]
fn r22_dirty_address_words() {
    for position in 0..12 {
        let mut data = encode(vec![V::Address(A)]);
        data[position] = 1;
        assert_eq!(walk(&["address"], &data), Err(WalkError::DirtyAddress), "{position}");
    }
}

#[test]
fn r22_bytes_that_no_type_accounts_for() {
    let mut data = encode(vec![V::Uint(U256::ONE, 256)]);
    data.extend([0; 32]);
    assert!(walk(&["uint256"], &data).is_ok(), "trailing zeros contain no data");
    data.extend(B.into_word());
    assert_eq!(walk(&["uint256"], &data), Err(WalkError::Unexplained));
    // A gap between head and tail.
    let gap = [word(64), B.into_word().0, word(0)].concat();
    assert_eq!(walk(&["address[]"], &gap), Err(WalkError::Unexplained));
}

#[test]
fn r22_unusual_layouts_are_decoded() {
    // Tails in reverse order, and at an offset that is not a multiple of 32.
    let reversed = [word(128), word(64), word(1), A.into_word().0, word(1), B.into_word().0].concat();
    let decoded = walk(&["address[]", "address[]"], &reversed).unwrap();
    assert_eq!(
        decoded.addresses,
        [
            AbiWord { offset: 96, address: A },
            AbiWord {
                offset: 160,
                address: B
            }
        ]
    );
    let shifted = [&word(33)[..], &[0], &word(1), B.into_word().as_slice()].concat();
    assert_eq!(
        walk(&["address[]"], &shifted).unwrap().addresses,
        [AbiWord { offset: 65, address: B }]
    );
    // A tail that two offsets share is reported once.
    let shared = [word(64), word(64), word(1), A.into_word().0].concat();
    assert_eq!(walk(&["address[]", "address[]"], &shared).unwrap().addresses.len(), 1);
}

#[test]
fn r22_shared_offsets_do_not_cost_exponential_time() {
    // All elements of each level point to the level below. An unlimited walk would need 2^n reads.
    let ty = format!("address{}", "[]".repeat(12));
    let mut data = [word(32)].concat();
    for _ in 0..11 {
        data.extend([word(2), word(64), word(64)].concat());
    }
    data.extend([word(1), A.into_word().0].concat());
    assert_eq!(walk(&[&ty], &data), Err(WalkError::Tangled));
}

#[test]
fn r22_huge_fixed_arrays_do_not_cost_time() {
    for ty in [
        "address[18446744073709551615]",
        "address[4294967295][4294967295]",
        "bytes[4294967295]",
    ] {
        let input = json!({"name": "", "type": ty, "indexed": false});
        let text = json!([{"type": "event", "name": "E", "anonymous": false, "inputs": [input]}]).to_string();
        // The type is either rejected, or too large for any data.
        if let Ok(abi) = ContractAbi::parse(&text) {
            let topic0 = abi.json().events().next().unwrap().selector();
            assert_eq!(
                abi.event(&[topic0]).unwrap().data(&[0; 64]),
                Err(WalkError::Short),
                "{ty}"
            );
        }
    }
}

#[test]
fn r22_other_words_that_may_be_addresses_are_reported_separately() {
    let data = encode(vec![
        V::FixedBytes(A.into_word(), 32),
        V::FixedBytes(B256::repeat_byte(1), 32),
    ]);
    let decoded = walk(&["bytes32", "bytes32"], &data).unwrap();
    assert_eq!(
        (decoded.addresses.len(), decoded.perhaps),
        (0, vec![AbiWord { offset: 0, address: A }])
    );
    let number = encode(vec![
        V::Uint(U256::from_be_bytes(A.into_word().0), 256),
        V::Uint(U256::from(u64::MAX), 256),
    ]);
    let decoded = walk(&["uint256", "uint256"], &number).unwrap();
    assert_eq!(
        decoded.perhaps,
        [AbiWord { offset: 0, address: A }],
        "HD31: regardless of the type"
    );
    let zero = encode(vec![V::FixedBytes(B256::ZERO, 32), V::Uint(U256::from(100), 256)]);
    assert!(walk(&["bytes32", "uint256"], &zero).unwrap().perhaps.is_empty());
}

/// HD31: standard events are matched by signature and topic count, regardless of the ABI of the contract.
#[test]
fn hd31_well_known_events_by_their_topics() {
    let candidates_of = |signature: &str, count: usize| {
        let topics = topics(signature, &vec![A.into_word(); count]);
        well_known(&topics).map(|shape| {
            (0..=count)
                .map(|index| shape.topic(index, &topics[index]))
                .collect::<Vec<_>>()
        })
    };
    let (a, n) = (AddressCandidate::Address(A), AddressCandidate::None);
    let transfer = "Transfer(address,address,uint256)";
    assert_eq!(
        (candidates_of(transfer, 2), candidates_of(transfer, 3)),
        (Some(vec![n, a, a]), Some(vec![n, a, a, AddressCandidate::Possible(A)]))
    );
    assert_eq!((candidates_of(transfer, 0), candidates_of(transfer, 1)), (None, None));
    assert_eq!(candidates_of("Withdrawal(address,uint256)", 1), Some(vec![n, a]));
    assert_eq!(
        candidates_of("TransferSingle(address,address,address,uint256,uint256)", 3),
        Some(vec![n, a, a, a])
    );
    assert_eq!((candidates_of("Other(address)", 1), well_known(&[])), (None, None));
    let offsets = |data: &[u8]| possible_addresses(data).map(|slot| slot.offset).collect::<Vec<_>>();
    assert_eq!(
        offsets(&[word(1), A.into_word().0, word(u64::MAX), B.into_word().0].concat()),
        [32, 96]
    );
    assert!(offsets(&[1; 31]).is_empty());
}

#[test]
fn r22_zeroing_does_not_change_lengths() {
    let data = encode(vec![V::Address(A), V::Bytes(vec![7; 5]), V::Uint(U256::from(9), 256)]);
    let decoded = walk(&["address", "bytes", "uint256"], &data).unwrap();
    let mut masked = data.clone();
    decoded
        .addresses
        .iter()
        .for_each(|slot| zero_word(&mut masked, slot.offset));
    decoded
        .opaque
        .iter()
        .for_each(|opaque| zero_opaque(&mut masked, *opaque));
    assert_eq!(
        masked,
        encode(vec![
            V::Address(Address::ZERO),
            V::Bytes(vec![0; 5]),
            V::Uint(U256::from(9), 256)
        ])
    );
    zero_word(&mut masked, usize::MAX);
    zero_word(&mut masked, data.len() - 31);
    zero_opaque(
        &mut masked,
        Opaque {
            offset: 10,
            len: usize::MAX,
        },
    );
    assert_eq!(masked.len(), data.len(), "offsets out of range have no effect");
}

#[test]
fn r19_r20_topics() {
    let shape = event(&["indexed address", "indexed uint256", "indexed bytes32"]);
    let hash = keccak256("E(address,uint256,bytes32)");
    let topics = [hash, A.into_word(), B256::from(U256::from(100)), B.into_word()];
    let shape = shape.event(&topics).unwrap();
    let candidates: Vec<_> = topics
        .iter()
        .enumerate()
        .map(|(position, topic)| shape.topic(position, topic))
        .collect();
    assert_eq!(
        candidates,
        [
            AddressCandidate::None,
            AddressCandidate::Address(A),
            AddressCandidate::None,
            AddressCandidate::Possible(B)
        ],
        "an NFT id of 100 is not an address"
    );
    assert_eq!(shape.topic(1, &hash), AddressCandidate::NonCanonical);
    assert_eq!(
        shape.topic(9, &A.into_word()),
        AddressCandidate::Possible(A),
        "undeclared (HD31)"
    );
    assert_eq!(
        AddressCandidate::undeclared(&A.into_word()),
        AddressCandidate::Possible(A)
    );
    assert_eq!(
        AddressCandidate::undeclared(&B256::from(U256::from(u64::MAX))),
        AddressCandidate::None
    );
    assert_eq!(
        AddressCandidate::undeclared(&B256::from(U256::from(1_u128 << 64))),
        AddressCandidate::Possible(Address::left_padding_from(&[1, 0, 0, 0, 0, 0, 0, 0, 0]))
    );
    assert_eq!(AddressCandidate::undeclared(&hash), AddressCandidate::None);
}

#[test]
fn r19_topics_of_hashed_types_may_still_be_addresses() {
    let abi = event(&["indexed string", "indexed address[]"]);
    let topics = [keccak256("E(string,address[])"), A.into_word(), A.into_word()];
    let shape = abi.event(&topics).unwrap();
    // HD31: the ABI alone declares that the topic is a hash, so its value still counts.
    assert_eq!(
        (shape.topic(1, &topics[1]), shape.topic(2, &topics[2])),
        (AddressCandidate::Possible(A), AddressCandidate::Possible(A))
    );
    assert_eq!(shape.topic(1, &topics[0]), AddressCandidate::None);
}

#[test]
fn r22_an_event_matches_by_topic0_and_indexed_count() {
    // ERC-20 and ERC-721 share the signature of Transfer.
    let transfer = keccak256("Transfer(address,address,uint256)");
    let id = B256::from(U256::from(100));
    let three_topics = [transfer, A.into_word(), B.into_word()];
    let four_topics = [transfer, A.into_word(), B.into_word(), id];
    assert!(builtin("ERC20").unwrap().event(&three_topics).is_some());
    assert!(builtin("ERC20").unwrap().event(&four_topics).is_none());
    assert!(builtin("erc721").unwrap().event(&three_topics).is_none());
    let nft = builtin("erc721").unwrap();
    assert_eq!(nft.event(&four_topics).unwrap().topic(3, &id), AddressCandidate::None);
    assert!(nft.event(&[B256::ZERO, id, id, id]).is_none());
    assert!(nft.event(&[]).is_none());
    assert_eq!(nft.declared(&transfer).len(), 1);
    assert!(nft.declared(&B256::ZERO).is_empty());
}

#[test]
fn r22_two_declarations_of_one_signature_differ_by_indexed_count() {
    let input = |indexed| json!({"name": "", "type": "address", "indexed": indexed});
    let contract = abi(json!([
        {"type": "event", "name": "E", "anonymous": false, "inputs": [input(true), input(false)]},
        {"type": "event", "name": "E", "anonymous": false, "inputs": [input(false), input(false)]},
    ]));
    let topic0 = keccak256("E(address,address)");
    assert_eq!(
        contract
            .event(&[topic0])
            .unwrap()
            .data(&encode(vec![V::Address(A), V::Address(B)]))
            .unwrap()
            .addresses
            .len(),
        2
    );
    assert_eq!(
        contract
            .event(&[topic0, A.into_word()])
            .unwrap()
            .data(&encode(vec![V::Address(B)]))
            .unwrap()
            .addresses
            .len(),
        1
    );
}

#[test]
fn r19_every_topic_of_an_anonymous_event_is_classified() {
    let inputs = json!([
        {"name": "", "type": "address", "indexed": true},
        {"name": "", "type": "uint256", "indexed": true},
        {"name": "", "type": "address", "indexed": false},
    ]);
    let abi = abi(json!([{"type": "event", "name": "E", "anonymous": true, "inputs": inputs}]));
    let topics = [A.into_word(), B.into_word()];
    let shape = abi.event(&topics).unwrap();
    assert!(shape.is_anonymous());
    assert_eq!(
        (shape.topic(0, &topics[0]), shape.topic(1, &topics[1])),
        (AddressCandidate::Address(A), AddressCandidate::Possible(B))
    );
    assert_eq!(
        shape.data(&encode(vec![V::Address(A)])).unwrap().addresses,
        [AbiWord { offset: 0, address: A }]
    );
    assert!(abi.event(&topics[..1]).is_none());
}

#[test]
fn f4_event_inputs_by_index() {
    let abi = event(&["address", "indexed uint256", "bool", "string"]);
    let topics = topics("E(address,uint256,bool,string)", &[B256::from(U256::from(5))]);
    let shape = abi.event(&topics).unwrap();
    let data = encode(vec![V::Address(A), V::Bool(true), V::String("x".into())]);
    assert_eq!(shape.input(0, &topics, &data).unwrap().address(), Some(A));
    assert_eq!(
        shape.input(1, &topics, &data).map(|word| (word.kind, word.word)),
        Some((WordKind::Uint(256), topics[1]))
    );
    assert_eq!(
        shape.input(2, &topics, &data).map(|word| word.kind),
        Some(WordKind::Bool)
    );
    assert_eq!(
        (shape.input(3, &topics, &data), shape.input(4, &topics, &data)),
        (None, None)
    );
    assert_eq!(shape.input(0, &topics, &[0; 31]), None);
    assert_eq!(
        (shape.input_kind(0), shape.input_kind(3), shape.input_kind(9)),
        (Some(WordKind::Address), None, None)
    );
    let mut dirty = data;
    dirty[0] = 1;
    assert_eq!(shape.input(0, &topics, &dirty), None);
}

fn selector(signature: &str) -> [u8; 4] {
    *keccak256(signature).first_chunk().unwrap()
}

#[test]
fn f3_arguments_by_index() {
    let abi = builtin("Erc1155").unwrap();
    let transfer = "safeTransferFrom(address,address,uint256,uint256,bytes)";
    let values = vec![
        V::Address(A),
        V::Address(B),
        V::Uint(U256::from(1), 256),
        V::Uint(U256::from(2), 256),
        V::Bytes(vec![1, 2, 3]),
    ];
    let input = [&selector(transfer)[..], &encode(values)].concat();
    let arguments = abi.arguments(&input).unwrap();
    assert_eq!(arguments.len(), 5);
    assert_eq!(arguments.word(0).unwrap().address(), Some(A));
    assert_eq!(arguments.word(1).unwrap().address(), Some(B));
    assert_eq!(arguments.word(3).unwrap().word, B256::from(U256::from(2)));
    assert_eq!(arguments.word(3).unwrap().address(), None, "a number is not an address");
    assert_eq!((arguments.word(4), arguments.word(5)), (None, None));
}

#[test]
fn f3_calldata_must_be_its_own_re_encoding() {
    let abi = builtin("ERC20").unwrap();
    let good = [&selector("balanceOf(address)")[..], A.into_word().as_slice()].concat();
    assert!(abi.arguments(&good).is_ok());
    let trailing = [&good[..], &[0]].concat();
    let trailing_word = [&good[..], &[0; 32]].concat();
    let mut dirty = good.clone();
    dirty[4] = 1;
    for bad in [
        &trailing,
        &trailing_word,
        &dirty,
        &good[..35].to_vec(),
        &good[..4].to_vec(),
    ] {
        assert_eq!(
            abi.arguments(bad),
            Err(CallDataError::NotCanonical),
            "{}",
            hex::encode(bad)
        );
    }
    assert_eq!(abi.arguments(&good[..3]), Err(CallDataError::NoSelector));
    assert_eq!(abi.arguments(&[0; 36]), Err(CallDataError::UnknownFunction));
}

#[test]
fn x13_all_addresses_of_calldata_are_decoded() {
    let abi = abi(
        json!([{"type": "function", "name": "f", "stateMutability": "view", "outputs": [],
        "inputs": [{"name": "", "type": "bytes"}, {"name": "", "type": "address[]"}]}]),
    );
    let call = |data: Vec<u8>| abi.decode_call(&[&selector("f(bytes,address[])")[..], &data].concat());
    let bytes = [&word(3)[..], &[1, 2, 3], &[0; 29]].concat();
    let list = [word(1), A.into_word().0].concat();
    let addresses = |data| call(data).map(|decoded| decoded.addresses.into_iter().map(|word| word.address).collect());
    // The order of the tails does not matter to the contract.
    for good in [
        [&word(64)[..], &word(128), &bytes, &list].concat(),
        [&word(128)[..], &word(64), &list, &bytes].concat(),
    ] {
        assert_eq!(addresses(good), Ok(vec![A]));
    }
    let trailing = [&word(64)[..], &word(128), &bytes, &list, &[9]].concat();
    assert_eq!(addresses(trailing), Err(CallDataError::NotCanonical));
    assert_eq!(abi.decode_call(&[1, 2, 3]), Err(CallDataError::NoSelector));
    assert_eq!(abi.decode_call(&[1, 2, 3, 4]), Err(CallDataError::UnknownFunction));
}

#[test]
fn f3_tails_must_be_in_canonical_positions() {
    let abi = abi(
        json!([{"type": "function", "name": "f", "stateMutability": "view", "outputs": [],
        "inputs": [{"name": "", "type": "bytes"}, {"name": "", "type": "address[]"}]}]),
    );
    let call = |data: Vec<u8>| abi.arguments(&[&selector("f(bytes,address[])")[..], &data].concat());
    let bytes = [&word(3)[..], &[1, 2, 3], &[0; 29]].concat();
    let list = [word(1), A.into_word().0].concat();
    assert!(call([&word(64)[..], &word(128), &bytes, &list].concat()).is_ok());
    let dirty_padding = [&word(3)[..], &[1, 2, 3], &[9; 29]].concat();
    for bad in [
        [&word(128)[..], &word(64), &list, &bytes].concat(),
        [&word(64)[..], &word(64), &list].concat(),
        [&word(96)[..], &word(160), &[0; 32], &bytes, &list].concat(),
        [&word(64)[..], &word(128), &dirty_padding, &list].concat(),
        [&word(128)[..], &word(64), &list, &bytes[..35]].concat(),
    ] {
        assert_eq!(call(bad), Err(CallDataError::NotCanonical));
    }
}

#[test]
fn f4_literals_match_the_type() {
    let a = WordKind::Address;
    assert_eq!(a.literal(A.as_slice()), Some(A.into_word()));
    assert_eq!(a.literal(A.into_word().as_slice()), Some(A.into_word()));
    assert_eq!((a.literal(&[1; 19]), a.literal(&[1; 32])), (None, None));
    assert_eq!(WordKind::Uint(8).literal(&[5]), Some(B256::with_last_byte(5)));
    assert_eq!(WordKind::Uint(8).literal(&[0, 5]), None);
    assert_eq!(
        WordKind::FixedBytes(4).literal(&[1, 2, 3, 4]),
        Some(B256::right_padding_from(&[1, 2, 3, 4]))
    );
    assert_eq!(WordKind::Int(8).literal(&[0xff]), Some(B256::repeat_byte(0xff)));
    assert_eq!(WordKind::Int(8).literal(&[0x7f]), Some(B256::with_last_byte(0x7f)));
    assert_eq!(
        (WordKind::Bool.literal(&[1]), WordKind::Bool.literal(&[2])),
        (Some(B256::with_last_byte(1)), None)
    );
    let abi = builtin("ERC20").unwrap();
    assert_eq!(abi.function_input(selector("transfer(address,uint256)"), 0), Some(a));
    assert_eq!(abi.function_input(selector("transfer(address,uint256)"), 2), None);
    assert!(abi.has_function(selector("balanceOf(address)")) && !abi.has_function([0; 4]));
}

#[test]
fn k1_r23_token_types_in_any_case() {
    for (name, functions, events) in [("erc20", 9, 2), ("Erc721", 13, 3), ("ERC1155", 8, 4)] {
        let abi = builtin(name).unwrap();
        assert_eq!(
            (abi.json().functions().count(), abi.json().events().count()),
            (functions, events),
            "{name}"
        );
    }
    for unknown in ["", "ERC777", " ERC20", "erc-20"] {
        assert!(builtin(unknown).is_none());
    }
    let selectors = [
        "transfer(address,uint256)",
        "transferFrom(address,address,uint256)",
        "approve(address,uint256)",
    ];
    assert!(
        selectors
            .iter()
            .all(|name| builtin("ERC20").unwrap().has_function(selector(name)))
    );
    let single = keccak256("TransferSingle(address,address,address,uint256,uint256)");
    assert_eq!(builtin("ERC1155").unwrap().declared(&single).len(), 1);
}

#[test]
fn invalid_abi_texts_are_rejected() {
    let message = |text: &str| ContractAbi::parse(text).unwrap_err().to_string();
    assert_eq!(message("{\"abi\": []}"), "an abi is a json array");
    assert_eq!(message(""), "an abi is a json array");
    assert_eq!(message("[{\"type\":\"event\"}]"), "malformed abi");
    assert_eq!(message("[1"), "malformed abi");
    let input = json!({"name": "", "type": "wonder", "indexed": false});
    let unknown_type = json!([{"type": "event", "name": "E", "anonymous": false, "inputs": [input]}]);
    assert_eq!(message(&unknown_type.to_string()), "event `E` has an unknown type");
    // Such a function cannot be decoded, but the rest of the ABI can.
    let input = json!({"name": "", "type": "wonder"});
    let function =
        json!({"type": "function", "name": "f", "stateMutability": "view", "inputs": [input], "outputs": []});
    let mut known = function.clone();
    known["name"] = "g".into();
    known["inputs"] = json!([]);
    let abi = abi(json!([function, known]));
    let decodable: Vec<_> = abi
        .json()
        .functions()
        .map(|function| abi.has_function(function.selector().0))
        .collect();
    assert_eq!(decodable, [false, true]);
}

/// HD36: a type with too many array suffixes is rejected before a parser recurses once for each suffix.
#[test]
fn hd36_types_of_many_array_suffixes_are_refused() {
    for (suffix, escaped) in [("[]", "[]"), ("[1]", "[1]"), ("[]", "\\u005b]")] {
        let abi = |depth: usize| {
            let kind = format!("uint256{}", escaped.repeat(depth));
            let text = format!(
                r#"[{{"type":"function","name":"f","stateMutability":"view","inputs":[{{"name":"a","type":"{kind}"}}],"outputs":[]}}]"#
            );
            ContractAbi::parse(&text)
        };
        assert!(abi(16).is_ok(), "{suffix}");
        for depth in [17, 200_000] {
            assert!(matches!(abi(depth), Err(AbiTextError::TooDeep)), "{suffix} {depth}");
        }
    }
}
