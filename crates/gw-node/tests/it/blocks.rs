//! Whole blocks for the index of the explorer, from a real and from a scripted node.

use crate::{anvil::send, connect};
use alloy_primitives::Bloom;
use gw_evm::trace::FrameKind;
use gw_node::{BlockReader, ReadError, ViewCall};
use gw_policy::snapshot::VisibleState;
use gw_testkit::{
    FakeNode,
    anvil::anvil,
    fake_node::{NodeReply, Received, block},
};
use gw_types::{Address, B256, Bytes, U256, address};
use serde_json::{Value, json};

const FUNDED: Address = address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266");

/// Creation code that calls the zero address, creates an empty contract, and deploys code of one byte.
const CREATION: &str = "0x6000600060006000600060006000f150600060006000f050600160005360016000f3";

#[tokio::test]
async fn x10_a_block_of_anvil_has_receipts_and_call_trees() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    let created = send(&node, None, CREATION).await.unwrap();
    node.refresh_head().await.unwrap();
    let reader = BlockReader::new(node);
    let content = reader.block(1).await.unwrap().unwrap();
    let head = reader.head().unwrap();
    assert_eq!(
        (content.header.hash, content.header.parent_hash),
        (head.hash, head.parent)
    );
    let [mined] = content.transactions.as_slice() else {
        panic!("{content:?}");
    };
    assert_eq!(mined.transaction.from, FUNDED);
    assert_eq!(
        (mined.receipt.status, mined.receipt.contract_address),
        (U256::ONE, Some(created))
    );
    let trees = content.call_trees.clone().unwrap();
    let kinds: Vec<FrameKind> = trees[0].frames.iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [FrameKind::Create, FrameKind::Call, FrameKind::Create]);
    assert_eq!(trees[0].trace_addresses(), [vec![], vec![0], vec![1]]);
    let creators: Vec<Address> = trees[0].creations().map(|(_, creator)| creator).collect();
    assert_eq!(creators, [FUNDED, created]);
    assert_eq!(
        reader
            .call_trees(1, head.hash, &[mined.transaction.hash])
            .await
            .unwrap(),
        Some(trees)
    );
    assert!(matches!(
        reader.call_trees(1, B256::ZERO, &[mined.transaction.hash]).await,
        Err(ReadError::OtherBlock)
    ));
    assert!(reader.block(0).await.unwrap().unwrap().transactions.is_empty());
    assert!(reader.block(2).await.unwrap().is_none());
    let state = reader.contracts(&[created, FUNDED], head.hash).await.unwrap();
    let codes: Vec<_> = state.into_iter().map(|state| state.unwrap().code).collect();
    assert_eq!(codes, [Bytes::from_static(&[1]), Bytes::new()]);
    let balances = reader.balances(&[created, FUNDED], head.hash).await.unwrap();
    assert_eq!(balances[0], Some(U256::ZERO));
    assert!(balances[1].unwrap() > U256::ZERO);
}

#[tokio::test]
async fn hd26_a_view_names_the_accounts_that_it_reads() {
    let anvil = anvil();
    let node = connect(anvil.url()).await;
    // Code that returns the balance of the account in its calldata: CALLDATALOAD(0) BALANCE, returned as a word.
    let prying = send(&node, None, "0x6b6000353160005260206000f3600052600c6014f3")
        .await
        .unwrap();
    // Code that returns 7.
    let plain = send(&node, None, "0x69600760005260206000f3600052600a6016f3")
        .await
        .unwrap();
    node.refresh_head().await.unwrap();
    let reader = BlockReader::new(node);
    let pin = reader.head().unwrap().pin();
    let call = |contract, input: B256| ViewCall {
        contract,
        input: Bytes::copy_from_slice(input.as_slice()),
        gas: 100_000,
    };
    let result = reader
        .view(&call(plain, B256::ZERO), pin, &VisibleState::default())
        .await
        .unwrap();
    assert_eq!(
        result.output,
        Some(Bytes::copy_from_slice(B256::with_last_byte(7).as_slice()))
    );
    assert!(result.dependencies.is_empty(), "{result:?}");
    let result = reader
        .view(&call(prying, FUNDED.into_word()), pin, &VisibleState::default())
        .await
        .unwrap();
    assert!(result.output.is_some());
    assert_eq!(result.dependencies, [FUNDED].into());
}

