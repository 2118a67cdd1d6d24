//! Zero-knowledge logins, the pure part: identifiers, the token a wallet sends, the proof in it, and what the message it
//! signs must say (spec/10 sections 2.3 to 3).
//!
//! Not here: reading identity state from a chain, sessions, and what a proved name may do. No IO, no clock: time is an
//! argument.
#![warn(missing_docs)]

pub mod encode;
pub mod hash;
pub mod poseidon;
pub mod schema;
