//! Authentication of applications (OA-7): bcrypt on a few threads, with a bounded wait.

use super::Clients;
use crate::blocking_pool::BlockingPool;
use gw_types::Entropy;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use subtle::ConstantTimeEq;
use tokio::time::timeout;

/// Maximum number of parallel checks: each keeps a processor busy for a quarter of a second.
const AT_A_TIME: usize = 2;
const LONGEST_WAIT: Duration = Duration::from_secs(3);
const DIGEST_LEN: usize = 32;

/// Too many checks are waiting for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many checks of client secrets are waiting")]
pub struct Busy;

/// Checks the secrets of applications.
pub struct ClientSecrets {
    clients: Clients,
    pool: BlockingPool,
    /// Key of the digests in `good`. It never leaves the process.
    key: [u8; DIGEST_LEN],
    /// The last correct secret of each application, as a keyed digest, so that an active application costs one bcrypt
    /// hash, not one per login.
    good: Mutex<BTreeMap<String, [u8; DIGEST_LEN]>>,
}

impl ClientSecrets {
    /// Creates checks for these applications.
    pub fn new(clients: Clients, entropy: &dyn Entropy) -> Self {
        let mut key = [0u8; DIGEST_LEN];
        entropy.fill(&mut key);
        Self {
            clients,
            pool: BlockingPool::new(AT_A_TIME),
            key,
            good: Mutex::default(),
        }
    }

    /// The applications.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Whether one of `secrets`, the possible decodings of the sent secret, is that of client `id`. Takes as long for
    /// an unknown client as for a wrong secret.
    ///
    /// # Errors
    /// [`Busy`] if no processor for the hash was free in time.
    pub async fn check(&self, id: &str, secrets: Vec<String>) -> Result<bool, Busy> {
        if secrets.iter().any(|secret| self.is_remembered(id, secret)) {
            return Ok(true);
        }
        let permit = timeout(LONGEST_WAIT, self.pool.acquire()).await.ok().flatten();
        let permit = permit.ok_or(Busy)?;
        let hashes = self.clients.hashes(id);
        let work = move || {
            secrets
                .into_iter()
                .find(|secret| hashes.verify(core::slice::from_ref(secret)))
        };
        let Some(secret) = permit.run(work).await.ok_or(Busy)? else {
            return Ok(false);
        };
        if let Some(digest) = self.digest(id, &secret) {
            self.good
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(id.to_owned(), digest);
        }
        Ok(true)
    }

    fn is_remembered(&self, id: &str, secret: &str) -> bool {
        let known = self
            .good
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id)
            .copied();
        match (known, self.digest(id, secret)) {
            (Some(known), Some(digest)) => known.ct_eq(&digest).into(),
            (None, _) | (_, None) => false,
        }
    }

    fn digest(&self, id: &str, secret: &str) -> Option<[u8; DIGEST_LEN]> {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key).ok()?;
        Some(
            mac.chain_update(id)
                .chain_update([0])
                .chain_update(secret)
                .finalize()
                .into_bytes()
                .into(),
        )
    }
}

impl core::fmt::Debug for ClientSecrets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ClientSecrets")
            .field("clients", &self.clients)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::SeededEntropy;

    #[tokio::test]
    async fn oa7_a_good_secret_is_remembered_and_nothing_else() {
        let hash = bcrypt::hash_with_salt("the secret", 10, [7; 16]).unwrap().to_string();
        let clients = Clients::parse(&format!("explorer:{hash}"), "", true).unwrap();
        let secrets = ClientSecrets::new(clients, &SeededEntropy::default());
        let check = |id: &'static str, secret: &str| secrets.check(id, vec![secret.to_owned()]);
        assert!(!secrets.is_remembered("explorer", "the secret"));
        assert_eq!(check("explorer", "wrong").await, Ok(false));
        assert_eq!(check("explorer", "the secret").await, Ok(true));
        assert!(secrets.is_remembered("explorer", "the secret"));
        assert!(!secrets.is_remembered("explorer", "wrong") && !secrets.is_remembered("other", "the secret"));
        assert_eq!(check("explorer", "wrong").await, Ok(false));
        assert_eq!(check("unknown", "the secret").await, Ok(false));
        assert!(!format!("{secrets:?}").contains("$2"));
    }

    #[tokio::test(start_paused = true)]
    async fn oa7_nobody_waits_without_end() {
        let secrets = ClientSecrets::new(Clients::default(), &SeededEntropy::default());
        let _taken = (secrets.pool.acquire().await, secrets.pool.acquire().await);
        assert_eq!(secrets.check("explorer", vec!["x".to_owned()]).await, Err(Busy));
    }
}
