//! A pending directory login (DS-2): found by a random state, used once, bound to the browser that began it.

use super::{Directory, DirectoryError, OpenError};
use crate::{error::once_the_cache_answers, login::Places};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gw_cache::{Entry, Namespace, PutError};
use gw_http::ClientAddress;
use gw_types::Entropy;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// The stored data of a login between its start and its callback.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The nonce that the id token must contain.
    pub(crate) nonce: String,
    /// Where the directory sends the browser.
    pub(crate) redirect_uri: String,
    /// PKCE verifier (RFC 7636): proves to the directory that the code is redeemed by the party that began the login.
    pub(crate) verifier: String,
    /// SHA-256 of the browser's secret.
    browser: [u8; 32],
    /// The address that began the login, for callers that are not browsers.
    opener: IpAddr,
    /// Whether a browser began it: then only the secret identifies the caller (HD34).
    begun_by_browser: bool,
}

/// A login that has begun.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Returns with the callback.
    pub(crate) state: String,
    /// The URL that the browser goes to.
    pub(crate) url: String,
    /// The secret that the browser shows with the callback.
    pub(crate) browser: String,
}

impl Directory {
    /// Begins a login whose callback goes to `redirect_uri`.
    pub(crate) async fn open(
        &self,
        redirect_uri: &str,
        opener: ClientAddress,
        begun_by_browser: bool,
    ) -> Result<Opened, OpenError> {
        let known = self.known(self.clock.now()).ok_or(OpenError::Unavailable)?;
        let random = |bytes| random(&*self.entropy, bytes);
        let (state, browser) = (random(16), random(32));
        let pending = Pending {
            nonce: random(16),
            redirect_uri: redirect_uri.to_owned(),
            verifier: random(32),
            browser: digest(&browser),
            opener: opener.0,
            begun_by_browser,
        };
        let challenge = URL_SAFE_NO_PAD.encode(digest(&pending.verifier));
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("client_id", &self.settings.rules.client_id)
            .append_pair("response_type", "code")
            .append_pair("response_mode", "query")
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", "openid profile email")
            .append_pair("state", &state)
            .append_pair("nonce", &pending.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .finish();
        let endpoint = &known.endpoints.authorization;
        let separator = if endpoint.contains('?') { '&' } else { '?' };
        let record = serde_json::to_vec(&pending).map_err(|_| OpenError::Unavailable)?;
        let (key, places) = (key(&state), Places::new(opener, MAX_PER_ADDRESS));
        let groups = places.groups();
        let opened = self
            .cache
            .put(Entry::new(Namespace::DirectoryState, &key, &record).with_group_limits(&groups))
            .await;
        opened.map_err(|error| match error {
            PutError::Full { wait } => OpenError::Busy(wait),
            PutError::GroupFull { wait } => OpenError::TooManyLogins(wait),
            PutError::Unavailable(_) => {
                // No client got the state, yet the entry may exist and count against the limit.
                let (cache, key) = (self.cache.clone(), key.clone());
                once_the_cache_answers(move || {
                    let (cache, key) = (cache.clone(), key.clone());
                    async move { cache.take(Namespace::DirectoryState, &key).await.map(|_| ()) }
                });
                OpenError::Unavailable
            }
        })?;
        Ok(Opened {
            url: format!("{endpoint}{separator}{query}"),
            state,
            browser,
        })
    }

    /// Takes the pending login of a state out; a second caller finds none.
    ///
    /// `secrets` are the secrets that the caller shows. A caller that is not a browser (`page` false) may instead come
    /// from the address that began the login. A browser must show a secret: otherwise an attacker could log a victim in
    /// as the attacker.
    pub(crate) async fn take(
        &self,
        state: &str,
        secrets: &[&str],
        caller: ClientAddress,
        page: bool,
    ) -> Result<Pending, DirectoryError> {
        let record = self.cache.take(Namespace::DirectoryState, &key(state)).await;
        let record = record
            .map_err(|_| DirectoryError::Unavailable)?
            .ok_or(DirectoryError::State)?;
        let pending: Pending = serde_json::from_slice(&record).map_err(|_| DirectoryError::State)?;
        let shown = secrets
            .iter()
            .any(|secret| digest(secret).ct_eq(&pending.browser).into());
        let near = secrets.is_empty() && !page && !pending.begun_by_browser && caller.0 == pending.opener;
        if shown || near {
            Ok(pending)
        } else {
            Err(DirectoryError::State)
        }
    }
}

/// Maximum number of pending logins of one address: a whole office may share it.
const MAX_PER_ADDRESS: u32 = 100;

fn random(entropy: &dyn Entropy, bytes: usize) -> String {
    let mut random = [0u8; 32];
    let part = random.get_mut(..bytes).unwrap_or_default();
    entropy.fill(part);
    URL_SAFE_NO_PAD.encode(part)
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The cache key of a state. It is a hash, so that the cache never holds the state itself.
fn key(state: &str) -> String {
    hex::encode(digest(state))
}
