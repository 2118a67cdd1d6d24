//! Tests of the rules, one file for each part of spec/60 that this crate decides.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; helpers outside of test functions do too"
)]

mod calldata;
mod containers;
mod decision;
mod flow;
mod lists;
mod log_rows;
mod lying_tokens;
mod oracle;
mod prices;
mod properties;
mod records;
mod runs;
mod support;
