//! Zero-knowledge logins, the pure part: identifiers, the token a wallet sends, the proof in it, and what the message it
//! signs must say (spec/10 sections 2.3 to 3).
//!
//! Not here: reading identity state from a chain, sessions, and what a proved name may do. No IO, no clock: time is an
//! argument.
#![warn(missing_docs)]

pub use ark_bn254::Fr;

pub mod circuit;
pub mod credential;
pub mod did;
pub mod encode;
pub mod groth16;
pub mod hash;
pub mod json;
pub mod jwz;
pub mod number;
pub mod poseidon;
pub mod query;
pub mod response;
pub mod schema;
pub mod state;
