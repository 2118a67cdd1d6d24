//! The JWZ token that a wallet posts: a message, and a proof that the holder of an identity signed it (ZK-21, ZK-30 to
//! ZK-32).
//!
//! Only the compact form is accepted. Invariant: the hash in the proof is over the bytes that were sent, because the
//! header has only one accepted spelling.

use crate::{
    circuit::Circuit,
    did::{Id, IdError},
    groth16::{Key, Proof, ProofError, RawProof},
    json::{self, JsonError},
    number::{self, NumberError},
    poseidon,
};
use ark_bn254::Fr;
use ark_ff::PrimeField;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A token whose parts are well-formed and match each other. Its proof has not been verified.
#[derive(Clone, Debug)]
pub struct Token {
    circuit: Circuit,
    message: Value,
    hash: Fr,
    user: Id,
    gist_root: Fr,
    proof: Proof,
}

/// Why a text is rejected.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Not three segments.
    #[error("not three segments")]
    Segments,
    /// A segment is not base64url, or not its canonical text.
    #[error("a segment is not canonical base64url")]
    Base64,
    /// The header is not the one of a supported circuit.
    #[error("the header is not the canonical one of a supported circuit")]
    Header,
    /// The message is not JSON, or is ambiguous.
    #[error("the message cannot be read")]
    Message(#[source] JsonError),
    /// The third segment is not JSON, or is ambiguous.
    #[error("the proof segment cannot be read")]
    Segment(#[source] JsonError),
    /// The third segment is not a proof with signals.
    #[error("the proof segment has another shape")]
    Shape(#[source] serde_json::Error),
    /// The number of public signals is not that of the circuit.
    #[error("the number of public signals is wrong")]
    SignalCount,
    /// A public signal is not a canonical number.
    #[error("a public signal is not canonical")]
    Signal(#[from] NumberError),
    /// The proof is about another message.
    #[error("the proof is about another message")]
    Challenge,
    /// The user signal is not an identifier.
    #[error("the user signal is no identifier")]
    User(#[from] IdError),
    /// The points of the proof are invalid.
    #[error("the proof is malformed")]
    Proof(#[from] ProofError),
}

/// The content of the third segment.
#[derive(Deserialize)]
struct ProofSegment {
    proof: RawProof,
    pub_signals: Vec<String>,
}

impl Token {
    /// Parses a compact token, without blanks or quotes around it. Checks everything but the pairing.
    ///
    /// # Errors
    /// [`TokenError`] for the first segment, header, signal or point that is invalid, and if the proof is about another
    /// message.
    pub fn read(text: &str) -> Result<Self, TokenError> {
        let mut segments = text.split('.');
        let (Some(header), Some(message), Some(signed), None) =
            (segments.next(), segments.next(), segments.next(), segments.next())
        else {
            return Err(TokenError::Segments);
        };
        let circuit = circuit_of(&decode(header)?).ok_or(TokenError::Header)?;
        let message_text = decode(message)?;
        let signed_text = decode(signed)?;

        let signed: ProofSegment = serde_json::from_value(json::read(&signed_text).map_err(TokenError::Segment)?)
            .map_err(TokenError::Shape)?;
        let [user, challenge, gist_root] = signed.pub_signals.as_slice() else {
            return Err(TokenError::SignalCount);
        };
        let (user, challenge, gist_root) = (
            number::scalar(user)?,
            number::scalar(challenge)?,
            number::scalar(gist_root)?,
        );
        let hash = message_hash(header, message);
        if challenge != hash {
            return Err(TokenError::Challenge);
        }
        Ok(Self {
            circuit,
            message: json::read(&message_text).map_err(TokenError::Message)?,
            hash,
            user: Id::from_scalar(&user)?,
            gist_root,
            proof: Proof::read(&signed.proof)?,
        })
    }

    /// Verifies the proof with the official key of its circuit.
    ///
    /// # Errors
    /// [`ProofError`] if the proof does not hold or the official key is unusable.
    pub fn verify(&self) -> Result<(), ProofError> {
        self.verify_under(self.circuit.key()?)
    }

    /// Verifies the proof with this key.
    ///
    /// # Errors
    /// [`ProofError`] if the proof does not hold.
    pub fn verify_under(&self, key: &Key) -> Result<(), ProofError> {
        key.verify(&self.proof, &[self.user.scalar(), self.hash, self.gist_root])
    }

    /// The circuit of the proof.
    pub fn circuit(&self) -> Circuit {
        self.circuit
    }

    /// The signed message.
    pub fn message(&self) -> &Value {
        &self.message
    }

    /// The hash of header and message (ZK-31); equal in all tokens with the same header and message.
    pub fn hash(&self) -> Fr {
        self.hash
    }

    /// The signer's identifier.
    pub fn user(&self) -> Id {
        self.user
    }

    /// The root of the tree of all identities (GIST) that contains the signer's keys.
    pub fn gist_root(&self) -> Fr {
        self.gist_root
    }
}

/// The token in a posted text, without outer blanks and one pair of quotes (ZK-20).
pub fn trimmed(posted: &str) -> &str {
    let text = posted.trim();
    text.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .map_or(text, str::trim)
}

/// Whether a text has the form of a token: segments of base64url, which are not decoded.
///
/// Any other text counts as an unreadable body, not as a failed proof.
pub fn looks_like_token(text: &str) -> bool {
    text.contains('.')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte))
}

/// The hash that a proof over these segments must contain (ZK-31).
pub fn message_hash(header: &str, message: &str) -> Fr {
    let digest = Sha256::new()
        .chain_update(header)
        .chain_update(".")
        .chain_update(message)
        .finalize();
    hash_of_digest(&digest)
}

/// The hash of one text.
pub fn text_hash(text: &[u8]) -> Fr {
    hash_of_digest(&Sha256::digest(text))
}

fn hash_of_digest(digest: &[u8]) -> Fr {
    poseidon::hash_one(Fr::from_le_bytes_mod_order(digest))
}

/// Decodes base64url without padding; unused bits in the last character must be zero.
fn decode(segment: &str) -> Result<Vec<u8>, TokenError> {
    BASE64_URL_SAFE_NO_PAD.decode(segment).map_err(|_| TokenError::Base64)
}

/// The circuit in a header. Accepts one spelling only: sorted members, no blanks, no other members.
///
/// Some libraries hash the header as they would write it, not as it was sent. With one spelling both hashes are equal.
fn circuit_of(header: &[u8]) -> Option<Circuit> {
    let id = header
        .strip_prefix(br#"{"alg":"groth16","circuitId":""#)?
        .strip_suffix(br#"","crit":["circuitId"],"typ":"application/iden3-zkp-json"}"#)?;
    let circuit = Circuit::from_id(core::str::from_utf8(id).ok()?)?;
    circuit.is_auth().then_some(circuit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zk31_message_hash_as_published() {
        for (text, hash) in [
            (
                "message",
                "12195879903067908640854440056941289904003404799313352286287749481941648225513",
            ),
            (
                "",
                "2662121444833451654313766793373109844383410072058012568897250765562275349586",
            ),
        ] {
            assert_eq!(text_hash(text.as_bytes()).into_bigint().to_string(), hash);
        }
        let hash = "20947954951453038892566674091453974926356589596899180573762520224433307169706";
        assert_eq!(
            message_hash("eyJhbGciOiJncm90aDE2In0", "bXltZXNzYWdl")
                .into_bigint()
                .to_string(),
            hash
        );
    }

    #[test]
    fn zk30_a_header_has_one_spelling() {
        let good = r#"{"alg":"groth16","circuitId":"authV2","crit":["circuitId"],"typ":"application/iden3-zkp-json"}"#;
        assert_eq!(circuit_of(good.as_bytes()), Some(Circuit::AuthV2));
        assert_eq!(
            circuit_of(good.replace("authV2", "authV3-8-32").as_bytes()),
            Some(Circuit::AuthV3Small)
        );
        for bad in [
            good.replace("authV2", "auth"),
            good.replace("authV2", "credentialAtomicQueryV3"),
            good.replace("groth16", "none"),
            good.replace(":", ": "),
            good.replace("[\"circuitId\"]", "[]"),
            good.replace("iden3-zkp-json", "iden3comm-plain-json"),
            good.replace('}', ",\"x\":1}"),
            good.replace("authV2", "authV2\",\"circuitId\":\"authV2"),
            format!("{good} "),
        ] {
            assert_eq!(circuit_of(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn zk30_segments_are_canonical() {
        assert_eq!(decode("YQ").unwrap(), b"a");
        for bad in ["YQ==", "YQ=", "YR", "Y", "Y+", "Y Q", "YQ\n"] {
            assert!(matches!(decode(bad), Err(TokenError::Base64)), "{bad}");
        }
    }

    #[test]
    fn zk21_only_three_segments() {
        for text in ["", "a", "a.b", "a.b.c.d", "...."] {
            assert!(matches!(Token::read(text), Err(TokenError::Segments)), "{text}");
        }
        assert!(matches!(Token::read(".."), Err(TokenError::Header)));
        assert!(looks_like_token("a.b") && looks_like_token("a.b.c="));
        assert!(!looks_like_token("token") && !looks_like_token("{\"a\":\"b.c\"}") && !looks_like_token(""));
    }
}
