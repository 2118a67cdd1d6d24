//! The configuration of `ledger-gateway explorer`, and its startup rules (spec/40 E2 to E6).

use super::{
    Environment, Operation, Problem, ProcessEnv, Report, Settings,
    kind::ListedOrigin,
    need, registry as var,
    rules::{is_too_wide, is_weak},
    variable::{Entry, Variable},
};
use gw_explorer_backend::{BackendConfig, ProxyConfig, SignInConfig, Source};
use gw_http::{AllowedOrigins, Origin, TrustedProxies};
use gw_types::Secret;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use url::Url;

/// Where the gateway sends browsers back to.
const CALLBACK: &str = "/api/auth/callback";

/// Whether this build has direct mode. A privacy build has not (E3).
const HAS_DIRECT_MODE: bool = cfg!(feature = "explorer-direct");

/// The whole configuration of the explorer's backend.
#[derive(Clone, Debug)]
pub struct ExplorerBackendConfig {
    /// The listener.
    pub listen: SocketAddr,
    /// Connections to the listener.
    pub connections: u32,
    /// Connections of one address to the listener.
    pub connections_per_address: u32,
    /// The backend.
    pub backend: BackendConfig,
    /// Logs and shutdown.
    pub operation: Operation,
}

impl ExplorerBackendConfig {
    /// Reads, checks and parses the configuration.
    ///
    /// # Errors
    ///
    /// A [`Report`] with every problem, if any value is missing, malformed or breaks a rule.
    pub fn load(env: &ProcessEnv) -> Result<Self, Report> {
        let mut report = Report::default();
        let settings = Settings::read(env, var::explorer_backend_all(), &mut report);
        check(&settings, HAS_DIRECT_MODE, &mut report);
        report.into_result(|| Self::typed(&settings))
    }

    fn typed(settings: &Settings) -> Result<Self, &'static str> {
        let environment = need(settings, &var::ENVIRONMENT)?;
        let port = need(settings, &var::PORT)?;
        let address: IpAddr = need(settings, &var::BIND_ADDRESS)?;
        Ok(Self {
            listen: SocketAddr::new(address, port),
            connections: need(settings, &var::MAX_CONNECTIONS)?,
            connections_per_address: need(settings, &var::MAX_CONNECTIONS_PER_ADDRESS)?,
            backend: BackendConfig {
                source: source(settings)?,
                origins: Arc::new(origins(settings, port)?),
                proxies: TrustedProxies::new(settings.get(&var::TRUSTED_PROXIES).unwrap_or_default()),
                production: environment == Environment::Production,
            },
            operation: Operation {
                log_level: need(settings, &var::LOG_LEVEL)?,
                log_format: need(settings, &var::LOG_FORMAT)?,
                shutdown_delay: need(settings, &var::SHUTDOWN_DELAY)?,
                shutdown_timeout: need(settings, &var::SHUTDOWN_TIMEOUT)?,
            },
        })
    }
}

fn source(settings: &Settings) -> Result<Source, &'static str> {
    #[cfg(feature = "explorer-direct")]
    if let Some(indexer) = settings.get(&var::INDEXER_URL) {
        return Ok(Source::Direct { indexer });
    }
    let gateway = need(settings, &var::PRIVACY_PROXY_URL)?;
    let sign_in = if need(settings, &var::PRIVACY_ENABLED)? {
        Some(SignInConfig {
            public_url: settings
                .get(&var::PRIVACY_PROXY_PUBLIC_URL)
                .unwrap_or_else(|| gateway.clone()),
            client_id: need(settings, &var::SSO_CLIENT_ID)?,
            client_secret: need(settings, &var::SSO_CLIENT_SECRET)?,
            redirect_uri: need(settings, &var::SSO_REDIRECT_URI)?,
            frontend: settings.get(&var::FRONTEND_URL),
        })
    } else {
        None
    };
    Ok(Source::Proxy(Box::new(ProxyConfig {
        admin: settings
            .get(&var::PRIVACY_PROXY_ADMIN_URL)
            .unwrap_or_else(|| gateway.clone()),
        gateway,
        backend_key: settings.get(&var::EXPLORER_BACKEND_KEY),
        sign_in,
    })))
}

