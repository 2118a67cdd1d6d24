//! Decoding of blocks as nodes write them.

use super::*;
use alloy_primitives::keccak256;
use gw_chain_store::rows::{Proxy, ProxyKind, TokenStandard};
use gw_types::{B256, Bytes, address, b256};
use proptest::prelude::*;
use serde_json::{Value, json};
use transfers::{TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE};

const ALICE: Address = Address::repeat_byte(0xa1);
const BOB: Address = Address::repeat_byte(0xb0);
const TOKEN: Address = Address::repeat_byte(0x70);
const HASH: B256 = B256::repeat_byte(0xee);
const BLOCK: B256 = B256::repeat_byte(0xbb);

fn number(number: u64) -> B256 {
    B256::from(U256::from(number))
}

fn data(words: &[B256]) -> Value {
    json!(Bytes::from(words.concat()))
}

fn log(topics: &[B256], data: Value) -> Value {
    json!({"logIndex": "0x3", "address": TOKEN, "topics": topics, "data": data, "removed": false})
}

fn header() -> Value {
    json!({"number": "0x10", "hash": BLOCK, "parentHash": B256::repeat_byte(1), "timestamp": "0x65000000",
        "gasLimit": "0x1c9c380", "gasUsed": "0x5208", "baseFeePerGas": "0x7", "difficulty": "0x0",
        "nonce": "0x0000000000000042", "miner": ALICE, "extraData": "0xd883", "stateRoot": B256::repeat_byte(2),
        "transactionsRoot": B256::repeat_byte(3), "receiptsRoot": B256::repeat_byte(4)})
}

fn transaction_json() -> Value {
    json!({"hash": HASH, "from": ALICE, "to": TOKEN, "value": "0x1", "gas": "0xffff", "gasPrice": "0x9",
        "maxFeePerGas": "0xb", "maxPriorityFeePerGas": "0x2", "nonce": "0x5", "type": "0x2", "input": "0x"})
}

fn receipt_json(logs: &[Value]) -> Value {
    json!({"transactionHash": HASH, "blockHash": BLOCK, "status": "0x1", "gasUsed": "0x5208",
        "effectiveGasPrice": "0x9", "contractAddress": null, "logs": logs})
}

fn top(members: Value, calls: Value) -> Value {
    let mut frame = json!({"type": "CALL", "from": ALICE, "to": TOKEN, "gas": "0xffff", "gasUsed": "0x10",
        "input": "0x", "output": "0x", "value": "0x1", "calls": calls});
    let Value::Object(members) = members else { panic!() };
    frame.as_object_mut().unwrap().extend(members);
    frame
}

/// A block of one transaction.
fn content(transaction: &Value, receipt: &Value, tree: Option<Value>) -> BlockContent {
    let mut block = header();
    block["transactions"] = json!([transaction]);
    let trees = tree.map(|tree| json!([{"txHash": HASH, "result": tree}]).to_string());
    BlockContent::parse(&block.to_string(), &json!([receipt]).to_string(), trees.as_deref()).unwrap()
}

fn decoded(content: &BlockContent) -> BlockData {
    decode(content, &BTreeMap::new()).unwrap()
}

fn with_logs(logs: &[Value]) -> TransactionData {
    let content = content(&transaction_json(), &receipt_json(logs), None);
    decoded(&content).transactions.remove(0)
}

#[test]
fn header_and_transaction_have_all_fields_of_the_node() {
    let data = decoded(&content(&transaction_json(), &receipt_json(&[]), None));
    let expected = Block {
        number: 16,
        hash: BLOCK,
        parent_hash: B256::repeat_byte(1),
        timestamp: 0x6500_0000,
        gas_limit: 30_000_000,
        gas_used: 21_000,
        base_fee_per_gas: Some(U256::from(7)),
        difficulty: U256::ZERO,
        total_difficulty: None,
        nonce: 0x42,
        miner: ALICE,
        extra_data: Bytes::from_static(&[0xd8, 0x83]),
        state_root: B256::repeat_byte(2),
        transactions_root: B256::repeat_byte(3),
        receipts_root: B256::repeat_byte(4),
        frames_complete: false,
    };
    assert_eq!(data.block, expected);
    let expected = Transaction {
        hash: HASH,
        from: ALICE,
        to: Some(TOKEN),
        created_contract: None,
        value: U256::ONE,
        gas_limit: 65_535,
        gas_used: 21_000,
        effective_gas_price: U256::from(9),
        max_fee_per_gas: Some(U256::from(11)),
        max_priority_fee_per_gas: Some(U256::from(2)),
        nonce: 5,
        transaction_type: 2,
        input: Bytes::new(),
        success: true,
        error: None,
        revert_reason: None,
    };
    assert_eq!(data.transactions[0].transaction, expected);
}

