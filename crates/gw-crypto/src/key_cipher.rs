//! Upstream keys of groups at rest: AES-256-GCM with the group as associated data, marked `encv2:` (spec/20 G1, spec/80
//! section 6). Secrets of grants of disclosure at rest: the same cipher with the grant as associated data (spec/50 rule
//! 29). Secrets of webhooks at rest: with the organization as associated data.

use aes_gcm::{
    Aes256Gcm, Key, KeyInit, Nonce,
    aead::{Aead, Payload},
};
use gw_types::{
    DisclosureGrantId, Entropy, GrantSecret, GroupId, OrgId, SealedGrantSecret, SealedWebhookSecret, Secret,
    WebhookSecret,
};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

const MARK: &str = "encv2:";
/// Without associated data: such a key would open for any group. It is read, and renewed at the next change of its
/// group.
const UNBOUND_MARK: &str = "encv1:";
const NONCE: usize = 12;
/// Precedes the grant's id in the associated data of a grant's secret. The associated data of a group's key is the 16
/// bytes of its id, so no value opens as one of the other kind.
const GRANT: &[u8] = b"disclosure grant ";
/// Precedes the organization's id in the associated data of a webhook's secret.
const WEBHOOK: &[u8] = b"webhook of organization ";
/// Bytes of an encrypted secret of 32 bytes: nonce, ciphertext, tag.
const SEALED: usize = NONCE + 32 + 16;

/// Encrypts and decrypts upstream keys.
pub struct KeyCipher {
    cipher: Box<Aes256Gcm>,
    previous: Option<Box<Aes256Gcm>>,
    digests: Hmac<Sha256>,
}

/// Why a key or a secret cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyCipherError {
    /// The configured key is not 32 bytes of hex.
    #[error("the encryption key must be 32 bytes in hex")]
    Key,
    /// The stored text was not made with this key, or was changed.
    #[error("the stored key cannot be decrypted")]
    Stored,
}

impl std::fmt::Debug for KeyCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyCipher(…)")
    }
}

impl KeyCipher {
    /// From `RPC_API_KEY_ENCRYPTION_KEY`.
    ///
    /// # Errors
    /// [`KeyCipherError::Key`] if the setting is not a valid key.
    pub fn new(key: &Secret) -> Result<Self, KeyCipherError> {
        let bytes = bytes(key)?;
        // A key of their own for digests, so that the one says nothing of the other.
        let mut derived = <Hmac<Sha256> as KeyInit>::new_from_slice(&bytes).map_err(|_| KeyCipherError::Key)?;
        derived.update(b"ledger-gateway parameter digests");
        let digests = <Hmac<Sha256> as KeyInit>::new_from_slice(&derived.finalize().into_bytes());
        Ok(Self {
            cipher: cipher(bytes),
            previous: None,
            digests: digests.map_err(|_| KeyCipherError::Key)?,
        })
    }

    /// Reads what was made with `RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS` too.
    ///
    /// # Errors
    /// [`KeyCipherError::Key`] if the setting is not a valid key.
    pub fn with_previous(self, key: &Secret) -> Result<Self, KeyCipherError> {
        Ok(Self {
            previous: Some(cipher(bytes(key)?)),
            ..self
        })
    }

    /// A digest that only who holds the key can compare with a guess (HD12).
    pub fn digest(&self, bytes: &[u8]) -> String {
        let mut mac = self.digests.clone();
        mac.update(bytes);
        format!("hmac-sha256:{}", hex::encode(mac.finalize().into_bytes()))
    }

