#![no_main]
use alloy_primitives::{Bytes, keccak256};
use gw_evm::{ChainRules, tx};
use libfuzzer_sys::fuzz_target;

const CHAIN: ChainRules = ChainRules { chain_id: 31337 };

fuzz_target!(|raw: &[u8]| {
    let Ok(signed) = tx::decode(Bytes::copy_from_slice(raw), CHAIN) else { return };
    assert_eq!(signed.raw.as_ref(), raw);
    assert_eq!(signed.hash, keccak256(raw));
    assert!(matches!(signed.tx_type, 0 | 1 | 2 | 4));
    assert_eq!(signed.request.chain_id, Some(31337));
    assert_eq!((signed.request.from, signed.request.nonce), (Some(signed.sender), Some(signed.nonce)));
    for authorization in &signed.request.authorization_list {
        let _ = tx::authority(authorization, CHAIN);
    }
});
