//! What is recorded, as deterministic bytes, and the hash chain and Merkle tree over it (spec/70).
//!
//! - [`Record`]: what happened. Start reading here.
//! - [`Draft`] and [`Chain`]: a record becomes bytes and gets its place; [`Entry`] reads it back.
//! - [`tree`]: the Merkle tree over the same hashes, and proofs; [`Checkpoint`]: its signed root.
//! - [`Anchor`]: what is left of a pruned beginning; [`Erasures`]: which personal values are gone on purpose.
//! - [`verify`]: what is wrong with a stored chain; [`TrustedHeads`]: what is known of the chains outside their store.
//!
//! Nothing here keeps anything: the journal and the stores do. Time and salts are arguments.
//!
//! Invariant: one record has one encoding, every stored field is in it, and every personal value can be erased
//! without touching a hash.
#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

mod anchor;
pub mod cbor;
mod chain;
mod checkpoint;
mod code;
mod discontinuity;
mod entry;
mod erasure;
mod fields;
mod heads;
pub mod outbox;
mod record;
pub mod tree;
pub mod verify;

pub use anchor::{Anchor, AnchorError, Removal, RemovalError};
pub use chain::{Chain, ChainError, Head, OrgHead, Placed};
pub use checkpoint::{Checkpoint, CheckpointError, CheckpointKey, CheckpointPublicKey, KeyError};
pub use code::UnknownCode;
pub use discontinuity::{Discontinuity, TextError};
pub use entry::{
    ChainId, Content, Draft, ENTRY_FORMAT, ENTRY_VERSION, Entry, EntryError, Genesis, Hash, Header, OrgLink, ShardId,
    StoreId, StoredEntry, erased,
};
pub use erasure::{Erased, ErasureRecord, Erasures, erased_where, erasures, names};
pub use heads::{ChainEdge, ChainList, ChainNameError, SigningGuard, StoredChain, TrustedHead, TrustedHeads};
pub use record::{
    AccessRecord, Action, AdminEntry, AuthMethod, Kind, MatchedVia, OutboxFault, Outcome, Record, ResourceType,
    SUPER_ADMIN, SYSTEM_RETENTION, SecurityEvent, SecurityKind, SendIntent, SendOutcome, Stream, TraceKind,
};
