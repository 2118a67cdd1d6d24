//! Text values that cannot be printed by accident.

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A secret text: redacted `Debug`, no `Display` or `Serialize`, constant-time equality, zeroized on drop.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the secret itself; each call site deserves review.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares with `other` in time that depends on the lengths only.
    pub fn matches(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.expose())
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_in_debug_output() {
        let secret = Secret::new("hunter2-hunter2");
        assert!(!format!("{secret:?}").contains("hunter"));
        assert!(secret.matches("hunter2-hunter2") && !secret.matches("hunter2"));
    }
}
