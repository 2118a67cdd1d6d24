use alloy_eips::{
    eip2930::{AccessList, AccessListItem},
    eip7702::{Authorization, SignedAuthorization},
};
use alloy_primitives::{Address, B256, Bytes, U256, address};
use gw_evm::{
    BlockId, BlockTag, Call, CallRequest, ChainRules, LogFilter, LogRange, Method, SendRequest, SignedTransaction,
    Simulation, SimulationKind, TopicFilter, TransactionRef, call,
    wire::{
        self, AccountOverride, NextBlock, Pin, StateOverrides, TraceForm, TraceScope, UpstreamCall, body, body_as,
        trace_batch, trace_block, trace_transaction,
    },
};
use serde_json::{Value, json, value::to_raw_value};

const A: Address = address!("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
const B: Address = address!("0x5fbdb2315678afecb367f032d93f642f64180aa3");
const PIN: Pin = Pin {
    number: 16,
    hash: B256::repeat_byte(0xcc),
};
const H: B256 = B256::repeat_byte(0x11);
const LATEST: BlockId = BlockId::LATEST;
const PENDING: BlockId = BlockId::Tag(BlockTag::Pending);

fn pin_object() -> Value {
    json!({"blockHash": PIN.hash, "requireCanonical": true})
}

fn params(call: &UpstreamCall) -> Value {
    serde_json::from_str(&call.params).expect("params are JSON")
}

#[track_caller]
fn assert_upstream(call: Call, method: &str, expected: Value) {
    let upstream = body(&call, PIN).expect("the call is forwarded to the node");
    assert_eq!((&*upstream.method, params(&upstream)), (method, expected));
}

fn simulation(kind: SimulationKind, request: CallRequest) -> Call {
    Call::Simulate(Box::new(Simulation {
        kind,
        request,
        block: LATEST,
    }))
}

#[test]
fn x3_state_calls_run_at_the_pin_whichever_block_they_name() {
    for block in [
        LATEST,
        BlockId::Number(3),
        BlockId::Hash {
            hash: H,
            require_canonical: false,
        },
    ] {
        assert_upstream(
            Call::Balance(A, block),
            "eth_getBalance",
            json!([A.to_string().to_lowercase(), pin_object()]),
        );
        assert_upstream(
            Call::Nonce(A, block),
            "eth_getTransactionCount",
            json!([format!("{A:#x}"), pin_object()]),
        );
        assert_upstream(
            Call::Code(A, block),
            "eth_getCode",
            json!([format!("{A:#x}"), pin_object()]),
        );
        let storage = Call::Storage {
            address: A,
            slot: H,
            full_word: false,
            block,
        };
        assert_upstream(storage, "eth_getStorageAt", json!([format!("{A:#x}"), H, pin_object()]));
        let proof = Call::Proof {
            address: A,
            slots: vec![H],
            block,
        };
        assert_upstream(proof, "eth_getProof", json!([format!("{A:#x}"), [H], pin_object()]));
    }
    // HD28: a pending balance would show blocks that are not validated yet.
    assert_upstream(
        Call::Balance(A, PENDING),
        "eth_getBalance",
        json!([format!("{A:#x}"), pin_object()]),
    );
    assert_upstream(
        Call::Nonce(A, PENDING),
        "eth_getTransactionCount",
        json!([format!("{A:#x}"), "pending"]),
    );
}

#[test]
fn decision_38_every_execution_names_its_sender() {
    let call = simulation(
        SimulationKind::Call,
        CallRequest {
            to: Some(B),
            ..Default::default()
        },
    );
    assert_upstream(
        call,
        "eth_call",
        json!([{"from": Address::ZERO, "to": format!("{B:#x}"), "input": "0x"}, pin_object()]),
    );
    for call in trace_batch(
        &CallRequest::default(),
        PIN,
        TraceScope::Send,
        TraceForm::Batch,
        None,
        &StateOverrides::default(),
    ) {
        assert_eq!(params(&call)[0], json!({"from": Address::ZERO, "input": "0x"}));
    }
}

fn full_request() -> CallRequest {
    let inner = Authorization {
        chain_id: U256::from(31337),
        address: B,
        nonce: 1,
    };
    CallRequest {
        from: Some(A),
        to: Some(B),
        value: Some(U256::from(255)),
        input: Bytes::from_static(&[0xab, 0xcd]),
        gas: Some(21000),
        gas_price: Some(7),
        max_fee_per_gas: Some(8),
        max_priority_fee_per_gas: Some(9),
        nonce: Some(3),
        access_list: Some(AccessList(vec![AccessListItem {
            address: B,
            storage_keys: vec![H, H],
        }])),
        chain_id: Some(31337),
        authorization_list: vec![SignedAuthorization::new_unchecked(
            inner,
            1,
            U256::from(2),
            U256::from(3),
        )],
    }
}

fn full_object() -> Value {
    json!({
        "from": format!("{A:#x}"), "to": format!("{B:#x}"), "value": "0xff", "input": "0xabcd", "gas": "0x5208",
        "gasPrice": "0x7", "maxFeePerGas": "0x8", "maxPriorityFeePerGas": "0x9",
        "accessList": [{"address": format!("{B:#x}"), "storageKeys": [H, H]}],
        "authorizationList": [{
            "chainId": "0x7a69", "address": format!("{B:#x}"), "nonce": "0x1", "yParity": "0x1", "r": "0x2", "s": "0x3",
        }],
    })
}

#[test]
fn x2_a_trace_contains_every_field_that_affects_execution() {
    let calls = trace_batch(
        &full_request(),
        PIN,
        TraceScope::Send,
        TraceForm::Batch,
        None,
        &StateOverrides::default(),
    );
    let tracers = [
        json!({"tracer": "callTracer", "tracerConfig": {"withLog": true}}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"disableStorage": true, "includeEmpty": true}}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true, "disableCode": true}}),
    ];
    assert_eq!(calls.len(), 3);
    for (call, tracer) in calls.iter().zip(tracers) {
        assert_eq!(
            (&*call.method, params(call)),
            ("debug_traceCall", json!([full_object(), pin_object(), tracer]))
        );
    }
}

