//! Encryption at rest, and digests that only who holds the key can compare with a guess.
//!
//! Start with [`KeyCipher`]; [`webhook_signature`] signs deliveries. Not here: tokens (`gw-http`), proofs (`gw-zk`) and
//! the audit chain (`gw-audit`).
//!
//! Invariant: a key that was encrypted for one group opens for no other group, the secret of one grant of
//! disclosure for no other grant, and the secret of one webhook for no other organization.
#![warn(missing_docs)]

mod key_cipher;
mod webhook;

pub use key_cipher::{KeyCipher, KeyCipherError};
pub use webhook::{webhook_secret_text, webhook_signature};
