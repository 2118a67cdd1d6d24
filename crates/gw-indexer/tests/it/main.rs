//! The indexer with a real node, on both engines of the store.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test cannot continue without its node, its database and their answers"
)]

mod catch_up;
mod faults;
mod geth;
mod instances;
mod reorganization;
mod restart;
mod support;