    /// Encrypts a key of `group`.
    ///
    /// # Errors
    /// [`KeyCipherError::Stored`] if the key is too long to encrypt.
    pub fn seal(&self, group: GroupId, key: &str, entropy: &dyn Entropy) -> Result<Secret, KeyCipherError> {
        let mut nonce = [0u8; NONCE];
        entropy.fill(&mut nonce);
        let payload = Payload {
            msg: key.as_bytes(),
            aad: group.0.as_bytes(),
        };
        let sealed = self
            .cipher
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| KeyCipherError::Stored)?;
        Ok(Secret::new(format!(
            "{MARK}{}{}",
            hex::encode(nonce),
            hex::encode(sealed)
        )))
    }

    /// Decrypts the stored key of `group`.
    ///
    /// # Errors
    /// [`KeyCipherError::Stored`] if it was encrypted with another key or for another group, or was changed.
    pub fn open(&self, group: GroupId, stored: &Secret) -> Result<Secret, KeyCipherError> {
        decrypt(&self.cipher, group, stored).or_else(|error| match &self.previous {
            Some(previous) => decrypt(previous, group, stored),
            None => Err(error),
        })
    }

    /// Whether the stored key of `group` should be renewed: it needs the previous encryption key, or is not bound to
    /// its group.
    pub fn is_outdated(&self, group: GroupId, stored: &Secret) -> bool {
        let is_current = decrypt(&self.cipher, group, stored).is_ok() && stored.expose().starts_with(MARK);
        !is_current && self.open(group, stored).is_ok()
    }

    /// The stored key of `group` encrypted anew, if it [is outdated](Self::is_outdated).
    ///
    /// # Errors
    /// As [`KeyCipher::open`].
    pub fn renewed(
        &self,
        group: GroupId,
        stored: &Secret,
        entropy: &dyn Entropy,
    ) -> Result<Option<Secret>, KeyCipherError> {
        if !self.is_outdated(group, stored) {
            return Ok(None);
        }
        self.seal(group, self.open(group, stored)?.expose(), entropy).map(Some)
    }

    /// Encrypts the secret of `grant`.
    ///
    /// # Errors
    /// [`KeyCipherError::Stored`] if the cipher fails, which it does not for 32 bytes.
    pub fn seal_grant_secret(
        &self,
        grant: DisclosureGrantId,
        secret: &GrantSecret,
        entropy: &dyn Entropy,
    ) -> Result<SealedGrantSecret, KeyCipherError> {
        seal_bytes(&self.cipher, &grant_aad(grant), secret.expose(), entropy).map(SealedGrantSecret)
    }

    /// Decrypts the stored secret of `grant`.
    ///
    /// # Errors
    /// [`KeyCipherError::Stored`] if it was encrypted with another key or for another grant, or was changed.
    pub fn open_grant_secret(
        &self,
        grant: DisclosureGrantId,
        stored: &SealedGrantSecret,
    ) -> Result<GrantSecret, KeyCipherError> {
        self.open_bytes(&grant_aad(grant), &stored.0)
            .map(|bytes| GrantSecret::new(*bytes))
    }

    /// Whether the stored secret of `grant` needs the previous encryption key.
    pub fn is_outdated_grant_secret(&self, grant: DisclosureGrantId, stored: &SealedGrantSecret) -> bool {
        self.needs_previous(&grant_aad(grant), &stored.0)
    }

    /// The stored secret of `grant` encrypted anew, if it needs the previous encryption key.
    ///
    /// # Errors
    /// As [`KeyCipher::open_grant_secret`].
    pub fn renewed_grant_secret(
        &self,
        grant: DisclosureGrantId,
        stored: &SealedGrantSecret,
        entropy: &dyn Entropy,
    ) -> Result<Option<SealedGrantSecret>, KeyCipherError> {
        let renewed = self.renewed_bytes(&grant_aad(grant), &stored.0, entropy)?;
        Ok(renewed.map(SealedGrantSecret))
    }

    /// Encrypts the secret of the webhook of `org`.
    ///
    /// # Errors
    /// [`KeyCipherError::Stored`] if the cipher fails, which it does not for 32 bytes.
    pub fn seal_webhook_secret(
        &self,
        org: OrgId,
        secret: &WebhookSecret,
        entropy: &dyn Entropy,
    ) -> Result<SealedWebhookSecret, KeyCipherError> {
        seal_bytes(&self.cipher, &webhook_aad(org), secret.expose(), entropy).map(SealedWebhookSecret)
    }

    /// Decrypts the stored secret of the webhook of `org`.
    ///
    /// # Errors
    /// [`KeyCipherError::Stored`] if it was encrypted with another key or for another organization, or was changed.
    pub fn open_webhook_secret(
        &self,
        org: OrgId,
        stored: &SealedWebhookSecret,
    ) -> Result<WebhookSecret, KeyCipherError> {
        self.open_bytes(&webhook_aad(org), &stored.0)
            .map(|bytes| WebhookSecret::new(*bytes))
    }

    /// Whether the stored secret of the webhook of `org` needs the previous encryption key.
    pub fn is_outdated_webhook_secret(&self, org: OrgId, stored: &SealedWebhookSecret) -> bool {
        self.needs_previous(&webhook_aad(org), &stored.0)
    }

    /// The stored secret of the webhook of `org` encrypted anew, if it needs the previous encryption key.
    ///
    /// # Errors
    /// As [`KeyCipher::open_webhook_secret`].
    pub fn renewed_webhook_secret(
        &self,
        org: OrgId,
        stored: &SealedWebhookSecret,
        entropy: &dyn Entropy,
    ) -> Result<Option<SealedWebhookSecret>, KeyCipherError> {
        let renewed = self.renewed_bytes(&webhook_aad(org), &stored.0, entropy)?;
        Ok(renewed.map(SealedWebhookSecret))
    }

    fn open_bytes(&self, aad: &[u8], stored: &[u8; SEALED]) -> Result<Zeroizing<[u8; 32]>, KeyCipherError> {
        decrypt_bytes(&self.cipher, aad, stored).or_else(|error| match &self.previous {
            Some(previous) => decrypt_bytes(previous, aad, stored),
            None => Err(error),
        })
    }

    fn needs_previous(&self, aad: &[u8], stored: &[u8; SEALED]) -> bool {
        decrypt_bytes(&self.cipher, aad, stored).is_err() && self.open_bytes(aad, stored).is_ok()
    }

    fn renewed_bytes(
        &self,
        aad: &[u8],
        stored: &[u8; SEALED],
        entropy: &dyn Entropy,
    ) -> Result<Option<[u8; SEALED]>, KeyCipherError> {
        if decrypt_bytes(&self.cipher, aad, stored).is_ok() {
            return Ok(None);
        }
        let secret = self.open_bytes(aad, stored)?;
        seal_bytes(&self.cipher, aad, &secret, entropy).map(Some)
    }

    /// The last four characters, if the key is long enough that they tell nothing.
    pub fn hint(&self, group: GroupId, stored: &Secret) -> Option<String> {
        let key = self.open(group, stored).ok()?;
        let chars: Vec<char> = key.expose().chars().collect();
        let tail = chars.len().checked_sub(4)?;
        (chars.len() >= 16).then(|| chars.into_iter().skip(tail).collect())
    }
}

