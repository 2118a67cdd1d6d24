//! Encryption of the cursors of lists that grow.
//!
//! A cursor is encrypted, because positions are row numbers, which count the rows of others (HD40). The name of its
//! list is its associated data, so that it opens for no other list.

use aes_gcm::{
    Aes256Gcm, Key, Nonce,
    aead::{Aead as _, Payload},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_types::{Entropy, Secret};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

const NONCE: usize = 12;
/// Bytes of one number of a position.
const NUMBER: usize = 9;

/// A place in a list, as the numbers by which the list is ordered. Its text has one length, whatever the numbers are.
pub type Position<const N: usize> = [Option<i64>; N];

/// Encrypts positions.
pub struct CursorCipher(Box<Aes256Gcm>);

impl std::fmt::Debug for CursorCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorCipher(…)")
    }
}

impl CursorCipher {
    /// Creates a cipher with a key of its own, derived from `secret`. Instances with the same secret open each other's
    /// cursors.
    ///
    /// # Errors
    /// `None` if the secret cannot be used as a key.
    pub(crate) fn derived_from(secret: &Secret) -> Option<Self> {
        let mut derived = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(secret.expose().as_bytes()).ok()?;
        derived.update(b"ledger-gateway list cursors");
        let key: [u8; 32] = derived.finalize().into_bytes().into();
        Some(Self(Box::new(<Aes256Gcm as aes_gcm::KeyInit>::new(
            &Key::<Aes256Gcm>::from(key),
        ))))
    }

    /// Encrypts a position in the list that `list` names. `None` if the position cannot be encrypted.
    pub fn seal<const N: usize>(&self, list: &str, position: Position<N>, entropy: &dyn Entropy) -> Option<String> {
        let mut nonce = [0u8; NONCE];
        entropy.fill(&mut nonce);
        let mut plain = Vec::with_capacity(N * NUMBER);
        for number in position {
            plain.push(u8::from(number.is_some()));
            plain.extend(number.unwrap_or_default().to_be_bytes());
        }
        let payload = Payload {
            msg: &plain,
            aad: list.as_bytes(),
        };
        let sealed = self.0.encrypt(&Nonce::from(nonce), payload).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Decrypts a position in the list that `list` names. `None` if the cursor is malformed, altered or of another
    /// list.
    pub fn open<const N: usize>(&self, list: &str, cursor: &str) -> Option<Position<N>> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let payload = Payload {
            msg: sealed,
            aad: list.as_bytes(),
        };
        let plain = self.0.decrypt(&Nonce::from(*nonce), payload).ok()?;
        let (numbers, rest) = plain.as_chunks::<NUMBER>();
        let numbers: Vec<_> = numbers
            .iter()
            .map(|[is_some, number @ ..]| (*is_some == 1).then(|| i64::from_be_bytes(*number)))
            .collect();
        numbers.try_into().ok().filter(|_| rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::SeededEntropy;

    #[test]
    fn a_cursor_opens_for_its_own_list_only() {
        let entropy = SeededEntropy::default();
        let cipher = CursorCipher::derived_from(&Secret::new("a secret")).unwrap();
        let other = CursorCipher::derived_from(&Secret::new("another secret")).unwrap();
        let position = [Some(7), None, Some(i64::MIN)];
        let cursor = cipher.seal("logs org-1", position, &entropy).unwrap();
        assert_eq!(cipher.open::<3>("logs org-1", &cursor), Some(position));
        assert_eq!(cipher.open::<3>("logs org-2", &cursor), None);
        assert_eq!(cipher.open::<2>("logs org-1", &cursor), None);
        assert_eq!(other.open::<3>("logs org-1", &cursor), None);
        let shorter: String = cursor.chars().skip(1).collect();
        for broken in ["", "x", &shorter, &format!("{cursor}A"), &cursor.to_lowercase()] {
            assert_eq!(cipher.open::<3>("logs org-1", broken), None, "{broken}");
        }
    }

    /// HD40: neither the text nor its length says which row it is.
    #[test]
    fn hd40_a_cursor_does_not_show_its_position() {
        let entropy = SeededEntropy::default();
        let cipher = CursorCipher::derived_from(&Secret::new("a secret")).unwrap();
        let cursors: Vec<String> = [[None], [Some(1)], [Some(1)], [Some(i64::MAX)]]
            .into_iter()
            .map(|position| cipher.seal("logs", position, &entropy).unwrap())
            .collect();
        assert!(cursors.iter().all(|cursor| cursor.len() == cursors[0].len()));
        assert_ne!(cursors[1], cursors[2]);
        let decoded = URL_SAFE_NO_PAD.decode(&cursors[3]).unwrap();
        assert!(!decoded.windows(8).any(|bytes| bytes == i64::MAX.to_be_bytes()));
    }
}
