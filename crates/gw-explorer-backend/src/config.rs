//! The settings of the backend, parsed and checked by `gw-server`.

use gw_http::{AllowedOrigins, TrustedProxies};
use gw_types::Secret;
use std::sync::Arc;
use url::Url;

/// The settings of the backend.
#[derive(Clone, Debug)]
pub struct BackendConfig {
    /// Where the data comes from.
    pub source: Source,
    /// The origins whose pages may read answers and change data.
    pub origins: Arc<AllowedOrigins>,
    /// Proxies whose forwarding headers are trusted.
    pub proxies: TrustedProxies,
    /// Whether the deployment has real data.
    pub production: bool,
}

/// Where the data comes from (E2).
#[derive(Clone, Debug)]
pub enum Source {
    /// From the gateway, which evaluates every request for its viewer.
    Proxy(Box<ProxyConfig>),
    /// From a chain indexer, without sessions and without visibility rules.
    #[cfg(feature = "direct")]
    Direct {
        /// INDEXER_URL.
        indexer: Url,
    },
}

/// Proxy-mediated mode.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// PRIVACY_PROXY_URL: the gateway's internal address.
    pub gateway: Url,
    /// PRIVACY_PROXY_ADMIN_URL: where the gateway serves its admin API, which view-as reads.
    pub admin: Url,
    /// EXPLORER_BACKEND_KEY: the key by which the gateway knows this backend (HD16).
    pub backend_key: Option<Secret>,
    /// The sign-in, if PRIVACY_ENABLED is set.
    pub sign_in: Option<SignInConfig>,
}

/// The sign-in at the gateway (E5).
#[derive(Clone, Debug)]
pub struct SignInConfig {
    /// PRIVACY_PROXY_PUBLIC_URL: the gateway's address for browsers.
    pub public_url: Url,
    /// SSO_CLIENT_ID.
    pub client_id: String,
    /// SSO_CLIENT_SECRET. The key that encrypts the cookies is derived from it.
    pub client_secret: Secret,
    /// SSO_REDIRECT_URI: the public address of `/api/auth/callback`.
    pub redirect_uri: Url,
    /// FRONTEND_URL: where the browser is sent after the sign-in, if the pages are at another address.
    pub frontend: Option<Url>,
}
