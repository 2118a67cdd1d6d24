//! Chain facts, errors and simulations (decisions 42 and 44; W7, HD3, HD15).

use super::support::{sealed, sealed_text, viewer};
use alloy_primitives::{B256, Bytes, U256, hex};
use gw_evm::{
    BlockId, Call, CallRequest, Method, MethodLookup, Simulation, SimulationKind, VisibleTo,
    trace::{Account, Frame, FrameKind, Outcome, Trace},
};
use gw_policy::{
    Disclosed, PolicySettings, RawError, RawJson, Sealed, Snapshot,
    access::{AccessRequest, Caller, Decision, HeadFacts, NamedOrg, Permit, TraceFacts, decide, evaluate_trace},
    testing::{NOW, address_of, user_id, world},
    view::{self, DisclosedError, ErrorContext, FeeFacts, local},
};
use serde_json::{Value, json};

fn value(shown: &Disclosed) -> Value {
    serde_json::from_str(shown.as_str()).unwrap()
}

/// Decision 42, B18: ratios are zero. Rewards are computed, and present only if requested.
#[test]
fn decision_42_fee_history() {
    let snapshot = world().snapshot();
    let answer = json!({
        "oldestBlock": "0x5", "baseFeePerGas": ["0x7", "0x8", "0x9"], "gasUsedRatio": [0.25, 0.9], "more": 1,
        "baseFeePerBlobGas": ["0x1", "0x2", "0x3"], "blobGasUsedRatio": [0.5, 1], "reward": [["0x63"], ["0x64"]],
    });
    let facts = |percentiles| FeeFacts {
        gas_price: U256::from(12),
        head_base_fee: U256::from(8),
        percentiles,
    };
    let nobody = viewer(&snapshot, "nobody", &PolicySettings::SPEC);
    let plain = json!({
        "oldestBlock": "0x5", "baseFeePerGas": ["0x7", "0x8", "0x9"], "gasUsedRatio": [0, 0],
        "baseFeePerBlobGas": ["0x1", "0x2", "0x3"], "blobGasUsedRatio": [0, 0],
    });
    assert_eq!(value(&view::fee_history(&nobody, facts(None), sealed(&answer))), plain);
    let mut rewarded = plain.clone();
    rewarded["reward"] = json!([["0x4", "0x4"], ["0x4", "0x4"]]);
    assert_eq!(
        value(&view::fee_history(&nobody, facts(Some(2)), sealed(&answer))),
        rewarded
    );
    rewarded["reward"] = json!([[], []]);
    assert_eq!(
        value(&view::fee_history(&nobody, facts(Some(0)), sealed(&answer))),
        rewarded
    );
    let below = FeeFacts {
        head_base_fee: U256::from(99),
        ..facts(Some(1))
    };
    rewarded["reward"] = json!([["0x0"], ["0x0"]]);
    assert_eq!(value(&view::fee_history(&nobody, below, sealed(&answer))), rewarded);

    let hiding = PolicySettings {
        hide_base_fee: true,
        ..PolicySettings::SPEC
    };
    let hidden = value(&view::fee_history(
        &viewer(&snapshot, "nobody", &hiding),
        facts(Some(1)),
        sealed(&answer),
    ));
    // RT14: prices are published in steps, so that neither the price nor the price without the tip reveals the base
    // fee.
    assert_eq!(hidden["baseFeePerGas"], json!(["0x10", "0x10", "0x10"]));
    assert_eq!(
        (&hidden["reward"], &hidden["baseFeePerBlobGas"]),
        (&json!([["0x10"], ["0x10"]]), &json!(["0x1", "0x1", "0x1"]))
    );
    let price = |wei: u64| view::published_price(U256::from(wei)).to::<u64>();
    assert_eq!(
        (price(0), price(1), price(4), price(5), price(1_875_000_000)),
        (0, 1, 4, 8, 1 << 31)
    );
    assert_eq!(view::published_price(U256::MAX), U256::MAX);
    assert_eq!(
        view::published_tip(U256::from(1_875_000_000)),
        U256::from(1_000_000_000)
    );

    let legacy = json!({ "oldestBlock": "0x5", "gasUsedRatio": [0.1] });
    assert_eq!(
        value(&view::fee_history(&nobody, facts(None), sealed(&legacy))),
        json!({ "oldestBlock": "0x5", "gasUsedRatio": [0] })
    );
    let long: Vec<u8> = vec![0; 2000];
    for bad in [
        json!([]),
        json!({}),
        json!({ "oldestBlock": "5" }),
        json!({ "oldestBlock": "0x5", "baseFeePerGas": [7] }),
        json!({ "oldestBlock": "0x5", "gasUsedRatio": long }),
        json!({ "oldestBlock": "0x5", "gasUsedRatio": {} }),
    ] {
        let shown = view::fee_history(&nobody, facts(None), sealed(&bad));
        assert_eq!((shown.as_str(), shown.is_malformed()), ("null", true), "{bad}");
    }
}

