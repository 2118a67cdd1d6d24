//! The explorer's own database, on SQLite and PostgreSQL: the blocks of the chain and what they contain.
//!
//! - [`ChainStore`]: start reading here. It opens and migrates a database.
//! - [`ChainWriter`]: appends blocks, removes them after a reorganization, and keeps the queue of further work. One at
//!   a time among all instances.
//! - [`ChainReader`]: all queries, on one state of the database.
//! - [`status`]: the state of a database, for operators.
//! - [`rows`]: the rows, as the indexer hands them over and as the explorer reads them.
//!
//! This crate stores facts of the chain. It knows no viewer and decides nothing about visibility. It does not read from
//! the node.
//!
//! Invariants:
//! - Blocks have no gaps. A block is one transaction, and its parent is the block before it.
//! - Ids of each space are dense and in the order of the chain. They are secret: they count rows that a viewer may not
//!   see, so no error of this crate contains one.
//! - `generation` rises in the transaction that changes which row an id stands for. An id is valid only together with
//!   the generation in which it was taken ([`ChainStore::reader_at`]).
//! - Only the holder of the lease writes: each transaction that writes first renews the lease. Any instance may add a
//!   task ([`ChainStore::request_block`]).

#![warn(missing_docs, clippy::missing_errors_doc)]

// The random chains of the integration tests name the crate.
#[cfg(test)]
extern crate self as gw_chain_store;

#[cfg(test)]
#[path = "../tests/it/chain.rs"]
mod chain;
mod config;
mod convert;
mod dialect;
mod entity;
mod error;
mod lease;
mod migration;
#[cfg(test)]
mod plans;
mod reader;
pub mod rows;
mod state;
mod status;
mod store;
mod task;
mod writer;

pub use config::{ChainStoreConfig, Location, OtherChain};
pub use error::ChainStoreError;
pub use reader::{ChainReader, HashPrefix, HolderPosition, Progress, TokenHolding, TokenPosition};
pub use rows::BlockData;
pub use status::{LeaseStatus, QueueStatus, StoreStatus, status};
pub use store::ChainStore;
pub use task::{Job, JobKind, Task};
pub use writer::{BlockFrames, ChainWriter, Reading, TransactionTrace};
