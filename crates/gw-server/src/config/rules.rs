//! Rules that need more than one value, or that hold in production only (classes A and P of spec/85 section 2).
//!
//! A rule about a value that is malformed says nothing: the malformation is reported already.

use super::{
    Build, Environment, Problem, Report, Settings,
    kind::ListedOrigin,
    registry as var,
    variable::{Entry, Variable},
};
use gw_evm::Extras;
use gw_identity::oauth::{Clients, ClientsError};
use gw_types::Secret;
use std::time::Duration;
use url::Url;

/// How long writing an answer may take; a trace must end before.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Secrets shorter than this are weak.
const SECRET_MIN_BYTES: usize = 32;

/// Secrets with fewer different bytes than this are weak, whatever their length.
const SECRET_MIN_DISTINCT: usize = 8;

/// Networks with shorter prefixes hold more than anybody's own machines: the widest private ranges are 10.0.0.0/8 and
/// fc00::/7.
const WIDEST_V4: u8 = 8;
const WIDEST_V6: u8 = 7;

/// Secrets of one use, older ones included: by what they are named, and what they are.
type Purpose = (
    &'static [&'static Variable<Secret>],
    Option<&'static Variable<Vec<Secret>>>,
);

/// Every secret that signs, opens or encrypts. All of them are judged alike: a previous one still opens.
const PURPOSES: [Purpose; 6] = [
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
];

/// Applies every rule.
pub(super) fn check(from: &Settings, build: Build, report: &mut Report) {
    let mut rules = Rules { from, report };
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
    if from.environment() == Some(Environment::Production) {
        rules.required();
        rules.strength();
        rules.one_use_each();
        rules.networks();
        rules.addresses();
        rules.stores();
    }
}

struct Rules<'a> {
    from: &'a Settings,
    report: &'a mut Report,
}

