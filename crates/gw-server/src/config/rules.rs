//! Rules about more than one value, and rules for production only (classes A and P of spec/85 section 2).
//!
//! A rule ignores a malformed value: reading the value already reported it.

use super::{
    Build, Environment, Problem, Report, Settings,
    kind::ListedOrigin,
    registry as var,
    variable::{Entry, Variable},
};
use gw_chain_store::Location;
use gw_evm::CustomMethods;
use gw_identity::oauth::{Clients, ClientsError};
use gw_types::Secret;
use ipnet::IpNet;
use std::time::Duration;
use url::Url;

/// Longest time to write a response. A trace must end before.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Secrets shorter than this are weak.
const SECRET_MIN_BYTES: usize = 32;

/// Secrets with fewer distinct bytes than this are weak at any length.
const SECRET_MIN_DISTINCT: usize = 8;

/// Shortest accepted prefixes of trusted networks. The widest private ranges are 10.0.0.0/8 and fc00::/7, so a shorter
/// prefix includes foreign machines.
const WIDEST_V4: u8 = 8;
const WIDEST_V6: u8 = 7;

/// The variables with the secrets of one purpose: single secrets, and a list of older ones.
type Purpose = (
    &'static [&'static Variable<Secret>],
    Option<&'static Variable<Vec<Secret>>>,
);

/// Every secret that signs, authenticates or encrypts. Older secrets obey the same rules, because they are still
/// accepted.
const PURPOSES: [Purpose; 7] = [
    (&[&var::JWT_SECRET], Some(&var::JWT_SECRET_PREVIOUS)),
    (&[&var::JWT_REFRESH_SECRET], Some(&var::JWT_REFRESH_SECRET_PREVIOUS)),
    (&[&var::ADMIN_API_TOKEN, &var::ADMIN_API_TOKEN_PREVIOUS], None),
    (&[&var::OPERATOR_API_TOKEN], None),
    (
        &[
            &var::RPC_API_KEY_ENCRYPTION_KEY,
            &var::RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS,
        ],
        None,
    ),
    (&[&var::AUDIT_CHECKPOINT_KEY], None),
    (&[&var::EXPLORER_BACKEND_KEY], None),
];

/// Applies every rule.
pub(super) fn check(settings: &Settings, build: Build, report: &mut Report) {
    let mut rules = Rules { settings, report };
    rules.tokens();
    rules.spans_and_counts();
    rules.retention();
    rules.listeners();
    rules.mock_login(build);
    rules.directory();
    rules.oauth();
    rules.identity_networks();
    rules.namespaces();
    rules.humanity();
    rules.explorer();
    if settings.environment() == Some(Environment::Production) {
        rules.required();
        rules.strength();
        rules.distinct_purposes();
        rules.networks();
        rules.addresses();
        rules.stores();
    }
}

struct Rules<'a> {
    settings: &'a Settings,
    report: &'a mut Report,
}

