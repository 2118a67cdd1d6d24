//! Checkpoints: the signed size and root of a chain (C2SP tlog-checkpoint in a C2SP signed note).
//!
//! The key name is the origin, as tlog-checkpoint recommends. Therefore one private key can sign for every chain of a
//! cluster, and a signature cannot be moved from one chain to another.

use crate::entry::ChainId;
use crate::hash::Hash;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use core::fmt::Write as _;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, spki::DecodePublicKey as _};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

/// The state of a chain at one moment: its entries are the leaves of the Merkle tree with this root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// `<cluster>/<stream>/<shard>`.
    pub origin: String,
    /// The number of entries.
    pub size: u64,
    /// The root over the entry hashes.
    pub root: Hash,
    /// Extension lines of tlog-checkpoint, which are signed too; none is empty or has a control character.
    pub extensions: Vec<String>,
}

/// The prefix of the extension line with the number of re-anchorings of the chain.
const ERA: &str = "era ";

impl ChainId {
    /// The origin of this chain's checkpoints.
    pub fn origin(&self, cluster: &str) -> String {
        format!("{cluster}/{}/{}", self.stream, self.shard)
    }
}

/// The private key that signs checkpoints.
#[derive(Debug)]
pub struct CheckpointKey(SigningKey);

/// A public key that checkpoints are verified with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointPublicKey(VerifyingKey);

/// The input is not a valid Ed25519 key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid Ed25519 key in PEM")]
pub struct KeyError;

impl CheckpointKey {
    /// A key from its 32 secret bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// A key from PKCS #8 PEM.
    ///
    /// # Errors
    /// [`KeyError`] if the text is no such key.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        SigningKey::from_pkcs8_pem(pem).map(Self).map_err(|_| KeyError)
    }

    /// The public half.
    pub fn public(&self) -> CheckpointPublicKey {
        CheckpointPublicKey(self.0.verifying_key())
    }
}

impl CheckpointPublicKey {
    /// A key from its 32 bytes.
    ///
    /// # Errors
    /// [`KeyError`] if the bytes are no point of the curve.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        VerifyingKey::from_bytes(bytes).map(Self).map_err(|_| KeyError)
    }

    /// A key from SubjectPublicKeyInfo PEM.
    ///
    /// # Errors
    /// [`KeyError`] if the text is no such key.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        VerifyingKey::from_public_key_pem(pem).map(Self).map_err(|_| KeyError)
    }

    /// The 32 bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The key in the verifier key format of C2SP signed notes, for one origin.
    pub fn verifier_key(&self, origin: &str) -> String {
        let id = self.id(origin).map(|byte| format!("{byte:02x}")).concat();
        let key = STANDARD.encode([&[ED25519], &self.0.to_bytes()[..]].concat());
        format!("{origin}+{id}+{key}")
    }

    fn id(&self, name: &str) -> [u8; 4] {
        let hash = Sha256::new()
            .chain_update(name)
            .chain_update([b'\n', ED25519])
            .chain_update(self.0.as_bytes());
        let [a, b, c, d, ..] = <[u8; 32]>::from(hash.finalize());
        [a, b, c, d]
    }
}

/// The signature type of Ed25519 in C2SP signed notes.
const ED25519: u8 = 1;

impl Checkpoint {
    /// A checkpoint without extension lines.
    pub fn new(origin: impl Into<String>, size: u64, root: Hash) -> Self {
        Self {
            origin: origin.into(),
            size,
            root,
            extensions: Vec::new(),
        }
    }

    /// Adds the extension line of a chain that was re-anchored `era` times; no line if `era` is 0.
    pub fn in_era(mut self, era: u64) -> Self {
        self.extensions.extend((era > 0).then(|| format!("{ERA}{era}")));
        self
    }

    /// The number of times the chain had been re-anchored when the checkpoint was signed.
    pub fn era(&self) -> u64 {
        self.extensions
            .iter()
            .find_map(|line| line.strip_prefix(ERA)?.parse().ok())
            .unwrap_or(0)
    }

    /// Signs the checkpoint and returns the signed note.
    pub fn sign(&self, key: &CheckpointKey) -> String {
        let mut note = self.text();
        let signature = key.0.sign(note.as_bytes()).to_bytes();
        let line = STANDARD.encode([&key.public().id(&self.origin)[..], &signature].concat());
        // Writing to a string cannot fail.
        let _ = write!(note, "\n{DASH}{} {line}\n", self.origin);
        note
    }

