//! The state that all routes share.

use crate::{
    config::{BackendConfig, Source},
    cookies::{Cookies, set_also},
    error::ForwardError,
    health::Readiness,
    key_set::KeySetCache,
    permit::{ForwardLimits, ForwardPermit},
    session::{AccessToken, Session, SessionUse, Tokens},
    sign_in_states::UsedStates,
    single_flight::RefreshFlights,
    upstream::{POOL, RefreshError, TokenClient, Upstream},
};
use futures_util::FutureExt as _;
use gw_http::{AddressKey, AllowedOrigins, ApiError, HttpClient, RateLimit, TrustedProxies, client};
use gw_types::{Clock, Entropy, Secret};
use http::{Extensions, HeaderMap};
use std::{num::NonZeroU32, sync::Arc};
use tokio_util::task::TaskTracker;
use url::Url;

/// The most requests that wait for the gateway at the same time. Each may hold an answer of eight mebibytes.
const FORWARDED_MAX: usize = 64;
/// The most of them of one client.
const FORWARDED_PER_CLIENT: usize = 16;

/// The most requests of one client in a minute that cause one to the gateway. The gateway knows the client of none.
const REQUESTS_PER_MINUTE: NonZeroU32 = NonZeroU32::MIN.saturating_add(1199);

/// Why the backend cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The certificates that this machine trusts cannot be read.
    #[error("the trusted certificates of this machine cannot be read")]
    Certificates(#[source] std::io::Error),
    /// The key is not made of visible ASCII characters.
    #[error("EXPLORER_BACKEND_KEY cannot be sent in a header")]
    Key,
    /// An address of the configuration is not an address.
    #[error("an address of the sign-in is invalid")]
    Address(#[source] url::ParseError),
    /// The key of the cookies cannot be derived.
    #[error("the key of the cookies cannot be derived")]
    CookieKey,
}

/// The backend: create it once, and give it to [`router`](crate::router()).
#[derive(Clone, Debug)]
pub struct Backend(pub(crate) Arc<BackendState>);

#[derive(Debug)]
pub(crate) struct BackendState {
    pub(crate) upstream: Upstream,
    /// Whether requests other than reads are forwarded.
    pub(crate) is_proxy: bool,
    pub(crate) sign_in: Option<SignIn>,
    pub(crate) limits: Arc<ForwardLimits>,
    pub(crate) rates: RateLimit,
    pub(crate) origins: Arc<AllowedOrigins>,
    pub(crate) proxies: TrustedProxies,
    pub(crate) production: bool,
    pub(crate) readiness: Readiness,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) tasks: TaskTracker,
}

/// The sessions.
#[derive(Debug)]
pub(crate) struct SignIn {
    pub(crate) tokens: TokenClient,
    pub(crate) cookies: Cookies,
    pub(crate) used_states: UsedStates,
    pub(crate) keys: KeySetCache,
    pub(crate) frontend: Option<Url>,
    flights: RefreshFlights,
}

/// The session of a request, ready to be used.
#[derive(Debug, Default)]
pub(crate) struct ActiveSession {
    /// The access token; `None` for an anonymous request.
    pub(crate) access: Option<Secret>,
    /// The external id of the user.
    pub(crate) subject: Option<String>,
    /// The cookies to set, if the tokens were refreshed.
    pub(crate) cookies: HeaderMap,
}

impl Backend {
    /// Creates the backend. `tasks` holds the refreshes and revocations that outlive their request: wait for it at
    /// shutdown.
    ///
    /// # Errors
    /// [`BackendError`] if the configuration cannot be used.
    pub fn new(
        config: BackendConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        tasks: TaskTracker,
    ) -> Result<Self, BackendError> {
        let client = HttpClient::new(POOL).map_err(BackendError::Certificates)?;
        let (upstream, sign_in, is_proxy) = match &config.source {
            Source::Proxy(proxy) => {
                let upstream = Upstream::new(client, &proxy.gateway, &proxy.admin, proxy.backend_key.as_ref());
                let upstream = upstream.ok_or(BackendError::Key)?;
                let sign_in = match &proxy.sign_in {
                    Some(sign_in) => Some(SignIn {
                        tokens: TokenClient::new(upstream.clone(), proxy, sign_in).map_err(BackendError::Address)?,
                        cookies: Cookies::new(&sign_in.client_secret, sign_in.redirect_uri.scheme() == "https")
                            .ok_or(BackendError::CookieKey)?,
                        used_states: UsedStates::default(),
                        keys: KeySetCache::new(
                            upstream.clone(),
                            sign_in.public_url.as_str().trim_end_matches('/').to_owned(),
                            Arc::clone(&clock),
                            tasks.clone(),
                        ),
                        frontend: sign_in.frontend.clone(),
                        flights: RefreshFlights::new(Arc::clone(&clock), tasks.clone()),
                    }),
                    None => None,
                };
                (upstream, sign_in, true)
            }
            #[cfg(feature = "direct")]
            Source::Direct { indexer } => {
                let upstream = Upstream::new(client, indexer, indexer, None).ok_or(BackendError::Key)?;
                (upstream, None, false)
            }
        };
        Ok(Self(Arc::new(BackendState {
            upstream,
            is_proxy,
            sign_in,
            limits: Arc::new(ForwardLimits::new(FORWARDED_MAX, FORWARDED_PER_CLIENT)),
            rates: RateLimit::per_minute(REQUESTS_PER_MINUTE, Arc::clone(&clock)),
            origins: config.origins,
            proxies: config.proxies,
            production: config.production,
            readiness: Readiness::default(),
            clock,
            entropy,
            tasks,
        })))
    }