#[test]
fn a_legacy_transaction_was_paid_at_its_own_price() {
    let (mut transaction, mut receipt) = (transaction_json(), receipt_json(&[]));
    for member in ["type", "maxFeePerGas", "maxPriorityFeePerGas"] {
        transaction.as_object_mut().unwrap().remove(member);
    }
    receipt.as_object_mut().unwrap().remove("effectiveGasPrice");
    let row = decoded(&content(&transaction, &receipt, None))
        .transactions
        .remove(0)
        .transaction;
    assert_eq!((row.transaction_type, row.effective_gas_price), (0, U256::from(9)));
    transaction.as_object_mut().unwrap().remove("gasPrice");
    let content = content(&transaction, &receipt, None);
    assert_eq!(decode(&content, &BTreeMap::new()), Err(DecodeError::NoGasPrice));
}

#[test]
fn x8_an_erc20_transfer_has_three_topics_and_one_number() {
    let topics = [TRANSFER, ALICE.into_word(), BOB.into_word()];
    let value = B256::repeat_byte(0xff);
    let transaction = with_logs(&[log(&topics, data(&[value]))]);
    let expected = TokenTransfer {
        log_index: 3,
        batch_position: 0,
        token: TOKEN,
        from: ALICE,
        to: BOB,
        value: U256::MAX,
        token_id: None,
        standard: TokenStandard::Erc20,
    };
    assert_eq!(transaction.transfers, [expected]);
    assert_eq!((transaction.logs.len(), transaction.logs[0].index), (1, 3));
}

#[test]
fn x8_an_erc721_transfer_has_four_topics_and_value_one() {
    let topics = [TRANSFER, Address::ZERO.into_word(), BOB.into_word(), number(77)];
    let transaction = with_logs(&[log(&topics, json!("0x"))]);
    let [transfer] = transaction.transfers.as_slice() else {
        panic!("{transaction:?}");
    };
    assert_eq!(transfer.standard, TokenStandard::Erc721);
    assert_eq!((transfer.from, transfer.to), (Address::ZERO, BOB), "a mint");
    assert_eq!((transfer.value, transfer.token_id), (U256::ONE, Some(U256::from(77))));
}

#[test]
fn x8_an_erc1155_transfer_has_a_row_per_id() {
    let operator = Address::repeat_byte(0x0e);
    let sides = [operator.into_word(), ALICE.into_word(), Address::ZERO.into_word()];
    let single = [&[TRANSFER_SINGLE][..], &sides].concat();
    let batch = [&[TRANSFER_BATCH][..], &sides].concat();
    let arrays = [64, 160, 2, 7, 8, 2, 70, 80].map(number);
    let transaction = with_logs(&[log(&single, data(&[number(5), number(50)])), log(&batch, data(&arrays))]);
    let rows: Vec<_> = transaction
        .transfers
        .iter()
        .map(|row| {
            (
                row.batch_position,
                row.token_id.unwrap().to::<u64>(),
                row.value.to::<u64>(),
            )
        })
        .collect();
    assert_eq!(rows, [(0, 5, 50), (0, 7, 70), (1, 8, 80)]);
    assert!(
        transaction
            .transfers
            .iter()
            .all(|row| (row.from, row.to) == (ALICE, Address::ZERO)),
        "burns"
    );
}

/// X8: the amount of an ERC-20 transfer is the first word of its data, whatever follows it.
#[test]
fn x8_the_amount_of_an_erc20_transfer_is_the_first_word() {
    let [alice, bob] = [ALICE, BOB].map(|address| address.into_word());
    for rest in [vec![], vec![0xff], vec![0xff; 32], vec![0xff; 100]] {
        let data = [number(7).to_vec(), rest].concat();
        let transaction = with_logs(&[log(&[TRANSFER, alice, bob], json!(Bytes::from(data)))]);
        let [transfer] = transaction.transfers.as_slice() else {
            panic!("{transaction:?}");
        };
        assert_eq!((transfer.value, transfer.token_id), (U256::from(7), None));
        assert_eq!((transfer.from, transfer.to), (ALICE, BOB));
        assert_eq!(transfer.standard, TokenStandard::Erc20);
    }
}

