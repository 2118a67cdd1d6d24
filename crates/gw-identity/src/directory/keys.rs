//! The directory's signing keys, as listed in its JSON Web Key Set (RFC 7517). Pure: another module fetches the
//! document.
//!
//! Invariant: only keys that may sign accepted tokens are kept: RSA, for signatures, RS256, at least 2048 bits (DS-6).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use serde::Deserialize;

/// The smallest modulus in bytes.
const MODULUS_MIN: usize = 256;
/// The largest modulus in bytes: verification must not be usable to overload the gateway.
const MODULUS_MAX: usize = 1024;

/// Why a document is not a usable key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// Not JSON, or JSON of another shape.
    #[error("the key document is malformed")]
    Malformed,
    /// No key that may sign accepted tokens.
    #[error("the key document holds no usable key")]
    Empty,
}

/// The keys of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet(Vec<Key>);

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    id: String,
    modulus: Vec<u8>,
    exponent: Vec<u8>,
    /// The issuer for which the key signs, where `{tenantid}` stands for any tenant. Not every directory names it.
    pub(super) issuer: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    kty: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    kid: Option<String>,
    n: Option<String>,
    e: Option<String>,
    issuer: Option<String>,
}

impl KeySet {
    /// Parses a key document. Leaves out keys of other kinds and weak ones.
    ///
    /// # Errors
    /// [`KeySetError`] if the document is malformed or contains no usable key.
    pub fn parse(document: &[u8]) -> Result<Self, KeySetError> {
        let document: Document = serde_json::from_slice(document).map_err(|_| KeySetError::Malformed)?;
        let keys: Vec<Key> = document.keys.into_iter().filter_map(Member::usable).collect();
        if keys.is_empty() {
            Err(KeySetError::Empty)
        } else {
            Ok(Self(keys))
        }
    }

    /// The keys with this id. If two keys share an id, either may have signed.
    pub(super) fn named<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Key> {
        self.0.iter().filter(move |key| key.id == id)
    }
}

impl Member {
    fn usable(self) -> Option<Key> {
        let is = |value: &Option<String>, wanted: &str| value.as_deref().is_none_or(|value| value == wanted);
        if self.kty.as_deref() != Some("RSA") || !is(&self.usage, "sig") || !is(&self.alg, "RS256") {
            return None;
        }
        let number = |text: Option<String>| {
            let bytes = URL_SAFE_NO_PAD.decode(text?).ok()?;
            let start = bytes.iter().position(|byte| *byte != 0)?;
            bytes.get(start..).map(<[u8]>::to_vec)
        };
        let (modulus, exponent) = (number(self.n)?, number(self.e)?);
        let full = modulus.first().is_some_and(|first| first & 0x80 != 0) || modulus.len() > MODULUS_MIN;
        let strong = full && (MODULUS_MIN..=MODULUS_MAX).contains(&modulus.len());
        let id = self.kid.filter(|id| !id.is_empty())?;
        strong.then_some(Key {
            id,
            modulus,
            exponent,
            issuer: self.issuer,
        })
    }
}

impl Key {
    /// Whether `signature` over `message` is this key's (RS256).
    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        RsaPublicKeyComponents {
            n: &self.modulus,
            e: &self.exponent,
        }
        .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
        .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn member(change: impl FnOnce(&mut Value)) -> Value {
        let mut member = json!({
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k1", "e": "AQAB",
            "n": URL_SAFE_NO_PAD.encode([0xffu8; 256]), "x5t": "ignored",
        });
        change(&mut member);
        member
    }

    fn parsed(members: &[Value]) -> Result<KeySet, KeySetError> {
        KeySet::parse(json!({ "keys": members }).to_string().as_bytes())
    }

    #[test]
    fn ds6_only_strong_rsa_signing_keys_are_kept() {
        assert_eq!(parsed(&[member(|_| ())]).unwrap().0.len(), 1);
        // `alg` and `use` are optional.
        let bare = member(|m| {
            m.as_object_mut().unwrap().remove("alg");
            m.as_object_mut().unwrap().remove("use");
        });
        assert_eq!(parsed(&[bare]).unwrap().0.len(), 1);
        let weak = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes).into();
        for refused in [
            member(|m| m["kty"] = "EC".into()),
            member(|m| m["kty"] = "oct".into()),
            member(|m| m["use"] = "enc".into()),
            member(|m| m["alg"] = "RS512".into()),
            member(|m| m["kid"] = "".into()),
            member(|m| m["kid"] = Value::Null),
            member(|m| m["n"] = "not base64!".into()),
            member(|m| m["n"] = weak(&[0xff; 128])),
            member(|m| m["n"] = weak(&[[0x7f].as_slice(), &[0xff; 255]].concat())),
            member(|m| m["n"] = weak(&[[0; 200].as_slice(), &[0xff; 128]].concat())),
            member(|m| m["n"] = weak(&[0xff; 1025])),
            member(|m| m["e"] = "".into()),
        ] {
            assert_eq!(
                parsed(std::slice::from_ref(&refused)),
                Err(KeySetError::Empty),
                "{refused}"
            );
            assert_eq!(
                parsed(&[refused, member(|_| ())]).unwrap().0.len(),
                1,
                "the others stay"
            );
        }
        for text in ["", "[]", "{}", "null", r#"{"keys": 1}"#] {
            assert_eq!(KeySet::parse(text.as_bytes()), Err(KeySetError::Malformed), "{text}");
        }
    }
}
