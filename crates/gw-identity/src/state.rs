//! The state of the handlers.

use crate::{
    directory::Directory,
    ens::Ens,
    limits::Limits,
    link::{Chain, Challenges},
    login::{FailureCounter, Humanity, LoginError, LoginSessions, PLACEHOLDER_VERIFIER, ProofVerifier, Vault},
    oauth::{Oauth, OauthConfig},
    tokens::TokenIssuer,
};
use axum::extract::FromRef;
use gw_cache::Cache;
use gw_http::HttpContext;
use gw_journal::Journal;
use gw_policy::PolicySettings;
use gw_store::Store;
use gw_types::{ExternalId, Seconds, Secret};
use gw_zk::circuit::Circuit;
use std::{num::NonZeroU32, sync::Arc};
use tokio_util::task::TaskTracker;

/// Settings of logins, tokens and links.
#[derive(Clone, Debug)]
pub struct IdentityConfig {
    /// BASE_URL, without a slash at its end.
    pub base_url: String,
    /// VERIFIER_ID. Without it, production refuses logins and development uses a placeholder (ZK-5).
    pub verifier_id: Option<ExternalId>,
    /// AUTO_KYC_IDP: whether users created by a proof login have KYC from the start.
    pub auto_kyc: bool,
    /// ACCESS_TOKEN_TTL.
    pub access_ttl: Seconds,
    /// REFRESH_TOKEN_TTL.
    pub refresh_ttl: Seconds,
    /// RATE_LIMIT_AUTH: requests per minute and address; refreshes per minute and token family (decision 54).
    pub auth_per_minute: NonZeroU32,
    /// The registered state resolvers (`idp:main`, …; decision 29).
    pub networks: Vec<String>,
    /// The credential that every login must show. With `None`, a login proves only the identity (Path A).
    pub humanity: Option<Arc<Humanity>>,
    /// IDP_AUTH_CIRCUITS: the accepted authentication circuits.
    pub auth_circuits: Vec<Circuit>,
    /// INTROSPECT_REQUIRE_CLIENT: only applications that authenticate with their secret may introspect tokens (TK-7).
    pub introspect_require_client: bool,
    /// HUMANITY_VERIFY_URL.
    pub humanity_verify_url: Option<String>,
    /// Key material for sealing the tokens of completed logins and for deriving OAuth codes. It is the refresh secret,
    /// which all instances share.
    pub vault_secret: Secret,
    /// PERSONAL_RPC_URLS: whether users may create personal URLs, for wallets that cannot send tokens.
    pub personal_urls: bool,
    /// First-party applications.
    pub oauth: OauthConfig,
}

impl IdentityConfig {
    /// The DID that login requests name as their sender. An error in production without VERIFIER_ID (ZK-5).
    pub(crate) fn verifier(&self, production: bool) -> Result<&str, LoginError> {
        match &self.verifier_id {
            Some(id) => Ok(id.as_str()),
            None if production => Err(LoginError::NoVerifierId),
            None => Ok(PLACEHOLDER_VERIFIER),
        }
    }

    /// The credential queries of login requests (ZK-2). An error while the schema is missing: the credential could be
    /// requested but not verified (ZK-75).
    pub(crate) fn scope(&self) -> Result<&[serde_json::Value], LoginError> {
        match &self.humanity {
            None => Ok(&[]),
            Some(humanity) if humanity.requested().is_some() => Ok(humanity.query().scope()),
            Some(_) => Err(LoginError::NoSchema),
        }
    }
}

/// Dependencies of logins, tokens and links.
#[derive(Clone, Debug)]
pub struct IdentityParts {
    /// What all HTTP surfaces share: tokens, policy, clock, origins.
    pub http_context: Arc<HttpContext>,
    /// Users, tokens and links.
    pub store: Store,
    /// Short-lived values: sessions, challenges, counters.
    pub cache: Cache,
    /// Takes security events and access records.
    pub journal: Arc<Journal>,
    /// Our own chain.
    pub chain: Arc<dyn Chain>,
    /// Settings of policy decisions.
    pub policy_settings: Arc<PolicySettings>,
    /// ENS lookups, if configured.
    pub ens: Option<Ens>,
    /// Verifies the proofs of logins.
    pub verifier: Arc<dyn ProofVerifier>,
    /// Tracks work that outlives its request. Shutdown waits for it (HD21).
    pub tasks: TaskTracker,
}

/// The state of the handlers; cheap to clone.
#[derive(Clone, Debug)]
pub struct IdentityState {
    pub(crate) http_context: Arc<HttpContext>,
    pub(crate) store: Store,
    pub(crate) journal: Arc<Journal>,
    pub(crate) chain: Arc<dyn Chain>,
    pub(crate) policy_settings: Arc<PolicySettings>,
    /// ENS lookups, if configured.
    pub(crate) ens: Option<Ens>,
    /// Tracks work that outlives its request.
    pub(crate) tasks: TaskTracker,
    pub(crate) inner: Arc<Inner>,
    /// The enterprise directory, if configured.
    pub(crate) directory: Option<Arc<Directory>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: IdentityConfig,
    pub(crate) issuer: TokenIssuer,
    pub(crate) verifier: Arc<dyn ProofVerifier>,
    pub(crate) sessions: LoginSessions,
    pub(crate) failures: FailureCounter,
    pub(crate) vault: Vault,
    pub(crate) challenges: Challenges,
    pub(crate) limits: Limits,
    pub(crate) oauth: Oauth,
}

impl IdentityState {
    /// Creates the state of one instance; call it once.
    pub fn new(config: IdentityConfig, parts: IdentityParts) -> Self {
        let IdentityParts {
            http_context,
            store,
            cache,
            journal,
            chain,
            policy_settings,
            ens,
            verifier,
            tasks,
        } = parts;
        let inner = Inner {
            issuer: TokenIssuer::new(Arc::clone(&http_context), config.access_ttl, config.refresh_ttl),
            verifier,
            sessions: LoginSessions::new(cache.clone(), &config.vault_secret),
            failures: FailureCounter::new(cache.clone()),
            vault: Vault::new(&config.vault_secret, Arc::clone(&http_context.entropy)),
            challenges: Challenges::new(cache.clone()),
            oauth: Oauth::new(
                &config.oauth,
                &config.vault_secret,
                cache.clone(),
                &*http_context.entropy,
            ),
            limits: Limits::new(config.auth_per_minute, cache),
            config,
        };
        Self {
            http_context,
            store,
            journal,
            chain,
            policy_settings,
            ens,
            tasks,
            inner: Arc::new(inner),
            directory: None,
        }
    }

    /// Sets the directory that users may log in with.
    #[must_use]
    pub fn with_directory(self, directory: Option<Arc<Directory>>) -> Self {
        Self { directory, ..self }
    }
}

impl FromRef<IdentityState> for Arc<HttpContext> {
    fn from_ref(state: &IdentityState) -> Self {
        Self::clone(&state.http_context)
    }
}
