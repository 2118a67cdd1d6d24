//! Integration tests of the public interface of the crate.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking; helpers outside of test functions do too"
)]

mod abi;
mod abi_prop;
mod call;
mod custom_methods;
mod envelope;
mod trace;
mod tx;
mod wire;