/// Section 5.2 for quantities, texts and flags about the chain.
#[test]
fn chain_facts_are_checked() {
    assert_eq!(
        view::public_quantity(sealed(&json!("0x3b9aca00"))).as_str(),
        "\"0x3b9aca00\""
    );
    assert_eq!(view::public_quantity(sealed(&json!({}))).as_str(), "\"0x0\"");
    assert_eq!(view::text(sealed(&json!("Geth/v1.16"))).as_str(), "\"Geth/v1.16\"");
    for bad in [
        "7",
        "\"a\\u0062\"",
        "\"é\"",
        "\"a\tb\"",
        "[\"a\"]",
        &format!("\"{}\"", "x".repeat(257)),
    ] {
        assert_eq!(view::text(sealed_text(bad)).as_str(), "null", "{bad}");
    }
    assert_eq!(view::flag(sealed(&json!(true))).as_str(), "true");
    assert!(view::flag(sealed(&json!("true"))).is_malformed());
    assert_eq!(view::syncing(sealed(&json!(false))), Disclosed::FALSE);
    let progress =
        json!({ "startingBlock": "0x0", "currentBlock": "0x1", "highestBlock": "0x2", "pulledStates": "0x3" });
    let shown = json!({ "startingBlock": "0x0", "currentBlock": "0x1", "highestBlock": "0x2" });
    assert_eq!(value(&view::syncing(sealed(&progress))), shown);
    assert!(view::syncing(sealed(&json!(true))).is_malformed());
    assert_eq!(view::sent_hash(&sealed(&json!(B256::ZERO))), Some(B256::ZERO));
    assert_eq!(view::sent_hash(&sealed(&json!("0x00"))), None);
}

/// Local answers of the gateway. `eth_accounts` lists the addresses of the caller, never those of the node.
#[test]
fn local_answers() {
    let snapshot = world().user("owner").link("one").user("other").snapshot();
    let accounts = |user| value(&local::accounts(&viewer(&snapshot, user, &PolicySettings::SPEC)));
    assert_eq!(accounts("owner"), json!([address_of("one")]));
    assert_eq!((accounts("other"), accounts("nobody")), (json!([]), json!([])));
    let coinbase = |user| value(&local::coinbase(&viewer(&snapshot, user, &PolicySettings::SPEC)));
    assert_eq!(
        (coinbase("owner"), coinbase("nobody")),
        (json!(address_of("one")), Value::Null)
    );
    assert_eq!(local::quantity(U256::from(255)).as_str(), "\"0xff\"");
    assert_eq!(local::net_version(31337).as_str(), "\"31337\"");
    assert!(
        value(&local::client_version())
            .as_str()
            .unwrap()
            .starts_with("ledger-gateway/")
    );
    assert_eq!(value(&local::hash(B256::ZERO)), json!(B256::ZERO));
}

fn error(code: i64, message: &str, data: Option<&str>) -> Sealed<RawError> {
    let data = data.map(|data| RawJson::new(bytes::Bytes::from(data.to_owned())));
    Sealed::new(RawError {
        code,
        message: message.to_owned(),
        data,
    })
}

