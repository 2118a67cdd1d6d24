//! The indexer with a real node, on both engines of the store.
#![expect(clippy::unwrap_used, reason = "a test cannot continue without its node and database")]

mod catch_up;
mod faults;
mod instances;
mod reorganization;
mod restart;
mod support;