fn bytes(key: &Secret) -> Result<[u8; 32], KeyCipherError> {
    let mut bytes = [0u8; 32];
    hex::decode_to_slice(key.expose(), &mut bytes).map_err(|_| KeyCipherError::Key)?;
    Ok(bytes)
}

fn cipher(key: [u8; 32]) -> Box<Aes256Gcm> {
    Box::new(Aes256Gcm::new(&Key::<Aes256Gcm>::from(key)))
}

fn grant_aad(grant: DisclosureGrantId) -> Vec<u8> {
    [GRANT, grant.0.as_bytes()].concat()
}

fn webhook_aad(org: OrgId) -> Vec<u8> {
    [WEBHOOK, org.0.as_bytes()].concat()
}

fn seal_bytes(
    cipher: &Aes256Gcm,
    aad: &[u8],
    secret: &[u8; 32],
    entropy: &dyn Entropy,
) -> Result<[u8; SEALED], KeyCipherError> {
    let mut nonce = [0u8; NONCE];
    entropy.fill(&mut nonce);
    let sealed = cipher.encrypt(&Nonce::from(nonce), Payload { msg: secret, aad });
    let bytes = [nonce.as_slice(), &sealed.map_err(|_| KeyCipherError::Stored)?].concat();
    bytes.try_into().map_err(|_| KeyCipherError::Stored)
}

fn decrypt_bytes(cipher: &Aes256Gcm, aad: &[u8], stored: &[u8; SEALED]) -> Result<Zeroizing<[u8; 32]>, KeyCipherError> {
    let (nonce, sealed) = stored.split_first_chunk::<NONCE>().ok_or(KeyCipherError::Stored)?;
    let opened = Zeroizing::new(
        cipher
            .decrypt(&Nonce::from(*nonce), Payload { msg: sealed, aad })
            .map_err(|_| KeyCipherError::Stored)?,
    );
    let bytes: [u8; 32] = opened.as_slice().try_into().map_err(|_| KeyCipherError::Stored)?;
    Ok(Zeroizing::new(bytes))
}

