//! Configuration, parsed once at start (spec/85 sections 1 and 2).
//!
//! [`registry`] declares every variable. [`Config::load`] reads them from environment, file and defaults, applies the
//! rules of `rules` and returns either typed sections or *all* problems. Nothing else in the workspace reads the
//! environment.
//!
//! Invariant: a `Config` exists only if no rule is broken; a bad value never falls back to a default.

mod explorer_backend;
mod indexer;
pub mod kind;
pub mod registry;
mod report;
mod rules;
mod show;
mod source;
mod variable;

#[cfg(test)]
mod tests;

pub use explorer_backend::ExplorerBackendConfig;
pub use indexer::IndexerConfig;
pub use report::{EXIT_CONFIG, Problem, Report};
pub use show::{print, reference};
pub use source::{ProcessEnv, Settings, Source};
pub use variable::{Entry, Redaction, Section};

use gw_audit::Stream;
use gw_evm::CustomMethods;
use gw_http::{AllowedOrigins, Origin};
use gw_identity::ResolverConfig;
use gw_identity::oauth::Clients;
use gw_policy::{
    PolicySettings,
    disclosure::{ClassCheck, GrantLimits},
};
use gw_types::{ExternalId, Seconds, Secret};
use gw_zk::{circuit::Circuit, did::Network};
use ipnet::IpNet;
use kind::{ListedOrigin, Rate};
use registry as var;
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use url::Url;

kind::words! {
    /// Kind of deployment.
    Environment, ENVIRONMENT_KIND, "`development`, `test` or `production`" {
        /// A developer's machine.
        Development = "development",
        /// Automated tests.
        Test = "test",
        /// Real data.
        Production = "production",
    }
}

/// The identity networks that have their own variables (decision 15): the gateway's name and the wallets' name of each.
const IDP: (&str, &str) = ("idp:main", "privado:main");
const ALTNET: (&str, &str) = ("altnet:main", "billions:main");

/// The binary that runs (HD19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// `ledger-gateway`: contains no mock code.
    Release,
    /// `ledger-gateway-dev`: contains the mock login and runs in development only.
    Mock,
}

/// The whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Kind of deployment.
    pub environment: Environment,
    /// Directory of the embedded stores, the journal and the development secrets.
    pub data_dir: PathBuf,
    /// Listeners and origins.
    pub edge: EdgeConfig,
    /// Rate, connection and concurrency limits.
    pub limits: Limits,
    /// Tokens and logins.
    pub identity: Identity,
    /// Administration.
    pub admin: Admin,
    /// Upstream node.
    pub node: Node,
    /// Access and privacy settings, with the profile already applied.
    pub policy_settings: PolicySettings,
    /// Disclosure of users' data.
    pub disclosure: DisclosureConfig,
    /// JSON-RPC methods that are not in the registry.
    pub custom_methods: Arc<CustomMethods>,
    /// HTTP status of a denial on `/rpc` (decision 14).
    pub deny_status: u16,
    /// Policy store.
    pub store: Store,
    /// The explorer.
    pub explorer: Explorer,
    /// Journal and audit store.
    pub audit: Audit,
    /// Logs and shutdown.
    pub operation: Operation,
}

/// Listeners and origins.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
    /// The public listener.
    pub listen: SocketAddr,
    /// The internal listener, if configured (HD16).
    pub internal: Option<SocketAddr>,
    /// Public address, without a trailing slash.
    pub base_url: String,
    /// Address of the web front end.
    pub frontend_url: Option<Url>,
    /// Origins whose pages may use the cookie and read responses across origins.
    pub origins: AllowedOrigins,
    /// Proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Networks that count as internal, in addition to the private ranges.
    pub internal_networks: Vec<IpNet>,
    /// Host names under which internal routes answer, in addition to the local machine and the listener's address.
    pub internal_hosts: Vec<String>,
}

/// Disclosure of users' data (spec/50). `DISCLOSURE_STRICT_SCOPE` is one of the policy settings.
#[derive(Clone, Debug)]
pub struct DisclosureConfig {
    /// Limits of approvals.
    pub grant_limits: GrantLimits,
    /// Whether a request for full disclosure needs a legal basis.
    pub requires_legal_basis_for_full: bool,
    /// Seconds to whose multiples block times are rounded down below full disclosure; 0 shows them exactly.
    pub time_bucket: u32,
    /// How long after its end the secret of a grant is kept.
    pub secret_retention: Duration,
    /// Networks that webhooks may be in, apart from public addresses.
    pub webhook_networks: Vec<IpNet>,
}

