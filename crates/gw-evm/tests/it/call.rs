use alloy_primitives::{Address, B256, U256, address};
use gw_evm::{
    BlockId, BlockTag, Call, ChainRules, LogRange, Method, ParamError, ParamErrorKind, ParsedCall, SimulationKind,
    TopicFilter, TransactionRef, call,
};
use serde_json::{Value, json, value::to_raw_value};

const CHAIN: ChainRules = ChainRules { chain_id: 31337 };
const A: Address = address!("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
const B: Address = address!("0x5fbdb2315678afecb367f032d93f642f64180aa3");

fn parse(method: Method, params: Value) -> Result<ParsedCall, ParamError> {
    call::parse(method, Some(&to_raw_value(&params).unwrap()), CHAIN)
}

#[track_caller]
fn parse_call(method: Method, params: Value) -> Call {
    parse(method, params).unwrap().call
}

#[track_caller]
fn assert_rejected(method: Method, params: Value) -> ParamError {
    let text = params.to_string();
    let error = parse(method, params).expect_err(&text);
    assert_eq!(
        (error.kind(), error.code()),
        (ParamErrorKind::Invalid, -32602),
        "{text}"
    );
    error
}

fn parse_simulation(params: Value) -> gw_evm::Simulation {
    match parse_call(Method::Call, params) {
        Call::Simulate(simulation) => *simulation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn section_9_every_row_accepts_the_parameters_of_real_clients() {
    let hash = B256::repeat_byte(7);
    let object = json!({"from": A, "to": B, "data": "0x70a08231"});
    let rows = [
        (Method::BlockNumber, json!([])),
        (Method::ChainId, json!([])),
        (Method::GasPrice, json!([])),
        (Method::NetVersion, json!([])),
        (Method::NetListening, json!([])),
        (Method::ClientVersion, json!([])),
        (Method::Syncing, json!([])),
        (Method::MaxPriorityFeePerGas, json!([])),
        (Method::FeeHistory, json!(["0xa", "latest", [10, 20.5]])),
        (Method::BlobBaseFee, json!([])),
        (Method::ProtocolVersion, json!([])),
        (Method::PeerCount, json!([])),
        (Method::Sha3, json!(["0x68656c6c6f"])),
        (Method::Accounts, json!([])),
        (Method::Coinbase, json!([])),
        (Method::GetBalance, json!([A, "latest"])),
        (Method::GetTransactionCount, json!([A, "pending"])),
        (Method::GetCode, json!([A])),
        (Method::GetStorageAt, json!([A, "0x0", "latest"])),
        (Method::GetProof, json!([A, ["0x0", hash], "latest"])),
        (Method::Call, json!([object, "latest"])),
        (Method::EstimateGas, json!([object])),
        (Method::CreateAccessList, json!([object, "0x10"])),
        (
            Method::GetLogs,
            json!([{"address": B, "fromBlock": "0x1", "toBlock": "latest", "topics": [null, [hash]]}]),
        ),
        (Method::GetTransactionByHash, json!([hash])),
        (Method::GetTransactionByBlockHashAndIndex, json!([hash, "0x0"])),
        (Method::GetTransactionByBlockNumberAndIndex, json!(["latest", "0x0"])),
        (Method::GetTransactionReceipt, json!([hash])),
        (Method::GetTransactionBySenderAndNonce, json!([A, "0x1"])),
        (Method::GetBlockByHash, json!([hash, false])),
        (Method::GetBlockByNumber, json!(["0x1b4", true])),
        (Method::GetBlockTransactionCountByHash, json!([hash])),
        (Method::GetBlockTransactionCountByNumber, json!(["finalized"])),
        (Method::GetBlockReceipts, json!(["latest"])),
        (Method::GetUncleCountByBlockHash, json!([hash])),
        (Method::GetUncleCountByBlockNumber, json!(["0x1"])),
        (Method::GetUncleByBlockHashAndIndex, json!([hash, "0x0"])),
        (Method::GetUncleByBlockNumberAndIndex, json!(["0x1", "0x0"])),
        (Method::SendTransaction, json!([object])),
        (
            Method::DebugTraceCall,
            json!([object, "latest", {"tracer": "callTracer"}]),
        ),
        (
            Method::DebugTraceTransaction,
            json!([hash, {"tracer": "callTracer", "timeout": "5s"}]),
        ),
        (Method::NewFilter, json!([{"address": B, "topics": [null, [hash]]}])),
        (Method::NewBlockFilter, json!([])),
        (Method::GetFilterChanges, json!(["0x10ff0ed2a3af53b8ee6a3ae1a34efed4"])),
        (Method::GetFilterLogs, json!(["0x1"])),
        (Method::UninstallFilter, json!(["0x1"])),
        (Method::Subscribe, json!(["logs", {"address": B}])),
        (Method::Unsubscribe, json!(["0x10ff0ed2a3af53b8ee6a3ae1a34efed4"])),
    ];
    let covered: Vec<_> = rows
        .iter()
        .map(|(method, _)| *method)
        .chain([Method::SendRawTransaction])
        .collect();
    for method in Method::ALL {
        assert!(covered.contains(method), "no example for {}", method.as_str());
    }
    for (method, params) in rows {
        parse(method, params.clone()).unwrap_or_else(|error| panic!("{} {params}: {error}", method.as_str()));
        // A position beyond those of any method is rejected.
        let Value::Array(mut extended) = params else {
            unreachable!()
        };
        extended.resize(5, json!("extra"));
        assert!(parse(method, extended.into()).is_err(), "{}", method.as_str());
    }
}

#[test]
fn section_9_missing_parameters_are_refused() {
    let methods = [
        Method::Sha3,
        Method::GetBalance,
        Method::Call,
        Method::GetLogs,
        Method::SendRawTransaction,
    ];
    for method in methods {
        assert_rejected(method, json!([]));
        assert_rejected(method, json!([null]));
        assert!(call::parse(method, None, CHAIN).is_err());
    }
    assert_rejected(Method::GetStorageAt, json!([A]));
    assert_rejected(Method::GetTransactionBySenderAndNonce, json!([A]));
    assert_eq!(
        call::parse(Method::ChainId, None, CHAIN).unwrap().call,
        Call::Plain(Method::ChainId)
    );
}

#[test]
fn j5_every_member_of_a_call_object_is_read() {
    let key = B256::repeat_byte(1);
    let simulation = parse_simulation(json!([{
        "from": A, "to": B, "value": "0x01", "input": "0x1234abcd05", "data": "0x1234ABCD05", "gas": "0x5208",
        "maxFeePerGas": "0x2", "maxPriorityFeePerGas": "0x1", "nonce": "0x9", "chainId": "0x7a69", "type": "0x4",
        "accessList": [{"address": B, "storageKeys": [key]}, {"address": A}],
        "authorizationList": [{"chainId": "0x7a69", "address": B, "nonce": "0x1", "yParity": "0x1", "r": "0x2",
        "s": "0x3"}],
    }, {"blockNumber": "0x2"}]));
    let request = simulation.request;
    assert_eq!(
        (simulation.kind, simulation.block),
        (SimulationKind::Call, BlockId::Number(2))
    );
    assert_eq!(
        (request.from, request.to, request.value),
        (Some(A), Some(B), Some(U256::ONE))
    );
    assert_eq!(request.selector(), Some([0x12, 0x34, 0xab, 0xcd]));
    assert_eq!(
        (request.gas, request.nonce, request.chain_id),
        (Some(21000), Some(9), Some(31337))
    );
    assert_eq!(
        (request.max_fee_per_gas, request.max_priority_fee_per_gas),
        (Some(2), Some(1))
    );
    let list = request.access_list.unwrap();
    assert_eq!(
        (list[0].address, &list[0].storage_keys[..], list[1].storage_keys.len()),
        (B, &[key][..], 0)
    );
    let authorization = &request.authorization_list[0];
    assert_eq!(
        (authorization.address(), authorization.nonce(), authorization.y_parity()),
        (&B, 1, 1)
    );
}

#[test]
fn decision_38_a_zero_null_or_absent_sender_is_none() {
    for object in [
        json!({"to": B}),
        json!({"to": B, "from": null}),
        json!({"to": B, "from": Address::ZERO}),
    ] {
        assert_eq!(parse_simulation(json!([object])).request.from, None);
    }
}

#[test]
fn decision_39_members_of_call_objects() {
    let request = parse_simulation(json!([{"to": B, "data": null, "unknown": {"x": [1]}, "gasPrice": null}])).request;
    assert_eq!((request.to, request.input.len(), request.gas_price), (Some(B), 0, None));
    for name in [
        "To",
        "TO",
        "From",
        "DATA",
        "Input",
        "accesslist",
        "authorizationlist",
        "gasprice",
    ] {
        assert_rejected(Method::Call, json!([{ name: null }]));
    }
}

#[test]
fn j5_b2_data_and_input_must_agree() {
    assert_eq!(parse_simulation(json!([{"data": "0x01"}])).request.input.as_ref(), [1]);
    assert_eq!(
        parse_simulation(json!([{"input": "0x01", "data": null}]))
            .request
            .input
            .as_ref(),
        [1]
    );
    assert_rejected(Method::Call, json!([{"to": B, "data": "0x01", "input": "0x02"}]));
    assert_rejected(Method::Call, json!([{"to": B, "data": "0x", "input": "0x02"}]));
}

#[test]
fn j5_malformed_members_are_refused() {
    for bad in [
        json!({"to": "0x"}),
        json!({"to": ""}),
        json!({"to": "0x5fbdb2315678afecb367f032d93f642f64180a"}),
        json!({"to": B, "value": 1}),
        json!({"to": B, "value": "1"}),
        json!({"to": B, "value": format!("0x1{}", "0".repeat(64))}),
        json!({"to": B, "data": "0x123"}),
        json!({"to": B, "data": "1234"}),
        json!({"to": B, "gas": "0x10000000000000000"}),
        json!({"to": B, "accessList": {}}),
        json!({"to": B, "accessList": [{"storageKeys": []}]}),
        json!({"to": B, "accessList": [{"address": B, "storageKeys": ["0x1"]}]}),
        json!({"to": B, "authorizationList": [{"address": B}]}),
        json!({"to": B, "chainId": "0x1"}),
        json!({"to": B, "gasPrice": "0x1", "maxFeePerGas": "0x1"}),
        json!([]),
        json!("0x"),
    ] {
        assert_rejected(Method::Call, json!([bad]));
        assert_rejected(Method::SendTransaction, json!([bad]));
    }
}

#[test]
fn decision_47_blobs_and_unknown_types_are_not_supported() {
    for object in [
        json!({"from": A, "type": "0x3"}),
        json!({"from": A, "type": "0x5"}),
        json!({"from": A, "blobVersionedHashes": []}),
        json!({"from": A, "maxFeePerBlobGas": "0x1"}),
        json!({"from": A, "blobs": ["0x"]}),
    ] {
        for method in [Method::Call, Method::SendTransaction] {
            assert_eq!(
                assert_rejected(method, json!([object])).message(),
                "transaction type not supported"
            );
        }
    }
}

#[test]
fn section_9_b4_overrides_are_refused_unless_empty() {
    let object = json!({"to": B});
    for method in [Method::Call, Method::EstimateGas] {
        for overrides in [json!({A.to_string(): {"balance": "0x1"}}), json!([]), json!("x")] {
            assert_rejected(method, json!([object, "latest", overrides]));
            assert_rejected(method, json!([object, "latest", null, overrides]));
        }
        parse_call(method, json!([object, "latest", {}, null]));
        parse_call(method, json!([object, "latest", null, {}]));
    }
    assert_rejected(Method::CreateAccessList, json!([object, "latest", {}]));
}

#[test]
fn decision_6_debug_trace_call_is_call_tracer_without_overrides() {
    let params_with = |options| json!([{"to": B}, "latest", options]);
    parse_call(
        Method::DebugTraceCall,
        params_with(json!({"tracer": "callTracer", "tracerConfig": {"withLog": true}})),
    );
    parse_call(
        Method::DebugTraceCall,
        params_with(json!({"tracer": "callTracer", "stateOverrides": {}, "blockOverrides": null})),
    );
    for options in [
        json!(null),
        json!({}),
        json!({"tracer": null}),
        json!({"tracer": "prestateTracer"}),
        json!({"tracer": "CallTracer"}),
        json!({"tracer": "{result: function() {}}"}),
        json!({"Tracer": "callTracer"}),
        json!({"tracer": "callTracer", "stateOverrides": {"x": {}}}),
        json!({"tracer": "callTracer", "blockOverrides": {"number": "0x1"}}),
        json!({"tracer": "callTracer", "blockoverrides": {}}),
        json!({"tracer": "callTracer", "txIndex": "0x0"}),
    ] {
        assert_rejected(Method::DebugTraceCall, params_with(options.clone()));
        assert_rejected(Method::DebugTraceTransaction, json!([B256::ZERO, options]));
    }
}

#[test]
fn section_9_sends_need_a_sender() {
    assert_rejected(Method::SendTransaction, json!([{"to": B}]));
    assert_rejected(Method::SendTransaction, json!([{"to": B, "from": Address::ZERO}]));
    let Call::Send(send) = parse_call(Method::SendTransaction, json!([{"to": B, "from": A}])) else {
        panic!("not a send")
    };
    assert_eq!((send.from, send.request.from), (A, Some(A)));
}

#[test]
fn w4_recipients_are_extracted_from_the_parameters() {
    let send = parse(
        Method::SendTransaction,
        json!([{"from": A, "visibleTo": ["x"], "privateFor": ["y"]}]),
    )
    .unwrap();
    assert_eq!(send.visible_to.entries().unwrap(), ["x", "y"]);
    let malformed = parse(Method::SendTransaction, json!([{"from": A, "visibleTo": "x"}])).unwrap();
    assert!(malformed.visible_to.entries().is_err());
    // Decision 25: recipients have no meaning for other methods.
    assert!(
        parse(Method::Call, json!([{"to": B, "visibleTo": 5}]))
            .unwrap()
            .visible_to
            .is_empty()
    );
}

#[test]
fn j9_log_filters() {
    let filter = |object: Value| match parse_call(Method::GetLogs, json!([object])) {
        Call::Logs(filter) => filter,
        other => panic!("{other:?}"),
    };
    let t = B256::repeat_byte(2);
    let empty = filter(json!({}));
    assert_eq!(
        empty.range,
        LogRange::Range {
            from: BlockId::LATEST,
            to: BlockId::LATEST
        }
    );
    assert!(empty.addresses.is_empty() && empty.topics.is_empty());
    assert_eq!(filter(json!({"address": [B, A, B]})).addresses, [B, A], "distinct");
    assert_eq!(filter(json!({"blockHash": t})).range, LogRange::Hash(t));
    assert_eq!(
        filter(json!({"topics": [null, t, [t, A.into_word()], []]})).topics,
        [
            TopicFilter::Any,
            TopicFilter::OneOf(vec![t]),
            TopicFilter::OneOf(vec![t, A.into_word()]),
            TopicFilter::Any
        ]
    );
    assert_eq!(
        filter(json!({"topics": [[t, null]]})).topics,
        [TopicFilter::Any],
        "null matches anything"
    );
    for bad in [
        json!({"blockHash": t, "fromBlock": "0x1"}),
        json!({"blockHash": t, "toBlock": "latest"}),
        json!({"fromBlock": "0x5", "toBlock": "0x4"}),
        json!({"fromBlock": t}),
        json!({"address": ["0x1"]}),
        json!({"address": {}}),
        json!({"topics": t}),
        json!({"topics": ["0x1"]}),
        json!({"topics": [null, null, null, null, null]}),
        json!({"Address": B}),
        json!({"blockhash": t}),
    ] {
        assert_rejected(Method::GetLogs, json!([bad]));
    }
}

#[test]
fn j9_more_than_64_distinct_addresses_exceed_the_limit() {
    let addresses = |n: u8| (0..n).map(Address::with_last_byte).collect::<Vec<_>>();
    let mut repeated = addresses(64);
    repeated.extend(addresses(64));
    parse_call(Method::GetLogs, json!([{"address": repeated}]));
    let error = parse(Method::GetLogs, json!([{"address": addresses(65)}])).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ParamErrorKind::Limit, -32005));
}

#[test]
fn section_9_storage_slots_report_whether_all_32_bytes_were_written() {
    let slot = |text: &str| match parse_call(Method::GetStorageAt, json!([B, text, "latest"])) {
        Call::Storage { slot, full_word, .. } => (slot, full_word),
        other => panic!("{other:?}"),
    };
    assert_eq!(slot("0x1"), (B256::with_last_byte(1), false));
    assert_eq!(
        slot(&B256::with_last_byte(1).to_string()),
        (B256::with_last_byte(1), true)
    );
    assert_rejected(Method::GetStorageAt, json!([B, "0x", "latest"]));
    assert_rejected(Method::GetStorageAt, json!([B, format!("0x{}", "0".repeat(65))]));
}

#[test]
fn fee_history_accepts_numbers_and_quantities() {
    let history = |params| match parse_call(Method::FeeHistory, params) {
        Call::FeeHistory { count, percentiles, .. } => (count, percentiles),
        other => panic!("{other:?}"),
    };
    assert_eq!(history(json!([4, "latest"])), (4, None));
    assert_eq!(history(json!(["0x4", "pending", []])), (4, Some(vec![])));
    assert_eq!(
        history(json!(["0xffffffff", "latest", [1, 50, 99.5]])),
        (1024, Some(vec![1.0, 50.0, 99.5]))
    );
    for bad in [
        json!([-1]),
        json!([1.5]),
        json!(["4"]),
        json!([1, "x"]),
        json!([1, "latest", [50, 10]]),
    ] {
        assert_rejected(Method::FeeHistory, bad);
    }
    assert_rejected(Method::FeeHistory, json!([1, "latest", [101]]));
    assert_rejected(Method::FeeHistory, json!([1, "latest", vec![1; 101]]));
}

#[test]
fn getters_accept_one_kind_of_reference() {
    let h = B256::repeat_byte(3);
    let transaction_ref = |method, params| match parse_call(method, params) {
        Call::Transaction(transaction) => transaction,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        transaction_ref(Method::GetTransactionByHash, json!([h])),
        TransactionRef::Hash(h)
    );
    assert_eq!(
        transaction_ref(Method::GetTransactionByBlockNumberAndIndex, json!(["earliest", "0x2"])),
        TransactionRef::BlockNumberAndIndex(BlockId::Tag(BlockTag::Earliest), 2)
    );
    assert_eq!(
        transaction_ref(Method::GetTransactionBySenderAndNonce, json!([A, "0x2"])),
        TransactionRef::SenderAndNonce(A, 2)
    );
    assert_eq!(
        parse_call(Method::GetBlockByNumber, json!(["latest"])),
        Call::Block {
            block: BlockId::LATEST,
            full: false
        }
    );
    assert_rejected(Method::GetBlockByNumber, json!([h, true]));
    assert_rejected(Method::GetBlockByHash, json!(["latest", true]));
    assert_rejected(Method::GetBlockByHash, json!([h, "true"]));
    assert_rejected(Method::GetTransactionByHash, json!(["0x01"]));
}

#[test]
fn errors_never_contain_values() {
    let secret = "0xdeadbeef!";
    for params in [
        json!([{"to": secret}]),
        json!([{"to": B, "gas": [secret]}]),
        json!([{"to": B}, secret]),
    ] {
        let message = assert_rejected(Method::Call, params).to_string();
        assert!(!message.contains("dead"), "{message}");
    }
}
