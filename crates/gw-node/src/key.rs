//! The key sent to the node: the gateway's own, or the one of the caller's group (spec/20 G1).

use alloy_primitives::keccak256;
use gw_crypto::{KeyCipher, KeyCipherError};
use gw_types::{GroupId, Secret};
use http::{HeaderValue, header::InvalidHeaderValue};

/// A key as it is sent in the header. Never printed.
#[derive(Clone)]
pub(crate) struct UpstreamKey {
    value: HeaderValue,
    id: KeyId,
}

/// Identifies a key without revealing it. Equal keys have equal ids, also if two groups have the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(u64);

/// Why the key of a group cannot be used. No other key is used in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupKeyError {
    /// No encryption key is configured.
    #[error("no encryption key is configured")]
    NoCipher,
    /// The stored key was changed, or was not encrypted with the configured encryption key.
    #[error("the stored key of the group cannot be decrypted")]
    Stored(#[source] KeyCipherError),
    /// The key cannot be sent in a header.
    #[error("the key of the group contains characters that HTTP does not allow")]
    Header,
}

impl KeyId {
    /// The id for requests without a key; the node counts them together.
    pub(crate) const NONE: Self = Self(0);

    /// The id of a key.
    pub fn from_secret(key: &Secret) -> Self {
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
    pub(crate) fn new(key: &Secret) -> Result<Self, InvalidHeaderValue> {
        let mut value: HeaderValue = key.expose().parse()?;
        value.set_sensitive(true);
        Ok(Self {
            value,
            id: KeyId::from_secret(key),
        })
    }

    /// Decrypts the stored key of a group.
    pub(crate) fn for_group(
        group: GroupId,
        stored: &Secret,
        cipher: Option<&KeyCipher>,
    ) -> Result<Self, GroupKeyError> {
        let key = cipher
            .ok_or(GroupKeyError::NoCipher)?
            .open(group, stored)
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
    use gw_types::testing::FixedEntropy;

    const GROUP: GroupId = GroupId::fixed(1);

    #[test]
    fn g1_keys_for_groups_have_distinct_ids_and_are_never_shown() {
        let cipher = KeyCipher::new(&Secret::new("11".repeat(32))).unwrap();
        let group_key = |key: &str| {
            UpstreamKey::for_group(
                GROUP,
                &cipher.seal(GROUP, key, &FixedEntropy(7)).unwrap(),
                Some(&cipher),
            )
        };
        let (first, second) = (
            group_key("Bearer canary-one").unwrap(),
            group_key("Bearer canary-two").unwrap(),
        );
        assert_eq!(first.value().to_str().unwrap(), "Bearer canary-one");
        assert!(first.id() == group_key("Bearer canary-one").unwrap().id() && first.id() != second.id());
        assert!(!format!("{first:?} {:?} {:?}", first.id(), first.value()).contains("canary"));
        assert_eq!(group_key("two\nlines").unwrap_err(), GroupKeyError::Header);
        let plain = Secret::new("canary");
        assert!(matches!(
            UpstreamKey::for_group(GROUP, &plain, Some(&cipher)),
            Err(GroupKeyError::Stored(_))
        ));
        assert_eq!(
            UpstreamKey::for_group(GROUP, &plain, None).unwrap_err(),
            GroupKeyError::NoCipher
        );
    }
}