impl DisclosureConfig {
    /// How long after its end the secret of a grant is kept, in whole seconds.
    pub fn secret_retention(&self) -> Seconds {
        Seconds(u32::try_from(self.secret_retention.as_secs()).unwrap_or(u32::MAX))
    }
}

/// Rate, connection and concurrency limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections to the public listener.
    pub connections: u32,
    /// Connections of one address to the public listener.
    pub connections_per_address: u32,
    /// Connections to the internal listener.
    pub internal_connections: u32,
    /// Bytes of large responses held in memory at once.
    pub answer_bytes: u64,
    /// Bytes of large responses held in memory at once for one caller.
    pub answer_bytes_per_caller: u64,
    /// Requests in flight per caller.
    pub concurrent: u32,
    /// Requests in flight per anonymous address.
    pub concurrent_anonymous: u32,
    /// Login attempts per address.
    pub auth: Rate,
    /// JSON-RPC requests per caller.
    pub rpc: Rate,
    /// JSON-RPC requests per anonymous address.
    pub anonymous: Rate,
    /// Elements of a JSON-RPC batch.
    pub batch: u16,
}

/// Tokens and logins. A secret that is `None` is generated and kept in the data directory (development and test only).
#[derive(Clone, Debug)]
pub struct Identity {
    /// DID of the verifier.
    pub verifier: Option<ExternalId>,
    /// State contracts and nodes of the identity networks.
    pub resolvers: Vec<ResolverConfig>,
    /// Directory with a verification key that replaces the official one (development only).
    pub own_key_dir: Option<PathBuf>,
    /// Circuits of login proofs.
    pub auth_circuits: Vec<Circuit>,
    /// Whether only first-party applications may introspect tokens.
    pub introspect_require_client: bool,
    /// Node of the chain with the ENS contracts.
    pub ens_node: Option<Url>,
    /// Page where users obtain the humanity credential.
    pub humanity_verify_url: Option<Url>,
    /// Signs access tokens.
    pub access_secret: Option<Secret>,
    /// Older access-token secrets, accepted for validation only.
    pub access_secret_previous: Vec<Secret>,
    /// Signs refresh tokens.
    pub refresh_secret: Option<Secret>,
    /// Older refresh-token secrets, accepted for validation only.
    pub refresh_secret_previous: Vec<Secret>,
    /// How access tokens are signed.
    pub access_algorithm: var::TokenAlgorithm,
    /// Lifetime of an access token (decision 35).
    pub access_ttl: Duration,
    /// Lifetime of a refresh token (decision 35).
    pub refresh_ttl: Duration,
    /// Whether users who log in with a proof have KYC from their first login on.
    pub auto_kyc: bool,
    /// The enterprise directory, if configured.
    pub directory: Option<Directory>,
    /// Whether mock tokens are accepted.
    pub mock_login: bool,
    /// Applications that may obtain tokens by OAuth.
    pub oauth_clients: Clients,
    /// Whether every OAuth application must use a proof key (PKCE).
    pub oauth_require_pkce: bool,
    /// Whether users may create personal RPC URLs.
    pub personal_urls: bool,
    /// The credential that every login must present (Path B); `None` means Path A.
    pub humanity: Option<Humanity>,
}

/// The credential that every login must present (Path B). Files are read at start.
#[derive(Clone, Debug)]
pub struct Humanity {
    /// Accepted issuers.
    pub issuers: Vec<ExternalId>,
    /// Address of the JSON-LD schema.
    pub schema_url: String,
    /// File to read instead of fetching `schema_url`.
    pub schema_file: Option<PathBuf>,
    /// Expected SHA-256 of the schema document.
    pub schema_sha256: Option<[u8; 32]>,
    /// The credential type.
    pub type_name: String,
    /// JSON file with the `credentialSubject` predicate.
    pub query_file: PathBuf,
    /// The circuit of the proof.
    pub circuit: String,
    /// Whether each predicate gets its own proof.
    pub split: bool,
    /// Session of the nullifier that limits each person to one account.
    pub nullifier_session: Option<String>,
    /// Gateway that serves `ipfs://` documents.
    pub ipfs_gateway: Url,
}

