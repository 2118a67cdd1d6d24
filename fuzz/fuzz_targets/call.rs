#![no_main]
use alloy_primitives::B256;
use gw_evm::{
    Call, ChainRules, Method, call,
    wire::{Pin, TraceForm, TraceScope, body, trace_batch},
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};

const CHAIN: ChainRules = ChainRules { chain_id: 31337 };
const PIN: Pin = Pin { number: 100, hash: B256::repeat_byte(0xcc) };

fuzz_target!(|input: &[u8]| {
    // The first byte chooses the method.
    let Some((which, text)) = input.split_first() else { return };
    let Ok(params) = serde_json::from_slice::<&RawValue>(text) else { return };
    let method = Method::ALL[usize::from(*which) % Method::ALL.len()];
    let Ok(parsed) = call::parse(method, Some(params), CHAIN) else { return };
    if let Some(upstream) = body(&parsed.call, PIN) {
        let written: Value = serde_json::from_str(&upstream.params).expect("upstream params are JSON");
        assert!(written.is_array());
        if let Call::Send(send) = &parsed.call {
            let raw = serde_json::from_str::<&RawValue>(&upstream.params).expect("JSON");
            let again = call::parse(Method::SendTransaction, Some(raw), CHAIN).expect("what we write we read");
            let Call::Send(again) = again.call else { panic!("another call") };
            // The chain id is checked, not sent.
            let mut expected = send.clone();
            expected.request.chain_id = None;
            assert_eq!(again, expected);
        }
    }
    if let Call::Simulate(simulation) = &parsed.call {
        for call in trace_batch(&simulation.request, PIN, TraceScope::Send, TraceForm::Batch, None) {
            serde_json::from_str::<Value>(&call.params).expect("trace params are JSON");
        }
    }
});