const SENDER: &str = "0x00000000000000000000000000000000000000aa";
const BLOCK: &str = "0x7777777777777777777777777777777777777777777777777777777777777777";

fn hash(index: usize) -> String {
    format!("{:#x}", B256::with_last_byte(u8::try_from(index + 1).unwrap()))
}

fn receipt(hash: &str, block: &str) -> Value {
    json!({"transactionHash": hash, "blockHash": block, "status": "0x1", "gasUsed": "0x5208",
        "effectiveGasPrice": "0x1", "contractAddress": null, "logs": []})
}

fn call_tree() -> Value {
    json!({"type": "CALL", "from": SENDER, "to": SENDER, "gas": "0x1", "gasUsed": "0x1", "input": "0x", "output": "0x",
        "value": "0x0"})
}

/// A node with a block of `count` transactions, whose replies `change` may replace.
async fn scripted(
    count: usize,
    mut change: impl FnMut(&Received) -> Option<NodeReply> + Send + 'static,
) -> (FakeNode, BlockReader) {
    let fake = FakeNode::start().await;
    let node = connect(fake.url()).await;
    fake.take();
    let transaction = |index: usize| {
        json!({"hash": hash(index), "from": SENDER, "to": SENDER, "value": "0x0", "gas": "0x5208", "gasPrice": "0x1",
            "nonce": "0x0", "type": "0x0", "input": "0x", "blockHash": BLOCK})
    };
    let transactions: Vec<Value> = (0..count).map(transaction).collect();
    fake.improvise(move |call| {
        if let Some(reply) = change(call) {
            return Some(reply);
        }
        let named = call
            .params
            .get(0)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let traced: Vec<Value> = (0..count)
            .map(|index| json!({"txHash": hash(index), "result": call_tree()}))
            .collect();
        let result = match call.method.as_str() {
            "eth_getBlockByNumber" => {
                let mut block = block(7, BLOCK);
                let members = block.as_object_mut().unwrap();
                members.insert("transactions".to_owned(), json!(transactions));
                members.insert("gasUsed".to_owned(), json!(format!("{:#x}", 0x5208 * count)));
                block
            }
            "eth_getBlockReceipts" => json!((0..count).map(|index| receipt(&hash(index), BLOCK)).collect::<Vec<_>>()),
            "eth_getTransactionReceipt" => receipt(&named, BLOCK),
            "eth_getTransactionByHash" => json!({"hash": named, "blockHash": BLOCK}),
            "debug_traceBlockByHash" => json!(traced),
            "debug_traceTransaction" => call_tree(),
            _ => return None,
        };
        Some(NodeReply::Result(result))
    });
    (fake, BlockReader::new(node))
}

fn methods(fake: &FakeNode) -> Vec<String> {
    let mut methods: Vec<String> = fake.take().into_iter().map(|call| call.method).collect();
    methods.sort();
    methods
}

#[tokio::test]
async fn a_block_takes_three_exchanges_and_names_its_hash() {
    let (fake, reader) = scripted(60, |_| None).await;
    let content = reader.block(7).await.unwrap().unwrap();
    assert_eq!(
        (content.transactions.len(), content.call_trees.unwrap().len()),
        (60, 60)
    );
    let mut calls = fake.take();
    calls.sort_by(|one, other| one.method.cmp(&other.method));
    let params: Vec<_> = calls
        .iter()
        .map(|call| (call.method.as_str(), &call.params[0]))
        .collect();
    let pinned = json!({"blockHash": BLOCK, "requireCanonical": true});
    assert_eq!(
        params,
        [
            ("debug_traceBlockByHash", &json!(BLOCK)),
            ("eth_getBlockByNumber", &json!("0x7")),
            ("eth_getBlockReceipts", &pinned),
        ]
    );
}

