//! The posting index of the explorer: which rows of the chain mention which address (spec/40 section 8).
//!
//! - [`PostingIndex`]: start reading here. Blocks are appended to it and removed from its end.
//! - [`BlockRows`]: the addresses of one block's rows, as the indexer reads them from the chain.
//! - [`Scope`]: the addresses that a viewer may see, and in which blocks. The policy core makes it.
//! - [`RowSet`]: the rows in a scope: their number, pages, and counts between two blocks.
//!
//! This crate decides nothing about visibility: it selects rows by the addresses of a scope. It stores nothing and has
//! no clock.
//!
//! Invariants: ids of a space are dense and in the order of the chain. A scope selects a row here exactly if a look at
//! each row would select it (`tests/it/oracle.rs`). Ids are secret: they count rows that a viewer may not see, so they
//! leave the process in no answer, cursor or log line.
#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

mod blocks;
mod index;
mod list;
mod owners;
mod query;
mod row_set;
mod rows;
mod scope;

pub use blocks::{BlockBounds, BlockRange};
pub use index::{AppendError, PostingIndex};
pub use row_set::RowSet;
pub use rows::{BlockRows, FrameParties, LogParties, RowId, Space, TransactionRows, TransferParties};
pub use scope::{EventLogs, Grant, HiddenTransfers, PartialRows, ParticipantRows, Scope, VisibleAddress};
