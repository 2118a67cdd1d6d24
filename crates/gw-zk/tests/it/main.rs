//! What the crate promises, held against the public test data.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking; helpers do, too")]

mod hashes;
mod schemas;
mod support;