#[tokio::test]
async fn a_node_without_methods_for_blocks_is_queried_per_transaction() {
    let unsupported = |call: &Received| {
        let is_bulk = ["eth_getBlockReceipts", "debug_traceBlockByHash"].contains(&call.method.as_str());
        is_bulk.then_some(NodeReply::Error(-32601, "the method does not exist", Value::Null))
    };
    let (fake, reader) = scripted(3, unsupported).await;
    let content = reader.block(7).await.unwrap().unwrap();
    assert_eq!((content.transactions.len(), content.call_trees.unwrap().len()), (3, 3));
    assert!(methods(&fake).contains(&"eth_getBlockReceipts".to_owned()));
    reader.block(7).await.unwrap().unwrap();
    let methods = methods(&fake);
    assert!(
        !methods
            .iter()
            .any(|method| method == "eth_getBlockReceipts" || method == "debug_traceBlockByHash")
    );
    assert_eq!(
        methods
            .iter()
            .filter(|method| *method == "eth_getTransactionReceipt")
            .count(),
        3
    );
}

#[tokio::test]
async fn x7_a_missing_or_foreign_receipt_is_an_error() {
    let missing = |call: &Received| match call.method.as_str() {
        "eth_getBlockReceipts" => Some(NodeReply::Result(json!([receipt(&hash(0), BLOCK), null]))),
        _ => None,
    };
    let (_fake, reader) = scripted(2, missing).await;
    assert!(matches!(reader.block(7).await, Err(ReadError::MissingReceipt)));
    let short = |call: &Received| match (call.method.as_str(), call.params[0].as_str()) {
        ("eth_getBlockReceipts", _) => Some(NodeReply::Result(json!([receipt(&hash(0), BLOCK)]))),
        ("eth_getTransactionReceipt", Some(named)) if named == hash(1) => Some(NodeReply::Result(Value::Null)),
        _ => None,
    };
    let (_fake, reader) = scripted(2, short).await;
    assert!(matches!(reader.block(7).await, Err(ReadError::MissingReceipt)));
    let swapped = |call: &Received| match call.method.as_str() {
        "eth_getBlockReceipts" => Some(NodeReply::Result(json!([
            receipt(&hash(1), BLOCK),
            receipt(&hash(0), BLOCK)
        ]))),
        _ => None,
    };
    let (_fake, reader) = scripted(2, swapped).await;
    assert!(matches!(reader.block(7).await, Err(ReadError::MissingReceipt)));
    let foreign = |call: &Received| match call.method.as_str() {
        "eth_getBlockReceipts" => Some(NodeReply::Result(json!([receipt(&hash(0), &hash(9))]))),
        _ => None,
    };
    let (_fake, reader) = scripted(1, foreign).await;
    assert!(matches!(reader.block(7).await, Err(ReadError::OtherBlock)));
}

/// X7: half an answer, or a hollow one, is not a block: the header says that there is more.
#[tokio::test]
async fn x7_transactions_that_are_not_those_of_the_header_are_an_error() {
    let empty = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
    let (zero, other) = (format!("{:#x}", B256::ZERO), format!("{:#x}", B256::repeat_byte(4)));
    let (one, two, none) = ("0x5208", "0xa410", "0x0");
    for (listed, gas, transactions_root, receipts_root, is_accepted) in [
        (0, none, empty, empty, true),
        (0, none, &zero, &zero, true),
        (0, none, &other, empty, false),
        (0, none, empty, &other, false),
        (0, one, empty, empty, false),
        (1, one, &other, &other, true),
        (1, two, &other, &other, false),
        (2, two, &other, &other, true),
        (2, one, &other, &other, false),
    ] {
        let case = format!("{listed} {gas} {transactions_root} {receipts_root}");
        let header = (gas.to_owned(), transactions_root.to_owned(), receipts_root.to_owned());
        let answer = move |call: &Received| {
            (call.method == "eth_getBlockByNumber").then(|| {
                let mut block = block(7, BLOCK);
                let transaction = |index: usize| {
                    json!({"hash": hash(index), "from": SENDER, "to": SENDER, "value": "0x0", "gas": "0x5208",
                        "gasPrice": "0x1", "nonce": "0x0", "type": "0x0", "input": "0x", "blockHash": BLOCK})
                };
                block["transactions"] = (0..listed).map(transaction).collect();
                block["gasUsed"] = json!(header.0);
                block["transactionsRoot"] = json!(header.1);
                block["receiptsRoot"] = json!(header.2);
                NodeReply::Result(block)
            })
        };
        let (_fake, reader) = scripted(listed, answer).await;
        match reader.block(7).await {
            Ok(Some(_)) if is_accepted => {}
            Err(ReadError::OtherTransactions) if !is_accepted => {}
            result => panic!("{case}: {result:?}"),
        }
    }
}

