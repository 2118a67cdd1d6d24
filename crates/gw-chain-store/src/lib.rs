//! The explorer's own database: the blocks of the chain and what they contain.
//!
//! Start with [`BlockData`]: one block with all its rows, as the indexer reads it from the node.
//!
//! This crate stores facts of the chain. It knows no viewer and decides nothing about visibility.

pub mod rows;

pub use rows::BlockData;
