//! Audit records as deterministic bytes, and the hash chain and Merkle tree over them (spec/70).
//!
//! - [`Record`]: an event to be recorded. Start reading here.
//! - [`EncodedRecord`] and [`Chain`]: encode a record and append it to a chain; [`Entry`] decodes it.
//! - [`tree`]: the Merkle tree over the entry hashes, and its proofs; [`Checkpoint`]: the signed root.
//! - [`Anchor`]: replaces the pruned beginning of a chain; [`Erasures`]: which personal values were erased on purpose.
//! - [`verify`]: checks a stored chain; [`TrustedHeads`]: the chain heads that are kept outside the audit store.
//!
//! This crate persists nothing: the journal and the stores do. Time and salts are arguments.
//!
//! Invariant: a record has exactly one encoding, the encoding contains every stored field, and every personal value
//! can be erased without changing a hash.
#![warn(missing_docs, clippy::missing_errors_doc, clippy::wildcard_enum_match_arm)]

mod anchor;
pub mod cbor;
mod chain;
mod checkpoint;
mod code;
mod discontinuity;
mod entry;
mod entry_error;
mod erasure;
mod fields;
mod finding;
mod genesis;
mod hash;
mod heads;
mod ids;
pub mod outbox;
mod record;
pub mod tree;
pub mod verify;

pub use anchor::{Anchor, AnchorError, Removal, RemovalError};
pub use chain::{Chain, ChainError, ChainedRecord, Head, OrgHead};
pub use checkpoint::{Checkpoint, CheckpointError, CheckpointKey, CheckpointPublicKey, KeyError};
pub use code::UnknownCode;
pub use discontinuity::{Discontinuity, TextError};
pub use entry::{ChainId, Content, ENTRY_VERSION, EncodedRecord, Entry, Header, OrgLink, StoredEntry, erased};
pub use entry_error::EntryError;
pub use erasure::{Erased, ErasureRecord, Erasures, erased_where, erasures, names};
pub use genesis::{ENTRY_FORMAT, Genesis};
pub use hash::Hash;
pub use heads::{
    ChainEdge, ChainList, ChainNameError, SignedPart, SigningGuard, StoredChain, TrustedHead, TrustedHeads,
};
pub use ids::{JournalStart, ShardId, StoreId};
pub use record::{
    AccessRecord, Action, AdminEntry, AuthMethod, DisclosureAction, DisclosureData, DisclosureRead, Kind, MatchedVia,
    OutboxFault, Outcome, Record, ResourceType, SUPER_ADMIN, SYSTEM_DISCLOSURE, SYSTEM_RETENTION, SecurityEvent,
    SecurityKind, SendIntent, SendOutcome, Stream, TraceKind,
};