    /// Parses a signed note and checks that one of `keys` signed it. Signatures under other names, such as those of
    /// witnesses, are skipped.
    ///
    /// # Errors
    /// The note is malformed, none of `keys` signed it, or the signature of one of them is wrong.
    pub fn open(note: &str, keys: &[CheckpointPublicKey]) -> Result<Self, CheckpointError> {
        let (text, signatures) = note.rsplit_once("\n\n").ok_or(CheckpointError::Malformed)?;
        let text = format!("{text}\n");
        let checkpoint = Self::parse(&text).ok_or(CheckpointError::Malformed)?;
        let signatures = signatures.strip_suffix('\n').ok_or(CheckpointError::Malformed)?;
        for line in signatures.split('\n') {
            let line = line.strip_prefix(DASH).and_then(|line| line.split_once(' '));
            let (name, signature) = line.ok_or(CheckpointError::Malformed)?;
            let signature = STANDARD.decode(signature).map_err(|_| CheckpointError::Malformed)?;
            let Some((id, signature)) = signature.split_first_chunk::<4>() else {
                return Err(CheckpointError::Malformed);
            };
            if name != checkpoint.origin {
                continue;
            }
            if let Some(key) = keys.iter().find(|key| key.id(name) == *id) {
                let signature = Signature::from_slice(signature).map_err(|_| CheckpointError::Signature)?;
                key.0
                    .verify_strict(text.as_bytes(), &signature)
                    .map_err(|_| CheckpointError::Signature)?;
                return Ok(checkpoint);
            }
        }
        Err(CheckpointError::UnknownKey)
    }

    /// Parses a note without checking its signatures. Only for notes from a trusted source, such as the file of
    /// trusted heads.
    pub fn unverified(note: &str) -> Option<Self> {
        let (text, _) = note.rsplit_once("\n\n")?;
        Self::parse(&format!("{text}\n"))
    }

    /// Splits a text into its signed notes, which may be separated by empty lines.
    pub fn split_notes(text: &str) -> Vec<String> {
        let (mut notes, mut note, mut signed) = (Vec::new(), String::new(), false);
        for line in text.lines() {
            if signed && !line.starts_with(DASH) {
                notes.push(core::mem::take(&mut note));
                signed = false;
            }
            if note.is_empty() && line.trim().is_empty() {
                continue;
            }
            signed |= line.starts_with(DASH);
            note.push_str(line);
            note.push('\n');
        }
        notes.extend((!note.is_empty()).then_some(note));
        notes
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root));
        for line in &self.extensions {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Invariant: a parsed checkpoint writes the text it was parsed from, so no part of the text is ignored.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let origin = lines.next()?.to_owned();
        let size = lines.next()?.parse().ok()?;
        let root = Hash::new(STANDARD.decode(lines.next()?).ok()?.try_into().ok()?);
        let mut extensions: Vec<_> = lines.map(str::to_owned).collect();
        // The empty string behind the last line break.
        extensions.pop()?;
        if extensions
            .iter()
            .any(|line| line.is_empty() || line.chars().any(char::is_control))
        {
            return None;
        }
        let checkpoint = Self {
            origin,
            size,
            root,
            extensions,
        };
        (checkpoint.text() == text).then_some(checkpoint)
    }
}

/// Encodes a hash as in a note: standard base64.
pub(crate) fn encode_hash(hash: &Hash) -> String {
    STANDARD.encode(hash)
}

pub(crate) fn decode_hash(text: &str) -> Option<Hash> {
    Some(Hash::new(STANDARD.decode(text).ok()?.try_into().ok()?))
}

/// The prefix of a signature line: an em dash and a space.
const DASH: &str = "\u{2014} ";