/// The enterprise directory.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Address of the directory, without a trailing slash.
    pub authority: String,
    /// Client id of this service's registration in the directory.
    pub client_id: String,
    /// Client secret of the registration.
    pub client_secret: Secret,
    /// Tenant that users log in to: an id, a domain, `organizations` or `common`.
    pub tenant: String,
    /// Required audience of the tokens of service principals.
    pub sp_audience: String,
    /// Applications that may log in as service principals; all of an allowed tenant if empty.
    pub sp_clients: Vec<String>,
    /// Application role that service principals must hold.
    pub sp_role: Option<String>,
    /// Whether users have KYC from their first login on.
    pub auto_kyc_user: bool,
    /// Whether service principals have KYC from their first login on.
    pub auto_kyc_service_principal: bool,
}

/// Administration.
#[derive(Clone, Debug)]
pub struct Admin {
    /// Super administrator's token; `None` means that one is generated and printed at start (development and test).
    pub token: Option<Secret>,
    /// Older super administrator's token, still accepted.
    pub token_previous: Option<Secret>,
    /// Platform administrator's token: creates organizations, reads no data.
    pub operator_token: Option<Secret>,
    /// Whether only membership in an organization-admin group makes an administrator.
    pub require_org_admin_group: bool,
    /// Whether organization administrators may grant the `admin` claim.
    pub claim_delegation: bool,
    /// Whether deleting an organization that has contracts or members needs a confirmation.
    pub confirm_deletes: bool,
}

/// The upstream node.
#[derive(Clone, Debug)]
pub struct Node {
    /// JSON-RPC addresses: the first is preferred, the others are standbys.
    pub urls: Vec<Url>,
    /// Required chain id.
    pub expected_chain: Option<u64>,
    /// Idle connections per address: the smaller of the two limits.
    pub idle_connections: u32,
    /// Connections per address; `None` is no limit.
    pub max_connections: Option<u32>,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// API key sent to the node for groups without their own key.
    pub api_key: Option<Secret>,
    /// Header that carries the API key.
    pub api_key_header: http::HeaderName,
    /// Encrypts the groups' API keys at rest.
    pub key_encryption: Option<Secret>,
    /// Older key of `key_encryption`, used for decryption only.
    pub key_encryption_previous: Option<Secret>,
    /// Timeout of a trace of a send, a gas estimate or a client's own trace.
    pub trace_timeout: Duration,
    /// Timeout of a trace of `eth_call`.
    pub call_trace_timeout: Duration,
}

/// Policy store.
#[derive(Clone, Debug)]
pub struct Store {
    /// Address of the database; `None` is a file in the data directory.
    pub url: Option<Secret>,
    /// Most open connections.
    pub max_connections: u32,
    /// Longest lifetime of a connection.
    pub max_lifetime: Duration,
    /// Whether the service applies migrations at start.
    pub migrate: var::Migrate,
    /// Address of the cache that instances share; `None` is this process's memory.
    pub cache_url: Option<Secret>,
}

/// The explorer.
#[derive(Clone, Debug)]
pub struct Explorer {
    /// The database of the chain; `None` means that the data API is off (E1).
    pub database: Option<gw_chain_store::Location>,
    /// The key of the explorer's backend.
    pub backend_key: Option<Secret>,
    /// Whether a reset or another chain removes all indexed blocks (X6).
    pub force_reindex: bool,
    /// Whether internal transactions are indexed (X10).
    pub traces: bool,
    /// How many blocks stay above the newest indexed block (X3).
    pub confirmations: u64,
    /// How many blocks are read from the node at the same time.
    pub concurrent_reads: NonZeroUsize,
}

