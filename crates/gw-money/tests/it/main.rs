//! Tests of the crate from outside: computed cases, properties against integers without bounds, and JSON.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking; functions outside of tests do too"
)]

mod json;
mod prop;
mod vectors;