/// The origins whose pages may read answers and change data: this process's own, that of FRONTEND_URL, and the listed.
fn origins(settings: &Settings, port: u16) -> Result<AllowedOrigins, &'static str> {
    let origin = |url: &Url, name| Origin::from_url(url.as_str()).map_err(|_| name);
    let base = match settings.get(&var::SSO_REDIRECT_URI) {
        Some(url) => origin(&url, var::SSO_REDIRECT_URI.name())?,
        None => Origin::from_url(&format!("http://localhost:{port}")).map_err(|_| var::PORT.name())?,
    };
    let frontend = settings.get(&var::FRONTEND_URL);
    let listed = settings.get(&var::CORS_ALLOWED_ORIGINS).unwrap_or_default();
    Ok(AllowedOrigins {
        base,
        frontend: frontend.map(|url| origin(&url, var::FRONTEND_URL.name())).transpose()?,
        any_localhost: listed.contains(&ListedOrigin::Any),
        listed: listed
            .into_iter()
            .filter_map(|listed| match listed {
                ListedOrigin::One(origin) => Some(origin),
                ListedOrigin::Any => None,
            })
            .collect(),
    })
}

/// Applies every startup rule. A rule ignores a malformed value: reading the value already reported it.
fn check(settings: &Settings, has_direct_mode: bool, report: &mut Report) {
    let mut rules = Rules { settings, report };
    rules.mode(has_direct_mode);
    rules.sign_in();
    if settings.is_set(&var::PRIVACY_PROXY_URL) {
        rules.proxy_mode();
    }
    if settings.environment() == Some(Environment::Production) {
        rules.production();
    }
}

struct Rules<'a> {
    settings: &'a Settings,
    report: &'a mut Report,
}

