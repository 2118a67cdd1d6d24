//! Encryption at rest, and digests that only who holds the key can compare with a guess.
//!
//! Start with [`KeyCipher`]. Not here: tokens (`gw-http`), proofs (`gw-zk`) and the audit chain (`gw-audit`).
//!
//! Invariant: a key that was encrypted for one group opens for no other group, and the secret of one grant of
//! disclosure for no other grant.
#![warn(missing_docs)]

mod key_cipher;

pub use key_cipher::{KeyCipher, KeyCipherError};