/// A time that no column holds is refused, so that it never reads as one before 1970.
#[test]
fn x1_a_time_that_is_out_of_range_is_refused() {
    let at = |timestamp: &str| {
        let mut block = header();
        block["timestamp"] = json!(timestamp);
        block["transactions"] = json!([transaction_json()]);
        let receipts = json!([receipt_json(&[])]).to_string();
        let content = BlockContent::parse(&block.to_string(), &receipts, None).unwrap();
        decode(&content, &BTreeMap::new()).map(|data| data.block.timestamp)
    };
    assert_eq!(at("0x7fffffffffffffff"), Ok(i64::MAX));
    for out_of_range in ["0x8000000000000000", "0xffffffffffffffff", "0x10000000000000000"] {
        assert_eq!(
            at(out_of_range),
            Err(DecodeError::OutOfRange("timestamp")),
            "{out_of_range}"
        );
    }
}

#[test]
fn x8_a_malformed_transfer_stays_a_log() {
    let [alice, bob] = [ALICE, BOB].map(|address| address.into_word());
    let dirty = B256::repeat_byte(0xff);
    let operator = number(1 << 63);
    let huge = number(u64::MAX);
    let batch = [TRANSFER_BATCH, operator, alice, bob];
    let logs = [
        log(&[TRANSFER, alice, bob], json!("0x")),
        log(&[TRANSFER, alice, bob], json!("0x05")),
        log(&[TRANSFER, alice, bob], json!(Bytes::from(vec![1; 31]))),
        log(&[TRANSFER, alice, dirty], data(&[number(1)])),
        log(&[TRANSFER, alice], data(&[number(1)])),
        log(&[TRANSFER], data(&[alice, bob, number(1)])),
        log(&[TRANSFER, alice, bob, number(1)], data(&[number(1)])),
        log(&[TRANSFER_SINGLE, operator, alice, bob], data(&[number(1)])),
        log(&[TRANSFER_SINGLE, dirty, alice, bob], data(&[number(1), number(2)])),
        log(&[TRANSFER_SINGLE, alice, bob], data(&[number(1), number(2)])),
        log(&batch, json!("0x")),
        log(&batch, data(&[64, 128, 1, 7, 2, 70, 80].map(number))),
        log(&batch, data(&[number(64), huge, number(0)])),
        log(&batch, data(&[number(64), number(64), huge])),
        log(&[], json!("0x")),
    ];
    let transaction = with_logs(&logs);
    assert_eq!(transaction.transfers, []);
    assert_eq!(transaction.logs.len(), logs.len());
}

#[test]
fn frames_are_the_calls_below_the_top_frame_in_the_order_of_the_trace() {
    let call = |kind: &str, to: Address, calls: Value| {
        json!({"type": kind, "from": TOKEN, "to": to, "gas": "0x9", "gasUsed": "0x4", "input": "0x01", "output": "0x02",
            "value": "0x3", "calls": calls})
    };
    let mut failed = call("CALL", BOB, json!([]));
    failed["error"] = json!("out of gas\u{0}\u{202e}");
    let nowhere = json!({"type": "CREATE2", "from": TOKEN, "gas": "0x9", "gasUsed": "0x9", "input": "0x60",
        "value": "0x0", "error": "contract creation code storage out of gas"});
    let inner = call("STATICCALL", ALICE, json!([call("DELEGATECALL", BOB, json!([]))]));
    let tree = top(
        json!({}),
        json!([inner, failed, nowhere, call("SELFDESTRUCT", ALICE, json!([]))]),
    );
    let data = decoded(&content(&transaction_json(), &receipt_json(&[]), Some(tree)));
    assert!(data.block.frames_complete);
    let frames = &data.transactions[0].frames;
    let shapes: Vec<_> = frames
        .iter()
        .map(|frame| (frame.trace_address.as_slice(), frame.call_type, frame.to))
        .collect();
    assert_eq!(
        shapes,
        [
            (&[0][..], CallType::StaticCall, Some(ALICE)),
            (&[0, 0], CallType::DelegateCall, Some(BOB)),
            (&[1], CallType::Call, Some(BOB)),
            (&[2], CallType::Create2, None),
            (&[3], CallType::SelfDestruct, Some(ALICE)),
        ]
    );
    assert_eq!(frames[2].error.as_deref(), Some("out of gas\u{fffd}\u{fffd}"));
    assert_eq!(frames[2].value, U256::from(3));
    assert_eq!(frames[1].value, U256::ZERO, "a delegate call moves nothing");
    assert_eq!((frames[0].gas, frames[0].gas_used), (9, 4));
    assert_eq!((&frames[0].input[..], &frames[0].output[..]), (&[1][..], &[2][..]));
}

