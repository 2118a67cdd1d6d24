#![no_main]
use gw_evm::abi::{ContractAbi, EventShape, zero_opaque, zero_word};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// Inputs that together reach every kind of type.
const INPUTS: [&str; 14] = [
    r#"{"name":"","type":"address"},{"name":"","type":"uint256"}"#,
    r#"{"name":"","type":"address[]"}"#,
    r#"{"name":"","type":"address[3]"},{"name":"","type":"bytes32"}"#,
    r#"{"name":"","type":"bytes"},{"name":"","type":"string"}"#,
    r#"{"name":"","type":"address[][]"}"#,
    r#"{"name":"","type":"address[2][]"},{"name":"","type":"bool"}"#,
    r#"{"name":"","type":"string[2]"},{"name":"","type":"address"}"#,
    r#"{"name":"","type":"tuple","components":[{"name":"","type":"address"},{"name":"","type":"int64"}]}"#,
    r#"{"name":"","type":"tuple[]","components":[{"name":"","type":"address"},{"name":"","type":"bytes"}]}"#,
    r#"{"name":"","type":"tuple[2][]","components":[{"name":"","type":"address[]"},{"name":"","type":"function"}]}"#,
    r#"{"name":"","type":"bytes[]"},{"name":"","type":"bytes4"}"#,
    r#"{"name":"","type":"address[][][]"}"#,
    r#"{"name":"","type":"function"},{"name":"","type":"address[1][2][3]"}"#,
    r#"{"name":"","type":"tuple","components":[{"name":"","type":"tuple[]","components":[{"name":"","type":"address"},{"name":"","type":"address[]"}]}]}"#,
];

static ABIS: LazyLock<Vec<ContractAbi>> = LazyLock::new(|| {
    let abi = |inputs: &&str| {
        let indexed = inputs.replace("{\"name\":\"\",\"type\":", "{\"indexed\":false,\"name\":\"\",\"type\":");
        // Components take no `indexed`.
        let event = strip_components(&indexed);
        ContractAbi::parse(&format!(
            r#"[{{"type":"event","name":"E","anonymous":false,"inputs":[{event}]}},
                {{"type":"function","name":"f","stateMutability":"view","outputs":[],"inputs":[{inputs}]}}]"#
        ))
        .expect("an ABI")
    };
    INPUTS.iter().map(abi).collect()
});

fn strip_components(inputs: &str) -> String {
    match inputs.split_once("\"components\":[") {
        Some((head, rest)) => format!("{head}\"components\":[{}", rest.replace("\"indexed\":false,", "")),
        None => inputs.to_owned(),
    }
}

fn check(shape: &EventShape, data: &[u8]) {
    let Ok(found) = shape.data(data) else { return };
    let mut masked = data.to_vec();
    for slot in &found.addresses {
        let word = &data[slot.offset..slot.offset + 32];
        assert!(&word[12..] == slot.address.as_slice() || &word[..20] == slot.address.as_slice());
        zero_word(&mut masked, slot.offset);
    }
    for slot in &found.perhaps {
        assert_eq!(&data[slot.offset + 12..slot.offset + 32], slot.address.as_slice());
    }
    for opaque in &found.opaque {
        assert!(opaque.offset + opaque.len <= data.len());
        zero_opaque(&mut masked, *opaque);
    }
    assert_eq!(masked.len(), data.len());
}

fuzz_target!(|input: &[u8]| {
    let Some((which, data)) = input.split_first() else { return };
    let abi = &ABIS[usize::from(*which) % ABIS.len()];
    let topic0 = abi.json().events().next().expect("one event").selector();
    check(abi.event(&[topic0]).expect("declared"), data);
    let selector = abi.json().functions().next().expect("one function").selector();
    let _ = abi.arguments(&[selector.as_slice(), data].concat());
});
