use alloy_primitives::{Address, B256, U256, address, b256};
use gw_evm::{
    code,
    trace::{CallTree, FrameKind, MAX_DEPTH, MAX_FRAMES, Trace, TraceError, transactions},
    wire::{TraceForm, TraceScope},
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue, value::to_raw_value};

/// The response of a real node; `tests/vectors/README.md` describes the files.
#[derive(Deserialize)]
struct Vector {
    from: Address,
    root: Address,
    other: Address,
    results: Vec<Box<RawValue>>,
}

impl Vector {
    fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap()
    }

    fn parse(&self, scope: TraceScope, form: TraceForm) -> Trace {
        Trace::parse(&self.results(), scope, form).unwrap()
    }

    fn results(&self) -> Vec<&RawValue> {
        self.results.iter().map(AsRef::as_ref).collect()
    }
}

/// Checks the trace of one contract call that creates, calls, fails, delegates, creates again, reads a balance and
/// destroys.
fn check_send(vector: &Vector, trace: &Trace) {
    let kinds: Vec<_> = trace
        .frames
        .iter()
        .map(|frame| (frame.kind, frame.depth, frame.parent, frame.failed))
        .collect();
    use FrameKind::*;
    assert_eq!(
        kinds,
        [
            (Call, 0, None, false),
            (Create, 1, Some(0), false),
            (Call, 1, Some(0), false),
            (Call, 1, Some(0), true),
            (DelegateCall, 1, Some(0), false),
            (Create2, 1, Some(0), false),
            (Call, 1, Some(0), false),
            (SelfDestruct, 2, Some(6), false),
        ]
    );
    let (child, second) = (trace.frames[1].to.unwrap(), trace.frames[5].to.unwrap());
    assert_eq!(trace.created().collect::<Vec<_>>(), [child, second]);
    assert_eq!(
        (trace.frames[0].from, trace.frames[0].to),
        (vector.from, Some(vector.root))
    );
    let values: Vec<u64> = trace.frames.iter().map(|frame| frame.value.to()).collect();
    assert_eq!(values, [5, 1, 2, 0, 0, 0, 0, 3], "a delegatecall transfers no value");
    assert_eq!((trace.frames[7].from, trace.frames[7].to), (child, Some(vector.other)));
    assert_eq!(
        trace.frames[1].output, trace.frames[5].output,
        "the output of a creation is its code"
    );

    let event_counts: Vec<_> = trace.frames.iter().map(|frame| frame.logs.len()).collect();
    assert_eq!(
        event_counts,
        [0, 0, 1, 0, 1, 0, 0, 0],
        "the event of the failed frame is undone"
    );
    assert_eq!(
        (trace.frames[2].logs[0].address, trace.frames[4].logs[0].address),
        (child, vector.root)
    );
    assert_eq!(trace.frames[2].logs[0].topics[1], vector.root.into_word());
    assert_eq!(
        trace.frames[2].logs[0].data.as_ref(),
        vector.other.into_word().as_slice()
    );

    assert_eq!((trace.top.error.as_ref(), trace.top.gas_used), (None, 0x47bb1));
    assert!(!trace.touched[&vector.root].code.is_empty() && trace.touched[&vector.root].nonce == 1);
    for address in [child, second, vector.other, vector.from] {
        assert!(trace.touched[&address].code.is_empty());
    }
    assert!(trace.touched[&vector.other].balance > U256::ZERO);

    let changes = trace.changes.as_ref().unwrap();
    let root = &changes[&vector.root];
    assert_eq!((root.balance, root.nonce), (Some(U256::from(0x66)), Some(3)));
    assert_eq!(root.storage.len(), 2, "a slot that becomes zero is written too");
    assert_eq!(root.storage[&B256::with_last_byte(1)], B256::ZERO);
    assert!(root.storage[&B256::ZERO] > B256::ZERO);
    assert!(
        !root.removed && !changes.contains_key(&child),
        "created and destroyed within one send"
    );
    assert_eq!(changes[&second].nonce, Some(1));
}

