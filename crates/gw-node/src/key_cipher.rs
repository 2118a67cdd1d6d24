//! Upstream keys of groups at rest: AES-256-GCM, marked `encv1:` (spec/20 G1, spec/80 section 6).

use aes_gcm::{Aes256Gcm, Key, KeyInit, Nonce, aead::Aead};
use gw_types::{Entropy, Secret};
use hmac::{Hmac, Mac};
use sha2::Sha256;

const MARK: &str = "encv1:";
const NONCE: usize = 12;

/// Encrypts and decrypts upstream keys.
pub struct KeyCipher {
    cipher: Box<Aes256Gcm>,
    previous: Option<Box<Aes256Gcm>>,
    digests: Hmac<Sha256>,
}

/// Why a key cannot be used.
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

    /// The text to store.
    pub fn seal(&self, key: &str, entropy: &dyn Entropy) -> Result<Secret, KeyCipherError> {
        let mut nonce = [0u8; NONCE];
        entropy.fill(&mut nonce);
        let sealed = self
            .cipher
            .encrypt(&Nonce::from(nonce), key.as_bytes())
            .map_err(|_| KeyCipherError::Stored)?;
        Ok(Secret::new(format!(
            "{MARK}{}{}",
            hex::encode(nonce),
            hex::encode(sealed)
        )))
    }

    /// The key itself.
    pub fn open(&self, stored: &Secret) -> Result<Secret, KeyCipherError> {
        decrypt(&self.cipher, stored).or_else(|error| match &self.previous {
            Some(previous) => decrypt(previous, stored),
            None => Err(error),
        })
    }

    /// Whether the previous key is needed for it.
    pub fn is_outdated(&self, stored: &Secret) -> bool {
        decrypt(&self.cipher, stored).is_err() && self.open(stored).is_ok()
    }

    /// The same under the current key, if the previous one is needed for it.
    pub fn renewed(&self, stored: &Secret, entropy: &dyn Entropy) -> Result<Option<Secret>, KeyCipherError> {
        if !self.is_outdated(stored) {
            return Ok(None);
        }
        self.seal(self.open(stored)?.expose(), entropy).map(Some)
    }

    /// The last four characters, if the key is long enough that they tell nothing.
    pub fn hint(&self, stored: &Secret) -> Option<String> {
        let key = self.open(stored).ok()?;
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

fn decrypt(cipher: &Aes256Gcm, stored: &Secret) -> Result<Secret, KeyCipherError> {
    let stored = stored.expose().strip_prefix(MARK).ok_or(KeyCipherError::Stored)?;
    let bytes = hex::decode(stored).map_err(|_| KeyCipherError::Stored)?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or(KeyCipherError::Stored)?;
    let opened = cipher
        .decrypt(&Nonce::from(*nonce), sealed)
        .map_err(|_| KeyCipherError::Stored)?;
    String::from_utf8(opened)
        .map(Secret::new)
        .map_err(|_| KeyCipherError::Stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u8);
    impl Entropy for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn hd12_digests_are_keyed() {
        let of = |key: &str| KeyCipher::new(&Secret::new(key.repeat(32))).unwrap().digest(b"[]");
        assert_eq!(of("11"), of("11"));
        assert_ne!(of("11"), of("22"));
        assert!(of("11").starts_with("hmac-sha256:") && of("11").len() == 12 + 64);
    }

    #[test]
    fn g1_keys_rest_encrypted_and_come_back() {
        let cipher = KeyCipher::new(&Secret::new("11".repeat(32))).unwrap();
        let stored = cipher.seal("sk-upstream-0123456789", &Fixed(7)).unwrap();
        assert!(stored.expose().starts_with(MARK) && !stored.expose().contains("upstream"));
        assert_eq!(cipher.open(&stored).unwrap().expose(), "sk-upstream-0123456789");
        assert_eq!(cipher.hint(&stored).as_deref(), Some("6789"));
        assert_eq!(cipher.hint(&cipher.seal("short", &Fixed(7)).unwrap()), None);
        let other = KeyCipher::new(&Secret::new("22".repeat(32))).unwrap();
        assert_eq!(other.open(&stored).unwrap_err(), KeyCipherError::Stored);
        assert!(KeyCipher::new(&Secret::new("11")).is_err());
    }

    #[test]
    fn g1_the_previous_key_reads_and_does_not_write() {
        let key = |digits: &str| Secret::new(digits.repeat(32));
        let old = KeyCipher::new(&key("11")).unwrap();
        let stored = old.seal("sk-upstream-0123456789", &Fixed(7)).unwrap();
        let new = KeyCipher::new(&key("22")).unwrap().with_previous(&key("11")).unwrap();
        assert_eq!(new.open(&stored).unwrap().expose(), "sk-upstream-0123456789");
        assert!(new.is_outdated(&stored) && !old.is_outdated(&stored));
        let anew = new.seal("sk", &Fixed(7)).unwrap();
        assert!(!new.is_outdated(&anew) && old.open(&anew).is_err());
        assert_eq!(new.renewed(&anew, &Fixed(7)).unwrap().map(|_| ()), None);
        let renewed = new.renewed(&stored, &Fixed(7)).unwrap().unwrap();
        assert!(!new.is_outdated(&renewed) && new.open(&renewed).unwrap().expose() == "sk-upstream-0123456789");
        let third = KeyCipher::new(&key("33")).unwrap().with_previous(&key("22")).unwrap();
        assert!(
            third.open(&stored).is_err() && !third.is_outdated(&stored),
            "two keys back"
        );
    }
}
