//! By which key the node is asked: the gateway's own, or the one of the caller's group (spec/20 G1).

use crate::{KeyCipher, KeyCipherError, NodeConfigError};
use alloy_primitives::keccak256;
use gw_types::Secret;
use http::HeaderValue;

/// A key as it is sent. Never printed.
#[derive(Clone)]
pub(crate) struct UpstreamKey {
    value: HeaderValue,
    id: KeyId,
}

/// Tells keys apart without showing them: the same key is the same to the node, whoever brings it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(u64);

/// Why the key of a group cannot be used. No other key takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupKeyError {
    /// There is nothing to decrypt it with.
    #[error("no encryption key is configured")]
    NoCipher,
    /// It was not encrypted with the configured key, or was changed.
    #[error("it cannot be decrypted")]
    Stored(#[source] KeyCipherError),
    /// It cannot be sent.
    #[error("it holds characters HTTP does not allow")]
    Header,
}

impl KeyId {
    /// No key at all is one, too: the node counts such calls together.
    pub(crate) const NONE: Self = Self(0);

    /// Of this key.
    pub fn of(key: &Secret) -> Self {
        let digest = keccak256(key.expose());
        Self(digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes)))
    }
}

impl core::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("KeyId(…)")
    }
}

impl core::fmt::Debug for UpstreamKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("UpstreamKey(…)")
    }
}

impl UpstreamKey {
    pub(crate) fn new(key: &Secret) -> Result<Self, NodeConfigError> {
        let mut value: HeaderValue = key.expose().parse().map_err(|_| NodeConfigError::ApiKey)?;
        value.set_sensitive(true);
        Ok(Self {
            value,
            id: KeyId::of(key),
        })
    }

    /// The key of a group, as it is stored.
    pub(crate) fn of_group(stored: &Secret, cipher: Option<&KeyCipher>) -> Result<Self, GroupKeyError> {
        let key = cipher
            .ok_or(GroupKeyError::NoCipher)?
            .open(stored)
            .map_err(GroupKeyError::Stored)?;
        Self::new(&key).map_err(|_| GroupKeyError::Header)
    }

    pub(crate) fn value(&self) -> HeaderValue {
        self.value.clone()
    }

    pub(crate) const fn id(&self) -> KeyId {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::Entropy;

    #[derive(Debug)]
    struct Fixed;
    impl Entropy for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    #[test]
    fn g1_a_groups_key_is_told_apart_and_never_shown() {
        let cipher = KeyCipher::new(&Secret::new("11".repeat(32))).unwrap();
        let of = |key: &str| UpstreamKey::of_group(&cipher.seal(key, &Fixed).unwrap(), Some(&cipher));
        let (one, other) = (of("Bearer canary-one").unwrap(), of("Bearer canary-two").unwrap());
        assert_eq!(one.value().to_str().unwrap(), "Bearer canary-one");
        assert!(one.id() == of("Bearer canary-one").unwrap().id() && one.id() != other.id());
        assert!(!format!("{one:?} {:?} {:?}", one.id(), one.value()).contains("canary"));
        assert_eq!(of("two\nlines").unwrap_err(), GroupKeyError::Header);
        let plain = Secret::new("canary");
        assert!(matches!(
            UpstreamKey::of_group(&plain, Some(&cipher)),
            Err(GroupKeyError::Stored(_))
        ));
        assert_eq!(
            UpstreamKey::of_group(&plain, None).unwrap_err(),
            GroupKeyError::NoCipher
        );
    }
}
