//! What a transaction moves, what that is worth, and whether compliance lets it pass (spec/60).
//!
//! Reading order:
//!
//! - [`effects`]: what the runs and the calldata of a transaction move, and which parties are screened.
//! - [`flow`]: who gains what.
//! - [`sanctions`], [`prices`], [`record`]: lists, prices and travel-rule records; each decides its own question.
//! - [`facts`]: everything that a decision knows.
//! - [`decision`]: [`decide`](decision::decide), the verdict with all that follows from it.
//!
//! Not here: where facts come from, how records are claimed and rows are written, and the answers on the wire.
//!
//! Invariants: every function is pure, and time is an argument. No amount passes through a float. What cannot be told
//! is denied.
#![warn(missing_docs, clippy::missing_errors_doc, clippy::wildcard_enum_match_arm)]

pub mod decision;
pub mod effects;
pub mod facts;
pub mod flow;
pub mod prices;
pub mod record;
pub mod sanctions;
mod token;

pub use token::{Asset, Token, TokenError};
