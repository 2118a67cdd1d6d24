//! Errors of decoding an entry.

use crate::cbor::CborError;

/// Why bytes are not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The entry's bytes are malformed.
    #[error("the entry is malformed")]
    Cbor(#[from] CborError),
    /// This crate does not know the schema version.
    #[error("the schema version {0} is unknown")]
    Version(u64),
    /// A value is not valid for its field.
    #[error("a value is not valid for its field")]
    Value,
    /// The openings are malformed.
    #[error("the openings are malformed")]
    Openings(#[source] CborError),
    /// A salt and value do not match the commitment.
    #[error("a personal value does not match its commitment")]
    Commitment,
}
