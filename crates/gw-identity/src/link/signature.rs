//! Recovers the signer of a text (LK-3): EIP-191, 65 bytes or the 64-byte compact form, low s only.

use alloy_primitives::{Signature, eip191_hash_message};
use gw_types::{Address, B256, U256};

/// An address as users write it: `0x` and 40 hex digits.
pub(crate) fn parse_address(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let mut bytes = [0u8; 20];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(Address::from(bytes))
}

/// Recovers the address whose key signed `message`. `None` if the signature is not canonical.
pub(crate) fn signer(message: &str, signature: &str) -> Option<Address> {
    let signature = parse(signature)?;
    // Each signature has a twin with the other s. Accepting both would let a third party alter a signature it has seen.
    if signature.normalize_s().is_some() {
        return None;
    }
    signature.recover_address_from_prehash(&challenge_hash(message)).ok()
}

/// The hash that a wallet signs for `message` (EIP-191).
pub(crate) fn challenge_hash(message: &str) -> B256 {
    eip191_hash_message(message)
}

/// Decodes a signature of any form, up to 8 KiB: a contract wallet defines its own format.
pub(crate) fn parse_bytes(text: &str) -> Option<Vec<u8>> {
    const MAX: usize = 8 * 1024;
    hex::decode(text.strip_prefix("0x").unwrap_or(text))
        .ok()
        .filter(|bytes| bytes.len() <= MAX)
}

fn parse(text: &str) -> Option<Signature> {
    let bytes = parse_bytes(text)?;
    let (r, rest) = bytes.split_first_chunk::<32>()?;
    let (s, v) = rest.split_first_chunk::<32>()?;
    let (r, s) = (U256::from_be_bytes(*r), B256::from(*s));
    let (s, odd) = match v {
        // EIP-2098: the parity is the top bit of s.
        [] => (U256::from_be_bytes(s.0) & (U256::MAX >> 1), s.0.first()? & 0x80 != 0),
        [0 | 27] => (U256::from_be_bytes(s.0), false),
        [1 | 28] => (U256::from_be_bytes(s.0), true),
        _ => return None,
    };
    Some(Signature::new(r, s, odd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::uint;
    use alloy_signer::SignerSync;
    use alloy_signer_local::PrivateKeySigner;

    const N: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);
    const TEXT: &str = "gate.example asks\nDID: did:test:alice";

    fn wallet() -> PrivateKeySigner {
        PrivateKeySigner::from_bytes(&B256::repeat_byte(0x42)).unwrap()
    }

    fn signed() -> Signature {
        wallet().sign_message_sync(TEXT.as_bytes()).unwrap()
    }

    fn with_v(signature: &Signature, v: u8) -> String {
        let mut bytes = signature.as_bytes();
        bytes[64] = v;
        hex::encode(bytes)
    }

    #[test]
    fn lk3_the_accepted_forms() {
        let (signature, address) = (signed(), wallet().address());
        let odd = u8::from(signature.v());
        for text in [
            with_v(&signature, odd),
            with_v(&signature, 27 + odd),
            format!("0x{}", with_v(&signature, 27 + odd)),
            hex::encode(signature.as_erc2098()),
        ] {
            assert_eq!(signer(TEXT, &text), Some(address), "{text}");
        }
        assert_ne!(signer("another text", &with_v(&signature, odd)), Some(address));
    }

    #[test]
    fn lk3_no_second_signature_comes_out_of_a_first() {
        let signature = signed();
        let odd = u8::from(signature.v());
        let twin = Signature::new(signature.r(), N - signature.s(), !signature.v());
        let prehash = eip191_hash_message(TEXT);
        assert_eq!(
            twin.recover_address_from_prehash(&prehash).ok(),
            Some(wallet().address()),
            "the twin is a valid signature"
        );
        assert_eq!(signer(TEXT, &with_v(&twin, u8::from(twin.v()))), None);
        for v in [2, 3, 26, 29, 35, 37, 255] {
            assert_eq!(signer(TEXT, &with_v(&signature, v)), None, "v {v}");
        }
        assert_ne!(signer(TEXT, &with_v(&signature, 1 - odd)), Some(wallet().address()));
    }

    #[test]
    fn lk3_malformed_signatures_are_nobodys() {
        let whole = hex::encode(signed().as_bytes());
        for text in [
            "",
            "0x",
            "zz",
            whole.get(..126).unwrap(),
            &format!("{whole}00"),
            &"00".repeat(65),
            &"ff".repeat(65),
        ] {
            assert_eq!(signer(TEXT, text), None, "{text}");
        }
    }

    #[test]
    fn lk2_addresses_are_0x_and_forty_digits() {
        assert_eq!(
            parse_address("0x00000000000000000000000000000000000000fF"),
            Some(Address::with_last_byte(255))
        );
        for bad in [
            "",
            "0x",
            "00000000000000000000000000000000000000ff",
            "0x0ff",
            "0xzz000000000000000000000000000000000000ff",
        ] {
            assert_eq!(parse_address(bad), None, "{bad}");
        }
    }
}
