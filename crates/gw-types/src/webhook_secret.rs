//! The secret that signs an organization's webhook deliveries: as bytes, and encrypted.

use zeroize::Zeroizing;

/// The key of the signatures of an organization's deliveries: 32 random bytes, zeroized on drop, redacted in `Debug`.
#[derive(Clone)]
pub struct WebhookSecret(Zeroizing<[u8; 32]>);

impl WebhookSecret {
    /// Wraps the bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns the bytes; each call site deserves review.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl core::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// A [`WebhookSecret`] encrypted with AES-256-GCM: nonce (12 bytes), ciphertext (32 bytes), tag (16 bytes).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SealedWebhookSecret(pub [u8; Self::SIZE]);

impl SealedWebhookSecret {
    /// Bytes of the value.
    pub const SIZE: usize = 60;
}

impl core::fmt::Debug for SealedWebhookSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SealedWebhookSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_secret_does_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", WebhookSecret::new([7; 32])), "WebhookSecret(…)");
        assert_eq!(format!("{:?}", SealedWebhookSecret([7; 60])), "SealedWebhookSecret(…)");
    }
}