/// Decision 44, W7, HD15: errors have only known texts, in the wording of geth, and only three codes.
#[test]
fn w7_errors_have_known_texts() {
    let known = |code, message: &str| {
        let error = view::node_error(ErrorContext::Other, error(code, message, Some("\"0x12\"")));
        assert_eq!(error.data(), None);
        (error.code(), error.message().to_owned())
    };
    for (code, message, shown) in [
        (
            -32000,
            "nonce too low: next nonce 5, tx nonce 3",
            (-32000, "nonce too low"),
        ),
        (-32003, "nonce too high", (-32000, "nonce too high")),
        (
            -32000,
            "insufficient funds for gas * price + value: address 0xdeadbeef have 1 want 2",
            (-32000, "insufficient funds for gas * price + value"),
        ),
        (
            -32000,
            "replacement transaction underpriced",
            (-32000, "replacement transaction underpriced"),
        ),
        (
            -32000,
            "transaction underpriced: tip needed 1",
            (-32000, "transaction underpriced"),
        ),
        (-32000, "already known", (-32000, "already known")),
        (-32003, "transaction already imported", (-32000, "already known")),
        (
            -32000,
            "intrinsic gas too low: have 1, want 2",
            (-32000, "intrinsic gas too low"),
        ),
        (-32000, "exceeds block gas limit", (-32000, "exceeds block gas limit")),
        (
            -32000,
            "max fee per gas less than block base fee: address 0x12, maxFeePerGas: 1",
            (-32000, "max fee per gas less than block base fee"),
        ),
        (
            -32000,
            "gas required exceeds allowance (21000)",
            (-32000, "gas required exceeds allowance"),
        ),
        (-32000, "out of gas", (-32000, "out of gas")),
        (-32603, "EVM error OutOfGas", (-32000, "out of gas")),
        (-32000, "invalid opcode: INVALID", (-32000, "invalid opcode")),
        (-32602, "invalid argument 0: hex string", (-32602, "upstream error")),
        (
            3,
            "execution reverted: balance of 0xdeadbeef is 5",
            (3, "execution reverted"),
        ),
        (-32000, "Execution Reverted", (3, "execution reverted")),
        (-32001, "resource not found", (-32000, "upstream error")),
        // RTO12: an unsupported method has a clear text and does not look like a denial.
        (
            -32601,
            "the method eth_x does not exist/is not available",
            (-32000, "the node does not support this method"),
        ),
        (-32005, "limit exceeded", (-32000, "upstream error")),
        (3, "unknown account 0xdeadbeef", (-32000, "upstream error")),
        (1, "", (-32000, "upstream error")),
    ] {
        assert_eq!(known(code, message), (shown.0, shown.1.to_owned()), "{message}");
    }
}

/// W7: revert data and reason are shown only for an execution whose trace was allowed. The reason is decoded from the
/// data, not copied from the text of the node.
#[test]
fn w7_revert_data_is_shown_only_after_an_allowed_trace() {
    let reason = format!(
        "08c379a0{:064x}{:064x}{}",
        32,
        3,
        hex::encode(format!("{:\0<32}", "no!"))
    );
    let data = format!("\"0x{reason}\"");
    let shown = view::node_error(
        ErrorContext::TracePassed,
        error(3, "execution reverted: lies", Some(&data)),
    );
    assert_eq!((shown.code(), shown.message()), (3, "execution reverted: no!"));
    assert_eq!(shown.data().unwrap(), format!("0x{reason}"));
    assert_eq!(
        serde_json::to_value(&shown).unwrap(),
        json!({ "code": 3, "message": "execution reverted: no!", "data": format!("0x{reason}") })
    );
    let other = view::node_error(ErrorContext::Other, error(3, "execution reverted: lies", Some(&data)));
    assert_eq!(
        serde_json::to_value(&other).unwrap(),
        json!({ "code": 3, "message": "execution reverted" })
    );
    let panic = format!("\"0x4e487b71{:064x}\"", 0x11);
    let shown = view::node_error(ErrorContext::TracePassed, error(3, "execution reverted", Some(&panic)));
    assert_eq!(shown.message(), "execution reverted: arithmetic underflow or overflow");
    for malformed in ["\"0x\"", "\"0x08c379a0\"", "{\"a\":1}", "\"hello\"", "7"] {
        let shown = view::node_error(
            ErrorContext::TracePassed,
            error(3, "execution reverted", Some(malformed)),
        );
        assert_eq!(shown.message(), "execution reverted", "{malformed}");
        assert!(shown.data().is_none_or(|data| malformed.contains(data)), "{malformed}");
    }
    let not_a_revert = view::node_error(ErrorContext::TracePassed, error(-32000, "out of gas", Some(&data)));
    assert_eq!(not_a_revert.data(), None);
}

