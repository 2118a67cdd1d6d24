//! The secret of a grant of disclosure (spec/50 rule 29): as bytes, and encrypted.

use zeroize::Zeroizing;

/// The secret under which a grant names addresses: 32 random bytes, zeroized on drop, redacted in `Debug`.
#[derive(Clone)]
pub struct GrantSecret(Zeroizing<[u8; 32]>);

impl GrantSecret {
    /// Wraps the bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns the bytes; each call site deserves review.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl core::fmt::Debug for GrantSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("GrantSecret(…)")
    }
}

/// A [`GrantSecret`] encrypted with AES-256-GCM: nonce (12 bytes), ciphertext (32 bytes), tag (16 bytes).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SealedGrantSecret(pub [u8; Self::SIZE]);

impl SealedGrantSecret {
    /// Bytes of the value.
    pub const SIZE: usize = 60;
}

impl core::fmt::Debug for SealedGrantSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SealedGrantSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ds29_a_secret_does_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", GrantSecret::new([7; 32])), "GrantSecret(…)");
        assert_eq!(format!("{:?}", SealedGrantSecret([7; 60])), "SealedGrantSecret(…)");
    }
}
