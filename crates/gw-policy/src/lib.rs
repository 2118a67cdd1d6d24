//! The pure core: an immutable [`Snapshot`] of all policy and the decisions on it.
//!
//! Start with [`snapshot`]; nothing here waits, reads a clock or knows a database.
#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod access;
pub mod knobs;
pub mod sealed;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod view;
pub mod visibility;

pub use knobs::Knobs;
pub use sealed::{Disclosed, RawError, RawJson, Sealed};
pub use snapshot::{Change, Snapshot};
pub use visibility::Viewer;
