//! The pure part of zero-knowledge logins: identifiers, the token that a wallet sends, its proof, and the checks of the
//! signed message (spec/10 sections 2.3 to 3).
//!
//! Not here: reading identity state from a chain, sessions, and what a user may do. No IO and no clock: time is an
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
