//! Hashes of more than field elements: byte strings, long lists, schema names, claim paths, queries (spec/10 section
//! 2.7, table "Encodings").

use alloy_primitives::keccak256;
use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, PrimeField};

use crate::poseidon;

/// Number of bytes that always fit into one field element.
const CHUNK: usize = 31;

/// Number of values of one query; shorter lists are padded with zeros.
pub const QUERY_VALUES: usize = 64;

/// First part of every claim path.
pub const CREDENTIAL_SUBJECT: &str = "https://www.w3.org/2018/credentials#credentialSubject";

/// Hash of a byte string: 31-byte chunks in frames of 16. `None` for the empty string.
#[must_use]
pub fn bytes(message: &[u8]) -> Option<Fr> {
    let chunks = message.chunks(CHUNK).map(|chunk| {
        let mut padded = [0_u8; CHUNK];
        for (to, from) in padded.iter_mut().zip(chunk) {
            *to = *from;
        }
        Fr::from_be_bytes_mod_order(&padded)
    });
    frames::<{ poseidon::MAX_INPUTS }>(chunks)
}

/// Hash of a list of field elements in frames of six. `None` for the empty list.
#[must_use]
pub fn sponge(values: impl IntoIterator<Item = Fr>) -> Option<Fr> {
    frames::<6>(values)
}

/// Hashes frames of `N` elements, of which the last is padded with zeros. Each later frame starts with the hash of the
/// previous one.
fn frames<const N: usize>(elements: impl IntoIterator<Item = Fr>) -> Option<Fr> {
    let mut elements = elements.into_iter().peekable();
    let mut last = None;
    while elements.peek().is_some() {
        let mut frame = [Fr::ZERO; N];
        for (to, from) in frame
            .iter_mut()
            .zip(last.into_iter().chain(std::iter::from_fn(|| elements.next())))
        {
            *to = from;
        }
        last = Some(poseidon::hash(&frame)?);
    }
    last
}

/// The schema hash in a claim: the last 16 bytes of the keccak hash of the type's IRI, as a little-endian integer.
#[must_use]
pub fn schema(type_iri: &str) -> u128 {
    let [_, .., a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = keccak256(type_iri).0;
    u128::from_le_bytes([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
}

/// One part of a claim path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// IRI of a field.
    Iri(String),
    /// Index in a list.
    Index(u64),
}

/// Key of a value in the Merkle tree of a claim, below the credential's subject; without parts, the key of the subject
/// itself.
///
/// `None` for a path that has too many parts or an empty part.
#[must_use]
pub fn claim_path(parts: &[PathPart]) -> Option<Fr> {
    let hashed: Option<Vec<Fr>> = std::iter::once(bytes(CREDENTIAL_SUBJECT.as_bytes()))
        .chain(parts.iter().map(|part| match part {
            PathPart::Iri(iri) => bytes(iri.as_bytes()),
            PathPart::Index(index) => Some(Fr::from(*index)),
        }))
        .collect();
    poseidon::hash(&hashed?)
}

/// The query that a linked query proof answers.
#[derive(Clone, Copy, Debug)]
pub struct LinkedQuery<'a> {
    /// Schema hash.
    pub schema: Fr,
    /// Slot of a claim that is not merklized, else 0.
    pub slot: u64,
    /// Number of the operator.
    pub operator: u8,
    /// Claim path key, or 0.
    pub key: Fr,
    /// Whether the claim is merklized.
    pub merklized: bool,
    /// The values compared with, at most 64.
    pub values: &'a [Fr],
}

impl LinkedQuery<'_> {
    /// The query hash in the signals of the proof; `None` for more than 64 values.
    #[must_use]
    pub fn hash(&self) -> Option<Fr> {
        let padding = QUERY_VALUES.checked_sub(self.values.len())?;
        let values = sponge(
            self.values
                .iter()
                .copied()
                .chain(std::iter::repeat_n(Fr::ZERO, padding)),
        )?;
        let first = poseidon::hash(&[
            self.schema,
            Fr::from(self.slot),
            Fr::from(self.operator),
            self.key,
            Fr::from(self.merklized),
            values,
        ])?;
        let count = Fr::from(u64::try_from(self.values.len()).ok()?);
        poseidon::hash(&[first, count, Fr::ZERO, Fr::ZERO, Fr::ZERO, Fr::ZERO])
    }
}
