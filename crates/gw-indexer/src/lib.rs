//! The indexer of the explorer: reads the blocks of the node and writes them, decoded, into the explorer's database.
//!
//! - [`Indexer`]: start reading here. It follows the chain, reorganizations included.
//! - [`decode`]: blocks to rows. Pure functions.
//! - [`ViewPolicy`]: what the indexer learns from the policy of the gateway.
//!
//! This crate knows no viewer. What a viewer sees of the rows is decided in `gw-policy`.
//!
//! Invariants:
//! - The store has no gaps: blocks are read concurrently and appended in order.
//! - Nothing is invented: a block with a missing receipt is read again (X7), a block without a trace is marked (X10).
//! - The indexer can end at any moment. Its next start continues with the same result.
//! - An answer of a token contract is stored only if the policy allows everything that it depends on (HD26).

#![warn(missing_docs, clippy::missing_errors_doc)]

mod config;
pub mod decode;
mod error;
mod fetch;
mod indexer;
mod progress;
mod token;
mod work;

pub use config::{Delays, IndexerConfig};
pub use error::IndexerError;
pub use fetch::find_block_problem;
pub use indexer::Indexer;
pub use progress::{IndexerProgress, IndexerState};
pub use token::{OwnStateOnly, TokenReader, ViewPolicy};
