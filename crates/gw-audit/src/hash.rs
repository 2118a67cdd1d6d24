//! The hash of entries and tree nodes.

use gw_types::B256;

/// A SHA-256 hash.
pub type Hash = B256;
