//! Proof key for code exchange, S256 only (OA-4, RFC 7636).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The `code_challenge` of an authorization request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge([u8; 32]);

impl Challenge {
    /// Parses a `code_challenge` of method S256.
    pub fn parse(text: &str) -> Option<Self> {
        let mut hash = [0u8; 32];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut hash) {
            Ok(32) => Some(Self(hash)),
            Ok(_) | Err(_) => None,
        }
    }

    /// The text of the challenge.
    pub fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Whether this challenge was derived from `verifier`.
    pub fn is_met_by(&self, verifier: &str) -> bool {
        let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let formed = (43..=128).contains(&verifier.len()) && verifier.bytes().all(unreserved);
        let hash: [u8; 32] = Sha256::digest(verifier.as_bytes()).into();
        formed && bool::from(hash.ct_eq(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636 appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn oa4_the_example_of_the_rfc() {
        let challenge = Challenge::parse(CHALLENGE).unwrap();
        assert!(challenge.is_met_by(VERIFIER));
        assert_eq!(challenge.to_text(), CHALLENGE);
        assert!(!challenge.is_met_by(&VERIFIER.replace('d', "e")));
        assert!(!challenge.is_met_by(CHALLENGE), "the plain method is none");
        assert!(!challenge.is_met_by(""));
    }

    #[test]
    fn oa4_what_is_no_sha256_is_no_challenge() {
        for text in [
            "",
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-c",
            &format!("{CHALLENGE}="),
            VERIFIER,
            "ä",
        ] {
            let is_hash = text == VERIFIER;
            assert_eq!(Challenge::parse(text).is_some(), is_hash, "{text}");
        }
        assert!(Challenge::parse(&CHALLENGE.replace('-', "+")).is_none());
    }

    #[test]
    fn oa4_a_verifier_keeps_to_its_alphabet_and_length() {
        for text in [
            "a".repeat(42),
            "a".repeat(129),
            format!("{}+", "a".repeat(43)),
            format!("{} ", "a".repeat(43)),
        ] {
            let challenge = Challenge(Sha256::digest(text.as_bytes()).into());
            assert!(!challenge.is_met_by(&text), "{text}");
        }
        for length in [43, 128] {
            let text = "~".repeat(length);
            assert!(
                Challenge(Sha256::digest(text.as_bytes()).into()).is_met_by(&text),
                "{length}"
            );
        }
    }
}
