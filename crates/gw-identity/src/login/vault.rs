//! Tokens of completed logins, which wait for the page's poll. They are encrypted because the cache may be shared
//! (decision 26).

use super::LoginId;
use crate::tokens::TokenPair;
use aes_gcm::{
    Aes256Gcm, Key, KeyInit, Nonce,
    aead::{Aead, Payload},
};
use gw_types::{Entropy, Secret, Timestamp};
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::sync::Arc;

const LABEL: &[u8] = b"ledger-gateway login tokens v1";
const NONCE_LEN: usize = 12;

/// Encrypts and decrypts token pairs.
pub(crate) struct Vault {
    cipher: Option<Aes256Gcm>,
    entropy: Arc<dyn Entropy>,
}

/// An encrypted pair. Only [`Vault::open`] with the session it was sealed for can decrypt it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SealedPair(#[serde(with = "hex")] Vec<u8>);

#[derive(Serialize, Deserialize)]
struct Plain<'a> {
    access: std::borrow::Cow<'a, str>,
    refresh: std::borrow::Cow<'a, str>,
    until: i64,
}

impl Vault {
    pub(crate) fn new(secret: &Secret, entropy: Arc<dyn Entropy>) -> Self {
        // HMAC accepts keys of every length. Without a cipher nothing is sealed, and no login completes.
        let cipher = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.expose().as_bytes())
            .ok()
            .map(|mac| {
                let key: [u8; 32] = mac.chain_update(LABEL).finalize().into_bytes().into();
                Aes256Gcm::new(&Key::<Aes256Gcm>::from(key))
            });
        Self { cipher, entropy }
    }

    pub(crate) fn seal(&self, session: LoginId, pair: &TokenPair) -> Option<SealedPair> {
        let plain = Plain {
            access: pair.access.expose().into(),
            refresh: pair.refresh.expose().into(),
            until: pair.access_expires_at.micros(),
        };
        let plain = serde_json::to_vec(&plain).ok()?;
        let mut nonce = [0u8; NONCE_LEN];
        self.entropy.fill(&mut nonce);
        let payload = Payload {
            msg: &plain,
            aad: session.0.as_bytes(),
        };
        let sealed = self.cipher.as_ref()?.encrypt(&Nonce::from(nonce), payload).ok()?;
        Some(SealedPair([&nonce[..], &sealed].concat()))
    }

    pub(crate) fn open(&self, session: LoginId, SealedPair(sealed): &SealedPair) -> Option<TokenPair> {
        let (nonce, msg) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let payload = Payload {
            msg,
            aad: session.0.as_bytes(),
        };
        let plain = self.cipher.as_ref()?.decrypt(&Nonce::from(*nonce), payload).ok()?;
        let plain: Plain<'_> = serde_json::from_slice(&plain).ok()?;
        Some(TokenPair {
            access: Secret::new(plain.access),
            refresh: Secret::new(plain.refresh),
            access_expires_at: Timestamp::from_micros(plain.until),
        })
    }
}

impl core::fmt::Debug for Vault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Vault")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::SeededEntropy;

    #[test]
    fn decision_26_a_pair_is_sealed_for_its_session() {
        let vault = |secret: &str| Vault::new(&Secret::new(secret), Arc::new(SeededEntropy::default()));
        let pair = TokenPair {
            access: Secret::new("the-access-token"),
            refresh: Secret::new("the-refresh-token"),
            access_expires_at: Timestamp::from_secs(300),
        };
        let (one, other) = (LoginId(uuid::Uuid::from_u128(1)), LoginId(uuid::Uuid::from_u128(2)));
        let sealed = vault("k").seal(one, &pair).unwrap();
        assert!(!String::from_utf8_lossy(&sealed.0).contains("token"));
        assert_eq!(vault("k").open(one, &sealed), Some(pair));
        assert_eq!(vault("k").open(other, &sealed), None);
        assert_eq!(vault("other").open(one, &sealed), None);
    }
}
