//! External ids of people and machines: a DID, or `directory:<oid>`.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The identifier of a user at login: a DID (`did:method:id`) or `directory:<oid>`.
///
/// Case-sensitive everywhere (spec/10 DI-3); at most 255 bytes of visible ASCII.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExternalId(Arc<str>);

/// Why a text is not an external id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExternalIdError {
    /// Neither `did:method:id` nor `directory:<oid>`.
    #[error("neither `did:<method>:<id>` nor `directory:<oid>`")]
    Shape,
    /// Longer than 255 bytes.
    #[error("longer than 255 bytes")]
    TooLong,
}

impl ExternalId {
    /// Maximum length of the text in bytes.
    pub const MAX_LEN: usize = 255;

    /// Checks the syntax of a text and wraps it.
    ///
    /// # Errors
    /// [`ExternalIdError::TooLong`] above [`Self::MAX_LEN`] bytes; [`ExternalIdError::Shape`] if it is neither a DID
    /// nor a directory id.
    pub fn new(text: &str) -> Result<Self, ExternalIdError> {
        if text.len() > Self::MAX_LEN {
            return Err(ExternalIdError::TooLong);
        }
        let rest = match text.split_once(':') {
            Some(("directory", oid)) => Some(oid),
            Some(("did", rest)) => rest.split_once(':').and_then(|(method, id)| {
                let named = !method.is_empty() && method.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
                named.then_some(id)
            }),
            Some(_) | None => None,
        };
        match rest {
            Some(id) if !id.is_empty() && id.bytes().all(is_id_byte) => Ok(Self(text.into())),
            Some(_) | None => Err(ExternalIdError::Shape),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a DID rather than a directory identity.
    pub fn is_did(&self) -> bool {
        self.0.starts_with("did:")
    }
}

/// Whether a byte may occur in a W3C method-specific id (colon-separated idchars and percent escapes).
fn is_id_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'%')
}

impl core::fmt::Display for ExternalId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ExternalId {
    type Error = ExternalIdError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl core::str::FromStr for ExternalId {
    type Err = ExternalIdError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl From<ExternalId> for String {
    fn from(id: ExternalId) -> Self {
        id.0.as_ref().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_dids_and_directory_ids_only() {
        for good in [
            "did:test:alice",
            "did:iden3:privado:main:2Sci",
            "directory:5a1c-77",
            "did:key:z6Mk.x_%41",
        ] {
            assert_eq!(ExternalId::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "did",
            "did:",
            "did::x",
            "did:Test:x",
            "did:test:",
            "did:test:a b",
            "ldap:x",
            "did:test:a\n",
        ] {
            assert_eq!(ExternalId::new(bad), Err(ExternalIdError::Shape), "{bad:?}");
        }
        let long = format!("did:test:{}", "x".repeat(250));
        assert_eq!(ExternalId::new(&long), Err(ExternalIdError::TooLong));
    }
}