impl Rules<'_> {
    fn broken(&mut self, entry: &dyn Entry, rule: impl Into<String>) {
        if !self.report.names(entry.name()) {
            self.report.add(Problem::new(entry.name(), rule));
        }
    }

    /// E2, E3: exactly one source, and never the indexer in a privacy build.
    fn mode(&mut self, has_direct_mode: bool) {
        let indexer = self.settings.is_set(&var::INDEXER_URL);
        match (indexer, self.settings.is_set(&var::PRIVACY_PROXY_URL)) {
            (true, _) if !has_direct_mode => self.broken(
                &var::INDEXER_URL,
                "must not be set: this is a privacy build, which has no direct mode; set PRIVACY_PROXY_URL alone",
            ),
            (true, true) => self.broken(
                &var::INDEXER_URL,
                "set together with PRIVACY_PROXY_URL: set exactly one of them",
            ),
            (false, false) if !has_direct_mode => self.broken(
                &var::PRIVACY_PROXY_URL,
                "is required: this is a privacy build, which reads through the gateway only",
            ),
            (false, false) => self.broken(
                &var::PRIVACY_PROXY_URL,
                "is not set, and neither is INDEXER_URL: set exactly one of them",
            ),
            (true, false) | (false, true) => {}
        }
    }

    /// E4. Cookies are always Secure; there is no setting for it.
    fn proxy_mode(&mut self) {
        if !self.settings.is_set(&var::CORS_ALLOWED_ORIGINS) {
            self.broken(&var::CORS_ALLOWED_ORIGINS, "is required with PRIVACY_PROXY_URL");
        }
        if self.settings.is_set(&var::REDIS_URL) {
            self.broken(
                &var::REDIS_URL,
                "must not be set for the explorer: a shared cache of responses would show one viewer's rows to others",
            );
        }
        if self.settings.get(&var::DISABLE_PRICEFEED) == Some(false) {
            self.broken(
                &var::DISABLE_PRICEFEED,
                "must be true with PRIVACY_PROXY_URL: the explorer has no price feed",
            );
        }
    }

    /// E5.
    fn sign_in(&mut self) {
        let settings = self.settings;
        if settings.get(&var::PRIVACY_ENABLED) == Some(true) {
            if settings.is_set(&var::INDEXER_URL) {
                self.broken(
                    &var::PRIVACY_ENABLED,
                    "needs PRIVACY_PROXY_URL: direct mode has no sign-in",
                );
            }
            let needed: [&dyn Entry; 2] = [&var::SSO_CLIENT_SECRET, &var::SSO_REDIRECT_URI];
            for entry in needed {
                if !settings.is_set(entry) {
                    self.broken(entry, "is required with PRIVACY_ENABLED");
                }
            }
        }
        let Some(redirect) = settings.get(&var::SSO_REDIRECT_URI) else {
            return;
        };
        if !redirect.path().ends_with(CALLBACK) {
            self.broken(&var::SSO_REDIRECT_URI, format!("must end with `{CALLBACK}`"));
        }
        let is_loopback = Origin::from_url(redirect.as_str()).is_ok_and(|origin| origin.is_loopback());
        let is_production = settings.environment() != Some(Environment::Development)
            && settings.environment() != Some(Environment::Test);
        if redirect.scheme() != "https" && (is_production || !is_loopback) {
            self.broken(
                &var::SSO_REDIRECT_URI,
                "must be https: browsers keep the session cookies for https only (outside production also for a \
                 loopback host)",
            );
        }
    }

    fn production(&mut self) {
        let settings = self.settings;
        let secrets: [&Variable<Secret>; 2] = [&var::SSO_CLIENT_SECRET, &var::EXPLORER_BACKEND_KEY];
        for variable in secrets {
            if settings.get(variable).is_some_and(|secret| is_weak(secret.expose())) {
                self.broken(
                    variable,
                    "must have at least 32 bytes, 8 of them different, in production",
                );
            }
        }
        let [client, key] = secrets.map(|variable| settings.get(variable));
        if client.is_some() && client == key {
            self.broken(&var::EXPLORER_BACKEND_KEY, "must differ from SSO_CLIENT_SECRET");
        }
        for variable in [&var::PRIVACY_PROXY_PUBLIC_URL, &var::FRONTEND_URL] {
            if settings.get(variable).is_some_and(|url| url.scheme() != "https") {
                self.broken(variable, "must be https in production");
            }
        }
        // Browsers are sent to PRIVACY_PROXY_URL if there is no public address.
        let is_public = settings.get(&var::PRIVACY_ENABLED) == Some(true)
            && !settings.is_set(&var::PRIVACY_PROXY_PUBLIC_URL)
            && settings
                .get(&var::PRIVACY_PROXY_URL)
                .is_some_and(|url| url.scheme() != "https");
        if is_public {
            self.broken(
                &var::PRIVACY_PROXY_PUBLIC_URL,
                "is required in production where PRIVACY_PROXY_URL is not https: browsers sign in there",
            );
        }
        if settings
            .get(&var::CORS_ALLOWED_ORIGINS)
            .is_some_and(|origins| origins.contains(&ListedOrigin::Any))
        {
            self.broken(&var::CORS_ALLOWED_ORIGINS, "must not be `*` in production");
        }
        let proxies = settings.get(&var::TRUSTED_PROXIES).unwrap_or_default();
        if let Some(network) = proxies.iter().find(|network| is_too_wide(network)) {
            self.broken(
                &var::TRUSTED_PROXIES,
                format!("must not hold `{network}` in production: anybody could be in it; list your own machines"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRONG: &str = "0123456789abcdef0123456789abcdef";
    const PROXY: [(&str, &str); 2] = [
        ("PRIVACY_PROXY_URL", "http://10.0.0.1:8080"),
        ("CORS_ALLOWED_ORIGINS", "https://explorer.example"),
    ];
    const SIGN_IN: [(&str, &str); 5] = [
        ("PRIVACY_PROXY_URL", "http://10.0.0.1:8080"),
        ("CORS_ALLOWED_ORIGINS", "https://explorer.example"),
        ("PRIVACY_ENABLED", "true"),
        ("SSO_CLIENT_SECRET", STRONG),
        ("SSO_REDIRECT_URI", "https://explorer.example/api/auth/callback"),
    ];

    /// The problems of a configuration, one per line.
    fn problems(base: &[(&str, &str)], more: &[(&str, &str)], has_direct_mode: bool) -> String {
        let pairs: Vec<_> = base.iter().chain(more).copied().collect();
        let mut report = Report::default();
        let settings = Settings::read(&ProcessEnv::from_pairs(pairs), var::explorer_backend_all(), &mut report);
        check(&settings, has_direct_mode, &mut report);
        report.to_string()
    }

    #[test]
    fn e2_exactly_one_source() {
        let both = [("INDEXER_URL", "http://10.0.0.2")];
        assert_eq!(problems(&PROXY, &[], true), "");
        assert_eq!(problems(&[], &both, true), "");
        assert_eq!(
            problems(&PROXY, &both, true),
            "INDEXER_URL: set together with PRIVACY_PROXY_URL: set exactly one of them"
        );
        assert_eq!(
            problems(&[], &[], true),
            "PRIVACY_PROXY_URL: is not set, and neither is INDEXER_URL: set exactly one of them"
        );
    }

    #[test]
    fn e3_a_privacy_build_has_no_direct_mode() {
        let indexer = [("INDEXER_URL", "http://10.0.0.2")];
        let refused = "INDEXER_URL: must not be set: this is a privacy build, which has no direct mode; set \
                       PRIVACY_PROXY_URL alone";
        assert_eq!(problems(&PROXY, &[], false), "");
        assert_eq!(problems(&[], &indexer, false), refused);
        assert_eq!(problems(&PROXY, &indexer, false), refused);
        assert_eq!(
            problems(&[], &[], false),
            "PRIVACY_PROXY_URL: is required: this is a privacy build, which reads through the gateway only"
        );
        // An empty value counts as unset.
        assert!(problems(&[], &[("PRIVACY_PROXY_URL", "")], false).starts_with("PRIVACY_PROXY_URL: is required"));
    }

    #[test]
    fn e4_proxy_mode_needs_origins_and_has_neither_cache_nor_price_feed() {
        let bare = [("PRIVACY_PROXY_URL", "http://10.0.0.1:8080")];
        assert_eq!(
            problems(&bare, &[], false),
            "CORS_ALLOWED_ORIGINS: is required with PRIVACY_PROXY_URL"
        );
        let cache = problems(&PROXY, &[("REDIS_URL", "redis://10.0.0.3")], false);
        assert!(
            cache.starts_with("REDIS_URL: must not be set for the explorer"),
            "{cache}"
        );
        assert_eq!(
            problems(&PROXY, &[("DISABLE_PRICEFEED", "false")], false),
            "DISABLE_PRICEFEED: must be true with PRIVACY_PROXY_URL: the explorer has no price feed"
        );
        assert_eq!(problems(&PROXY, &[("DISABLE_PRICEFEED", "true")], false), "");
        let direct = [("INDEXER_URL", "http://10.0.0.2"), ("REDIS_URL", "redis://10.0.0.3")];
        assert_eq!(problems(&[], &direct, true), "");
    }

    #[test]
    fn e5_the_sign_in_needs_its_secret_and_its_callback() {
        assert_eq!(problems(&SIGN_IN, &[], false), "");
        assert_eq!(
            problems(&PROXY, &[("PRIVACY_ENABLED", "true")], false),
            "SSO_CLIENT_SECRET: is required with PRIVACY_ENABLED\nSSO_REDIRECT_URI: is required with PRIVACY_ENABLED"
        );
        for (uri, problem) in [
            (
                "https://explorer.example/callback",
                "must end with `/api/auth/callback`",
            ),
            ("http://explorer.example/api/auth/callback", "must be https"),
            ("https://explorer.example/api/auth/callback?x=1", "must be an `http://`"),
        ] {
            let report = problems(&SIGN_IN, &[("SSO_REDIRECT_URI", uri)], false);
            assert!(report.starts_with(&format!("SSO_REDIRECT_URI: {problem}")), "{report}");
        }
        let local = [("SSO_REDIRECT_URI", "http://localhost:3000/api/auth/callback")];
        assert_eq!(problems(&SIGN_IN, &local, false), "");
        let direct = [("INDEXER_URL", "http://10.0.0.2"), ("PRIVACY_ENABLED", "true")];
        assert!(problems(&[], &direct, true).contains("direct mode has no sign-in"));
    }

    #[test]
    fn production_refuses_weak_secrets_and_plain_addresses() {
        let public = ("PRIVACY_PROXY_PUBLIC_URL", "https://gate.example");
        let production = [("ENVIRONMENT", "production"), public];
        assert_eq!(problems(&SIGN_IN, &production, false), "");
        for (name, value) in [
            ("SSO_CLIENT_SECRET", "short"),
            ("EXPLORER_BACKEND_KEY", "short"),
            ("EXPLORER_BACKEND_KEY", STRONG),
            ("PRIVACY_PROXY_PUBLIC_URL", "http://gate.example"),
            ("PRIVACY_PROXY_PUBLIC_URL", ""),
            ("FRONTEND_URL", "http://app.example"),
            ("CORS_ALLOWED_ORIGINS", "*"),
            ("TRUSTED_PROXIES", "0.0.0.0/0"),
            ("SSO_REDIRECT_URI", "http://localhost/api/auth/callback"),
        ] {
            let settings = [production[0], production[1], (name, value)];
            let report = problems(&SIGN_IN, &settings, false);
            assert!(report.starts_with(&format!("{name}: ")), "{name}: {report}");
        }
    }

    #[test]
    fn the_public_address_of_the_gateway_defaults_to_its_internal_one() {
        let sign_in = |more: &[(&'static str, &'static str)]| {
            let pairs: Vec<_> = SIGN_IN.iter().chain(more).copied().collect();
            let config = ExplorerBackendConfig::load(&ProcessEnv::from_pairs(pairs)).unwrap();
            match config.backend.source {
                Source::Proxy(proxy) => proxy.sign_in.unwrap(),
                #[cfg(feature = "explorer-direct")]
                Source::Direct { .. } => panic!("the source is the gateway"),
            }
        };
        let default = sign_in(&[]);
        assert_eq!(default.public_url.as_str(), "http://10.0.0.1:8080/");
        assert_eq!(default.client_id, "explorer");
        let public = sign_in(&[("PRIVACY_PROXY_PUBLIC_URL", "https://gate.example")]);
        assert_eq!(public.public_url.as_str(), "https://gate.example/");
    }
}