#[test]
fn x10_a_block_without_a_trace_is_marked() {
    let data = decoded(&content(&transaction_json(), &receipt_json(&[]), None));
    assert!(!data.block.frames_complete);
    let other = json!([{"txHash": BLOCK, "result": top(json!({}), json!([]))}]).to_string();
    let mut block = header();
    block["transactions"] = json!([transaction_json()]);
    let receipts = json!([receipt_json(&[])]).to_string();
    let content = BlockContent::parse(&block.to_string(), &receipts, Some(&other)).unwrap();
    assert!(content.call_trees.is_none(), "the trace of another transaction");
}

fn failed(top_members: Value) -> Transaction {
    let mut receipt = receipt_json(&[]);
    receipt["status"] = json!("0x0");
    let tree = top(top_members, json!([]));
    decoded(&content(&transaction_json(), &receipt, Some(tree)))
        .transactions
        .remove(0)
        .transaction
}

#[test]
fn a_failed_transaction_has_its_error_and_revert_reason() {
    // Error("nope")
    let word = |text: &str| format!("{text:0<64}");
    let nope = format!("0x08c379a0{:064x}{:064x}{}", 32, 4, word("6e6f7065"));
    let row = failed(json!({"error": "execution reverted", "output": nope}));
    assert!(!row.success);
    assert_eq!(
        (row.error.as_deref(), row.revert_reason.as_deref()),
        (Some("execution reverted"), Some("nope"))
    );
    let panic = format!("0x4e487b71{:064x}", 0x11);
    let row = failed(json!({"error": "execution reverted", "output": panic}));
    assert_eq!(row.revert_reason.as_deref(), Some("Panic(0x11)"));
    let row = failed(json!({"error": "execution reverted", "output": "0xdeadbeef", "revertReason": "custom"}));
    assert_eq!(row.revert_reason.as_deref(), Some("custom"));
    let row = failed(json!({"error": "out of gas", "output": "0x"}));
    assert_eq!((row.error.as_deref(), row.revert_reason), (Some("out of gas"), None));
    let short = format!("0x08c379a0{:064x}{:064x}", 32, 400);
    assert_eq!(failed(json!({"error": "x", "output": short})).revert_reason, None);
    let long = format!("0x08c379a0{:064x}{:064x}{}", 32, 4096, "61".repeat(4096));
    let row = failed(json!({"error": "x", "output": long}));
    assert_eq!(row.revert_reason.map(|reason| reason.len()), Some(LONGEST_REASON));
}

fn state(code: &[u8]) -> ContractState {
    ContractState {
        code: Bytes::copy_from_slice(code),
        implementation: B256::ZERO,
        beacon: B256::ZERO,
        logic: B256::ZERO,
    }
}

#[test]
fn x11_contracts_are_created_by_receipts_and_by_frames() {
    let create = |kind: &str, to: Address, error: Option<&str>, calls: Value| {
        json!({"type": kind, "from": TOKEN, "to": to, "gas": "0x9", "gasUsed": "0x9", "input": "0x", "output": "0x",
            "value": "0x0", "error": error, "calls": calls})
    };
    let [kept, undone, inner, failed] = [1, 2, 3, 4].map(Address::repeat_byte);
    let tree = top(
        json!({"type": "CREATE"}),
        json!([
            create("CREATE", kept, None, json!([])),
            create(
                "CREATE2",
                undone,
                Some("reverted"),
                json!([create("CREATE", inner, None, json!([]))])
            ),
            create("CREATE", failed, Some("out of gas"), json!([])),
        ]),
    );
    let (mut transaction, mut receipt) = (transaction_json(), receipt_json(&[]));
    transaction["to"] = Value::Null;
    receipt["contractAddress"] = json!(TOKEN);
    let block = content(&transaction, &receipt, Some(tree));
    let created: Vec<_> = creations(&block)
        .iter()
        .map(|creation| (creation.address, creation.creator))
        .collect();
    assert_eq!(created, [(TOKEN, ALICE), (kept, TOKEN)]);
    let states = BTreeMap::from([(TOKEN, state(&[1])), (kept, state(&[2]))]);
    let data = decode(&block, &states).unwrap();
    let [first, second] = data.contracts.as_slice() else {
        panic!("{data:?}");
    };
    assert_eq!((first.code_hash, &first.code[..]), (keccak256([1]), &[1][..]));
    assert_eq!((second.creator, second.creation_transaction), (Some(TOKEN), Some(HASH)));
    assert_eq!(data.transactions[0].transaction.created_contract, Some(TOKEN));
    assert_eq!(decode(&block, &BTreeMap::new()), Err(DecodeError::NoContractState));
    receipt["status"] = json!("0x0");
    let block = content(&transaction, &receipt, None);
    assert!(creations(&block).is_empty(), "a failed deployment");
    assert_eq!(decoded(&block).transactions[0].transaction.created_contract, None);
}