impl Rules<'_> {
    fn broken(&mut self, entry: &dyn Entry, rule: impl Into<String>) {
        self.report.add(Problem::new(entry.name(), rule));
    }

    /// An access token must never pass for a refresh token, under no secret that is accepted.
    fn tokens(&mut self) {
        let accepted = |now: &Variable<Secret>, before: &Variable<Vec<Secret>>| {
            self.from
                .get(now)
                .into_iter()
                .chain(self.from.get(before).unwrap_or_default())
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
        let operator = self.from.get(&var::OPERATOR_API_TOKEN);
        let supers = [&var::ADMIN_API_TOKEN, &var::ADMIN_API_TOKEN_PREVIOUS].map(|variable| self.from.get(variable));
        if operator.is_some() && supers.contains(&operator) {
            self.broken(
                &var::OPERATOR_API_TOKEN,
                "must differ from ADMIN_API_TOKEN, the older one included",
            );
        }
    }

    fn spans_and_counts(&mut self) {
        let from = self.from;
        if exceeds(from.get(&var::ACCESS_TOKEN_TTL), from.get(&var::REFRESH_TOKEN_TTL)) {
            self.broken(&var::REFRESH_TOKEN_TTL, "must be longer than ACCESS_TOKEN_TTL");
        }
        if from
            .get(&var::TRACE_TIMEOUT)
            .is_some_and(|trace| trace >= WRITE_TIMEOUT)
        {
            self.broken(&var::TRACE_TIMEOUT, "must be shorter than the 60s an answer may take");
        }
        if exceeds(from.get(&var::ETH_CALL_TRACE_TIMEOUT), from.get(&var::TRACE_TIMEOUT)) {
            self.broken(&var::ETH_CALL_TRACE_TIMEOUT, "must not be longer than TRACE_TIMEOUT");
        }
    }

    /// What deletes by the admin role deletes from the log that is written.
    fn retention(&mut self) {
        let Some(admin) = self.from.get(&var::AUDIT_ADMIN_DATABASE_URL) else {
            return;
        };
        // Host and port may differ: the one role may come by a pooler, the other one directly.
        let name = |url: &Secret| Url::parse(url.expose()).ok().map(|url| url.path().to_owned());
        if audit_url(self.from).as_ref().and_then(name) != name(&admin) {
            self.broken(
                &var::AUDIT_ADMIN_DATABASE_URL,
                "must name the database of AUDIT_DATABASE_URL",
            );
        }
    }

    fn listeners(&mut self) {
        let from = self.from;
        if let (Some(internal), Some(port)) = (from.get(&var::INTERNAL_BIND_ADDR), from.get(&var::PORT))
            && internal.port() == port
        {
            self.broken(&var::INTERNAL_BIND_ADDR, "must use another port than PORT");
        }
    }

    /// HD19: mock code is in one build only, and that build runs in development only.
    fn mock_login(&mut self, build: Build) {
        let Some(environment) = self.from.environment() else {
            return;
        };
        if build == Build::Mock && environment != Environment::Development {
            self.broken(
                &var::ENVIRONMENT,
                "must be `development`: `ledger-gateway-dev` runs nowhere else",
            );
        }
        if self.from.get(&var::ALLOW_MOCK_LOGIN) == Some(true) {
            if environment == Environment::Production {
                self.broken(&var::ALLOW_MOCK_LOGIN, "must be false in production");
            } else if build == Build::Release {
                self.broken(
                    &var::ALLOW_MOCK_LOGIN,
                    "needs `ledger-gateway-dev`: this build has no mock login",
                );
            }
        }
        // Whoever has the proving key of such a key can log in as anybody.
        if self.from.is_set(&var::IDP_VERIFICATION_KEYS_DIR) && build == Build::Release {
            self.broken(&var::IDP_VERIFICATION_KEYS_DIR, "needs `ledger-gateway-dev`");
        }
    }

    /// One resolver per network; a chain nobody asks has no second node.
    fn identity_networks(&mut self) {
        let from = self.from;
        if from.is_set(&var::ALTNET_RPC_FALLBACK_URL) && !from.is_set(&var::ALTNET_RPC_URL) {
            self.broken(&var::ALTNET_RPC_FALLBACK_URL, "needs ALTNET_RPC_URL");
        }
        let mut named = vec![super::IDP.1.to_owned(), super::ALTNET.1.to_owned()];
        for row in from.get(&var::IDP_EXTRA_RESOLVERS).unwrap_or_default() {
            if named.contains(&row.name) {
                self.broken(&var::IDP_EXTRA_RESOLVERS, format!("names `{}` a second time", row.name));
            }
            named.push(row.name);
        }
    }

    /// A directory is configured wholly or not at all.
    fn directory(&mut self) {
        let from = self.from;
        let parts: [(&dyn Entry, bool); 3] = [
            (&var::DIRECTORY_CLIENT_ID, from.get(&var::DIRECTORY_CLIENT_ID).is_some()),
            (
                &var::DIRECTORY_CLIENT_SECRET,
                from.get(&var::DIRECTORY_CLIENT_SECRET).is_some(),
            ),
            (&var::DIRECTORY_TENANT_ID, from.get(&var::DIRECTORY_TENANT_ID).is_some()),
        ];
        let further: [(&dyn Entry, bool); 3] = [
            (
                &var::DIRECTORY_SP_AUDIENCE,
                from.get(&var::DIRECTORY_SP_AUDIENCE).is_some(),
            ),
            (
                &var::DIRECTORY_SP_CLIENTS,
                from.get(&var::DIRECTORY_SP_CLIENTS).is_some(),
            ),
            (&var::DIRECTORY_SP_ROLE, from.get(&var::DIRECTORY_SP_ROLE).is_some()),
        ];
        let any = parts.iter().any(|(_, set)| *set);
        for (part, set) in if any { parts } else { further } {
            if any && !set && !self.report.names(part.name()) {
                self.broken(part, "is required where another part of the directory login is set");
            } else if !any && set {
                self.broken(
                    part,
                    "needs DIRECTORY_CLIENT_ID, DIRECTORY_CLIENT_SECRET and DIRECTORY_TENANT_ID",
                );
            }
        }
    }

    /// OA-3, OA-8: every finding of both lists.
    fn oauth(&mut self) {
        let asks = self.from.get(&var::INTROSPECT_REQUIRE_CLIENT) == Some(true);
        if asks && !self.from.is_set(&var::OAUTH_FIRST_PARTY_CLIENTS) {
            self.broken(
                &var::INTROSPECT_REQUIRE_CLIENT,
                "needs OAUTH_FIRST_PARTY_CLIENTS: nobody could ask",
            );
        }
        let Err(wrong) = oauth_clients(self.from) else { return };
        for error in wrong {
            let variable: &dyn Entry = if error.is_about_redirects() {
                &var::OAUTH_REDIRECT_URIS
            } else {
                &var::OAUTH_FIRST_PARTY_CLIENTS
            };
            self.broken(variable, error.to_string());
        }
    }

    /// N1, class A: all that is wrong with the file.
    fn namespaces(&mut self) {
        let Err(wrong) = extras(self.from) else { return };
        for rule in wrong {
            self.broken(&var::EXTRA_RPC_NAMESPACES_FILE, rule);
        }
    }

    /// Class A: nobody could log in, or everybody without what was asked for.
    fn humanity(&mut self) {
        let from = self.from;
        if from.get(&var::REQUIRE_PROOF_OF_HUMANITY) != Some(true) {
            if from.is_set(&var::IDP_NULLIFIER_SESSION) && !self.report.names(var::IDP_NULLIFIER_SESSION.name()) {
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
            if !from.is_set(entry) && !self.report.names(entry.name()) {
                self.broken(entry, "is required with REQUIRE_PROOF_OF_HUMANITY");
            }
        }
        if from.get(&var::ALLOW_MOCK_LOGIN) == Some(true) && !self.report.names(var::ALLOW_MOCK_LOGIN.name()) {
            self.broken(&var::ALLOW_MOCK_LOGIN, "must be false with REQUIRE_PROOF_OF_HUMANITY");
        }
    }

    fn required(&mut self) {
        for entry in var::ALL {
            if entry.is_required() && !self.from.is_set(*entry) && !self.report.names(entry.name()) {
                self.broken(*entry, "is required in production");
            }
        }
    }

    fn strength(&mut self) {
        let rule = format!(
            "must have at least {SECRET_MIN_BYTES} bytes, {SECRET_MIN_DISTINCT} of them different, in production"
        );
        for (variables, previous) in PURPOSES {
            for variable in variables {
                if self.from.get(variable).is_some_and(|secret| is_weak(secret.expose())) {
                    self.broken(*variable, rule.as_str());
                }
            }
            if let Some(variable) = previous
                && self
                    .from
                    .get(variable)
                    .unwrap_or_default()
                    .iter()
                    .any(|secret| is_weak(secret.expose()))
            {
                self.broken(variable, format!("each {rule}"));
            }
        }
    }

    /// A secret of one use must not open another: whoever learns it by the one has the other.
    fn one_use_each(&mut self) {
        let secrets = PURPOSES.map(|(variables, previous)| {
            let now = variables.iter().filter_map(|variable| self.from.get(variable));
            let before = previous
                .and_then(|variable| self.from.get(variable))
                .unwrap_or_default();
            now.chain(before).collect::<Vec<_>>()
        });
        for (at, ((variables, _), own)) in PURPOSES.iter().zip(&secrets).enumerate() {
            let Some(variable) = variables.first() else { continue };
            let shared = PURPOSES
                .iter()
                .zip(&secrets)
                .take(at)
                .find(|(_, other)| other.iter().any(|s| own.contains(s)));
            if let Some(((others, _), _)) = shared
                && let Some(other) = others.first()
                && !self.report.names(variable.name())
            {
                self.broken(
                    *variable,
                    format!("must differ from {}, older ones included", other.name()),
                );
            }
        }
    }

    /// Whoever is in these networks is believed.
    fn networks(&mut self) {
        for variable in [&var::TRUSTED_PROXIES, &var::TRUSTED_INTERNAL_CIDRS] {
            let listed = self.from.get(variable).unwrap_or_default();
            let wide = listed.iter().find(|network| {
                let widest = if network.addr().is_ipv4() { WIDEST_V4 } else { WIDEST_V6 };
                network.prefix_len() < widest
            });
            if let Some(network) = wide {
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
            if self.from.get(variable).is_some_and(|url| url.scheme() != "https") {
                self.broken(variable, "must be https in production");
            }
        }
        if self
            .from
            .get(&var::CORS_ALLOWED_ORIGINS)
            .is_some_and(|origins| origins.contains(&ListedOrigin::Any))
        {
            self.broken(&var::CORS_ALLOWED_ORIGINS, "must not be `*` in production");
        }
    }

    fn stores(&mut self) {
        let (main, audit) = (
            self.from.get(&var::DATABASE_URL),
            self.from.get(&var::AUDIT_DATABASE_URL),
        );
        let cache = self.from.get(&var::REDIS_URL);
        let admin = self.from.get(&var::AUDIT_ADMIN_DATABASE_URL);
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

/// The first-party applications.
pub(super) fn oauth_clients(from: &Settings) -> Result<Clients, Vec<ClientsError>> {
    let clients = from.get(&var::OAUTH_FIRST_PARTY_CLIENTS);
    let redirect_uris = from.get(&var::OAUTH_REDIRECT_URIS).unwrap_or_default();
    let production = from.environment() == Some(Environment::Production);
    Clients::parse(clients.as_ref().map_or("", Secret::expose), &redirect_uris, production)
}

/// Methods beside the registry.
pub(super) fn extras(from: &Settings) -> Result<Extras, Vec<String>> {
    let Some(path) = from.get(&var::EXTRA_RPC_NAMESPACES_FILE) else {
        return Ok(Extras::default());
    };
    let text = std::fs::read_to_string(path).map_err(|error| vec![format!("cannot be read: {}", error.kind())])?;
    let unfiltered = from.get(&var::ALLOW_UNFILTERED_WILDCARDS) == Some(true);
    Extras::parse(&text, unfiltered).map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
}

/// The public address: what was set, or this machine's.
pub(super) fn base_url(from: &Settings, port: u16) -> Option<Url> {
    from.get(&var::BASE_URL)
        .or_else(|| Url::parse(&format!("http://localhost:{port}")).ok())
}

/// The audit store's address: what was set, or the database beside the main one, `_audit` at the end of its name.
pub(super) fn audit_url(from: &Settings) -> Option<Secret> {
    from.get(&var::AUDIT_DATABASE_URL).or_else(|| {
        let mut url = Url::parse(from.get(&var::DATABASE_URL)?.expose()).ok()?;
        let path = format!("{}_audit", url.path());
        url.set_path(&path);
        Some(Secret::new(url.as_str()))
    })
}

fn exceeds<T: PartialOrd>(value: Option<T>, limit: Option<T>) -> bool {
    matches!((value, limit), (Some(value), Some(limit)) if value > limit)
}

/// What is written in hex is judged by what it says.
fn is_weak(secret: &str) -> bool {
    let bytes = hex::decode(secret).ok().filter(|bytes| bytes.len() >= SECRET_MIN_BYTES);
    let bytes = bytes.unwrap_or_else(|| secret.as_bytes().to_vec());
    let mut seen = [false; 256];
    for byte in &bytes {
        if let Some(seen) = seen.get_mut(usize::from(*byte)) {
            *seen = true;
        }
    }
    bytes.len() < SECRET_MIN_BYTES || seen.iter().filter(|seen| **seen).count() < SECRET_MIN_DISTINCT
}

fn has_password(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.password().is_some_and(|password| !password.is_empty()))
}

/// What makes two addresses the same database, whatever their credentials and parameters.
fn database_of(url: &str) -> Option<(String, u16, String)> {
    let url = Url::parse(url).ok()?;
    Some((
        url.host_str()?.to_ascii_lowercase(),
        url.port().unwrap_or(5432),
        url.path().to_owned(),
    ))
}