/// Journal and audit store.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Address of the audit store; `None` is a file in the data directory.
    pub url: Option<Secret>,
    /// Directory of the journal.
    pub journal_dir: PathBuf,
    /// Most unsealed bytes in the journal.
    pub journal_max_bytes: u64,
    /// What the gateway does when the journal is full.
    pub full_policy: var::FullPolicy,
    /// Which responses wait until their record is on disk.
    pub durability: var::Durability,
    /// Signs checkpoints.
    pub checkpoint_key: Option<Secret>,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// Public halves of older checkpoint keys.
    pub previous_keys: Vec<[u8; 32]>,
    /// Address that signed checkpoints are posted to.
    pub witness: Option<Url>,
    /// Time between verifications; zero switches them off.
    pub verify_interval: Duration,
    /// Address that verification findings are posted to.
    pub tamper_webhook: Option<Url>,
    /// Whether request parameters are recorded.
    pub log_params: bool,
    /// How long each kind of entry is kept.
    pub retention: Retention,
}

/// How long entries of the audit log are kept; `None` means forever.
#[derive(Clone, Debug)]
pub struct Retention {
    /// Address of the audit store with a role that may delete.
    pub admin_url: Option<Secret>,
    /// Calls and retrievals.
    pub access: Option<Duration>,
    /// Compliance decisions.
    pub compliance: Option<Duration>,
    /// Changes by administrators.
    pub admin: Option<Duration>,
    /// Disclosure reads and state transitions.
    pub disclosure: Option<Duration>,
    /// Security events.
    pub security: Option<Duration>,
    /// Travel-rule records; this version has none.
    pub travel_records: Option<Duration>,
    /// Time between two sweeps.
    pub interval: Duration,
    /// Most entries for calls and retrievals; 0 is no limit.
    pub max_access_rows: u64,
}

impl Retention {
    /// How long entries of a stream are kept.
    pub fn for_stream(&self, stream: Stream) -> Option<Duration> {
        match stream {
            Stream::Admin => self.admin,
            Stream::Access => self.access,
            Stream::Compliance => self.compliance,
            Stream::Disclosure => self.disclosure,
            Stream::Security => self.security,
        }
    }
}

/// Logs and shutdown.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Least severe level that is logged.
    pub log_level: var::LogLevel,
    /// Format of log lines.
    pub log_format: var::LogFormat,
    /// Time between reporting "not ready" and closing the listener.
    pub shutdown_delay: Duration,
    /// Time that running requests have to end.
    pub shutdown_timeout: Duration,
}

impl Config {
    /// Reads, checks and parses the configuration.
    ///
    /// # Errors
    ///
    /// A [`Report`] with every problem, if any value is missing, malformed or breaks a rule.
    pub fn load(env: &ProcessEnv, build: Build) -> Result<Self, Report> {
        let (settings, report) = settings(env, build);
        report.into_result(|| Self::typed(&settings))
    }

