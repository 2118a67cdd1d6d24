//! Signatures of reports, receipts and exports (rule 37): Ed25519 over the canonical form of the whole document without
//! its member `signature`.

use crate::canonical::{NotCanonical, canonical};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signer as _, SigningKey};
use serde::Serialize;
use serde_json::Value;

/// The private key that signs documents. It is the key of the audit checkpoints: no checkpoint begins with a brace, and
/// every canonical document does, so a signature of one is no signature of the other.
pub struct DocumentKey(SigningKey);

impl std::fmt::Debug for DocumentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DocumentKey(…)")
    }
}

/// The signature of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct Signature {
    /// Always `Ed25519`.
    algorithm: &'static str,
    /// Always `RFC 8785`: the signature is over the canonical form of the document without the member `signature`.
    canonicalization: &'static str,
    /// The public key, 32 bytes in base64. It is the key that verifies the audit checkpoints.
    public_key: String,
    /// The signature, 64 bytes in base64.
    value: String,
}

impl DocumentKey {
    /// A key from its 32 secret bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The 32 bytes of the public key.
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs a document, which must have no member `signature`.
    ///
    /// # Errors
    /// [`NotCanonical`] if the document has no canonical form.
    pub(crate) fn sign(&self, document: &Value) -> Result<Signature, NotCanonical> {
        let signature = self.0.sign(canonical(document)?.as_bytes());
        Ok(Signature {
            algorithm: "Ed25519",
            canonicalization: "RFC 8785",
            public_key: STANDARD.encode(self.public()),
            value: STANDARD.encode(signature.to_bytes()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signature as Ed25519, VerifyingKey};
    use serde_json::json;

    #[test]
    fn ds37_a_signature_verifies_for_its_document_only() {
        let key = DocumentKey::from_seed(&[7; 32]);
        let document = json!({"b": 1, "a": [true]});
        let signature = key.sign(&document).unwrap();
        let bytes = STANDARD.decode(&signature.value).unwrap();
        let verifier = VerifyingKey::from_bytes(&key.public()).unwrap();
        let verifies = |text: &str| {
            let signature = Ed25519::from_slice(&bytes).unwrap();
            verifier.verify_strict(text.as_bytes(), &signature).is_ok()
        };
        assert!(verifies(r#"{"a":[true],"b":1}"#));
        assert!(!verifies(r#"{"a":[true],"b":2}"#));
        assert_eq!(signature.public_key, STANDARD.encode(key.public()));
        assert_eq!(format!("{key:?}"), "DocumentKey(…)");
        assert!(key.sign(&json!({"a": 0.5})).is_err());
    }
}
