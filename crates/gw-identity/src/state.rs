//! What the handlers draw on.

use crate::{
    directory::Directory,
    ens::Ens,
    limits::Limits,
    link::{Chain, Challenges},
    login::{Failures, Humanity, LoginError, LoginSessions, PLACEHOLDER_VERIFIER, ProofVerifier, Vault},
    oauth::{Oauth, OauthConfig},
    security::SecuritySink,
    tokens::TokenIssuer,
};
use axum::extract::FromRef;
use gw_cache::Cache;
use gw_http::{Edge, KnownQueries};
use gw_policy::Knobs;
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
    /// VERIFIER_ID. Without it production starts no login; development takes a placeholder (ZK-5).
    pub verifier_id: Option<ExternalId>,
    /// AUTO_KYC_IDP: whether users made by a proof have KYC from the start.
    pub auto_kyc: bool,
    /// ACCESS_TOKEN_TTL.
    pub access_ttl: Seconds,
    /// REFRESH_TOKEN_TTL.
    pub refresh_ttl: Seconds,
    /// RATE_LIMIT_AUTH: requests per minute and address; refreshes per minute and token family (decision 54).
    pub auth_per_minute: NonZeroU32,
    /// The registered state resolvers (`idp:main`, …; decision 29).
    pub networks: Vec<String>,
    /// The credential every login must show; `None` asks for nothing but the identity (Path A).
    pub humanity: Option<Arc<Humanity>>,
    /// IDP_AUTH_CIRCUITS: the circuits an answer may be made with.
    pub auth_circuits: Vec<Circuit>,
    /// INTROSPECT_REQUIRE_CLIENT: only applications that show their secret may ask about tokens (TK-7).
    pub introspect_require_client: bool,
    /// HUMANITY_VERIFY_URL.
    pub humanity_verify_url: Option<String>,
    /// Seals the tokens of completed logins, and makes OAuth codes; the refresh secret serves, so that instances agree.
    pub vault_secret: Secret,
    /// PERSONAL_RPC_URLS: users make URLs for wallets that know nothing of tokens.
    pub personal_urls: bool,
    /// First-party applications.
    pub oauth: OauthConfig,
}

impl IdentityConfig {
    /// Who asks. Without VERIFIER_ID production asks nobody (ZK-5).
    pub(crate) fn verifier(&self, production: bool) -> Result<&str, LoginError> {
        match &self.verifier_id {
            Some(id) => Ok(id.as_str()),
            None if production => Err(LoginError::NoVerifierId),
            None => Ok(PLACEHOLDER_VERIFIER),
        }
    }

    /// What a login must show beside the identity (ZK-2). Asked for before it can be judged, it would be shown in vain
    /// (ZK-75).
    pub(crate) fn scope(&self) -> Result<&[serde_json::Value], LoginError> {
        match &self.humanity {
            None => Ok(&[]),
            Some(humanity) if humanity.requested().is_some() => Ok(humanity.query().scope()),
            Some(_) => Err(LoginError::NoSchema),
        }
    }
}

/// What logins, tokens and links stand on.
#[derive(Clone, Debug)]
pub struct IdentityParts {
    /// Who may come in.
    pub edge: Arc<Edge>,
    /// Users, tokens and links.
    pub store: Store,
    /// What lives for a while: sessions, challenges, counters.
    pub cache: Cache,
    /// Where security events go.
    pub security: SecuritySink,
    /// Our own chain.
    pub chain: Arc<dyn Chain>,
    /// Settings of decisions.
    pub knobs: Arc<Knobs>,
    /// Where names of addresses are looked up, if anywhere.
    pub ens: Option<Ens>,
    /// Who is believed at login.
    pub verifier: Arc<dyn ProofVerifier>,
    /// Work that outlives its request; the end of the process waits for it (HD21).
    pub tasks: TaskTracker,
}

/// What the handlers draw on; cheap to clone.
#[derive(Clone, Debug)]
pub struct IdentityState {
    pub(crate) edge: Arc<Edge>,
    pub(crate) store: Store,
    pub(crate) security: SecuritySink,
    pub(crate) chain: Arc<dyn Chain>,
    pub(crate) knobs: Arc<Knobs>,
    /// Where names of addresses are looked up, if anywhere.
    pub(crate) ens: Option<Ens>,
    /// Work that outlives its request.
    pub(crate) tasks: TaskTracker,
    pub(crate) inner: Arc<Inner>,
    /// Where one is configured.
    pub(crate) directory: Option<Arc<Directory>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: IdentityConfig,
    pub(crate) issuer: TokenIssuer,
    pub(crate) verifier: Arc<dyn ProofVerifier>,
    pub(crate) sessions: LoginSessions,
    pub(crate) failures: Failures,
    pub(crate) vault: Vault,
    pub(crate) challenges: Challenges,
    pub(crate) limits: Limits,
    pub(crate) oauth: Oauth,
    /// Which query parameters a route takes.
    pub(crate) queries: KnownQueries,
}

impl IdentityState {
    /// The state of one instance; made once.
    pub fn new(config: IdentityConfig, on: IdentityParts) -> Self {
        let IdentityParts {
            edge,
            store,
            cache,
            security,
            chain,
            knobs,
            ens,
            verifier,
            tasks,
        } = on;
        let inner = Inner {
            issuer: TokenIssuer::new(Arc::clone(&edge), config.access_ttl, config.refresh_ttl),
            verifier,
            sessions: LoginSessions::new(cache.clone(), &config.vault_secret),
            failures: Failures::new(cache.clone()),
            vault: Vault::new(&config.vault_secret, Arc::clone(&edge.entropy)),
            challenges: Challenges::new(cache.clone()),
            oauth: Oauth::new(&config.oauth, &config.vault_secret, cache.clone(), &*edge.entropy),
            limits: Limits::new(&config, cache),
            queries: crate::routes::queries(),
            config,
        };
        Self {
            edge,
            store,
            security,
            chain,
            knobs,
            ens,
            tasks,
            inner: Arc::new(inner),
            directory: None,
        }
    }

    /// The same with a directory to log in with.
    #[must_use]
    pub fn with_directory(self, directory: Option<Arc<Directory>>) -> Self {
        Self { directory, ..self }
    }
}

impl FromRef<IdentityState> for Arc<Edge> {
    fn from_ref(state: &IdentityState) -> Self {
        Self::clone(&state.edge)
    }
}