    fn typed(settings: &Settings) -> Result<Self, &'static str> {
        let environment = need(settings, &var::ENVIRONMENT)?;
        let data_dir = need(settings, &var::DATA_DIR)?;
        let port = need(settings, &var::PORT)?;
        let address: IpAddr = need(settings, &var::BIND_ADDRESS)?;
        let concurrent = need(settings, &var::MAX_CONCURRENT_REQUESTS)?;
        let answer_bytes = need(settings, &var::ANSWER_BYTES_MAX)?;
        let max_connections = need(settings, &var::DB_MAX_OPEN_CONNS)?;
        let base_url = rules::base_url(settings, port).ok_or(var::BASE_URL.name())?;
        Ok(Self {
            environment,
            edge: EdgeConfig {
                listen: SocketAddr::new(address, port),
                internal: settings.get(&var::INTERNAL_BIND_ADDR),
                base_url: base_url.as_str().trim_end_matches('/').to_owned(),
                frontend_url: settings.get(&var::FRONTEND_URL),
                origins: origins(settings, &base_url, environment)?,
                trusted_proxies: settings.get(&var::TRUSTED_PROXIES).unwrap_or_default(),
                internal_networks: settings.get(&var::TRUSTED_INTERNAL_CIDRS).unwrap_or_default(),
                internal_hosts: settings.get(&var::INTERNAL_HOSTS).unwrap_or_default(),
            },
            limits: Limits {
                connections: need(settings, &var::MAX_CONNECTIONS)?,
                connections_per_address: need(settings, &var::MAX_CONNECTIONS_PER_ADDRESS)?,
                internal_connections: need(settings, &var::MAX_INTERNAL_CONNECTIONS)?,
                answer_bytes,
                answer_bytes_per_caller: settings.get(&var::ANSWER_BYTES_PER_CALLER).unwrap_or(answer_bytes / 4),
                concurrent,
                concurrent_anonymous: settings
                    .get(&var::MAX_CONCURRENT_ANONYMOUS_REQUESTS)
                    .unwrap_or(concurrent),
                auth: need(settings, &var::RATE_LIMIT_AUTH)?,
                rpc: need(settings, &var::RATE_LIMIT_RPC)?,
                anonymous: need(settings, &var::RATE_LIMIT_ANON)?,
                batch: need(settings, &var::RPC_BATCH_MAX)?,
            },
            identity: Identity {
                verifier: settings.get(&var::VERIFIER_ID),
                resolvers: resolvers(settings)?,
                own_key_dir: settings.get(&var::IDP_VERIFICATION_KEYS_DIR),
                auth_circuits: need(settings, &var::IDP_AUTH_CIRCUITS)?,
                introspect_require_client: need(settings, &var::INTROSPECT_REQUIRE_CLIENT)?,
                ens_node: settings.get(&var::ENS_RESOLVER_URL),
                humanity_verify_url: settings.get(&var::HUMANITY_VERIFY_URL),
                access_secret: settings.get(&var::JWT_SECRET),
                access_secret_previous: settings.get(&var::JWT_SECRET_PREVIOUS).unwrap_or_default(),
                refresh_secret: settings.get(&var::JWT_REFRESH_SECRET),
                refresh_secret_previous: settings.get(&var::JWT_REFRESH_SECRET_PREVIOUS).unwrap_or_default(),
                access_algorithm: need(settings, &var::ACCESS_TOKEN_ALGORITHM)?,
                access_ttl: need(settings, &var::ACCESS_TOKEN_TTL)?,
                refresh_ttl: need(settings, &var::REFRESH_TOKEN_TTL)?,
                auto_kyc: need(settings, &var::AUTO_KYC_IDP)?,
                directory: directory(settings)?,
                mock_login: need(settings, &var::ALLOW_MOCK_LOGIN)?,
                oauth_clients: rules::oauth_clients(settings).map_err(|_| var::OAUTH_FIRST_PARTY_CLIENTS.name())?,
                oauth_require_pkce: need(settings, &var::OAUTH_REQUIRE_PKCE)?,
                personal_urls: need(settings, &var::PERSONAL_RPC_URLS)?,
                humanity: humanity(settings)?,
            },
            admin: Admin {
                token: settings.get(&var::ADMIN_API_TOKEN),
                token_previous: settings.get(&var::ADMIN_API_TOKEN_PREVIOUS),
                operator_token: settings.get(&var::OPERATOR_API_TOKEN),
                require_org_admin_group: need(settings, &var::ADMIN_REQUIRE_ORG_ADMIN_GROUP)?,
                claim_delegation: need(settings, &var::ADMIN_CLAIM_DELEGATION)?,
                confirm_deletes: need(settings, &var::ADMIN_CONFIRM_DELETES)?,
            },
            node: node(settings)?,
            policy_settings: policy_settings(settings)?,
            disclosure: DisclosureConfig {
                grant_limits: GrantLimits {
                    max_grant_hours: need(settings, &var::DISCLOSURE_MAX_GRANT_HOURS)?,
                },
                requires_legal_basis_for_full: need(settings, &var::DISCLOSURE_REQUIRE_LEGAL_BASIS_FULL)?,
                time_bucket: need(settings, &var::DISCLOSURE_TIME_BUCKET_SECONDS)?,
                secret_retention: need(settings, &var::DISCLOSURE_SECRET_RETENTION)?,
                webhook_networks: settings.get(&var::WEBHOOK_ALLOWED_NETWORKS).unwrap_or_default(),
            },
            custom_methods: Arc::new(
                rules::custom_methods(settings).map_err(|_| var::EXTRA_RPC_NAMESPACES_FILE.name())?,
            ),
            deny_status: need(settings, &var::RPC_DENY_HTTP_STATUS)?,
            store: Store {
                max_connections,
                max_lifetime: need(settings, &var::DB_CONN_MAX_LIFETIME)?,
                migrate: need(settings, &var::MIGRATE)?,
                url: settings.get(&var::DATABASE_URL),
                cache_url: settings.get(&var::REDIS_URL),
            },
            explorer: explorer(settings)?,
            audit: Audit {
                url: rules::audit_url(settings),
                journal_dir: settings
                    .get(&var::AUDIT_BUFFER_DIR)
                    .unwrap_or_else(|| data_dir.join("audit")),
                journal_max_bytes: need(settings, &var::AUDIT_BUFFER_MAX_BYTES)?,
                full_policy: need(settings, &var::AUDIT_FULL_POLICY)?,
                durability: need(settings, &var::AUDIT_DURABILITY)?,
                checkpoint_key: settings.get(&var::AUDIT_CHECKPOINT_KEY),
                checkpoint_interval: need(settings, &var::AUDIT_CHECKPOINT_INTERVAL)?,
                previous_keys: settings
                    .get(&var::AUDIT_CHECKPOINT_PUBLIC_KEYS_PREVIOUS)
                    .unwrap_or_default(),
                witness: settings.get(&var::AUDIT_WITNESS_URL),
                verify_interval: need(settings, &var::AUDIT_INTEGRITY_VERIFY_INTERVAL)?,
                tamper_webhook: settings.get(&var::AUDIT_TAMPER_WEBHOOK_URL),
                log_params: need(settings, &var::AUDIT_LOG_PARAMS)?,
                retention: Retention {
                    admin_url: settings.get(&var::AUDIT_ADMIN_DATABASE_URL),
                    access: need(settings, &var::RETENTION_ACCESS_LOGS)?,
                    compliance: need(settings, &var::RETENTION_COMPLIANCE_LOGS)?,
                    admin: need(settings, &var::RETENTION_RBAC_AUDIT_LOGS)?,
                    disclosure: need(settings, &var::RETENTION_DISCLOSURE_LOGS)?,
                    security: need(settings, &var::RETENTION_SECURITY_LOGS)?,
                    travel_records: need(settings, &var::RETENTION_TRAVEL_RECORDS)?,
                    interval: need(settings, &var::RETENTION_CLEANUP_INTERVAL)?,
                    max_access_rows: need(settings, &var::MAX_ACCESS_LOG_ROWS)?,
                },
            },
            operation: operation(settings)?,
            data_dir,
        })
    }
}