impl Rules<'_> {
    fn broken(&mut self, entry: &dyn Entry, rule: impl Into<String>) {
        self.report.add(Problem::new(entry.name(), rule));
    }

    /// No secret may validate both access and refresh tokens, otherwise one could be used as the other.
    fn tokens(&mut self) {
        let accepted = |current: &Variable<Secret>, previous: &Variable<Vec<Secret>>| {
            self.settings
                .get(current)
                .into_iter()
                .chain(self.settings.get(previous).unwrap_or_default())
                .collect::<Vec<_>>()
        };
        let access = accepted(&var::JWT_SECRET, &var::JWT_SECRET_PREVIOUS);
        let refresh = accepted(&var::JWT_REFRESH_SECRET, &var::JWT_REFRESH_SECRET_PREVIOUS);
        if access.iter().any(|secret| refresh.contains(secret)) {
            self.broken(
                &var::JWT_REFRESH_SECRET,
                "must differ from JWT_SECRET, older secrets included",
            );
        }
        let operator = self.settings.get(&var::OPERATOR_API_TOKEN);
        let super_admin_tokens =
            [&var::ADMIN_API_TOKEN, &var::ADMIN_API_TOKEN_PREVIOUS].map(|variable| self.settings.get(variable));
        if operator.is_some() && super_admin_tokens.contains(&operator) {
            self.broken(
                &var::OPERATOR_API_TOKEN,
                "must differ from ADMIN_API_TOKEN, the older one included",
            );
        }
    }

    fn spans_and_counts(&mut self) {
        let settings = self.settings;
        if exceeds(
            settings.get(&var::ACCESS_TOKEN_TTL),
            settings.get(&var::REFRESH_TOKEN_TTL),
        ) {
            self.broken(&var::REFRESH_TOKEN_TTL, "must be longer than ACCESS_TOKEN_TTL");
        }
        if settings
            .get(&var::TRACE_TIMEOUT)
            .is_some_and(|trace| trace >= WRITE_TIMEOUT)
        {
            self.broken(&var::TRACE_TIMEOUT, "must be shorter than the 60s response timeout");
        }
        if exceeds(
            settings.get(&var::ETH_CALL_TRACE_TIMEOUT),
            settings.get(&var::TRACE_TIMEOUT),
        ) {
            self.broken(&var::ETH_CALL_TRACE_TIMEOUT, "must not be longer than TRACE_TIMEOUT");
        }
    }

    /// The admin role must delete from the database that the audit log is written to.
    fn retention(&mut self) {
        let Some(admin) = self.settings.get(&var::AUDIT_ADMIN_DATABASE_URL) else {
            return;
        };
        // Host and port may differ: one role may connect through a pooler, the other one directly.
        let name = |url: &Secret| Url::parse(url.expose()).ok().map(|url| url.path().to_owned());
        if audit_url(self.settings).as_ref().and_then(name) != name(&admin) {
            self.broken(
                &var::AUDIT_ADMIN_DATABASE_URL,
                "must name the database of AUDIT_DATABASE_URL",
            );
        }
    }

    fn listeners(&mut self) {
        let settings = self.settings;
        if let (Some(internal), Some(port)) = (settings.get(&var::INTERNAL_BIND_ADDR), settings.get(&var::PORT))
            && internal.port() == port
        {
            self.broken(&var::INTERNAL_BIND_ADDR, "must use another port than PORT");
        }
    }

    /// HD19: only `ledger-gateway-dev` contains mock code, and it runs in development only.
    fn mock_login(&mut self, build: Build) {
        let Some(environment) = self.settings.environment() else {
            return;
        };
        if build == Build::Mock && environment != Environment::Development {
            self.broken(
                &var::ENVIRONMENT,
                "must be `development`: `ledger-gateway-dev` runs nowhere else",
            );
        }
        if self.settings.get(&var::ALLOW_MOCK_LOGIN) == Some(true) {
            if environment == Environment::Production {
                self.broken(&var::ALLOW_MOCK_LOGIN, "must be false in production");
            } else if build == Build::Release {
                self.broken(
                    &var::ALLOW_MOCK_LOGIN,
                    "needs `ledger-gateway-dev`: this build has no mock login",
                );
            }
        }
        // The owner of the proving key for a custom verification key can log in as any user.
        if self.settings.is_set(&var::IDP_VERIFICATION_KEYS_DIR) && build == Build::Release {
            self.broken(&var::IDP_VERIFICATION_KEYS_DIR, "needs `ledger-gateway-dev`");
        }
    }

    /// Each network has one resolver, and a fallback node needs a first node.
    fn identity_networks(&mut self) {
        let settings = self.settings;
        if settings.is_set(&var::ALTNET_RPC_FALLBACK_URL) && !settings.is_set(&var::ALTNET_RPC_URL) {
            self.broken(&var::ALTNET_RPC_FALLBACK_URL, "needs ALTNET_RPC_URL");
        }
        let mut names = vec![super::IDP.1.to_owned(), super::ALTNET.1.to_owned()];
        for row in settings.get(&var::IDP_EXTRA_RESOLVERS).unwrap_or_default() {
            if names.contains(&row.name) {
                self.broken(&var::IDP_EXTRA_RESOLVERS, format!("names `{}` a second time", row.name));
            }
            names.push(row.name);
        }
    }

    /// The directory needs all of its three required variables, or none of its variables.
    fn directory(&mut self) {
        let settings = self.settings;
        let required: [(&dyn Entry, bool); 3] = [
            (
                &var::DIRECTORY_CLIENT_ID,
                settings.get(&var::DIRECTORY_CLIENT_ID).is_some(),
            ),
            (
                &var::DIRECTORY_CLIENT_SECRET,
                settings.get(&var::DIRECTORY_CLIENT_SECRET).is_some(),
            ),
            (
                &var::DIRECTORY_TENANT_ID,
                settings.get(&var::DIRECTORY_TENANT_ID).is_some(),
            ),
        ];
        let optional: [(&dyn Entry, bool); 3] = [
            (
                &var::DIRECTORY_SP_AUDIENCE,
                settings.get(&var::DIRECTORY_SP_AUDIENCE).is_some(),
            ),
            (
                &var::DIRECTORY_SP_CLIENTS,
                settings.get(&var::DIRECTORY_SP_CLIENTS).is_some(),
            ),
            (&var::DIRECTORY_SP_ROLE, settings.get(&var::DIRECTORY_SP_ROLE).is_some()),
        ];
        let enabled = required.iter().any(|(_, is_set)| *is_set);
        for (entry, is_set) in if enabled { required } else { optional } {
            if enabled && !is_set && !self.report.names(entry.name()) {
                self.broken(entry, "is required where another part of the directory login is set");
            } else if !enabled && is_set {
                self.broken(
                    entry,
                    "needs DIRECTORY_CLIENT_ID, DIRECTORY_CLIENT_SECRET and DIRECTORY_TENANT_ID",
                );
            }
        }
    }

    /// OA-3, OA-8: reports every problem of both lists.
    fn oauth(&mut self) {
        let client_required = self.settings.get(&var::INTROSPECT_REQUIRE_CLIENT) == Some(true);
        if client_required && !self.settings.is_set(&var::OAUTH_FIRST_PARTY_CLIENTS) {
            self.broken(
                &var::INTROSPECT_REQUIRE_CLIENT,
                "needs OAUTH_FIRST_PARTY_CLIENTS: without clients nobody could introspect a token",
            );
        }
        let Err(errors) = oauth_clients(self.settings) else {
            return;
        };
        for error in errors {
            let variable: &dyn Entry = if error.is_about_redirects() {
                &var::OAUTH_REDIRECT_URIS
            } else {
                &var::OAUTH_FIRST_PARTY_CLIENTS
            };
            self.broken(variable, error.to_string());
        }
    }

    /// N1, class A: reports every problem of the file.
    fn namespaces(&mut self) {
        let Err(broken_rules) = custom_methods(self.settings) else {
            return;
        };
        for rule in broken_rules {
            self.broken(&var::EXTRA_RPC_NAMESPACES_FILE, rule);
        }
    }

    /// Class A: with an incomplete setup, either no user could log in, or users could log in without the credential.
    fn humanity(&mut self) {
        let settings = self.settings;
        if settings.get(&var::REQUIRE_PROOF_OF_HUMANITY) != Some(true) {
            if settings.is_set(&var::IDP_NULLIFIER_SESSION) && !self.report.names(var::IDP_NULLIFIER_SESSION.name()) {
                self.broken(&var::IDP_NULLIFIER_SESSION, "needs REQUIRE_PROOF_OF_HUMANITY");
            }
            return;
        }
        let needed: [&dyn Entry; 4] = [
            &var::VERIFIER_ID,
            &var::ALTNET_ISSUER_DID,
            &var::ALTNET_CREDENTIAL_SCHEMA_URL,
            &var::ALTNET_CREDENTIAL_QUERY_FILE,
        ];
        for entry in needed {
            if !settings.is_set(entry) && !self.report.names(entry.name()) {
                self.broken(entry, "is required with REQUIRE_PROOF_OF_HUMANITY");
            }
        }
        if settings.get(&var::ALLOW_MOCK_LOGIN) == Some(true) && !self.report.names(var::ALLOW_MOCK_LOGIN.name()) {
            self.broken(&var::ALLOW_MOCK_LOGIN, "must be false with REQUIRE_PROOF_OF_HUMANITY");
        }
    }

    /// The indexer may remove all rows of its database, so no other data may be in it.
    fn explorer(&mut self) {
        let Some(location) = self.settings.get(&var::EXPLORER_DATABASE_URL) else {
            return;
        };
        if let Location::Postgres { url } = &location {
            let others = [self.settings.get(&var::DATABASE_URL), audit_url(self.settings)];
            let database = database_of(url.expose());
            if others
                .iter()
                .flatten()
                .any(|other| database_of(other.expose()) == database)
            {
                self.broken(
                    &var::EXPLORER_DATABASE_URL,
                    "must be another database than DATABASE_URL and AUDIT_DATABASE_URL",
                );
            }
        }
        if self.settings.environment() != Some(Environment::Production) {
            return;
        }
        if let Location::Postgres { url } = &location
            && !has_password(url.expose())
        {
            self.broken(&var::EXPLORER_DATABASE_URL, "must have a password in production");
        }
        // HD16: a private address alone proves nothing.
        if !self.settings.is_set(&var::EXPLORER_BACKEND_KEY) {
            self.broken(
                &var::EXPLORER_BACKEND_KEY,
                "is required in production with EXPLORER_DATABASE_URL",
            );
        }
    }

    fn required(&mut self) {
        for entry in var::all() {
            if entry.is_required() && !self.settings.is_set(entry) && !self.report.names(entry.name()) {
                self.broken(entry, "is required in production");
            }
        }
    }

    fn strength(&mut self) {
        let rule = format!(
            "must have at least {SECRET_MIN_BYTES} bytes, {SECRET_MIN_DISTINCT} of them different, in production"
        );
        for (variables, previous) in PURPOSES {
            for variable in variables {
                if self
                    .settings
                    .get(variable)
                    .is_some_and(|secret| is_weak(secret.expose()))
                {
                    self.broken(*variable, rule.as_str());
                }
            }
            if let Some(variable) = previous
                && self
                    .settings
                    .get(variable)
                    .unwrap_or_default()
                    .iter()
                    .any(|secret| is_weak(secret.expose()))
            {
                self.broken(variable, format!("each {rule}"));
            }
        }
    }

    /// No secret may serve two purposes: a leak through one would open the other.
    fn distinct_purposes(&mut self) {
        let secrets = PURPOSES.map(|(variables, previous)| {
            let single = variables.iter().filter_map(|variable| self.settings.get(variable));
            let older = previous
                .and_then(|variable| self.settings.get(variable))
                .unwrap_or_default();
            single.chain(older).collect::<Vec<_>>()
        });
        for (index, ((variables, _), own)) in PURPOSES.iter().zip(&secrets).enumerate() {
            let Some(variable) = variables.first() else { continue };
            let shared = PURPOSES
                .iter()
                .zip(&secrets)
                .take(index)
                .find(|(_, earlier)| earlier.iter().any(|secret| own.contains(secret)));
            if let Some(((earlier_variables, _), _)) = shared
                && let Some(earlier_variable) = earlier_variables.first()
                && !self.report.names(variable.name())
            {
                self.broken(
                    *variable,
                    format!("must differ from {}, older ones included", earlier_variable.name()),
                );
            }
        }
    }

    /// RTS7: peers in these networks are trusted, so the networks must not include foreign machines.
    fn networks(&mut self) {
        for variable in [
            &var::TRUSTED_PROXIES,
            &var::TRUSTED_INTERNAL_CIDRS,
            &var::WEBHOOK_ALLOWED_NETWORKS,
        ] {
            let listed = self.settings.get(variable).unwrap_or_default();
            if let Some(network) = listed.iter().find(|network| is_too_wide(network)) {
                self.broken(
                    variable,
                    format!("must not hold `{network}` in production: anybody could be in it; list your own machines"),
                );
            }
        }
    }

    fn addresses(&mut self) {
        for variable in [
            &var::BASE_URL,
            &var::FRONTEND_URL,
            &var::DIRECTORY_AUTHORITY_HOST,
            &var::HUMANITY_VERIFY_URL,
            &var::IPFS_GATEWAY,
            &var::AUDIT_WITNESS_URL,
            &var::AUDIT_TAMPER_WEBHOOK_URL,
        ] {
            if self.settings.get(variable).is_some_and(|url| url.scheme() != "https") {
                self.broken(variable, "must be https in production");
            }
        }
        if self
            .settings
            .get(&var::CORS_ALLOWED_ORIGINS)
            .is_some_and(|origins| origins.contains(&ListedOrigin::Any))
        {
            self.broken(&var::CORS_ALLOWED_ORIGINS, "must not be `*` in production");
        }
    }

    fn stores(&mut self) {
        let (main, audit) = (
            self.settings.get(&var::DATABASE_URL),
            self.settings.get(&var::AUDIT_DATABASE_URL),
        );
        let cache = self.settings.get(&var::REDIS_URL);
        let admin = self.settings.get(&var::AUDIT_ADMIN_DATABASE_URL);
        let addresses = [
            (&var::DATABASE_URL, &main),
            (&var::AUDIT_DATABASE_URL, &audit),
            (&var::AUDIT_ADMIN_DATABASE_URL, &admin),
            (&var::REDIS_URL, &cache),
        ];
        for (variable, url) in addresses {
            if url.as_ref().is_some_and(|url| !has_password(url.expose())) {
                self.broken(variable, "must have a password in production");
            }
        }
        if let (Some(main), Some(audit)) = (main, audit)
            && database_of(main.expose()) == database_of(audit.expose())
        {
            self.broken(
                &var::AUDIT_DATABASE_URL,
                "must be another database than DATABASE_URL in production",
            );
        }
    }
}

