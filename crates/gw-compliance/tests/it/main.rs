//! Tests of the crate from outside.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking; functions outside of tests do too"
)]

mod ivms101;
mod lists;