    /// What `/health/ready` tells.
    pub fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }
}

impl BackendState {
    /// The client of a request.
    pub(crate) fn client(&self, extensions: &Extensions, headers: &HeaderMap) -> AddressKey {
        self.proxies.client(client::peer(extensions), headers).into()
    }

    /// Admits a request that causes one to the gateway.
    ///
    /// # Errors
    /// [`ForwardError::Rate`] if the client sends too many, and [`ForwardError::Busy`] if too many wait.
    pub(crate) fn permit(&self, extensions: &Extensions, headers: &HeaderMap) -> Result<ForwardPermit, ForwardError> {
        let client = self.client(extensions, headers);
        self.rates.check(&client).map_err(ForwardError::Rate)?;
        self.limits.try_acquire(client).ok_or(ForwardError::Busy)
    }

    /// [`Self::session`], with the cookies that the answer sets.
    ///
    /// # Errors
    /// Those of [`Self::session`].
    pub(crate) async fn session_of(
        &self,
        headers: &HeaderMap,
        cookies: &mut HeaderMap,
    ) -> Result<ActiveSession, ApiError> {
        match self.session(headers).await {
            Ok(session) => {
                // The tokens in these cookies are the only ones that the gateway still accepts, whatever comes next.
                set_also(cookies, &session.cookies);
                Ok(session)
            }
            Err(error) => {
                if matches!(error, ForwardError::SessionEnded) {
                    *cookies = Cookies::clear_session();
                }
                Err(error.into())
            }
        }
    }

    /// The session of a request, refreshed if it is time (step 8). Without sign-in, every request is anonymous.
    ///
    /// # Errors
    /// [`ForwardError::SessionEnded`] if the session is over, and [`ForwardError::NoRefresh`] if the gateway could not
    /// tell.
    pub(crate) async fn session(&self, headers: &HeaderMap) -> Result<ActiveSession, ForwardError> {
        match &self.sign_in {
            Some(sign_in) => sign_in.session(headers, &*self.clock, &*self.entropy).await,
            None => Ok(ActiveSession::default()),
        }
    }
}

impl SignIn {
    /// The session that the cookies of a request show.
    pub(crate) fn stored(&self, headers: &HeaderMap, clock: &dyn Clock) -> Session {
        Session {
            access: self.cookies.access(headers),
            refresh: self.cookies.refresh(headers, clock.now()),
        }
    }

    async fn session(
        &self,
        headers: &HeaderMap,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> Result<ActiveSession, ForwardError> {
        let session = self.stored(headers, clock);
        let refresh = match session.first_use(clock.now()) {
            SessionUse::Anonymous => return Ok(ActiveSession::default()),
            SessionUse::Access(access) => return Ok(ActiveSession::from_access(access.clone(), HeaderMap::new())),
            SessionUse::Ended => return Err(ForwardError::SessionEnded),
            SessionUse::Refresh(refresh) => refresh,
        };
        match self.refresh(refresh, clock).await {
            Ok(tokens) => {
                // Without its cookies the new session would be lost with this answer.
                let cookies = self.cookies.session(&tokens, clock.now(), entropy);
                let cookies = cookies.ok_or(ForwardError::NoRefresh)?;
                Ok(ActiveSession::from_access(tokens.access, cookies))
            }
            Err(error) => match (session.valid_access(clock.now()), error) {
                (Some(access), _) => Ok(ActiveSession::from_access(access.clone(), HeaderMap::new())),
                (None, RefreshError::Refused) => Err(ForwardError::SessionEnded),
                (None, RefreshError::Unavailable) => Err(ForwardError::NoRefresh),
            },
        }
    }

    async fn refresh(&self, refresh: &Secret, clock: &dyn Clock) -> Result<Tokens, RefreshError> {
        let (client, token, now) = (self.tokens.clone(), refresh.clone(), clock.now());
        let run = async move { client.refresh(&token, now).await };
        self.flights.join(refresh, run.boxed()).await
    }
}

impl ActiveSession {
    fn from_access(access: AccessToken, cookies: HeaderMap) -> Self {
        Self {
            access: Some(access.token),
            subject: access.subject,
            cookies,
        }
    }
}
