//! The public keys of access tokens: as a JSON Web Key Set (RFC 7517, RFC 8037), and verification by it.

use super::{AccessClaims, LONGEST, TokenError, TokenParts, Wire};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, VerifyingKey};
use gw_types::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The most keys of a set. A gateway has one for each of its secrets.
const MAX_KEYS: usize = 16;
/// The type of access tokens.
const TYP: &str = "at+jwt";

/// The keys of a gateway, in the order of their use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys(Vec<PublicKey>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct PublicKey {
    id: String,
    key: VerifyingKey,
    /// The encoded header of the tokens of this key, followed by a dot.
    header: String,
}

/// Why a document is no key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// The document is no JSON object with a list of keys.
    #[error("the document is no JSON Web Key Set")]
    Malformed,
    /// There are more keys than a gateway has.
    #[error("the key set has too many keys")]
    TooMany,
}

/// Why a token is rejected by a key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicTokenError {
    /// The token is signed by a key that the set does not have. A newer set may have it.
    #[error("the key of the token is not in the key set")]
    UnknownKey,
    /// The token is rejected.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// The keys that verify access tokens (RFC 7517).
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct KeySetDocument {
    /// The keys. The first signs; the others have been replaced. Empty if the tokens are signed with a secret.
    keys: Vec<KeyDocument>,
}

/// A public key (RFC 8037).
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct KeyDocument {
    /// `OKP`.
    kty: &'static str,
    /// `Ed25519`.
    crv: &'static str,
    /// `sig`.
    #[serde(rename = "use")]
    purpose: &'static str,
    /// `EdDSA`.
    alg: &'static str,
    /// The id that the header of a token names.
    kid: String,
    /// The public key, base64url.
    x: String,
}

/// A key set of a gateway. Its keys are read one by one.
#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

/// A key of a set.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: String,
    x: String,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default)]
    kid: Option<String>,
}

impl PublicKeys {
    pub(super) fn new(keys: impl Iterator<Item = VerifyingKey>) -> Self {
        Self(keys.map(PublicKey::new).collect())
    }

    /// Whether there are no keys: the gateway signs its tokens with HS256.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a JSON Web Key Set. Keys of other types are ignored (RFC 7517 section 5).
    ///
    /// # Errors
    /// [`KeySetError`] if the document is no key set, or has more than sixteen keys.
    pub fn parse(document: &[u8]) -> Result<Self, KeySetError> {
        let document: KeySet = serde_json::from_slice(document).map_err(|_| KeySetError::Malformed)?;
        if document.keys.len() > MAX_KEYS {
            return Err(KeySetError::TooMany);
        }
        let keys = document
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        Ok(Self(keys.filter_map(|key| key.public_key()).collect()))
    }

    /// The set as a JSON Web Key Set.
    pub fn document(&self) -> KeySetDocument {
        KeySetDocument {
            keys: self.0.iter().map(PublicKey::document).collect(),
        }
    }

    /// Verifies an access token of the gateway that calls itself `issuer`. Whether the token was revoked, or its user
    /// banned, only the gateway knows.
    ///
    /// # Errors
    /// [`PublicTokenError`] if the token is not one of these keys, of this issuer, and alive.
    pub fn verify(&self, token: &str, issuer: &str, now: Timestamp) -> Result<AccessClaims, PublicTokenError> {
        let parts = TokenParts::split(token)?;
        let key = self.0.iter().find(|key| key.header == parts.header);
        let key = key.ok_or(PublicTokenError::UnknownKey)?;
        let signature = Signature::from_slice(&parts.signature).map_err(|_| TokenError::Invalid)?;
        let verified = key.key.verify_strict(parts.signed.as_bytes(), &signature);
        verified.map_err(|_| TokenError::Invalid)?;
        let payload = URL_SAFE_NO_PAD.decode(parts.payload).map_err(|_| TokenError::Invalid)?;
        Ok(Wire::checked(&payload, issuer, LONGEST.access, now)?.access_claims()?)
    }
}

impl PublicKey {
    fn new(key: VerifyingKey) -> Self {
        let id = key_id(&key);
        Self {
            header: header(&id, TYP),
            id,
            key,
        }
    }

    fn document(&self) -> KeyDocument {
        KeyDocument {
            kty: "OKP",
            crv: "Ed25519",
            purpose: "sig",
            alg: "EdDSA",
            kid: self.id.clone(),
            x: URL_SAFE_NO_PAD.encode(self.key.as_bytes()),
        }
    }
}