/// The decision on a call of `to` by `user`.
pub(super) fn decide_call(snapshot: &Snapshot, user: &str, to: &str) -> Decision {
    let request = CallRequest {
        to: Some(address_of(to)),
        input: Bytes::from_static(&[1, 2, 3, 4]),
        ..CallRequest::default()
    };
    let call = Call::Simulate(Box::new(Simulation {
        kind: SimulationKind::Call,
        request,
        block: BlockId::LATEST,
    }));
    let access_request = AccessRequest {
        caller: &Caller::User(snapshot.user(user_id(user)).unwrap().clone()),
        lookup: MethodLookup::Registered(Method::Call),
        call: Ok(&call),
        visible_to: &VisibleTo::default(),
        named_org: NamedOrg::Unnamed,
        now: NOW,
        head: HeadFacts { number: 100 },
        policy_settings: &PolicySettings::SPEC,
    };
    decide(snapshot, &access_request)
}

fn permit_of(decision: Decision) -> Permit {
    match decision {
        Decision::Allow(permit) => permit,
        other => panic!("{other:?}"),
    }
}

/// Evaluates the trace of a call with this outcome, and passes the verdict to `read`.
fn with_verdict<T>(top: Outcome, read: impl Fn(&gw_policy::access::TraceVerdict) -> T) -> T {
    let snapshot = world()
        .org("a")
        .group("g")
        .every_method()
        .contract("c")
        .grant("g")
        .user("u")
        .member("g")
        .snapshot();
    let permit = permit_of(decide_call(&snapshot, "u", "c"));
    let frame = Frame {
        kind: FrameKind::Call,
        from: Default::default(),
        to: Some(address_of("c")),
        input: Bytes::from_static(&[1, 2, 3, 4]),
        output: top.output.clone(),
        value: U256::ZERO,
        gas: None,
        gas_used: None,
        error: None,
        depth: 0,
        parent: None,
        failed: top.error.is_some(),
        undone: top.error.is_some(),
        logs: Vec::new(),
    };
    let touched = [(address_of("c"), Account::default())].into();
    let trace = Sealed::new(Trace {
        frames: vec![frame],
        touched,
        changes: None,
        top,
    });
    let facts = TraceFacts {
        coinbase: address_of("coinbase"),
        number: 100,
        time: NOW,
    };
    let verdict = evaluate_trace(&snapshot, &permit, trace, &facts, NOW, &PolicySettings::SPEC).unwrap();
    read(&verdict)
}

/// X4, decision 44: a call is answered from its evaluated trace: output, revert, or a failure with a known text.
#[test]
fn x4_calls_are_answered_from_the_evaluated_trace() {
    let call = |output: &[u8], error: Option<&str>| {
        let top = Outcome {
            output: Bytes::copy_from_slice(output),
            gas_used: 30_000,
            error: error.map(str::to_owned),
            revert_reason: Some("a text of the node".to_owned()),
        };
        with_verdict(top, |verdict| (view::call_result(verdict), view::gas_used(verdict)))
    };
    let (result, gas) = call(&[0xab, 0xcd], None);
    assert_eq!((result.unwrap().as_str(), gas), ("\"0xabcd\"", Ok(30_000)));
    assert_eq!(call(&[], None).0.unwrap(), Disclosed::NO_BYTES);
    let failure = |failed: (Result<Disclosed, DisclosedError>, Result<u64, DisclosedError>)| {
        let (result, gas) = (failed.0.unwrap_err(), failed.1.unwrap_err());
        assert_eq!(result, gas);
        (
            result.code(),
            result.message().to_owned(),
            result.data().map(str::to_owned),
        )
    };
    let reverted = failure(call(&[0x12], Some("execution reverted")));
    assert_eq!(reverted, (3, "execution reverted".to_owned(), Some("0x12".to_owned())));
    let failed = failure(call(&[0x12], Some("out of gas: not enough gas for reentrancy sentry")));
    assert_eq!(failed, (-32000, "out of gas".to_owned(), None));
    assert_eq!(
        failure(call(&[], Some("stack underflow (0 <=> 2)"))).1,
        "upstream error"
    );
}
