//! The write-ahead journal of audit records on disk: records are appended before the answer is sent, made durable by
//! group fsync, and replayed after a crash.
//!
//! A record gets its number, its link in the chain of its stream and its bytes on disk under one lock, so the order in
//! the file is the order of the numbers (spec/70 section 4). A record survives the death of the process when
//! [`Journal::append`] returns, and the loss of power when [`Journal::durable`] resolves. The sealer reads durable
//! records with [`Journal::unsealed`], stream by stream; this crate does not know the store that the sealer writes to.
//! [`Salvage`] inspects a journal that does not open and saves its intact records.
//!
//! Start reading at [`Journal`]; the file layout is described in `open`, `segment` and `frame`.
//!
//! Invariant: a record that was once durable is present when the journal is opened again, or the journal does not open.
#![warn(missing_docs, clippy::missing_errors_doc, clippy::wildcard_enum_match_arm)]

mod access;
mod cursor;
mod disk;
mod error;
mod flush;
mod frame;
mod given_up;
mod header;
mod heads;
mod journal;
mod lock;
mod open;
mod position;
mod reader;
mod reconcile;
mod replay;
mod rescue;
mod reserve;
mod salvage;
mod segment;
mod start_file;
mod starts;
#[cfg(test)]
mod tests;
mod unrecorded;
mod waiting;
mod writer;

pub use access::{AccessRecorder, WhenFull};
pub use disk::{disk_bytes, free_bytes};
pub use error::{JournalError, OpenError, ReadError};
pub use given_up::{forget_given_up, given_up};
pub use journal::{Backlog, Journal, JournalConfig, Recovery, Reservation, StreamBacklog};
pub use open::shard_of;
pub use position::Position;
pub use reader::Unsealed;
pub use reconcile::{StoredHead, StreamComparison};
pub use salvage::{Findings, Salvage, Salvaged, SegmentState, StreamState};
