#![no_main]
use gw_evm::{
    trace::{Trace, transactions},
    wire::{TraceForm, TraceScope},
};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

#[derive(Deserialize)]
struct Vector<'a> {
    #[serde(borrow)]
    results: Vec<&'a RawValue>,
}

/// The plain recursive reading.
fn frames(tree: &Value) -> usize {
    1 + tree["calls"].as_array().into_iter().flatten().map(frames).sum::<usize>()
}

fuzz_target!(|text: &str| {
    let Ok(Vector { results }) = serde_json::from_str(text) else { return };
    for (scope, form) in [
        (TraceScope::Read, TraceForm::Batch),
        (TraceScope::Send, TraceForm::Batch),
        (TraceScope::Read, TraceForm::Mux),
        (TraceScope::Send, TraceForm::Mux),
    ] {
        let Ok(trace) = Trace::parse(&results, scope, form) else { continue };
        assert!(trace.frames.iter().enumerate().all(|(index, frame)| frame.parent.is_none_or(|parent| parent < index)));
        // Deeper trees than the recursive parser takes have no oracle.
        if form == TraceForm::Batch
            && let Ok(tree) = serde_json::from_str::<Value>(results[0].get())
        {
            assert_eq!(trace.frames.len(), frames(&tree));
        }
    }
    let _ = transactions(&results);
});