/// The texts of all variables and all problems with them.
pub fn settings(env: &ProcessEnv, build: Build) -> (Settings, Report) {
    let mut report = Report::default();
    let settings = Settings::read(env, var::all(), &mut report);
    rules::check(&settings, build, &mut report);
    (settings, report)
}

/// The value of a required variable, or its name if it has no value.
fn need<T>(settings: &Settings, variable: &variable::Variable<T>) -> Result<T, &'static str> {
    settings.get(variable).ok_or(variable.name())
}

fn node(settings: &Settings) -> Result<Node, &'static str> {
    Ok(Node {
        urls: need(settings, &var::NODE_URL)?,
        expected_chain: settings.get(&var::EXPECTED_CHAIN_ID),
        idle_connections: need(settings, &var::NODE_HTTP_MAX_IDLE_CONNS)?
            .min(need(settings, &var::NODE_HTTP_MAX_IDLE_CONNS_PER_HOST)?),
        max_connections: Some(need(settings, &var::NODE_HTTP_MAX_CONNS_PER_HOST)?).filter(|limit| *limit > 0),
        idle_timeout: need(settings, &var::NODE_HTTP_IDLE_CONN_TIMEOUT)?,
        api_key: settings.get(&var::RPC_API_KEY),
        api_key_header: need(settings, &var::RPC_API_KEY_HEADER)?,
        key_encryption: settings.get(&var::RPC_API_KEY_ENCRYPTION_KEY),
        key_encryption_previous: settings.get(&var::RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS),
        trace_timeout: need(settings, &var::TRACE_TIMEOUT)?,
        call_trace_timeout: need(settings, &var::ETH_CALL_TRACE_TIMEOUT)?,
    })
}

