//! Tests of the posting index against a look at each row.

#![expect(clippy::indexing_slicing, reason = "tests of known sizes")]

mod index;
mod naive;
mod oracle;
mod world;
