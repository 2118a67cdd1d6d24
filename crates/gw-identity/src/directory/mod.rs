//! Logins through an enterprise directory (spec/10 section 6).
//!
//! `token` and `keys` check a directory's tokens, and `keyring` decides how long the directory's keys and endpoints are
//! used: all pure. `http` sends requests to the directory. [`Directory`] combines them. The module `directory_login`
//! turns an identity into an account and tokens.

mod error;
mod http;
mod keyring;
mod keys;
mod state_token;
mod token;

pub use keys::{KeySet, KeySetError};
pub use token::{Fault, Identity, Rules, id_token, service_principal};

pub(crate) use error::{DirectoryError, OpenError, not_configured, redirect_not_allowed, unavailable};
use state_token::Pending;

use self::http::{AskError, Http};
use gw_cache::Cache;
use gw_types::{Clock, Entropy, Secret, Timestamp};
use keyring::{Keyring, Known, NamedBy};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Settings of the directory login.
#[derive(Clone, Debug)]
pub struct DirectorySettings {
    /// The rules that tokens are checked against.
    pub rules: Rules,
    /// DIRECTORY_CLIENT_SECRET.
    pub client_secret: Secret,
    /// DIRECTORY_TENANT_ID: a tenant, `common` or `organizations`.
    pub tenant: String,
    /// AUTO_KYC_DIRECTORY_USER
    pub auto_kyc_user: bool,
    /// AUTO_KYC_DIRECTORY_SERVICE_PRINCIPAL
    pub auto_kyc_service_principal: bool,
}

/// The enterprise directory that people and service principals log in with.
pub struct Directory {
    settings: DirectorySettings,
    http: Http,
    keyring: Mutex<Keyring>,
    /// Held while keys are requested: there is one request at a time, and waiters use its result.
    refreshing: tokio::sync::Mutex<()>,
    cache: Cache,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// How often the worker checks whether the directory must be asked.
const LOOK: Duration = Duration::from_secs(5);

impl Directory {
    /// Creates a directory that was not asked yet; see [`Directory::watch`]. `cache` stores pending logins.
    ///
    /// # Errors
    /// An error of the TLS setup, for example on a machine without trusted certificates.
    pub fn new(
        settings: DirectorySettings,
        cache: Cache,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> std::io::Result<Self> {
        let http = Http::new(settings.rules.authority.starts_with("https:"))?;
        let (keyring, refreshing) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self {
            settings,
            http,
            keyring,
            refreshing,
            cache,
            clock,
            entropy,
        })
    }

    /// Keeps the directory's keys and endpoints fresh until `end`: asks at once, again when they are old, and each
    /// minute while the directory does not answer (DS-1, DS-6).
    pub async fn watch(&self, end: CancellationToken) {
        loop {
            self.refresh_if_due().await;
            tokio::select! {
                () = end.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    pub(crate) fn settings(&self) -> &DirectorySettings {
        &self.settings
    }

    /// Whether logins with it are possible now.
    pub fn is_available(&self) -> bool {
        self.known(self.clock.now()).is_some()
    }

    fn known(&self, now: Timestamp) -> Option<Arc<Known>> {
        self.lock().usable(now)
    }

    async fn refresh_if_due(&self) {
        if self.lock().due(self.clock.now()) {
            let _one_at_a_time = self.refreshing.lock().await;
            if self.lock().begin_refresh(self.clock.now()) {
                self.refresh().await;
            }
        }
    }

    /// Asks for keys again because a token names an unknown one. Returns the newer key set, if there is one.
    async fn refresh_for_unknown_key(&self, id: &str, named_by: NamedBy, seen: &Arc<Known>) -> Option<Arc<Known>> {
        let _one_at_a_time = self.refreshing.lock().await;
        let now = self.clock.now();
        let newer = |known: &Arc<Known>| !Arc::ptr_eq(known, seen);
        if let Some(known) = self.known(now).filter(newer) {
            return Some(known);
        }
        if !self.lock().begin_for_unknown_key(id, named_by, now) {
            return None;
        }
        self.refresh().await;
        let known = self.known(now).filter(newer)?;
        if known.keys.named(id).next().is_none() {
            self.lock().note_absent(id, now);
        }
        Some(known)
    }

    async fn refresh(&self) {
        match self
            .http
            .discover(&self.settings.rules.authority, &self.settings.tenant)
            .await
        {
            Ok((endpoints, keys)) => {
                self.lock().keep(Known { endpoints, keys }, self.clock.now());
                tracing::info!("the directory's keys are up to date");
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the directory cannot be asked for its keys"
                );
            }
        }
    }

    /// Calls `verify` with the known keys, and again with newer ones if the token names an unknown key.
    async fn verify_with_refresh(
        &self,
        token: &Secret,
        named_by: NamedBy,
        verify: impl Fn(&KeySet) -> Result<Identity, Fault>,
    ) -> Result<Identity, DirectoryError> {
        let known = self.known(self.clock.now()).ok_or(DirectoryError::Unavailable)?;
        let result = verify(&known.keys);
        if let (Err(Fault::UnknownKey), Some(id)) = (&result, token::key_id(token.expose()))
            && let Some(newer) = self.refresh_for_unknown_key(&id, named_by, &known).await
        {
            return Ok(verify(&newer.keys)?);
        }
        Ok(result?)
    }

    /// Exchanges a code and returns the identity in its id token (DS-3, DS-4).
    pub(crate) async fn redeem(&self, code: &str, pending: &Pending) -> Result<Identity, DirectoryError> {
        let known = self.known(self.clock.now()).ok_or(DirectoryError::Unavailable)?;
        let token = self
            .http
            .redeem(
                &known.endpoints.token,
                &self.settings,
                code,
                &pending.redirect_uri,
                &pending.verifier,
            )
            .await
            .map_err(|error| {
                tracing::info!(
                    error = &error as &dyn std::error::Error,
                    "the directory gave no token for a code"
                );
                match error {
                    AskError::Refused(_) | AskError::Malformed => DirectoryError::NoToken,
                    AskError::NoAnswer(_) | AskError::Address => DirectoryError::Unavailable,
                }
            })?;
        let verify = |keys: &KeySet| {
            id_token(
                token.expose(),
                keys,
                &self.settings.rules,
                &pending.nonce,
                self.clock.now(),
            )
        };
        self.verify_with_refresh(&token, NamedBy::Directory, verify).await
    }

    /// Verifies the token of a service principal and returns its identity (DS-5).
    pub(crate) async fn verify_service_principal(&self, token: &Secret) -> Result<Identity, DirectoryError> {
        let verify = |keys: &KeySet| service_principal(token.expose(), keys, &self.settings.rules, self.clock.now());
        self.verify_with_refresh(token, NamedBy::Caller, verify).await
    }

    fn lock(&self) -> MutexGuard<'_, Keyring> {
        self.keyring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl core::fmt::Debug for Directory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Directory")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
