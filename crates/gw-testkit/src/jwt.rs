//! Signing keys for tests, and tokens signed as a directory signs them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{rand::SystemRandom, signature::RSA_PKCS1_SHA256, signature::RsaKeyPair};
use rsa::{RsaPrivateKey, pkcs1::EncodeRsaPrivateKey as _, rand_core::OsRng, traits::PublicKeyParts as _};
use serde_json::{Value, json};

/// An RSA key that signs tokens.
#[derive(Debug)]
pub struct SigningKey {
    id: String,
    public: Value,
    pair: RsaKeyPair,
}

impl SigningKey {
    /// Generates a 2048-bit key with this id.
    ///
    /// # Panics
    /// If the key cannot be generated.
    pub fn generate(id: &str) -> Self {
        let private = RsaPrivateKey::new(&mut OsRng, 2048).unwrap_or_else(|error| panic!("no RSA key: {error}"));
        let der = private
            .to_pkcs1_der()
            .unwrap_or_else(|error| panic!("no RSA key: {error}"));
        let pair = RsaKeyPair::from_der(der.as_bytes()).unwrap_or_else(|error| panic!("no RSA key: {error}"));
        let number = |bytes: Vec<u8>| URL_SAFE_NO_PAD.encode(bytes);
        let public = json!({
            "kty": "RSA", "use": "sig", "kid": id, "n": number(private.n().to_bytes_be()),
            "e": number(private.e().to_bytes_be()),
        });
        Self {
            id: id.to_owned(),
            public,
            pair,
        }
    }

    /// The public key, as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        self.public.clone()
    }

    /// Signs a token with the usual header of this key.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(&json!({ "alg": "RS256", "typ": "JWT", "kid": self.id }), claims)
    }

    /// Signs a token with any header; always RS256, whatever the header says.
    ///
    /// # Panics
    /// If signing fails.
    pub fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let mut signature = vec![0; self.pair.public().modulus_len()];
        self.pair
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                signed.as_bytes(),
                &mut signature,
            )
            .unwrap_or_else(|_| panic!("the RSA key cannot sign"));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
