//! First-party OAuth 2.0: other applications of the operator obtain tokens by the authorization code flow (spec/10
//! section 5).
//!
//! Not here: the routes, and authentication of the user, which the login does.

mod clients;
mod pkce;
mod redirect;
mod secrets;
mod session;

pub use clients::{Client, Clients, ClientsError, Hashes};
pub use pkce::Challenge;
pub use redirect::{RedirectError, RedirectUri};
pub use secrets::{Busy, ClientSecrets};
pub(crate) use session::{
    AuthorizeParams, CompleteError, GrantedLogin, OauthId, OauthSession, OauthSessions, OpenError, Progress, Redeemed,
};

use gw_cache::Cache;
use gw_types::{Entropy, Secret};

/// Settings of OAuth.
#[derive(Clone, Debug)]
pub struct OauthConfig {
    /// OAUTH_FIRST_PARTY_CLIENTS and OAUTH_REDIRECT_URIS.
    pub clients: Clients,
    /// OAUTH_REQUIRE_PKCE.
    pub require_pkce: bool,
    /// Where browsers are sent to log in, without a query: a path of the gateway, or the front end's page.
    pub login_page: String,
    /// Whether mock logins are accepted; always false in a release.
    pub allow_mock: bool,
}

/// State of the OAuth routes.
#[derive(Debug)]
pub(crate) struct Oauth {
    pub(crate) sessions: OauthSessions,
    pub(crate) secrets: ClientSecrets,
    /// Counts failed authentications of clients.
    pub(crate) cache: Cache,
    pub(crate) require_pkce: bool,
    pub(crate) login_page: String,
    pub(crate) allow_mock: bool,
}

impl Oauth {
    /// Creates the state. Instances that share `code_secret` and the cache act as one.
    pub(crate) fn new(config: &OauthConfig, code_secret: &Secret, cache: Cache, entropy: &dyn Entropy) -> Self {
        Self {
            sessions: OauthSessions::new(cache.clone(), code_secret),
            secrets: ClientSecrets::new(config.clients.clone(), entropy),
            cache,
            require_pkce: config.require_pkce,
            login_page: config.login_page.clone(),
            allow_mock: config.allow_mock,
        }
    }
}