/// Why a note is not a valid checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The text is not a signed note, or the note is not a checkpoint.
    #[error("the text is not a signed checkpoint")]
    Malformed,
    /// None of the known keys signed the checkpoint.
    #[error("no known key signed the checkpoint")]
    UnknownKey,
    /// The signature names a known key, but the key did not make it.
    #[error("the signature does not match the checkpoint")]
    Signature,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ShardId, Stream, tree};
    use uuid::Uuid;

    /// The key of the first test of RFC 8032 section 7.1.
    const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    const PUBLIC_PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n\
        -----END PUBLIC KEY-----\n";
    /// Signed with that key by OpenSSL; the key hash was computed by another implementation of SHA-256.
    const NOTE: &str = "test/access/00000000-0000-0000-0000-000000000007\n\
        0\n\
        47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\
        \n\
        \u{2014} test/access/00000000-0000-0000-0000-000000000007 \
        TCGqeNGJdprKvfLfX3MFdOZiQx930Oyg7ps9V0w4t6/jWC3RO30NvW7Obxtlqo7AZCW9kKcO53Ile3y1DorXNNH75Qs=\n";

    fn key() -> CheckpointKey {
        CheckpointKey::from_seed(&hex::decode(SEED).unwrap().try_into().unwrap())
    }

    fn checkpoint() -> Checkpoint {
        let id = ChainId {
            stream: Stream::Access,
            shard: ShardId(Uuid::from_u128(7)),
        };
        Checkpoint::new(id.origin("test"), 0, tree::empty_root())
    }

    #[test]
    fn rule_7_a_checkpoint_is_signed_as_other_implementations_sign_it() {
        assert_eq!(checkpoint().sign(&key()), NOTE);
        let public = CheckpointPublicKey::from_pem(PUBLIC_PEM).unwrap();
        assert_eq!(public, key().public());
        assert_eq!(Checkpoint::open(NOTE, std::slice::from_ref(&public)), Ok(checkpoint()));
        assert_eq!(
            public.verifier_key(&checkpoint().origin),
            "test/access/00000000-0000-0000-0000-000000000007+4c21aa78+AddamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea"
        );
    }

    #[test]
    fn rule_7_every_changed_byte_of_a_checkpoint_is_noticed() {
        let keys = [key().public()];
        for at in 0..NOTE.len() {
            let mut note = NOTE.as_bytes().to_vec();
            note[at] ^= 1;
            if let Ok(note) = String::from_utf8(note) {
                assert!(Checkpoint::open(&note, &keys).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn rule_7_old_keys_stay_valid_and_foreign_ones_are_not() {
        let (old, new) = (key(), CheckpointKey::from_seed(&[7; 32]));
        let note = checkpoint().sign(&old);
        assert!(Checkpoint::open(&note, &[new.public(), old.public()]).is_ok());
        assert_eq!(
            Checkpoint::open(&note, &[new.public()]),
            Err(CheckpointError::UnknownKey)
        );
        assert_eq!(Checkpoint::open(&note, &[]), Err(CheckpointError::UnknownKey));
    }

    #[test]
    fn rule_7_extension_lines_are_signed_and_strict() {
        let keys = [key().public()];
        let extended = Checkpoint {
            extensions: vec!["era 3".to_owned(), "and more".to_owned()],
            ..checkpoint()
        };
        let note = extended.sign(&key());
        assert_eq!(Checkpoint::open(&note, &keys), Ok(extended.clone()));
        assert_eq!(
            (extended.era(), checkpoint().era(), checkpoint().in_era(2).era()),
            (3, 0, 2)
        );
        assert_eq!(checkpoint().in_era(0), checkpoint());
        assert_eq!(
            Checkpoint::open(&note.replace("era 3", "era 4"), &keys),
            Err(CheckpointError::Signature)
        );
        for line in ["", "tab\there"] {
            let bad = Checkpoint {
                extensions: vec![line.to_owned()],
                ..checkpoint()
            };
            assert_eq!(
                Checkpoint::open(&bad.sign(&key()), &keys),
                Err(CheckpointError::Malformed),
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_witness_may_sign_as_well() {
        let keys = [key().public()];
        let cosigned = format!(
            "{}\u{2014} witness.example/w1 {}\n",
            checkpoint().sign(&key()),
            STANDARD.encode([1; 76])
        );
        assert_eq!(Checkpoint::open(&cosigned, &keys), Ok(checkpoint()));
    }

    #[test]
    fn rule_7_a_signature_holds_for_its_own_chain_only() {
        let moved = checkpoint().sign(&key()).replace("access", "admin");
        assert_eq!(
            Checkpoint::open(&moved, &[key().public()]),
            Err(CheckpointError::UnknownKey)
        );
    }
}