#[test]
fn x5_batch_form_of_a_real_send() {
    let vector = Vector::read(include_str!("../vectors/send-anvil.json"));
    check_send(&vector, &vector.parse(TraceScope::Send, TraceForm::Batch));
    let read = Trace::parse(&vector.results()[..2], TraceScope::Read, TraceForm::Batch).unwrap();
    assert_eq!(read.changes, None);
}

#[test]
fn x5_mux_form_of_a_real_send() {
    let vector = Vector::read(include_str!("../vectors/send-edr.json"));
    check_send(&vector, &vector.parse(TraceScope::Send, TraceForm::Mux));
    let read = Trace::parse(&vector.results()[..1], TraceScope::Read, TraceForm::Mux).unwrap();
    assert_eq!(read.changes, None);
}

#[test]
fn hd2_a_real_block_is_split_by_transaction() {
    let vector = Vector::read(include_str!("../vectors/block-anvil.json"));
    let mined = transactions(&vector.results()).unwrap();
    assert_eq!(mined.len(), 1);
    assert_eq!(
        mined[0].hash,
        b256!("0xd1ccd8c2cc956adcf672b7e0125f2a06e96bec9f7cd58ca9b21f314ff29d8d96")
    );
    check_send(
        &vector,
        &Trace::parse(&mined[0].results, TraceScope::Send, TraceForm::Batch).unwrap(),
    );

    let to_raw = |text: &str| to_raw_value(&serde_json::from_str::<Value>(text).unwrap()).unwrap();
    let error =
        to_raw(r#"[{"txHash":"0xd1ccd8c2cc956adcf672b7e0125f2a06e96bec9f7cd58ca9b21f314ff29d8d96","error":"x"}]"#);
    let shorter = to_raw("[]");
    for bad in [&error, &shorter] {
        let results = [vector.results()[0], bad.as_ref(), vector.results()[2]];
        assert_eq!(transactions(&results).unwrap_err(), TraceError::Malformed);
    }
    assert!(transactions(&[]).is_err());
}

#[test]
fn x4_a_real_revert_keeps_data_and_reason() {
    let vector = Vector::read(include_str!("../vectors/revert-anvil.json"));
    let trace = vector.parse(TraceScope::Read, TraceForm::Batch);
    assert_eq!(trace.top.error.as_deref(), Some("execution reverted"));
    assert_eq!(trace.top.revert_reason.as_deref(), Some("top \"reason\""), "unescaped");
    assert_eq!(trace.top.output, trace.frames[0].output);
    assert!(trace.frames[0].failed && trace.frames[0].undone);
    assert_eq!(&trace.top.output[..4], [0x08, 0xc3, 0x79, 0xa0]);
}

#[test]
fn x5_callcode_and_extcodesize_are_reported() {
    let vector = Vector::read(include_str!("../vectors/callcode-anvil.json"));
    let trace = vector.parse(TraceScope::Read, TraceForm::Batch);
    assert_eq!(
        (trace.frames[1].kind, trace.frames[1].to),
        (FrameKind::CallCode, Some(vector.root))
    );
    assert!(trace.frames[1].failed && !trace.frames[0].failed);
    assert!(trace.touched.contains_key(&vector.other), "EXTCODESIZE is a touch");
    assert!(
        !code::probes_accounts(&trace.frames[0].input),
        "the code has neither BALANCE nor EXTCODEHASH"
    );
}

#[test]
fn x7_creations() {
    let deploy = Vector::read(include_str!("../vectors/deploy-anvil.json"));
    let trace = deploy.parse(TraceScope::Send, TraceForm::Batch);
    assert_eq!(trace.frames[0].kind, FrameKind::Create);
    assert_eq!(trace.created().collect::<Vec<_>>(), [trace.frames[0].to.unwrap()]);

    let failed = Vector::read(include_str!("../vectors/failed-create-anvil.json"));
    let trace = failed.parse(TraceScope::Send, TraceForm::Batch);
    assert_eq!((trace.frames[0].kind, trace.frames[0].to), (FrameKind::Create, None));
    assert_eq!(trace.created().count(), 0);
    assert!(trace.top.error.is_some());
}

#[test]
fn a_plain_transfer() {
    let vector = Vector::read(include_str!("../vectors/transfer-anvil.json"));
    let trace = vector.parse(TraceScope::Send, TraceForm::Batch);
    assert_eq!((trace.frames.len(), trace.frames[0].value), (1, U256::ONE));
    let changes = trace.changes.unwrap();
    assert_eq!(changes.keys().copied().collect::<Vec<_>>(), [vector.other, vector.from]);
}

const F: Address = address!("0x00000000000000000000000000000000000000f1");

fn frame(kind: &str, calls: Vec<Value>) -> Value {
    json!({"from": F, "to": F, "type": kind, "input": "0x", "gasUsed": "0x0", "calls": calls})
}

fn parse(tree: &Value) -> Result<Trace, TraceError> {
    parse_parts(&[tree.clone(), json!({})], TraceScope::Read)
}

fn parse_parts(parts: &[Value], scope: TraceScope) -> Result<Trace, TraceError> {
    let raw: Vec<_> = parts.iter().map(|part| to_raw_value(part).unwrap()).collect();
    Trace::parse(
        &raw.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
        scope,
        TraceForm::Batch,
    )
}

#[test]
fn x5_an_unknown_frame_type_denies() {
    for kind in ["EOFCREATE", "AUTHCALL", "call", ""] {
        let nested = frame("CALL", vec![frame("STATICCALL", vec![frame(kind, vec![])])]);
        assert_eq!(parse(&nested), Err(TraceError::UnknownFrame), "{kind}");
    }
}

/// A tree with `depth` frames below the top frame. It is built as text, because a `serde_json::Value` would overflow
/// the stack.
fn chain(depth: u32) -> Box<RawValue> {
    let open = format!(r#"{{"from":"{F}","to":"{F}","type":"CALL","input":"0x","calls":["#);
    let depth = depth as usize + 1;
    RawValue::from_string(format!("{}{}", open.repeat(depth), "]}".repeat(depth))).unwrap()
}

fn parse_chain(depth: u32) -> Result<Trace, TraceError> {
    let prestate = to_raw_value(&json!({})).unwrap();
    Trace::parse(&[&chain(depth), &prestate], TraceScope::Read, TraceForm::Batch)
}

#[test]
fn x11_depth_limit() {
    let deepest = parse_chain(MAX_DEPTH).unwrap();
    assert_eq!(deepest.frames.last().map(|frame| frame.depth), Some(256));
    assert_eq!(parse_chain(MAX_DEPTH + 1), Err(TraceError::TooDeep));
    assert_eq!(parse_chain(100_000), Err(TraceError::TooDeep));
}

#[test]
fn hd36_a_stored_call_tree_is_limited_by_the_evm_alone() {
    let deepest = CallTree::parse(&chain(1024)).unwrap();
    let addresses = deepest.trace_addresses();
    assert_eq!(addresses.last(), Some(&vec![0; 1024]));
    assert_eq!(CallTree::parse(&chain(1025)), Err(TraceError::TooDeep));
    let block = format!(r#"[{{"txHash":"{}","result":{}}}]"#, B256::ZERO, chain(1024).get());
    let block = RawValue::from_string(block).unwrap();
    let mined = transactions(&[&block]).unwrap();
    assert_eq!(CallTree::parse(mined[0].results[0]), Ok(deepest));
    let wide = frame("CALL", vec![frame("CALL", vec![]); MAX_FRAMES]);
    let wide = CallTree::parse(&to_raw_value(&wide).unwrap()).unwrap();
    assert_eq!(wide.trace_addresses().last().map(Vec::as_slice), Some(&[9_999][..]));
}

#[test]
fn x11_frame_limit() {
    let tree_with = |children: usize| frame("CALL", vec![frame("CALL", vec![]); children]);
    assert_eq!(parse(&tree_with(MAX_FRAMES - 1)).unwrap().frames.len(), MAX_FRAMES);
    assert_eq!(parse(&tree_with(MAX_FRAMES)), Err(TraceError::TooManyFrames));
}

#[test]
fn x11_incomplete_or_malformed_traces_are_errors() {
    let good = frame("CALL", vec![]);
    let frame_without = |name: &str| {
        let mut frame = good.clone();
        frame.as_object_mut().unwrap().remove(name);
        frame
    };
    let frame_with = |name: &str, value: Value| {
        let mut frame = good.clone();
        frame[name] = value;
        frame
    };
    assert!(parse(&good).is_ok());
    for bad in [
        json!(null),
        json!([]),
        json!("x"),
        json!({}),
        frame_without("type"),
        frame_without("from"),
        frame_without("to"),
        frame_with("to", json!(null)),
        frame_with("to", json!("0x01")),
        frame_with("from", json!(1)),
        frame_with("input", json!("0x1")),
        frame_with("input", json!("zz")),
        frame_with("output", json!(5)),
        frame_with("value", json!("0xzz")),
        frame_with("calls", json!({})),
        frame_with("calls", json!([null])),
        frame_with("calls", json!([[]])),
        frame_with("logs", json!({})),
        frame_with("logs", json!([{"address": F}])),
        frame_with("gasUsed", json!("0x10000000000000000")),
    ] {
        assert_eq!(
            parse(&frame("CALL", vec![bad.clone()])),
            Err(TraceError::Malformed),
            "{bad}"
        );
        assert_eq!(parse(&bad), Err(TraceError::Malformed), "{bad}");
    }
    // Only a creation may lack its address, and only if it failed.
    for (kind, has_error, is_valid) in [
        ("CREATE", true, true),
        ("CREATE2", true, true),
        ("CREATE", false, false),
        ("CALL", true, false),
    ] {
        let mut draft = json!({"from": F, "type": kind, "input": "0x"});
        if has_error {
            draft["error"] = json!("out of gas");
        }
        assert_eq!(parse(&draft).is_ok(), is_valid, "{kind} {has_error}");
    }
    for prestate in [
        json!(null),
        json!([]),
        json!({"0x01": {}}),
        json!({F.to_string(): {"nonce": -1}}),
    ] {
        assert_eq!(
            parse_parts(&[good.clone(), prestate], TraceScope::Read),
            Err(TraceError::Malformed)
        );
    }
    for diff in [
        json!(null),
        json!({}),
        json!({"pre": {}}),
        json!({"pre": {}, "post": []}),
    ] {
        assert_eq!(
            parse_parts(&[good.clone(), json!({}), diff], TraceScope::Send),
            Err(TraceError::Malformed)
        );
    }
    assert!(
        parse_parts(&[good.clone(), json!({})], TraceScope::Send).is_err(),
        "a result is missing"
    );
    assert!(parse_parts(std::slice::from_ref(&good), TraceScope::Read).is_err());
}

#[test]
fn a_repeated_or_escaped_member_is_malformed() {
    let prestate = to_raw_value(&json!({})).unwrap();
    for member in [
        r#""to":"0x""#,
        r#""calls":[],"calls":[]"#,
        r#""logs":[],"logs":[]"#,
        r#""c\u0061lls":[]"#,
    ] {
        let text = format!(r#"{{"from":"{F}","to":"{F}",{member},"type":"CALL","input":"0x"}}"#);
        let raw = RawValue::from_string(text).unwrap();
        let result = Trace::parse(&[&raw, &prestate], TraceScope::Read, TraceForm::Batch);
        assert_eq!(result, Err(TraceError::Malformed), "{member}");
    }
}

#[test]
fn effects_below_a_failed_frame_are_undone() {
    let mut inner = frame("CREATE", vec![]);
    inner["logs"] = json!([{"address": F, "topics": [], "data": "0x"}]);
    let mut failed = frame("CALL", vec![inner.clone()]);
    failed["error"] = json!("execution reverted");
    let trace = parse(&frame("CALL", vec![failed, inner])).unwrap();
    let undone: Vec<_> = trace
        .frames
        .iter()
        .map(|f| (f.failed, f.undone, f.logs.len()))
        .collect();
    assert_eq!(
        undone,
        [(false, false, 0), (true, true, 0), (false, true, 0), (false, false, 1)]
    );
    assert_eq!(trace.created().count(), 1);
}

#[test]
fn nonces_are_numbers_or_quantities_and_removed_accounts_are_reported() {
    let account =
        |nonce: Value| json!({F.to_string(): {"nonce": nonce, "balance": "0x2", "code": "0xef01", "codeHash": "0x"}});
    for nonce in [json!(7), json!("0x7")] {
        let trace = parse_parts(&[frame("CALL", vec![]), account(nonce)], TraceScope::Read).unwrap();
        let touched = &trace.touched[&F];
        assert_eq!(
            (touched.nonce, touched.balance, touched.code.as_ref()),
            (7, U256::from(2), &[0xef, 0x01][..])
        );
    }
    let diff = json!({"pre": account(json!(1)), "post": {}});
    let trace = parse_parts(&[frame("CALL", vec![]), json!({}), diff], TraceScope::Send).unwrap();
    assert!(trace.changes.unwrap()[&F].removed);
}

fn tree() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "CALL",
        "STATICCALL",
        "DELEGATECALL",
        "CALLCODE",
        "CREATE",
        "CREATE2",
    ]);
    let extra = prop::option::of("[a-z\"\\\\{}\\[\\],:]{0,6}");
    let leaf = (kind, extra, any::<bool>()).prop_map(|(kind, extra, failed)| {
        let mut frame = frame(kind, vec![]);
        if let Some(extra) = extra {
            frame["zExtra"] = json!({"text": extra, "list": [1, {"calls": [{}]}, extra]});
        }
        if failed {
            frame["error"] = json!("x\"]}");
        }
        frame
    });
    leaf.prop_recursive(6, 40, 4, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..4)).prop_map(|(mut frame, calls)| {
            frame["calls"] = calls.into();
            frame
        })
    })
}

