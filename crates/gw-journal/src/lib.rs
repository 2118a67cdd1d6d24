//! The write-ahead journal on disk: append before the answer leaves, group fsync, replay after a crash.
//!
//! Records get their number, their place in the chain of their stream and their bytes on disk under one lock, so
//! the order of the file is the order of the numbers (spec/70 section 4). A record survives the death of the
//! process when [`Journal::append`] returns, and the loss of power when [`Journal::durable`] resolves. The sealer
//! reads durable records with [`Journal::unsealed`], stream by stream; nothing here knows the store it writes them
//! to. A journal that refuses to open is looked into, and what is whole in it kept, with [`Salvage`].
//!
//! Start reading at [`Journal`]; the file layout is described in `open`, `segment` and `frame`.
//!
//! Invariant: what was once durable is there when the journal is opened again, or it does not open.
#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

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
mod reader;
mod reconcile;
mod replay;
mod rescue;
mod salvage;
mod segment;
#[cfg(test)]
mod tests;
mod waiting;
mod writer;

pub use error::{JournalError, OpenError, ReadError};
pub use given_up::{forget_given_up, given_up};
pub use journal::{Backlog, Journal, Options, Position, Recovery, Reservation, StreamBacklog};
pub use open::shard_of;
pub use reader::Unsealed;
pub use reconcile::{Standing, StoredHead};
pub use salvage::{Findings, Salvage, Salvaged, SegmentState, StreamState};