fn decrypt(cipher: &Aes256Gcm, group: GroupId, stored: &Secret) -> Result<Secret, KeyCipherError> {
    let stored = stored.expose();
    let (stored, aad): (_, &[u8]) = match (stored.strip_prefix(MARK), stored.strip_prefix(UNBOUND_MARK)) {
        (Some(stored), _) => (stored, group.0.as_bytes()),
        (None, Some(stored)) => (stored, &[]),
        (None, None) => return Err(KeyCipherError::Stored),
    };
    let bytes = hex::decode(stored).map_err(|_| KeyCipherError::Stored)?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or(KeyCipherError::Stored)?;
    let opened = cipher
        .decrypt(&Nonce::from(*nonce), Payload { msg: sealed, aad })
        .map_err(|_| KeyCipherError::Stored)?;
    String::from_utf8(opened)
        .map(Secret::new)
        .map_err(|_| KeyCipherError::Stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::FixedEntropy;

    const GROUP: GroupId = GroupId::fixed(1);

    #[test]
    fn hd12_digests_are_keyed() {
        let digest_under = |key: &str| KeyCipher::new(&Secret::new(key.repeat(32))).unwrap().digest(b"[]");
        assert_eq!(digest_under("11"), digest_under("11"));
        assert_ne!(digest_under("11"), digest_under("22"));
        assert!(digest_under("11").starts_with("hmac-sha256:") && digest_under("11").len() == 12 + 64);
    }

    #[test]
    fn g1_keys_rest_encrypted_and_come_back() {
        let cipher = KeyCipher::new(&Secret::new("11".repeat(32))).unwrap();
        let stored = cipher.seal(GROUP, "sk-upstream-0123456789", &FixedEntropy(7)).unwrap();
        assert!(stored.expose().starts_with(MARK) && !stored.expose().contains("upstream"));
        assert_eq!(cipher.open(GROUP, &stored).unwrap().expose(), "sk-upstream-0123456789");
        assert_eq!(cipher.hint(GROUP, &stored).as_deref(), Some("6789"));
        assert_eq!(
            cipher.hint(GROUP, &cipher.seal(GROUP, "short", &FixedEntropy(7)).unwrap()),
            None
        );
        let other = KeyCipher::new(&Secret::new("22".repeat(32))).unwrap();
        assert_eq!(other.open(GROUP, &stored).unwrap_err(), KeyCipherError::Stored);
        assert!(KeyCipher::new(&Secret::new("11")).is_err());
    }

    /// G1: copied to the row of another group, a key does not open.
    #[test]
    fn g1_a_key_is_bound_to_its_group() {
        let cipher = KeyCipher::new(&Secret::new("11".repeat(32))).unwrap();
        let stored = cipher.seal(GROUP, "sk-upstream-0123456789", &FixedEntropy(7)).unwrap();
        let other = GroupId::fixed(2);
        assert_eq!(cipher.open(other, &stored).unwrap_err(), KeyCipherError::Stored);
        assert!(cipher.hint(other, &stored).is_none() && !cipher.is_outdated(other, &stored));
        let unbound = Secret::new(stored.expose().replace(MARK, UNBOUND_MARK));
        assert_eq!(
            cipher.open(GROUP, &unbound).unwrap_err(),
            KeyCipherError::Stored,
            "a mark is no key"
        );
    }

    /// A key of before keys were bound is read, and bound when it is renewed.
    #[test]
    fn g1_an_unbound_key_is_renewed() {
        let key = [0x11; 32];
        let sealed = cipher(key)
            .encrypt(&Nonce::from([7; NONCE]), b"sk-upstream".as_slice())
            .unwrap();
        let stored = Secret::new(format!(
            "{UNBOUND_MARK}{}{}",
            hex::encode([7; NONCE]),
            hex::encode(sealed)
        ));
        let cipher = KeyCipher::new(&Secret::new(hex::encode(key))).unwrap();
        assert_eq!(cipher.open(GROUP, &stored).unwrap().expose(), "sk-upstream");
        assert!(cipher.is_outdated(GROUP, &stored));
        let renewed = cipher.renewed(GROUP, &stored, &FixedEntropy(8)).unwrap().unwrap();
        assert!(renewed.expose().starts_with(MARK) && !cipher.is_outdated(GROUP, &renewed));
    }

    #[test]
    fn g1_the_previous_key_reads_and_does_not_write() {
        let key = |digits: &str| Secret::new(digits.repeat(32));
        let old = KeyCipher::new(&key("11")).unwrap();
        let stored = old.seal(GROUP, "sk-upstream-0123456789", &FixedEntropy(7)).unwrap();
        let new = KeyCipher::new(&key("22")).unwrap().with_previous(&key("11")).unwrap();
        assert_eq!(new.open(GROUP, &stored).unwrap().expose(), "sk-upstream-0123456789");
        assert!(new.is_outdated(GROUP, &stored) && !old.is_outdated(GROUP, &stored));
        let anew = new.seal(GROUP, "sk", &FixedEntropy(7)).unwrap();
        assert!(!new.is_outdated(GROUP, &anew) && old.open(GROUP, &anew).is_err());
        assert_eq!(new.renewed(GROUP, &anew, &FixedEntropy(7)).unwrap().map(|_| ()), None);
        let renewed = new.renewed(GROUP, &stored, &FixedEntropy(7)).unwrap().unwrap();
        assert!(
            !new.is_outdated(GROUP, &renewed)
                && new.open(GROUP, &renewed).unwrap().expose() == "sk-upstream-0123456789"
        );
        let third = KeyCipher::new(&key("33")).unwrap().with_previous(&key("22")).unwrap();
        assert!(
            third.open(GROUP, &stored).is_err() && !third.is_outdated(GROUP, &stored),
            "two keys back"
        );
    }

    /// Copied to the row of another grant, a secret does not open; no group's key opens as a secret.
    #[test]
    fn ds29_a_secret_is_bound_to_its_grant_and_renewed_under_a_new_key() {
        let key = |digits: &str| Secret::new(digits.repeat(32));
        let old = KeyCipher::new(&key("11")).unwrap();
        let (grant, other) = (DisclosureGrantId::fixed(1), DisclosureGrantId::fixed(2));
        let stored = old
            .seal_grant_secret(grant, &GrantSecret::new([9; 32]), &FixedEntropy(7))
            .unwrap();
        assert_eq!(old.open_grant_secret(grant, &stored).unwrap().expose(), &[9; 32]);
        assert!(!stored.0.windows(8).any(|bytes| bytes == [9; 8]));
        assert!(old.open_grant_secret(other, &stored).is_err());
        let as_key = Secret::new(format!("{MARK}{}", hex::encode(stored.0)));
        assert!(old.open(GroupId(grant.0), &as_key).is_err());
        assert_eq!(old.renewed_grant_secret(grant, &stored, &FixedEntropy(7)), Ok(None));
        let mut altered = stored;
        altered.0[20] ^= 1;
        assert!(old.open_grant_secret(grant, &altered).is_err());

        let new = KeyCipher::new(&key("22")).unwrap().with_previous(&key("11")).unwrap();
        let renewed = new
            .renewed_grant_secret(grant, &stored, &FixedEntropy(8))
            .unwrap()
            .unwrap();
        let only_new = KeyCipher::new(&key("22")).unwrap();
        assert_eq!(only_new.open_grant_secret(grant, &renewed).unwrap().expose(), &[9; 32]);
        assert!(only_new.renewed_grant_secret(grant, &stored, &FixedEntropy(8)).is_err());
        assert!(new.is_outdated_grant_secret(grant, &stored) && !new.is_outdated_grant_secret(grant, &renewed));
        assert!(new.renewed_grant_secret(other, &stored, &FixedEntropy(8)).is_err());
    }

    /// Copied to the row of another organization, a secret does not open; neither does that of a grant with the same
    /// id.
    #[test]
    fn a_webhooks_secret_is_bound_to_its_organization_and_renewed_under_a_new_key() {
        let key = |digits: &str| Secret::new(digits.repeat(32));
        let old = KeyCipher::new(&key("11")).unwrap();
        let (org, other) = (OrgId::fixed(1), OrgId::fixed(2));
        let secret = WebhookSecret::new([9; 32]);
        let stored = old.seal_webhook_secret(org, &secret, &FixedEntropy(7)).unwrap();
        assert_eq!(old.open_webhook_secret(org, &stored).unwrap().expose(), &[9; 32]);
        assert!(!stored.0.windows(8).any(|bytes| bytes == [9; 8]));
        assert!(old.open_webhook_secret(other, &stored).is_err());
        let as_grant = SealedGrantSecret(stored.0);
        assert!(old.open_grant_secret(DisclosureGrantId(org.0), &as_grant).is_err());

        let new = KeyCipher::new(&key("22")).unwrap().with_previous(&key("11")).unwrap();
        assert!(new.is_outdated_webhook_secret(org, &stored) && !old.is_outdated_webhook_secret(org, &stored));
        let renewed = new
            .renewed_webhook_secret(org, &stored, &FixedEntropy(8))
            .unwrap()
            .unwrap();
        let only_new = KeyCipher::new(&key("22")).unwrap();
        assert_eq!(only_new.open_webhook_secret(org, &renewed).unwrap().expose(), &[9; 32]);
        assert_eq!(new.renewed_webhook_secret(org, &renewed, &FixedEntropy(8)), Ok(None));
    }
}