#[tokio::test]
async fn x7_logs_that_are_not_those_of_the_bloom_filters_are_an_error() {
    let emitted = |address: &str| json!([{"logIndex": "0x0", "address": address, "topics": [BLOCK], "data": "0x"}]);
    let mut bloom = Bloom::ZERO;
    bloom.accrue_raw_log(SENDER.parse().unwrap(), &[BLOCK.parse().unwrap()]);
    let other = "0x00000000000000000000000000000000000000bb";
    for (logs, in_receipt, in_block, is_accepted) in [
        (emitted(SENDER), Some(bloom), Some(bloom), true),
        (json!([]), Some(bloom), Some(bloom), false),
        (json!([]), None, Some(bloom), false),
        (json!([]), Some(bloom), None, false),
        (emitted(other), Some(bloom), Some(bloom), false),
        // Some nodes keep no filters.
        (emitted(SENDER), Some(Bloom::ZERO), Some(Bloom::ZERO), true),
        (emitted(SENDER), None, None, true),
    ] {
        let case = format!("{logs} {} {}", in_receipt.is_some(), in_block.is_some());
        let answer = move |call: &Received| match call.method.as_str() {
            "eth_getBlockByNumber" => {
                let mut block = block(7, BLOCK);
                block["transactions"] = json!([{"hash": hash(0), "from": SENDER, "to": SENDER, "value": "0x0",
                    "gas": "0x5208", "gasPrice": "0x1", "nonce": "0x0", "type": "0x0", "input": "0x",
                    "blockHash": BLOCK}]);
                block["logsBloom"] = json!(in_block);
                Some(NodeReply::Result(block))
            }
            "eth_getBlockReceipts" => {
                let mut receipt = receipt(&hash(0), BLOCK);
                receipt["logs"] = logs.clone();
                receipt["logsBloom"] = json!(in_receipt);
                Some(NodeReply::Result(json!([receipt])))
            }
            _ => None,
        };
        let (_fake, reader) = scripted(1, answer).await;
        match reader.block(7).await {
            Ok(Some(_)) if is_accepted => {}
            Err(ReadError::OtherLogs) if !is_accepted => {}
            result => panic!("{case}: {result:?}"),
        }
    }
}

#[tokio::test]
async fn x10_a_failed_trace_is_no_failed_block() {
    let untraced = |call: &Received| {
        let is_trace = call.method.starts_with("debug_trace");
        is_trace.then_some(NodeReply::Error(
            -32000,
            "required historical state unavailable",
            Value::Null,
        ))
    };
    let (_fake, reader) = scripted(2, untraced).await;
    let content = reader.block(7).await.unwrap().unwrap();
    assert_eq!(content.transactions.len(), 2);
    assert!(content.call_trees.is_none());
    // One bad transaction makes the block incomplete; nothing stands in for its frames.
    let partly = |call: &Received| match call.method.as_str() {
        "debug_traceBlockByHash" => Some(NodeReply::Result(json!([
            {"txHash": hash(0), "result": call_tree()}, {"txHash": hash(1), "error": "execution timeout"}
        ]))),
        "debug_traceTransaction" if call.params[0] == hash(1) => {
            Some(NodeReply::Error(-32000, "execution timeout", Value::Null))
        }
        _ => None,
    };
    let (_fake, reader) = scripted(2, partly).await;
    assert!(reader.block(7).await.unwrap().unwrap().call_trees.is_none());
    // A block that left the chain has no traces, so it must be read again.
    let moved = |call: &Received| match call.method.as_str() {
        "debug_traceBlockByHash" => Some(NodeReply::Error(-32000, "unknown block", Value::Null)),
        "eth_getTransactionByHash" => Some(NodeReply::Result(json!({"blockHash": hash(9)}))),
        _ => None,
    };
    let (_fake, reader) = scripted(1, moved).await;
    assert!(matches!(reader.block(7).await, Err(ReadError::OtherBlock)));
}
