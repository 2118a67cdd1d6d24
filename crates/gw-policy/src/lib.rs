//! The policy core: an immutable [`Snapshot`] of all policy rows, and the pure functions that decide on it.
//!
//! Start reading at [`snapshot`], then [`access::decide`] and [`view`]. Nothing in this crate waits, reads a clock or
//! accesses a database.
#![warn(missing_docs, clippy::missing_errors_doc, clippy::wildcard_enum_match_arm)]

pub mod access;
pub mod disclosure;
mod principal;
pub mod sealed;
pub mod settings;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod view;
pub mod visibility;

pub use sealed::{Disclosed, RawError, RawJson, Sealed};
pub use settings::PolicySettings;
pub use snapshot::{Change, Snapshot};
pub use visibility::Viewer;
