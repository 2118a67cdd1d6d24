//! Tests of the crate against the public test data.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; helpers do, too"
)]

mod credentials;
mod dids;
mod hashes;
mod keys;
mod maker;
mod own;
mod queries;
mod schemas;
mod states;
mod support;
mod vectors;