/// The first-party applications of OAUTH_FIRST_PARTY_CLIENTS with their redirect addresses, or every problem with them.
pub(super) fn oauth_clients(settings: &Settings) -> Result<Clients, Vec<ClientsError>> {
    let clients = settings.get(&var::OAUTH_FIRST_PARTY_CLIENTS);
    let redirect_uris = settings.get(&var::OAUTH_REDIRECT_URIS).unwrap_or_default();
    let production = settings.environment() == Some(Environment::Production);
    Clients::parse(clients.as_ref().map_or("", Secret::expose), &redirect_uris, production)
}

/// The methods of EXTRA_RPC_NAMESPACES_FILE, or every problem with the file.
pub(super) fn custom_methods(settings: &Settings) -> Result<CustomMethods, Vec<String>> {
    let Some(path) = settings.get(&var::EXTRA_RPC_NAMESPACES_FILE) else {
        return Ok(CustomMethods::default());
    };
    let text = std::fs::read_to_string(path).map_err(|error| vec![format!("cannot be read: {}", error.kind())])?;
    let unfiltered = settings.get(&var::ALLOW_UNFILTERED_WILDCARDS) == Some(true);
    CustomMethods::parse(&text, unfiltered).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// The public address: BASE_URL, or `http://localhost:<port>`.
pub(super) fn base_url(settings: &Settings, port: u16) -> Option<Url> {
    settings
        .get(&var::BASE_URL)
        .or_else(|| Url::parse(&format!("http://localhost:{port}")).ok())
}

/// The audit store's address: AUDIT_DATABASE_URL, or DATABASE_URL with `_audit` appended to the database name.
pub(super) fn audit_url(settings: &Settings) -> Option<Secret> {
    settings.get(&var::AUDIT_DATABASE_URL).or_else(|| {
        let mut url = Url::parse(settings.get(&var::DATABASE_URL)?.expose()).ok()?;
        let path = format!("{}_audit", url.path());
        url.set_path(&path);
        Some(Secret::new(url.as_str()))
    })
}

fn exceeds<T: PartialOrd>(value: Option<T>, limit: Option<T>) -> bool {
    matches!((value, limit), (Some(value), Some(limit)) if value > limit)
}

/// Whether a network includes foreign machines (RTS7).
pub(super) fn is_too_wide(network: &IpNet) -> bool {
    let widest = if network.addr().is_ipv4() { WIDEST_V4 } else { WIDEST_V6 };
    network.prefix_len() < widest
}

/// Whether a secret is too short or has too few distinct bytes. A secret in hexadecimal is decoded first.
pub(super) fn is_weak(secret: &str) -> bool {
    let bytes = hex::decode(secret).ok().filter(|bytes| bytes.len() >= SECRET_MIN_BYTES);
    let bytes = bytes.unwrap_or_else(|| secret.as_bytes().to_vec());
    let mut present = [false; 256];
    for byte in &bytes {
        if let Some(flag) = present.get_mut(usize::from(*byte)) {
            *flag = true;
        }
    }
    bytes.len() < SECRET_MIN_BYTES || present.iter().filter(|flag| **flag).count() < SECRET_MIN_DISTINCT
}

fn has_password(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.password().is_some_and(|password| !password.is_empty()))
}

/// Identifies a database by host, port and path, ignoring credentials and parameters.
fn database_of(url: &str) -> Option<(String, u16, String)> {
    let url = Url::parse(url).ok()?;
    Some((
        url.host_str()?.to_ascii_lowercase(),
        url.port().unwrap_or(5432),
        url.path().to_owned(),
    ))
}