fn explorer(settings: &Settings) -> Result<Explorer, &'static str> {
    Ok(Explorer {
        database: settings.get(&var::EXPLORER_DATABASE_URL),
        backend_key: settings.get(&var::EXPLORER_BACKEND_KEY),
        force_reindex: need(settings, &var::FORCE_REINDEX)?,
        traces: need(settings, &var::ENABLE_TRACING)?,
        confirmations: need(settings, &var::EXPLORER_CONFIRMATIONS)?,
        concurrent_reads: need(settings, &var::EXPLORER_CONCURRENT_READS)?,
    })
}

fn operation(settings: &Settings) -> Result<Operation, &'static str> {
    Ok(Operation {
        log_level: need(settings, &var::LOG_LEVEL)?,
        log_format: need(settings, &var::LOG_FORMAT)?,
        shutdown_delay: need(settings, &var::SHUTDOWN_DELAY)?,
        shutdown_timeout: need(settings, &var::SHUTDOWN_TIMEOUT)?,
    })
}

fn humanity(settings: &Settings) -> Result<Option<Humanity>, &'static str> {
    if !need(settings, &var::REQUIRE_PROOF_OF_HUMANITY)? {
        return Ok(None);
    }
    Ok(Some(Humanity {
        issuers: need(settings, &var::ALTNET_ISSUER_DID)?,
        schema_url: need(settings, &var::ALTNET_CREDENTIAL_SCHEMA_URL)?,
        schema_file: settings.get(&var::ALTNET_CREDENTIAL_SCHEMA_FILE),
        schema_sha256: settings.get(&var::ALTNET_CREDENTIAL_SCHEMA_SHA256),
        type_name: need(settings, &var::ALTNET_CREDENTIAL_TYPE)?,
        query_file: need(settings, &var::ALTNET_CREDENTIAL_QUERY_FILE)?,
        circuit: need(settings, &var::IDP_CIRCUIT_ID)?,
        split: need(settings, &var::IDP_SPLIT_PREDICATES)?,
        nullifier_session: settings.get(&var::IDP_NULLIFIER_SESSION),
        ipfs_gateway: need(settings, &var::IPFS_GATEWAY)?,
    }))
}

/// Origins allowed to call with credentials: those of BASE_URL, of FRONTEND_URL and of CORS_ALLOWED_ORIGINS.
fn origins(settings: &Settings, base_url: &Url, environment: Environment) -> Result<AllowedOrigins, &'static str> {
    let origin = |url: &Url, name| Origin::from_url(url.as_str()).map_err(|_| name);
    let frontend = settings.get(&var::FRONTEND_URL);
    let listed = settings.get(&var::CORS_ALLOWED_ORIGINS);
    let any_localhost = match &listed {
        Some(listed) => listed.contains(&ListedOrigin::Any),
        None => environment != Environment::Production,
    };
    let single = |listed| match listed {
        ListedOrigin::One(origin) => Some(origin),
        ListedOrigin::Any => None,
    };
    Ok(AllowedOrigins {
        base: origin(base_url, var::BASE_URL.name())?,
        frontend: frontend.map(|url| origin(&url, var::FRONTEND_URL.name())).transpose()?,
        listed: listed.into_iter().flatten().filter_map(single).collect(),
        any_localhost,
    })
}

fn directory(settings: &Settings) -> Result<Option<Directory>, &'static str> {
    let Some(client_id) = settings.get(&var::DIRECTORY_CLIENT_ID) else {
        return Ok(None);
    };
    Ok(Some(Directory {
        authority: need(settings, &var::DIRECTORY_AUTHORITY_HOST)?
            .as_str()
            .trim_end_matches('/')
            .to_owned(),
        client_secret: need(settings, &var::DIRECTORY_CLIENT_SECRET)?,
        tenant: need(settings, &var::DIRECTORY_TENANT_ID)?,
        sp_audience: settings
            .get(&var::DIRECTORY_SP_AUDIENCE)
            .unwrap_or_else(|| client_id.clone()),
        sp_clients: settings.get(&var::DIRECTORY_SP_CLIENTS).unwrap_or_default(),
        sp_role: settings.get(&var::DIRECTORY_SP_ROLE),
        auto_kyc_user: need(settings, &var::AUTO_KYC_DIRECTORY_USER)?,
        auto_kyc_service_principal: need(settings, &var::AUTO_KYC_DIRECTORY_SERVICE_PRINCIPAL)?,
        client_id,
    }))
}

