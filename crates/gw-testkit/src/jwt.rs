//! Keys made for a test, and tokens signed with them as a directory would.

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
    /// A new key of 2048 bits under this id.
    ///
    /// # Panics
    /// When none can be made.
    pub fn generate(id: &str) -> Self {
        let made = RsaPrivateKey::new(&mut OsRng, 2048).unwrap_or_else(|error| panic!("no RSA key: {error}"));
        let der = made
            .to_pkcs1_der()
            .unwrap_or_else(|error| panic!("no RSA key: {error}"));
        let pair = RsaKeyPair::from_der(der.as_bytes()).unwrap_or_else(|error| panic!("no RSA key: {error}"));
        let number = |bytes: Vec<u8>| URL_SAFE_NO_PAD.encode(bytes);
        let public = json!({
            "kty": "RSA", "use": "sig", "kid": id, "n": number(made.n().to_bytes_be()), "e": number(made.e().to_bytes_be()),
        });
        Self {
            id: id.to_owned(),
            public,
            pair,
        }
    }

    /// The public half, as a key document lists it.
    pub fn jwk(&self) -> Value {
        self.public.clone()
    }

    /// A token with the header this key's tokens usually have.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(&json!({ "alg": "RS256", "typ": "JWT", "kid": self.id }), claims)
    }

    /// A token with any header; always signed RS256, whatever that says.
    ///
    /// # Panics
    /// When it cannot be signed.
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
            .unwrap_or_else(|_| panic!("an RSA key that does not sign"));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
