//! The explorer's backend (spec/40 section 1).

use crate::config::{
    kind,
    variable::{Section::ExplorerBackend, Variable},
};
use gw_types::Secret;
use url::Url;

registry! {
    /// Address of the gateway for this process: data is read through it (proxy-mediated mode).
    PRIVACY_PROXY_URL: Url = Variable::new(ExplorerBackend, &kind::WEB)
        .rule("exactly one of PRIVACY_PROXY_URL and INDEXER_URL; needs CORS_ALLOWED_ORIGINS");
    /// Address of the gateway for browsers.
    PRIVACY_PROXY_PUBLIC_URL: Url = Variable::new(ExplorerBackend, &kind::WEB)
        .derived("PRIVACY_PROXY_URL")
        .rule("https in production");
    /// Address of the gateway's admin API for this process, which view-as reads: its internal listener, if
    /// INTERNAL_BIND_ADDR is set there.
    PRIVACY_PROXY_ADMIN_URL: Url = Variable::new(ExplorerBackend, &kind::WEB).derived("PRIVACY_PROXY_URL");
    /// Address of a chain indexer to read from directly, without any visibility rule.
    INDEXER_URL: Url = Variable::new(ExplorerBackend, &kind::WEB)
        .rule("rejected by privacy builds, which have no direct mode; not together with PRIVACY_PROXY_URL");
    /// Whether users can sign in.
    PRIVACY_ENABLED: bool = Variable::new(ExplorerBackend, &kind::BOOL)
        .default("false")
        .rule("needs PRIVACY_PROXY_URL");
    /// Client id of the explorer in OAUTH_FIRST_PARTY_CLIENTS of the gateway.
    SSO_CLIENT_ID: String = Variable::new(ExplorerBackend, &kind::NAME).default("explorer");
    /// Client secret of the explorer. The key that encrypts the session cookies is derived from it, so a new secret
    /// ends all sessions.
    SSO_CLIENT_SECRET: Secret = Variable::new(ExplorerBackend, &kind::SECRET)
        .secret()
        .rule("required with PRIVACY_ENABLED; in production at least 32 bytes, 8 of them distinct");
    /// Public address of `/api/auth/callback` of this process, as listed in OAUTH_REDIRECT_URIS of the gateway.
    SSO_REDIRECT_URI: Url = Variable::new(ExplorerBackend, &kind::WEB).rule(
        "required with PRIVACY_ENABLED; ends with `/api/auth/callback`; https, except for a loopback host outside \
         production",
    );
    /// This process has no price feed. `false` is rejected with PRIVACY_PROXY_URL.
    DISABLE_PRICEFEED: bool = Variable::new(ExplorerBackend, &kind::BOOL).default("true");
}