/// The identity networks: IDP_*, then ALTNET_* if it has a node, then IDP_EXTRA_RESOLVERS (DI-5).
fn resolvers(settings: &Settings) -> Result<Vec<ResolverConfig>, &'static str> {
    let row = |(name, key), contract, node: &Url, fallback: Option<Url>, variable| {
        let nodes = [Some(node.clone()), fallback]
            .into_iter()
            .flatten()
            .map(|url| url.as_str().parse());
        Ok::<_, &'static str>(ResolverConfig {
            name: str::to_owned(name),
            network: Network::from_key(key).ok_or(variable)?,
            contract,
            nodes: nodes.collect::<Result<_, _>>().map_err(|_| variable)?,
        })
    };
    let mut rows = vec![row(
        IDP,
        need(settings, &var::IDP_STATE_CONTRACT)?,
        &need(settings, &var::IDP_RPC_URL)?,
        settings.get(&var::IDP_RPC_FALLBACK_URL),
        var::IDP_RPC_URL.name(),
    )?];
    if let Some(node) = settings.get(&var::ALTNET_RPC_URL) {
        let contract = need(settings, &var::ALTNET_STATE_CONTRACT)?;
        let fallback = settings.get(&var::ALTNET_RPC_FALLBACK_URL);
        rows.push(row(ALTNET, contract, &node, fallback, var::ALTNET_RPC_URL.name())?);
    }
    rows.extend(settings.get(&var::IDP_EXTRA_RESOLVERS).unwrap_or_default());
    Ok(rows)
}

fn policy_settings(settings: &Settings) -> Result<PolicySettings, &'static str> {
    let profile = match need(settings, &var::PRIVACY_PROFILE)? {
        var::PrivacyProfile::Spec => PolicySettings::SPEC,
        var::PrivacyProfile::Strict => PolicySettings::STRICT,
    };
    Ok(PolicySettings {
        one_sided: settings.get(&var::PRIVACY_ONE_SIDED).unwrap_or(profile.one_sided),
        participant_logs: settings
            .get(&var::PRIVACY_PARTICIPANT_LOGS)
            .unwrap_or(profile.participant_logs),
        no_abi: settings.get(&var::PRIVACY_NO_ABI).unwrap_or(profile.no_abi),
        shared_logs: settings.get(&var::PRIVACY_SHARED_LOGS).unwrap_or(profile.shared_logs),
        dynamic_fields: settings
            .get(&var::PRIVACY_DYNAMIC_FIELDS)
            .unwrap_or(profile.dynamic_fields),
        alias_strip: need(settings, &var::PRIVACY_ALIAS_STRIP)?,
        admin_tx: need(settings, &var::PRIVACY_ADMIN_TX)?,
        address_query: need(settings, &var::ADDRESS_QUERY_STRICT)?,
        hide_block_roots: need(settings, &var::HIDE_BLOCK_ROOTS)?,
        org_admin_view_user_txs: need(settings, &var::ORG_ADMIN_VIEW_USER_TXS)?,
        admin_claim_sees_all: need(settings, &var::ADMIN_CLAIM_SEES_ALL)?,
        anchor: need(settings, &var::PRIVACY_ANCHOR)?,
        hide_base_fee: need(settings, &var::HIDE_BASE_FEE)?,
        kyc_gate: need(settings, &var::KYC_GATE)?,
        raw_sender_policy: need(settings, &var::RAW_SENDER_POLICY)?,
        deployments: need(settings, &var::DEPLOYMENTS)?,
        mined_trace: need(settings, &var::MINED_TRACE)?,
        raw_nonce_gap_max: need(settings, &var::RAW_NONCE_GAP_MAX)?,
        disclosure_classes: if need(settings, &var::DISCLOSURE_STRICT_SCOPE)? {
            ClassCheck::Strict
        } else {
            ClassCheck::ActivityOnly
        },
        reservation_ttl: profile.reservation_ttl,
        eth_call_tracing: need(settings, &var::RUNTIME_TRACING_ETH_CALL_ENABLED)?,
        intra_org_grant_tracing: need(settings, &var::RUNTIME_TRACING_INTRA_ORG_GRANTS_ENABLED)?,
    })
}