/// X7: a status that no transaction has is none of a failed one.
#[test]
fn x7_a_receipt_with_another_status_is_refused() {
    for (status, is_read) in [("0x0", true), ("0x1", true), ("0x2", false), ("0x7", false)] {
        let mut receipt = receipt_json(&[]);
        receipt["status"] = json!(status);
        let data = decode(&content(&transaction_json(), &receipt, None), &BTreeMap::new());
        assert_eq!(data.is_ok(), is_read, "{status}: {data:?}");
    }
}

#[test]
fn x11_proxies_of_known_kinds() {
    let target = Address::repeat_byte(7);
    let kind = |state: &ContractState| proxy(state).map(|proxy| (proxy.kind, proxy.implementation));
    assert_eq!(kind(&state(&[1])), None);
    let code = [
        &[0x36, 0x3d, 0x3d, 0x37, 0x3d, 0x3d, 0x3d, 0x36, 0x3d, 0x73][..],
        target.as_slice(),
        &[
            0x5a, 0xf4, 0x3d, 0x82, 0x80, 0x3e, 0x90, 0x3d, 0x91, 0x60, 0x2b, 0x57, 0xfd, 0x5b, 0xf3,
        ],
    ];
    assert_eq!(kind(&state(&code.concat())), Some((ProxyKind::Minimal, Some(target))));
    let word = target.into_word();
    let slots = |implementation, beacon, logic| ContractState {
        implementation,
        beacon,
        logic,
        ..state(&[1])
    };
    let zero = B256::ZERO;
    assert_eq!(
        kind(&slots(word, zero, zero)),
        Some((ProxyKind::ImplementationSlot, Some(target)))
    );
    assert_eq!(kind(&slots(zero, word, zero)), Some((ProxyKind::Beacon, None)));
    assert_eq!(
        kind(&slots(zero, zero, word)),
        Some((ProxyKind::LogicSlot, Some(target)))
    );
    assert_eq!(
        kind(&slots(B256::repeat_byte(0xff), zero, zero)),
        None,
        "not an address"
    );
}

#[test]
fn x11_a_reported_upgrade_changes_a_contract_of_an_earlier_block() {
    let upgraded = b256!("bc7cd75a20ee27fd9adebab32041f755214dbc6bffa90cc0225b39da2e5c2d3b");
    let block = content(
        &transaction_json(),
        &receipt_json(&[log(&[upgraded, BOB.into_word()], json!("0x"))]),
        None,
    );
    assert_eq!(changed_proxies(&block), [TOKEN].into());
    let implementation = address!("00000000000000000000000000000000000000b1");
    let states = BTreeMap::from([(
        TOKEN,
        ContractState {
            implementation: implementation.into_word(),
            ..state(&[1])
        },
    )]);
    let data = decode(&block, &states).unwrap();
    let [change] = data.proxy_changes.as_slice() else {
        panic!("{data:?}");
    };
    let expected = Proxy {
        kind: ProxyKind::ImplementationSlot,
        implementation: Some(implementation),
    };
    assert_eq!((change.address, change.proxy), (TOKEN, Some(expected)));
}

/// Words that are interesting as topics and data: signatures, addresses, offsets, and any number.
fn any_word() -> impl Strategy<Value = B256> {
    prop_oneof![
        prop::sample::select(vec![
            TRANSFER,
            TRANSFER_SINGLE,
            TRANSFER_BATCH,
            ALICE.into_word(),
            BOB.into_word()
        ]),
        (0_u64..300).prop_map(number),
        any::<u64>().prop_map(number),
        any::<[u8; 32]>().prop_map(B256::from),
    ]
}