/// Reads the tree recursively, as an oracle.
fn flatten(
    tree: &Value,
    depth: u32,
    parent: Option<usize>,
    undone: bool,
    frames: &mut Vec<(u32, Option<usize>, bool)>,
) {
    let undone = undone || tree.get("error").is_some();
    let index = frames.len();
    frames.push((depth, parent, undone));
    for call in tree["calls"].as_array().into_iter().flatten() {
        flatten(call, depth + 1, Some(index), undone, frames);
    }
}

proptest! {
    #[test]
    fn the_reader_agrees_with_a_recursive_one(tree in tree(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) }.unwrap();
        let raw = RawValue::from_string(text).unwrap();
        let prestate = to_raw_value(&json!({})).unwrap();
        let trace = Trace::parse(&[&raw, &prestate], TraceScope::Read, TraceForm::Batch).unwrap();
        let mut expected = Vec::new();
        flatten(&tree, 0, None, false, &mut expected);
        let frames: Vec<_> = trace.frames.iter().map(|f| (f.depth, f.parent, f.undone)).collect();
        prop_assert_eq!(frames, expected);
    }

    #[test]
    fn cut_or_changed_text_never_panics(index in any::<prop::sample::Index>(), byte in "[\\[\\]{}\":,x0]") {
        let vector = Vector::read(include_str!("../vectors/callcode-anvil.json"));
        let text = vector.results()[0].get();
        let position = index.index(text.len());
        let changed = format!("{}{byte}{}", &text[..position], &text[position + 1..]);
        if let Ok(raw) = RawValue::from_string(changed) {
            let _ = Trace::parse(&[&raw, vector.results()[1]], TraceScope::Read, TraceForm::Batch);
        }
    }
}
