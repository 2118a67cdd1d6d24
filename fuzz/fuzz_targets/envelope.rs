#![no_main]
use gw_evm::envelope::{Incoming, MAX_DEPTH, Request, parse};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members).sum(),
        Value::Object(map) => map.len() + map.values().map(members).sum::<usize>(),
        _ => 0,
    }
}

fn check(request: &Request<'_>, whole: &Value) {
    assert!(request.method.len() <= 128);
    let id: Value = serde_json::from_str(request.id.as_json()).expect("ids are JSON");
    assert_eq!(&id, whole.get("id").unwrap_or(&Value::Null));
    assert!(id.is_string() || id.is_number() || id.is_null());
    match request.params {
        Some(params) => {
            let params: Value = serde_json::from_str(params.get()).expect("params are JSON");
            assert!(params.is_array());
            assert_eq!(&params, &whole["params"]);
        }
        None => assert!(whole.get("params").is_none_or(Value::is_null)),
    }
}

fuzz_target!(|body: &[u8]| {
    let Ok(incoming) = parse(body, 8) else { return };
    serde_json::from_slice::<IgnoredAny>(body).expect("accepted bodies are JSON");
    // Numbers beyond a float and lone surrogates are JSON by grammar, and no value.
    let Ok(whole) = serde_json::from_slice::<Value>(body) else { return };
    assert!(depth(&whole) <= MAX_DEPTH);
    // A parser that keeps the last of two equal members would lose one here.
    let text = std::str::from_utf8(body).expect("UTF-8");
    let colons = count_members(text);
    assert_eq!(members(&whole), colons);
    match incoming {
        Incoming::Single(request) => check(&request, &whole),
        Incoming::Batch(elements) => {
            assert!((1..=8).contains(&elements.len()));
            for (element, value) in elements.iter().zip(whole.as_array().expect("a batch is an array")) {
                if let Ok(request) = element {
                    check(request, value);
                }
            }
        }
    }
});

/// Colons outside of strings.
fn count_members(text: &str) -> usize {
    let (mut inside, mut escaped, mut colons) = (false, false, 0);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b':' if !inside => colons += 1,
            _ => {}
        }
    }
    colons
}