/// HD6: traces of either form request empty accounts, except for the diff, where nodes reject the option.
#[test]
fn hd6_traces_request_empty_accounts() {
    for form in [TraceForm::Mux, TraceForm::Batch] {
        for call in trace_batch(
            &CallRequest::default(),
            PIN,
            TraceScope::Send,
            form,
            None,
            &StateOverrides::default(),
        ) {
            let config = params(&call)[2]["tracerConfig"].to_string();
            assert_eq!(
                config.contains("disableStorage"),
                config.contains(r#""includeEmpty":true"#),
                "{config}"
            );
            assert!(
                !(config.contains("diffMode") && config.contains("includeEmpty")),
                "{config}"
            );
        }
    }
}

#[test]
fn decision_7_forms_and_scopes() {
    let tracers = |scope, form| -> Vec<Value> {
        let calls = trace_batch(
            &CallRequest::default(),
            PIN,
            scope,
            form,
            None,
            &StateOverrides::default(),
        );
        calls.iter().map(|call| params(call)[2]["tracer"].clone()).collect()
    };
    assert_eq!(tracers(TraceScope::Read, TraceForm::Mux), ["muxTracer"]);
    assert_eq!(
        tracers(TraceScope::Send, TraceForm::Mux),
        ["muxTracer", "prestateTracer"]
    );
    assert_eq!(
        tracers(TraceScope::Read, TraceForm::Batch),
        ["callTracer", "prestateTracer"]
    );
    for form in [TraceForm::Mux, TraceForm::Batch] {
        let transaction_calls = trace_transaction(H, TraceScope::Send, form);
        let block_calls = trace_block(H, TraceScope::Send, form);
        let simulation_calls = trace_batch(
            &CallRequest::default(),
            PIN,
            TraceScope::Send,
            form,
            None,
            &StateOverrides::default(),
        );
        for ((tx, block), call) in transaction_calls.iter().zip(&block_calls).zip(&simulation_calls) {
            assert_eq!(
                (&*tx.method, &*block.method),
                ("debug_traceTransaction", "debug_traceBlockByHash")
            );
            assert_eq!(params(tx), json!([H, params(call)[2]]));
            assert_eq!(params(block), params(tx));
        }
        assert_eq!(
            (transaction_calls.len(), block_calls.len()),
            (simulation_calls.len(), simulation_calls.len())
        );
    }
}

#[test]
fn hd2_the_second_trace_runs_in_the_next_block() {
    let next = NextBlock {
        number: 17,
        timestamp: 1_700_000_000,
    };
    for call in trace_batch(
        &full_request(),
        PIN,
        TraceScope::Send,
        TraceForm::Mux,
        Some(next),
        &StateOverrides::default(),
    ) {
        assert_eq!(
            params(&call)[2]["blockOverrides"],
            json!({"number": "0x11", "time": "0x6553f100"})
        );
    }
}

#[test]
fn hd3_estimates_and_access_lists_are_never_forwarded() {
    for kind in [
        SimulationKind::EstimateGas,
        SimulationKind::CreateAccessList,
        SimulationKind::TraceCall,
    ] {
        assert_eq!(body(&simulation(kind, full_request()), PIN), None);
    }
}

#[test]
fn local_answers_have_no_upstream_call() {
    let local = [
        Call::Plain(Method::Accounts),
        Call::Plain(Method::Coinbase),
        Call::Sha3(Bytes::new()),
        Call::UncleCount,
        Call::Uncle,
        Call::TraceTransaction(H),
    ];
    assert!(local.iter().all(|call| body(call, PIN).is_none()));
    assert_upstream(Call::Plain(Method::GasPrice), "eth_gasPrice", json!([]));
}

#[test]
fn blocks_are_fetched_whole_and_latest_is_the_pin() {
    let block = |block| Call::Block { block, full: false };
    let params_of = |hash| json!([hash, true]);
    for latest in [LATEST, PENDING] {
        assert_upstream(block(latest), "eth_getBlockByHash", params_of(PIN.hash));
        assert_upstream(
            Call::BlockTransactionCount(latest),
            "eth_getBlockByHash",
            params_of(PIN.hash),
        );
        assert_upstream(
            Call::BlockReceipts(latest),
            "eth_getBlockReceipts",
            json!([pin_object()]),
        );
        let transaction = TransactionRef::BlockNumberAndIndex(latest, 2);
        assert_upstream(
            Call::Transaction(transaction),
            "eth_getTransactionByBlockHashAndIndex",
            json!([PIN.hash, "0x2"]),
        );
    }
    assert_upstream(
        block(BlockId::Hash {
            hash: H,
            require_canonical: false,
        }),
        "eth_getBlockByHash",
        params_of(H),
    );
    assert_upstream(
        block(BlockId::Number(255)),
        "eth_getBlockByNumber",
        json!(["0xff", true]),
    );
    assert_upstream(
        block(BlockId::Tag(BlockTag::Earliest)),
        "eth_getBlockByNumber",
        json!(["0x0", true]),
    );
    assert_upstream(
        block(BlockId::Tag(BlockTag::Safe)),
        "eth_getBlockByNumber",
        json!(["safe", true]),
    );
    assert_upstream(
        Call::BlockReceipts(BlockId::Number(1)),
        "eth_getBlockReceipts",
        json!(["0x1"]),
    );
}

#[test]
fn transactions_receipts_and_fees() {
    assert_upstream(Call::Receipt(H), "eth_getTransactionReceipt", json!([H]));
    assert_upstream(
        Call::Transaction(TransactionRef::Hash(H)),
        "eth_getTransactionByHash",
        json!([H]),
    );
    let by_nonce = TransactionRef::SenderAndNonce(A, 0);
    assert_upstream(
        Call::Transaction(by_nonce),
        "eth_getTransactionBySenderAndNonce",
        json!([format!("{A:#x}"), "0x0"]),
    );
    let history = |newest, percentiles| Call::FeeHistory {
        count: 4,
        newest,
        percentiles,
    };
    assert_upstream(
        history(LATEST, Some(vec![10.0, 50.5])),
        "eth_feeHistory",
        json!(["0x4", "0x10", [10, 50.5]]),
    );
    assert_upstream(
        history(BlockId::Number(99), None),
        "eth_feeHistory",
        json!(["0x4", "0x10", []]),
    );
}

#[test]
fn hd2_no_log_range_ends_above_the_pin() {
    let logs = |range, topics: Vec<TopicFilter>, addresses: Vec<Address>| {
        Call::Logs(LogFilter {
            addresses,
            topics,
            range,
        })
    };
    let range = |from, to| LogRange::Range { from, to };
    let expect = |from: &str, to: &str| json!([{"fromBlock": from, "toBlock": to, "topics": []}]);
    let earliest = BlockId::Tag(BlockTag::Earliest);
    assert_upstream(
        logs(range(LATEST, PENDING), vec![], vec![]),
        "eth_getLogs",
        expect("0x10", "0x10"),
    );
    assert_upstream(
        logs(range(earliest, BlockId::Number(99)), vec![], vec![]),
        "eth_getLogs",
        expect("0x0", "0x10"),
    );
    assert_upstream(
        logs(range(BlockId::Number(1), BlockId::Number(2)), vec![], vec![]),
        "eth_getLogs",
        expect("0x1", "0x2"),
    );
    assert_upstream(
        logs(
            LogRange::Hash(H),
            vec![TopicFilter::Any, TopicFilter::OneOf(vec![H, PIN.hash])],
            vec![A, B],
        ),
        "eth_getLogs",
        json!([{
            "blockHash": H, "address": [format!("{A:#x}"), format!("{B:#x}")], "topics": [null, [H, PIN.hash]],
        }]),
    );
}

#[test]
fn sends_contain_their_nonce_and_raw_bytes_are_unchanged() {
    let mut object = full_object();
    object["nonce"] = json!("0x3");
    let send = SendRequest {
        from: A,
        request: CallRequest {
            from: None,
            ..full_request()
        },
    };
    assert_upstream(Call::Send(Box::new(send)), "eth_sendTransaction", json!([object]));
    let signed = SignedTransaction {
        raw: Bytes::from_static(&[0x02, 0xff]),
        hash: H,
        tx_type: 2,
        sender: A,
        nonce: 0,
        request: CallRequest::default(),
    };
    assert_upstream(
        Call::SendRaw(Box::new(signed)),
        "eth_sendRawTransaction",
        json!(["0x02ff"]),
    );
}

#[test]
fn j5_client_bytes_are_never_forwarded() {
    // The typed form does not preserve spelling, padding, order or unknown members.
    let text = format!(
        concat!(
            r#"[{{"zzz":"SMUGGLED","data":"0xABCD","value":"0x00ff", "#,
            r#""to":"{}","\u0067as":"0x0005208","visibleTo":["SMUGGLED"]}}, "latest"]"#
        ),
        B.to_checksum(None)
    );
    let raw = serde_json::value::RawValue::from_string(text).unwrap();
    let parsed = call::parse(Method::Call, Some(&raw), ChainRules { chain_id: 1 }).unwrap();
    let expected = format!(
        r#"[{{"from":"{:#x}","to":"{B:#x}","value":"0xff","input":"0xabcd","gas":"0x5208"}},{{"blockHash":"{}","requireCanonical":true}}]"#,
        Address::ZERO,
        PIN.hash
    );
    assert_eq!(body(&parsed.call, PIN).unwrap().params, expected);
}

#[test]
fn j5_an_encoded_call_object_parses_to_the_same_value() {
    let request = CallRequest {
        gas_price: None,
        chain_id: None,
        ..full_request()
    };
    let call = Call::Send(Box::new(SendRequest {
        from: A,
        request: request.clone(),
    }));
    let encoded = params(&body(&call, PIN).unwrap());
    let raw = to_raw_value(&encoded).unwrap();
    let Call::Send(send) = call::parse(Method::SendTransaction, Some(&raw), ChainRules { chain_id: 31337 })
        .unwrap()
        .call
    else {
        panic!("not a send")
    };
    assert_eq!(send.request, request);
}

/// N2: the upstream request has the alias name if it uses the row's own method, and names the pinned block in every
/// case.
#[test]
fn n2_an_aliased_method_is_forwarded_under_its_own_name() {
    let latest = || BlockId::LATEST;
    let aliased = |call: Call, row: Method| {
        let upstream = body_as(&call, PIN, row, "linea_own").unwrap();
        (
            upstream.method.into_owned(),
            serde_json::from_str::<Value>(&upstream.params).unwrap(),
        )
    };
    assert_eq!(
        aliased(
            Call::Block {
                block: latest(),
                full: false
            },
            Method::GetBlockByNumber
        ),
        ("linea_own".to_owned(), json!([format!("{:#x}", PIN.number), true]))
    );
    let transaction = TransactionRef::BlockNumberAndIndex(latest(), 3);
    assert_eq!(
        aliased(
            Call::Transaction(transaction),
            Method::GetTransactionByBlockNumberAndIndex
        ),
        ("linea_own".to_owned(), json!([format!("{:#x}", PIN.number), "0x3"]))
    );
    let (name, _) = aliased(Call::Balance(Address::ZERO, latest()), Method::GetBalance);
    assert_eq!(name, "linea_own");
    // The gateway derives the count from the block.
    let (name, _) = aliased(
        Call::BlockTransactionCount(latest()),
        Method::GetBlockTransactionCountByNumber,
    );
    assert_eq!(name, "eth_getBlockByHash");
}

/// HD36: an execution gets overrides only for the withheld state that it reads, so the total amount does not matter.
#[test]
fn hd36_existing_overrides_are_not_replaced() {
    let word = B256::repeat_byte;
    let overrides_of = |slots: &[(u8, u8)]| {
        let slots = slots.iter().map(|(slot, value)| (word(*slot), word(*value))).collect();
        StateOverrides::new(
            [(
                A,
                AccountOverride {
                    slots,
                    ..AccountOverride::default()
                },
            )]
            .into(),
        )
    };
    let mut overrides = overrides_of(&[]);
    assert!(overrides.extend(overrides_of(&[(1, 5)])) && !overrides.extend(overrides_of(&[(1, 6)])));
    assert_eq!(
        overrides,
        overrides_of(&[(1, 5)]),
        "a later execution reads the override itself"
    );
    assert!(overrides.extend(overrides_of(&[(1, 7), (2, 8)])));
    assert_eq!(overrides, overrides_of(&[(1, 5), (2, 8)]));
}

/// The bytes of the queries that the gateway makes for itself.
#[test]
fn queries_of_the_gateway_name_their_block() {
    let at_hash = BlockId::Hash {
        hash: H,
        require_canonical: false,
    };
    let at_canonical_hash = BlockId::Hash {
        hash: H,
        require_canonical: true,
    };
    let slot = B256::with_last_byte(3);
    for (call, method, params) in [
        (
            wire::balance(A, at_hash),
            "eth_getBalance",
            format!(r#"["{A:#x}",{{"blockHash":"{H:#x}"}}]"#),
        ),
        (
            wire::nonce(A, at_hash),
            "eth_getTransactionCount",
            format!(r#"["{A:#x}",{{"blockHash":"{H:#x}"}}]"#),
        ),
        (
            wire::nonce(A, BlockId::Number(255)),
            "eth_getTransactionCount",
            format!(r#"["{A:#x}","0xff"]"#),
        ),
        (
            wire::nonce(A, LATEST),
            "eth_getTransactionCount",
            format!(r#"["{A:#x}","latest"]"#),
        ),
        (
            wire::nonce(A, PENDING),
            "eth_getTransactionCount",
            format!(r#"["{A:#x}","pending"]"#),
        ),
        (
            wire::code(A, at_hash),
            "eth_getCode",
            format!(r#"["{A:#x}",{{"blockHash":"{H:#x}"}}]"#),
        ),
        (
            wire::code(A, at_canonical_hash),
            "eth_getCode",
            format!(r#"["{A:#x}",{{"blockHash":"{H:#x}","requireCanonical":true}}]"#),
        ),
        (
            wire::storage(A, slot, at_hash),
            "eth_getStorageAt",
            format!(r#"["{A:#x}","{slot:#x}",{{"blockHash":"{H:#x}"}}]"#),
        ),
        (
            wire::header(at_hash),
            "eth_getBlockByHash",
            format!(r#"["{H:#x}",false]"#),
        ),
        (
            wire::header(BlockId::Number(16)),
            "eth_getBlockByNumber",
            r#"["0x10",false]"#.to_owned(),
        ),
        (
            wire::header(LATEST),
            "eth_getBlockByNumber",
            r#"["latest",false]"#.to_owned(),
        ),
        (
            wire::header(BlockId::Tag(BlockTag::Safe)),
            "eth_getBlockByNumber",
            r#"["safe",false]"#.to_owned(),
        ),
        (
            wire::header(BlockId::Tag(BlockTag::Finalized)),
            "eth_getBlockByNumber",
            r#"["finalized",false]"#.to_owned(),
        ),
        (
            wire::header(BlockId::Tag(BlockTag::Earliest)),
            "eth_getBlockByNumber",
            r#"["0x0",false]"#.to_owned(),
        ),
        (
            wire::transaction_by_hash(H),
            "eth_getTransactionByHash",
            format!(r#"["{H:#x}"]"#),
        ),
        (wire::receipt(H), "eth_getTransactionReceipt", format!(r#"["{H:#x}"]"#)),
        (wire::gas_price(), "eth_gasPrice", "[]".to_owned()),
        (wire::chain_id(), "eth_chainId", "[]".to_owned()),
    ] {
        assert_eq!((&*call.method, call.params), (method, params));
    }
}
