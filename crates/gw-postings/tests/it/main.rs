//! Tests of the posting index against a look at each row.

#![expect(clippy::unwrap_used, reason = "a test ends when its setup fails")]

mod index;
mod naive;
mod oracle;
mod world;
