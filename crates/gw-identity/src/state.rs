//! What the handlers draw on.

use crate::{
    directory::Directory,
    link::Challenges,
    login::{Failures, LoginSessions, ProofVerifier, Vault},
    security::SecuritySink,
    tokens::TokenIssuer,
};
use axum::extract::FromRef;
use gw_http::{AddressKey, Edge, RateLimit};
use gw_store::Store;
use gw_types::{ExternalId, Seconds, Secret, SessionId};
use std::{hash::Hash, num::NonZeroU32, sync::Arc};
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
    /// HUMANITY_VERIFY_URL.
    pub humanity_verify_url: Option<String>,
    /// Seals the tokens of completed logins; the refresh secret serves, so that instances agree.
    pub vault_secret: Secret,
}

/// The chain's id, once the node has told it.
#[derive(Clone)]
pub struct ChainSource(Arc<dyn Fn() -> Option<u64> + Send + Sync>);

impl ChainSource {
    /// A source that asks `chain_id` each time.
    pub fn new(chain_id: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        Self(Arc::new(chain_id))
    }

    pub(crate) fn id(&self) -> Option<u64> {
        (self.0)()
    }
}

impl core::fmt::Debug for ChainSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ChainSource")
    }
}

/// What the handlers draw on; cheap to clone.
#[derive(Clone, Debug)]
pub struct IdentityState {
    pub(crate) edge: Arc<Edge>,
    pub(crate) store: Store,
    pub(crate) security: SecuritySink,
    pub(crate) chain: ChainSource,
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
}

/// How often whom (spec/10 §9, decision 54).
#[derive(Debug)]
pub(crate) struct Limits {
    /// Logins, revoke, introspect: per address, RATE_LIMIT_AUTH.
    pub(crate) auth: Arc<RateLimit<AddressKey>>,
    /// Polls and providers: per address.
    pub(crate) polls: Arc<RateLimit<AddressKey>>,
    /// Polls: per login session.
    pub(crate) polls_of_session: RateLimit<uuid::Uuid>,
    /// Refreshes: per address.
    pub(crate) refreshes: Arc<RateLimit<AddressKey>>,
    /// Refreshes: per token family.
    pub(crate) refreshes_of_family: RateLimit<SessionId>,
    /// Linking: per subject.
    pub(crate) links: RateLimit<ExternalId>,
}

impl IdentityState {
    /// The state of one instance; made once. `tasks` is what the end of the process waits for (HD21).
    pub fn new(
        config: IdentityConfig,
        edge: Arc<Edge>,
        store: Store,
        security: SecuritySink,
        chain: ChainSource,
        verifier: Arc<dyn ProofVerifier>,
        tasks: TaskTracker,
    ) -> Self {
        let inner = Inner {
            issuer: TokenIssuer::new(Arc::clone(&edge), config.access_ttl, config.refresh_ttl),
            verifier,
            sessions: LoginSessions::new(),
            failures: Failures::new(),
            vault: Vault::new(&config.vault_secret, Arc::clone(&edge.entropy)),
            challenges: Challenges::new(),
            limits: Limits::new(&config, &edge),
            config,
        };
        Self { edge, store, security, chain, tasks, inner: Arc::new(inner), directory: None }
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

const POLLS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
const POLLS_PER_SESSION: NonZeroU32 = NonZeroU32::new(60).unwrap();
const REFRESHES_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(600).unwrap();
const LINKS_PER_SUBJECT: NonZeroU32 = NonZeroU32::new(10).unwrap();

impl Limits {
    fn new(config: &IdentityConfig, edge: &Edge) -> Self {
        fn limit<K: Hash + Eq + Clone>(max: NonZeroU32, edge: &Edge) -> RateLimit<K> {
            RateLimit::per_minute(max, Arc::clone(&edge.clock))
        }
        Self {
            auth: Arc::new(limit(config.auth_per_minute, edge)),
            polls: Arc::new(limit(POLLS_PER_ADDRESS, edge)),
            polls_of_session: limit(POLLS_PER_SESSION, edge),
            refreshes: Arc::new(limit(REFRESHES_PER_ADDRESS, edge)),
            refreshes_of_family: limit(config.auth_per_minute, edge),
            links: limit(LINKS_PER_SUBJECT, edge),
        }
    }
}