fn any_bytes() -> impl Strategy<Value = Bytes> {
    let words = prop::collection::vec(any_word(), 0..8).prop_map(|words| words.concat());
    (words, prop::collection::vec(any::<u8>(), 0..5)).prop_map(|(words, end)| Bytes::from([words, end].concat()))
}

fn any_log() -> impl Strategy<Value = Value> {
    let index =
        prop_oneof![9 => (0_u64..100).prop_map(U256::from), 1 => any::<[u8; 32]>().prop_map(U256::from_be_bytes)];
    (prop::collection::vec(any_word(), 0..6), any_bytes(), index)
        .prop_map(|(topics, data, index)| json!({"logIndex": index, "address": TOKEN, "topics": topics, "data": data}))
}

fn any_frame() -> impl Strategy<Value = Value> {
    let kinds = [
        "CALL",
        "STATICCALL",
        "DELEGATECALL",
        "CALLCODE",
        "CREATE",
        "CREATE2",
        "SELFDESTRUCT",
    ];
    let leaf = (
        prop::sample::select(kinds.to_vec()),
        any_bytes(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(kind, bytes, fails, has_address)| {
            let creates = kind.starts_with("CREATE");
            let to = (has_address || !(creates && fails)).then_some(BOB);
            json!({"type": kind, "from": ALICE, "to": to, "gas": "0x1", "gasUsed": "0x1", "input": bytes,
                "output": bytes, "value": "0x1", "error": fails.then_some("failed\u{0}")})
        });
    leaf.prop_recursive(6, 24, 4, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..4)).prop_map(|(mut frame, calls)| {
            frame["calls"] = json!(calls);
            frame
        })
    })
}

fn any_quantity() -> impl Strategy<Value = U256> {
    prop_oneof![9 => any::<u32>().prop_map(U256::from), 1 => any::<[u8; 32]>().prop_map(U256::from_be_bytes)]
}

proptest! {
    /// Whatever a node answers: decoding ends with rows or an error, and rows agree with what was decoded.
    #[test]
    fn x7_x8_decoding_never_panics(
        logs in prop::collection::vec(any_log(), 0..6),
        tree in prop::option::of(any_frame()),
        numbers in prop::collection::vec(any_quantity(), 8),
        input in any_bytes(),
        succeeds: bool,
        deploys: bool,
    ) {
        let (mut transaction, mut receipt, mut block) = (transaction_json(), receipt_json(&logs), header());
        for (index, member) in ["gas", "gasPrice", "nonce", "value"].into_iter().enumerate() {
            transaction[member] = json!(numbers[index]);
        }
        transaction["input"] = json!(input);
        if deploys {
            transaction["to"] = Value::Null;
            receipt["contractAddress"] = json!(TOKEN);
        }
        receipt["status"] = json!(if succeeds { "0x1" } else { "0x0" });
        for (index, member) in ["timestamp", "gasLimit", "difficulty", "nonce"].into_iter().enumerate() {
            block[member] = json!(numbers[index + 4]);
        }
        block["transactions"] = json!([transaction]);
        let trees = tree.map(|tree| json!([{"txHash": HASH, "result": tree}]).to_string());
        let content = BlockContent::parse(&block.to_string(), &json!([receipt]).to_string(), trees.as_deref()).unwrap();
        prop_assert_eq!(content.call_trees.is_some(), trees.is_some());
        let creations = creations(&content);
        let addresses = creations.iter().map(|creation| creation.address).chain(changed_proxies(&content));
        let states = addresses.map(|address| (address, state(&[1]))).collect();
        if let Ok(data) = decode(&content, &states) {
            let row = &data.transactions[0];
            prop_assert_eq!(row.logs.len(), logs.len());
            prop_assert_eq!(data.contracts.len(), creations.len());
            let has_log = |transfer: &TokenTransfer| row.logs.iter().any(|log| log.index == transfer.log_index);
            prop_assert!(row.transfers.iter().all(has_log));
            let is_ordered = row.frames.is_sorted_by(|one, other| one.trace_address < other.trace_address);
            prop_assert!(is_ordered, "{:?}", row.frames);
        }
    }
}