impl Jwk {
    /// The key, if it verifies signatures of tokens and is a point of the curve that no small group contains.
    fn public_key(&self) -> Option<PublicKey> {
        let is_for = |member: &Option<String>, value: &str| member.as_deref().is_none_or(|text| text == value);
        let is_used =
            self.kty == "OKP" && self.crv == "Ed25519" && is_for(&self.purpose, "sig") && is_for(&self.alg, "EdDSA");
        let bytes: [u8; 32] = URL_SAFE_NO_PAD.decode(&self.x).ok()?.try_into().ok()?;
        let key = VerifyingKey::from_bytes(&bytes).ok()?;
        let key = (is_used && !key.is_weak()).then(|| PublicKey::new(key))?;
        // The id of a key follows from the key, so another id names no key of a gateway.
        self.kid.as_ref().is_none_or(|id| *id == key.id).then_some(key)
    }
}

/// The encoded header of the tokens of a key, followed by a dot.
pub(super) fn header(id: &str, typ: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"EdDSA","kid":"{id}","typ":"{typ}"}}"#)) + "."
}

/// The id of a key: its thumbprint (RFC 7638, RFC 8037 appendix A.3).
pub(super) fn key_id(key: &VerifyingKey) -> String {
    let x = URL_SAFE_NO_PAD.encode(key.as_bytes());
    let thumbprint = Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#));
    URL_SAFE_NO_PAD.encode(thumbprint)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};
    use crate::token::{AccessAlgorithm, TokenCodec};
    use gw_types::Seconds;
    use serde_json::{Value, json};

    fn signing(current: &str, previous: &[&str]) -> TokenCodec {
        TokenCodec::new(ISSUER, &secrets(current, previous), &secrets(REFRESH, &[]))
            .unwrap()
            .with_access_algorithm(AccessAlgorithm::EdDsa)
    }

    fn parsed(codec: &TokenCodec) -> PublicKeys {
        PublicKeys::parse(document(codec).to_string().as_bytes()).unwrap()
    }

    fn document(codec: &TokenCodec) -> Value {
        serde_json::to_value(codec.public_keys().document()).unwrap()
    }

    /// spec/85 section 7: the public keys verify what the gateway signs, and the gateway reads it back.
    #[test]
    fn section_7_the_key_set_verifies_access_tokens() {
        let codec = signing(ACCESS, &[]);
        let token = codec.sign_access(&claims());
        assert_eq!(parsed(&codec), codec.public_keys());
        assert_eq!(parsed(&codec).verify(token.expose(), ISSUER, NOW), Ok(claims()));
        assert_eq!(codec.access(token.expose(), NOW), Ok(claims()));
        // Instances that sign with the other algorithm accept it, too, and publish nothing.
        assert_eq!(self::codec().access(token.expose(), NOW), Ok(claims()));
        assert!(self::codec().public_keys().is_empty());
        assert_eq!(
            codec.access(self::codec().sign_access(&claims()).expose(), NOW),
            Ok(claims())
        );
        // Refresh tokens stay secret to the gateway.
        let refresh = codec.sign_refresh(&refresh_claims());
        assert_eq!(refresh, self::codec().sign_refresh(&refresh_claims()));
        let verdict = parsed(&codec).verify(refresh.expose(), ISSUER, NOW);
        assert_eq!(verdict, Err(PublicTokenError::UnknownKey));
    }

    /// TK-2: a replaced secret still verifies, and its key stays in the set.
    #[test]
    fn tk2_the_set_has_the_keys_of_previous_secrets() {
        let (old, new) = (signing("old-access", &[]), signing(ACCESS, &["old-access"]));
        let (before, after) = (old.sign_access(&claims()), new.sign_access(&claims()));
        let keys = parsed(&new);
        assert_eq!(keys.0.len(), 2);
        for token in [&before, &after] {
            assert_eq!(keys.verify(token.expose(), ISSUER, NOW), Ok(claims()));
        }
        let verdict = parsed(&old).verify(after.expose(), ISSUER, NOW);
        assert_eq!(verdict, Err(PublicTokenError::UnknownKey));
    }

    /// TK-1: a holder of the public keys checks issuer, audience and life like the gateway.
    #[test]
    fn tk1_every_claim_is_checked_by_the_key_set() {
        let codec = signing(ACCESS, &[]);
        let keys = parsed(&codec);
        let token = codec.sign_access(&claims());
        let verify = |text: &str, issuer: &str, now| keys.verify(text, issuer, now);
        let invalid = Err(PublicTokenError::Token(TokenError::Invalid));
        assert_eq!(verify(token.expose(), "https://other.example", NOW), invalid);
        let late = NOW.plus(Seconds(305));
        assert_eq!(
            verify(token.expose(), ISSUER, late),
            Err(PublicTokenError::Token(TokenError::Expired))
        );
        let mut altered = token.expose().to_owned();
        let last = altered.pop().unwrap();
        altered.push(if last == 'A' { 'Q' } else { 'A' });
        assert_eq!(verify(&altered, ISSUER, NOW), invalid);
        let mut parts: Vec<&str> = token.expose().split('.').collect();
        let other = URL_SAFE_NO_PAD.encode(payload().to_string().replace("alice", "mallory"));
        parts[1] = &other;
        assert_eq!(verify(&parts.join("."), ISSUER, NOW), invalid);
        for text in ["", ".", "..", "a.b.c", &"x".repeat(5000)] {
            assert!(verify(text, ISSUER, NOW).is_err(), "{text}");
        }
        // The public key as a secret of HMAC, and no algorithm at all.
        let Value::String(x) = document(&codec)["keys"][0]["x"].clone() else {
            panic!("the key has a text")
        };
        for header in [
            json!({"alg": "HS256", "typ": "at+jwt"}),
            json!({"alg": "none", "typ": "at+jwt"}),
        ] {
            let forged = forge(&header, &payload(), &x);
            assert_eq!(verify(&forged, ISSUER, NOW), Err(PublicTokenError::UnknownKey));
            assert_eq!(codec.access(&forged, NOW), Err(TokenError::Invalid));
        }
    }

    /// Another library verifies the tokens by the same set.
    #[test]
    fn section_7_another_library_reads_the_key_set() {
        use jsonwebtoken::{Algorithm, DecodingKey, Validation, jwk::JwkSet};
        let codec = signing(ACCESS, &[]);
        let token = codec.sign_access(&claims());
        let set: JwkSet = serde_json::from_value(document(&codec)).unwrap();
        let header = jsonwebtoken::decode_header(token.expose()).unwrap();
        let key = set.find(header.kid.as_ref().unwrap()).unwrap();
        let mut rules = Validation::new(Algorithm::EdDSA);
        rules.set_audience(&[crate::token::AUDIENCE]);
        rules.set_issuer(&[ISSUER]);
        rules.validate_exp = false;
        let key = DecodingKey::from_jwk(key).unwrap();
        let read = jsonwebtoken::decode::<Value>(token.expose(), &key, &rules).unwrap();
        assert_eq!(read.claims, payload());
    }

    #[test]
    fn section_7_only_ed25519_signature_keys_of_a_set_count() {
        let good = document(&signing(ACCESS, &[]))["keys"][0].clone();
        let set = |keys: &[Value]| PublicKeys::parse(json!({ "keys": keys }).to_string().as_bytes());
        let with = |member: &str, value: &str| {
            let mut key = good.clone();
            key[member] = json!(value);
            key
        };
        assert_eq!(set(std::slice::from_ref(&good)).unwrap().0.len(), 1);
        for bad in [
            with("kty", "RSA"),
            with("crv", "X25519"),
            with("use", "enc"),
            with("alg", "ES256"),
            with("kid", "another"),
            with("x", "AAAA"),
            // The neutral element, by which anybody can sign.
            json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([&[1u8][..], &[0; 31]].concat())}),
            json!({"kty": "RSA", "n": "x", "e": "AQAB"}),
            json!("text"),
        ] {
            assert!(set(std::slice::from_ref(&bad)).unwrap().is_empty(), "{bad}");
            assert_eq!(set(&[bad, good.clone()]).unwrap().0.len(), 1);
        }
        assert_eq!(set(&vec![good; MAX_KEYS + 1]), Err(KeySetError::TooMany));
        for text in ["", "[]", "{}", r#"{"keys":1}"#] {
            assert_eq!(
                PublicKeys::parse(text.as_bytes()),
                Err(KeySetError::Malformed),
                "{text}"
            );
        }
    }
}
