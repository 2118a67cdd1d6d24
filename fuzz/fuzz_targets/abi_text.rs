#![no_main]
use gw_evm::abi::ContractAbi;
use libfuzzer_sys::fuzz_target;

/// Words that are small offsets and lengths, so that walks go somewhere.
fn data() -> Vec<u8> {
    (0..24_u8).flat_map(|n| [&[0; 31][..], &[n % 5 * 32 + n % 3]].concat()).collect()
}

fuzz_target!(|text: &str| {
    let Ok(abi) = ContractAbi::parse(text) else { return };
    let data = &data();
    for event in abi.json().events() {
        for shape in abi.declared(&event.selector()) {
            let _ = shape.data(data);
            let _ = shape.input(0, &[event.selector()], data);
        }
    }
    for function in abi.json().functions() {
        let _ = abi.arguments(&[function.selector().as_slice(), data].concat());
    }
});
