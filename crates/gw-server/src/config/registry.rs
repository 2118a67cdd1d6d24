//! Declares every variable that the gateway reads: name, type, default, requirements and meaning.
//!
//! The reference `docs/configuration.md` is generated from this list. The gateway reads no variable outside it.

use super::{
    Environment,
    kind::{self, Rate, number, size, span, words, words_of},
    variable::{Entry, Kind, Section::*, Variable},
};
use gw_identity::ResolverConfig;
use gw_policy::settings::{
    AdminTx, Deployments, DynamicFields, HiddenBalanceMode, HiddenTransferMode, KycGate, MinedTrace, MissingAbiMode,
    PartialRowMode, RawSenderPolicy, TransactionLogs,
};
use gw_types::{Address, ExternalId, Secret};
use gw_zk::circuit::Circuit;
use ipnet::IpNet;
use std::{net::IpAddr, net::SocketAddr, path::PathBuf, time::Duration};
use url::Url;

/// Declares the statics and [`ALL`] from one list, so that they cannot differ.
macro_rules! registry {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $variable:expr;)*) => {
        $($(#[doc = $doc])* pub static $name: Variable<$type> = $variable.declared(stringify!($name), concat!($($doc),*));)*

        /// The registry, in the order of the reference.
        pub static ALL: &[&dyn Entry] = &[$(&$name),*];
    };
}

/// A kind for a single variable, written inline.
macro_rules! kind {
    ($type:ty, $rule:literal, $parse:expr) => {{
        static KIND: Kind<$type> = Kind {
            rule: $rule,
            parse: $parse,
        };
        &KIND
    }};
}

/// Seconds in an hour.
const HOUR: u64 = 3600;
/// Seconds in a day.
const DAY: u64 = 24 * HOUR;

/// Requirements on every secret in production, older secrets included (RTS7).
const STRONG: &str =
    "in production at least 32 bytes, 8 of them distinct, and different from every other secret, older ones included";
const STRONG_EACH: &str = "in production each at least 32 bytes, 8 of them distinct, and different from every other secret, older ones included";

/// Limits on networks whose peers are trusted (RTS7).
const NARROW: &str = "in production no network wider than /8 (IPv6: /7): list only your own machines";

registry! {
    /// Kind of deployment. Production refuses to start with weak or missing settings.
    ENVIRONMENT: Environment = Variable::new(Deployment, &super::ENVIRONMENT_KIND).default("development");
    /// Directory of the embedded stores, the journal and the development secrets.
    DATA_DIR: PathBuf = Variable::new(Deployment, &kind::PATH).default("./data");

    /// TCP port of the public listener.
    PORT: u16 = Variable::new(Edge, &kind::PORT).default("8080");
    /// Address of the public listener.
    BIND_ADDRESS: IpAddr = Variable::new(Edge, &kind::ADDRESS).default_by_environment("0.0.0.0", "127.0.0.1");
    /// Second listener for `/metrics`, readiness details and the admin API; if set, the public listener no longer
    /// serves them.
    INTERNAL_BIND_ADDR: SocketAddr = Variable::new(Edge, &kind::SOCKET).rule("another port than PORT");
    /// Public address of this service: the issuer of its tokens and the base of callback addresses.
    BASE_URL: Url = Variable::new(Edge, &kind::WEB).derived("`http://localhost:<PORT>`").required().rule("https in production");
    /// Address of the web front end.
    FRONTEND_URL: Url = Variable::new(Edge, &kind::WEB).rule("https in production");
    /// Browser origins that may call with credentials, in addition to the origins of BASE_URL and FRONTEND_URL.
    CORS_ALLOWED_ORIGINS: Vec<kind::ListedOrigin> = Variable::new(Edge, &kind::ORIGINS)
        .derived("none in production, `*` elsewhere").rule("`*` means every origin of this machine and is rejected in production");
    /// Proxies whose forwarding headers are trusted.
    TRUSTED_PROXIES: Vec<IpNet> = Variable::new(Edge, &kind::NETWORKS).rule(NARROW);
    /// Networks that count as internal, in addition to the private ranges.
    TRUSTED_INTERNAL_CIDRS: Vec<IpNet> = Variable::new(Edge, &kind::NETWORKS).rule(NARROW);

    /// Connections to the public listener. At the limit, a new connection replaces the longest idle connection of the
    /// network with the most connections.
    MAX_CONNECTIONS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 16 to 1000000", |t| number(t, 16, 1_000_000))).default("16384")
        .rule("lowered at start, with a warning, if the limit of open files is too low");
    /// Connections of one IPv4 address or IPv6 /64. An IPv4 /24 may have ten times as many, an IPv6 /56 three times and
    /// an IPv6 /48 nine times as many. Does not apply to TRUSTED_PROXIES.
    MAX_CONNECTIONS_PER_ADDRESS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 1 to 1000000", |t| number(t, 1, 1_000_000))).default("512");
    /// Connections to the internal listener; the public listener cannot use them.
    MAX_INTERNAL_CONNECTIONS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 4 to 100000", |t| number(t, 4, 100_000))).default("256");
    /// Bytes of large responses (over 64 KiB) held in memory at once, from the node's first byte until the client has
    /// the last.
    ANSWER_BYTES_MAX: u64 = Variable::new(Limits, kind!(u64, "a size of at least 1MiB", |t| size(t, 1 << 20))).default("512MiB");
    /// Bytes of large responses held in memory at once for one caller; a single response may be larger.
    ANSWER_BYTES_PER_CALLER: u64 = Variable::new(Limits, kind!(u64, "a size of at least 1MiB", |t| size(t, 1 << 20)))
        .derived("a quarter of ANSWER_BYTES_MAX");
    /// Requests in flight per caller.
    MAX_CONCURRENT_REQUESTS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 1 to 100000", |t| number(t, 1, 100_000))).default("50");
    /// Requests in flight per anonymous address.
    MAX_CONCURRENT_ANONYMOUS_REQUESTS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 1 to 100000", |t| number(t, 1, 100_000)))
        .derived("MAX_CONCURRENT_REQUESTS");
    /// Login attempts per address.
    RATE_LIMIT_AUTH: Rate = Variable::new(Limits, &kind::RATE).default_by_environment("10/min", "1000/min");
    /// JSON-RPC requests per caller.
    RATE_LIMIT_RPC: Rate = Variable::new(Limits, &kind::RATE).default("off");
    /// JSON-RPC requests per anonymous address.
    RATE_LIMIT_ANON: Rate = Variable::new(Limits, &kind::RATE).default("60/min");
    /// Elements of a JSON-RPC batch; 0 switches batches off.
    RPC_BATCH_MAX: u16 = Variable::new(Limits, kind!(u16, "a whole number from 0 to 200", |t| number(t, 0, 200))).default("100");

    /// DID of this service as the verifier of login proofs.
    VERIFIER_ID: ExternalId = Variable::new(Identity, &kind::DID).required();
    /// State contract of `idp:main`.
    IDP_STATE_CONTRACT: Address = Variable::new(Identity, &kind::CONTRACT).default("0x3C9acB2205Aa72A05F6D77d708b5Cf85FCa3a896");
    /// Node that serves the state of `idp:main`.
    IDP_RPC_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin().default("https://rpc-mainnet.privado.id");
    /// Node to query when IDP_RPC_URL does not respond.
    IDP_RPC_FALLBACK_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// State contract of `altnet:main`.
    ALTNET_STATE_CONTRACT: Address = Variable::new(Identity, &kind::CONTRACT).default("0x3C9acB2205Aa72A05F6D77d708b5Cf85FCa3a896");
    /// Node that serves the state of `altnet:main`; without it, identities of that network cannot log in.
    ALTNET_RPC_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// Node to query when ALTNET_RPC_URL does not respond.
    ALTNET_RPC_FALLBACK_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin().rule("with ALTNET_RPC_URL only");
    /// Additional identity networks.
    IDP_EXTRA_RESOLVERS: Vec<ResolverConfig> = Variable::new(Identity, &kind::RESOLVERS).secret()
        .rule("each network once, and no network that has its own variables");
    /// Directory with an `authV2.json` verification key that replaces the official one for login proofs; supported by
    /// `ledger-gateway-dev` only.
    IDP_VERIFICATION_KEYS_DIR: PathBuf = Variable::new(Identity, &kind::PATH).rule("development only");
    /// Circuits that a login proof may use. The login fails in a wallet that does not support one of them.
    IDP_AUTH_CIRCUITS: Vec<Circuit> = Variable::new(Identity, &kind::AUTH_CIRCUITS).default("authV2");
    /// Nullifier session that limits each person to one account: the credential of REQUIRE_PROOF_OF_HUMANITY is
    /// presented under this number. After a change, people who already have an account can create another one.
    IDP_NULLIFIER_SESSION: String = Variable::new(Identity, kind!(String, "a positive number of at most 76 digits", kind::digits))
        .rule("with REQUIRE_PROOF_OF_HUMANITY and a V3 circuit in IDP_CIRCUIT_ID");
    /// Only first-party applications that authenticate with their secret may introspect tokens.
    INTROSPECT_REQUIRE_CLIENT: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` needs OAUTH_FIRST_PARTY_CLIENTS");
    /// Node of the chain with the ENS contracts, used to show the names of linked addresses. The node learns these
    /// addresses, so there is no default.
    ENS_RESOLVER_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// Page where users obtain the humanity credential that a login may require.
    HUMANITY_VERIFY_URL: Url = Variable::new(Identity, &kind::WEB).rule("https in production");
    /// Signs access tokens.
    JWT_SECRET: Secret = Variable::new(Identity, &kind::SECRET).secret().derived("generated and kept in DATA_DIR")
        .required().rule("differs from JWT_REFRESH_SECRET, older ones included; in production at least 32 bytes, 8 of them distinct, and different from every other secret, older ones included");
    /// Older access-token secrets, accepted for validation only.
    JWT_SECRET_PREVIOUS: Vec<Secret> = Variable::new(Identity, &kind::SECRETS).secret().rule(STRONG_EACH);
    /// Signs refresh tokens.
    JWT_REFRESH_SECRET: Secret = Variable::new(Identity, &kind::SECRET).secret().derived("generated and kept in DATA_DIR")
        .required().rule("differs from JWT_SECRET, older ones included; in production at least 32 bytes, 8 of them distinct, and different from every other secret, older ones included");
    /// Older refresh-token secrets, accepted for validation only.
    JWT_REFRESH_SECRET_PREVIOUS: Vec<Secret> = Variable::new(Identity, &kind::SECRETS).secret().rule(STRONG_EACH);
    /// Lifetime of an access token.
    ACCESS_TOKEN_TTL: Duration = Variable::new(Identity, kind!(Duration, "a span from 60s to 24h", |t| span(t, 60, DAY))).default("300");
    /// Lifetime of a refresh token.
    REFRESH_TOKEN_TTL: Duration = Variable::new(Identity, kind!(Duration, "a span from 5m to 90d", |t| span(t, 300, 90 * DAY)))
        .default("7d").rule("longer than ACCESS_TOKEN_TTL");
    /// Users who log in with a proof have KYC from their first login on.
    AUTO_KYC_IDP: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` warns at each start");
    /// Users who log in through the directory have KYC from their first login on.
    AUTO_KYC_DIRECTORY_USER: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` warns at each start");
    /// Service principals that log in through the directory have KYC from their first login on.
    AUTO_KYC_DIRECTORY_SERVICE_PRINCIPAL: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` warns at each start");
    /// Client id of this service in the enterprise directory; if set, users can log in through the directory.
    DIRECTORY_CLIENT_ID: String = Variable::new(Identity, &kind::TOKEN_WORD).rule("together with DIRECTORY_CLIENT_SECRET and DIRECTORY_TENANT_ID");
    /// Client secret of this service in the enterprise directory.
    DIRECTORY_CLIENT_SECRET: Secret = Variable::new(Identity, &kind::SECRET).secret().rule("together with DIRECTORY_CLIENT_ID and DIRECTORY_TENANT_ID");
    /// Tenant that users log in to: its id or domain, `organizations` or `common`. The tenant list of the admin API
    /// decides which tenants are accepted.
    DIRECTORY_TENANT_ID: String = Variable::new(Identity, kind!(String, "a tenant's id or domain, `organizations` or `common`", kind::tenant))
        .rule("together with DIRECTORY_CLIENT_ID and DIRECTORY_CLIENT_SECRET");
    /// Address of the enterprise directory.
    DIRECTORY_AUTHORITY_HOST: Url = Variable::new(Identity, &kind::WEB).default("https://login.microsoftonline.com").rule("https in production");
    /// Required audience of the tokens of service principals.
    DIRECTORY_SP_AUDIENCE: String = Variable::new(Identity, &kind::TOKEN_WORD).derived("DIRECTORY_CLIENT_ID").rule("needs DIRECTORY_CLIENT_ID");
    /// Applications that may log in as service principals; all of an allowed tenant if unset.
    DIRECTORY_SP_CLIENTS: Vec<String> = Variable::new(Identity, &kind::TOKEN_WORDS).rule("needs DIRECTORY_CLIENT_ID");
    /// Application role that service principals must hold.
    DIRECTORY_SP_ROLE: String = Variable::new(Identity, &kind::TOKEN_WORD).rule("needs DIRECTORY_CLIENT_ID");
    /// A login must present a humanity credential (Path B), not only an identity (Path A).
    REQUIRE_PROOF_OF_HUMANITY: bool = Variable::new(Identity, &kind::BOOL).default("false")
        .rule("with `true`, ALTNET_ISSUER_DID, ALTNET_CREDENTIAL_SCHEMA_URL, ALTNET_CREDENTIAL_QUERY_FILE and an identity DID in VERIFIER_ID are needed");
    /// Issuers whose credentials are accepted, separated by commas.
    ALTNET_ISSUER_DID: Vec<ExternalId> = Variable::new(Identity, &kind::DIDS);
    /// Address of the credential's JSON-LD schema.
    ALTNET_CREDENTIAL_SCHEMA_URL: String = Variable::new(Identity, kind!(String, "an `https://` or `ipfs://` address", kind::document));
    /// File with the schema, read instead of fetching ALTNET_CREDENTIAL_SCHEMA_URL.
    ALTNET_CREDENTIAL_SCHEMA_FILE: PathBuf = Variable::new(Identity, &kind::PATH);
    /// Expected SHA-256 of the schema, in hexadecimal digits.
    ALTNET_CREDENTIAL_SCHEMA_SHA256: [u8; 32] = Variable::new(Identity, kind!([u8; 32], "64 hexadecimal digits (32 bytes)", kind::bytes_32));
    /// Name of the credential type.
    ALTNET_CREDENTIAL_TYPE: String = Variable::new(Identity, kind!(String, "a name", |t| (!t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic())).then(|| t.to_owned()))).default("ProofOfHumanity");
    /// JSON file with the `credentialSubject` predicate that every credential must satisfy.
    ALTNET_CREDENTIAL_QUERY_FILE: PathBuf = Variable::new(Identity, &kind::PATH);
    /// Circuit of the credential proof; it must match the proof type of the issuer's credentials.
    IDP_CIRCUIT_ID: String = Variable::new(Identity, kind!(String, "a name", |t| (!t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic())).then(|| t.to_owned()))).default("credentialAtomicQueryMTPV2");
    /// Requests a separate proof for each predicate of the query file, because a circuit proves only one.
    IDP_SPLIT_PREDICATES: bool = Variable::new(Identity, &kind::BOOL).default("false");
    /// Gateway that serves `ipfs://` documents.
    IPFS_GATEWAY: Url = Variable::new(Identity, &kind::WEB).default("https://ipfs-proxy-cache.privado.id").rule("https in production");
    /// Accepts login tokens of the form `mock.<did>`; supported by `ledger-gateway-dev` only.
    ALLOW_MOCK_LOGIN: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("false in production and with REQUIRE_PROOF_OF_HUMANITY");

    /// Applications that may obtain tokens by OAuth: `<client_id>:<bcrypt_hash>`, separated by commas. During the
    /// rotation of a secret, a second hash follows after `|`. If unset, OAuth is off.
    OAUTH_FIRST_PARTY_CLIENTS: Secret = Variable::new(Identity, &kind::SECRET).secret()
        .rule("bcrypt hashes of cost 10 to 16; 12 is recommended");
    /// Redirect addresses per application: `<client_id>=<uri>|<uri>`, separated by commas, matched exactly.
    /// Applications without an entry may use the origins of BASE_URL and CORS_ALLOWED_ORIGINS.
    OAUTH_REDIRECT_URIS: String = Variable::new(Identity, kind!(String, "a list such as `explorer=https://explorer.example/callback`", |t| Some(t.to_owned())))
        .rule("clients of OAUTH_FIRST_PARTY_CLIENTS; https in production; no fragment, user information or backslash");
    /// Whether every application must use a proof key (PKCE, S256).
    OAUTH_REQUIRE_PKCE: bool = Variable::new(Identity, &kind::BOOL).default("false");
    /// Lets users create personal RPC URLs, for wallets without token support. Anybody who knows such a URL calls with
    /// its owner's rights, within the URL's scope; so does every web page that the wallet is connected to.
    PERSONAL_RPC_URLS: bool = Variable::new(Identity, &kind::BOOL).default("false");

    /// Super administrator's token (`X-Admin-Token`).
    ADMIN_API_TOKEN: Secret = Variable::new(Admin, &kind::SECRET).secret().derived("generated at each start and printed once")
        .required().rule(STRONG);
    /// Older super administrator's token, accepted during a rotation.
    ADMIN_API_TOKEN_PREVIOUS: Secret = Variable::new(Admin, &kind::SECRET).secret().rule(STRONG);
    /// Platform administrator's token: may create organizations and appoint their administrators, but reads no data.
    OPERATOR_API_TOKEN: Secret = Variable::new(Admin, &kind::SECRET).secret()
        .rule("differs from ADMIN_API_TOKEN, the older one included; in production at least 32 bytes, 8 of them distinct, and different from every other secret, older ones included");
    /// Only membership in an organization-admin group makes an administrator; the `admin` claim alone does not.
    ADMIN_REQUIRE_ORG_ADMIN_GROUP: bool = Variable::new(Admin, &kind::BOOL).default("false");
    /// Organization administrators may grant the `admin` claim.
    ADMIN_CLAIM_DELEGATION: bool = Variable::new(Admin, &kind::BOOL).default("false");
    /// Deleting an organization that has contracts or members needs `confirm=<slug>`.
    ADMIN_CONFIRM_DELETES: bool = Variable::new(Admin, &kind::BOOL).default("false");

    /// JSON-RPC address of the node, or of several nodes of one chain: the first is preferred, the others are standbys.
    NODE_URL: Vec<Url> = Variable::new(Node, &kind::UPSTREAMS).shown_as_origin().default("http://localhost:8545").required();
    /// Required chain id of the node; a mismatch stops the process.
    EXPECTED_CHAIN_ID: u64 = Variable::new(Node, kind!(u64, "a whole number from 1", |t| number(t, 1, u64::MAX)));
    /// Idle connections kept to the node.
    NODE_HTTP_MAX_IDLE_CONNS: u32 = Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535))).default("512");
    /// Idle connections kept to one address of the node.
    NODE_HTTP_MAX_IDLE_CONNS_PER_HOST: u32 = Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535))).default("256");
    /// Connections to one address of the node; 0 means no limit.
    NODE_HTTP_MAX_CONNS_PER_HOST: u32 = Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535))).default("0");
    /// How long an idle connection to the node is kept.
    NODE_HTTP_IDLE_CONN_TIMEOUT: Duration = Variable::new(Node, kind!(Duration, "a span from 1s to 1h", |t| span(t, 1, HOUR))).default("90s");
    /// API key sent to the node for groups without their own key; all nodes of a list get the same key.
    RPC_API_KEY: Secret = Variable::new(Node, &kind::SECRET).secret();
    /// Request header that carries the API key.
    RPC_API_KEY_HEADER: http::HeaderName = Variable::new(Node, &kind::HEADER).default("Authorization");
    /// Encrypts the groups' API keys at rest.
    RPC_API_KEY_ENCRYPTION_KEY: Secret = Variable::new(Node, &kind::KEY_256).secret().derived("generated and kept in DATA_DIR").required().rule(STRONG);
    /// Older RPC_API_KEY_ENCRYPTION_KEY, used for decryption until the groups' keys are encrypted with the new one.
    RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS: Secret = Variable::new(Node, &kind::KEY_256).secret().rule(STRONG);
    /// Timeout of a trace of a send, a gas estimate or a client's own trace.
    TRACE_TIMEOUT: Duration = Variable::new(Node, kind!(Duration, "a span from 1s to 10m", |t| span(t, 1, 600))).default("30s")
        .rule("shorter than the 60s response timeout");
    /// Timeout of a trace of `eth_call`.
    ETH_CALL_TRACE_TIMEOUT: Duration = Variable::new(Node, kind!(Duration, "a span from 100ms to 10m", |t| span(t, 0, 600).filter(|d| d.as_millis() >= 100)))
        .default("5s").rule("not longer than TRACE_TIMEOUT");

    /// Calls that need a verified (KYC) user: sends and deployments, or everything but the six metadata methods.
    KYC_GATE: KycGate = Variable::new(Policy, &KYC_GATE_KIND).default("writes");
    /// Senders whose signed transactions a caller may submit: addresses that are linked to the caller or to nobody
    /// (`unclaimed`), only addresses that are linked to the caller (`owner`), or all addresses (`any`).
    RAW_SENDER_POLICY: RawSenderPolicy = Variable::new(Policy, &RAW_SENDER_KIND).default("unclaimed");
    /// How far above the pending nonce a submitted transaction may be.
    RAW_NONCE_GAP_MAX: u64 = Variable::new(Policy, kind!(u64, "a whole number from 0 to 1000000", |t| number(t, 0, 1_000_000))).default("64");
    /// Contracts that a send may create: any, with the claim; or only those whose creation code a super administrator
    /// approved, which keeps hostile code off the chain (docs/production.md).
    DEPLOYMENTS: Deployments = Variable::new(Policy, &DEPLOYMENTS_KIND).default("any");
    /// Reaction to a mined send that did something its trace had not shown. `quarantine`: its sender may not send and
    /// everybody sees the state without it until it is cleared. `alert`: only an event is recorded. `off`: mined sends
    /// are not checked.
    MINED_TRACE: MinedTrace = Variable::new(Policy, &MINED_TRACE_KIND).default("quarantine");
    /// JSON file with methods that are not in the registry: aliases of registered methods, and prefixes whose methods
    /// are passed through without checks (docs/rpc.md).
    EXTRA_RPC_NAMESPACES_FILE: PathBuf = Variable::new(Policy, &kind::PATH)
        .rule("`version` 1 or 2; no name that is blocked, registered or listed twice; read at start only");
    /// Accepts the prefixes of EXTRA_RPC_NAMESPACES_FILE: neither parameters nor results of their methods are checked.
    ALLOW_UNFILTERED_WILDCARDS: bool = Variable::new(Policy, &kind::BOOL).default("false");
    /// HTTP status of a denial on `/rpc`; the body does not depend on it.
    RPC_DENY_HTTP_STATUS: u16 = Variable::new(Policy, kind!(u16, "`404` or `200`", |t| number(t, 200, 404).filter(|n| *n == 404 || *n == 200))).default("404");
    /// Defaults of the PRIVACY_* settings that are not set themselves.
    PRIVACY_PROFILE: PrivacyProfile = Variable::new(Policy, &PRIVACY_PROFILE_KIND).default("spec");
    /// Display of a transaction with one hidden side to a viewer who is not a participant (K1). For the explorer, which
    /// is not part of this version.
    PRIVACY_ONE_SIDED: PartialRowMode = Variable::new(Policy, &ONE_SIDED_KIND).derived("by PRIVACY_PROFILE: spec `mask`, strict `drop`");
    /// Logs of a transaction that its participants see (K2).
    PRIVACY_PARTICIPANT_LOGS: TransactionLogs = Variable::new(Policy, &LOGS_KIND).derived("by PRIVACY_PROFILE: spec `all`, strict `granted`");
    /// Logs of a contract without ABI (K3).
    PRIVACY_NO_ABI: MissingAbiMode = Variable::new(Policy, &NO_ABI_KIND).derived("by PRIVACY_PROFILE: spec `pass`, strict `drop`");
    /// Logs that a viewer sees of a transaction shared by `visibleTo` (K4).
    PRIVACY_SHARED_LOGS: TransactionLogs = Variable::new(Policy, &LOGS_KIND).derived("by PRIVACY_PROFILE: spec `all`, strict `granted`");
    /// Opaque fields (`bytes`, `string`) of an event that can be decoded (K5).
    PRIVACY_DYNAMIC_FIELDS: DynamicFields = Variable::new(Policy, &DYNAMIC_FIELDS_KIND).derived("by PRIVACY_PROFILE: spec `pass`, strict `drop`");
    /// Removes value, input, errors and nonce where an alias replaces an address (K6). For the explorer, which is not
    /// part of this version.
    PRIVACY_ALIAS_STRIP: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Transactions on `/rpc` for an organization administrator who is not a participant (K7).
    PRIVACY_ADMIN_TX: AdminTx = Variable::new(Policy, &ADMIN_TX_KIND).default("masked");
    /// Balance and nonce of addresses that are not the caller's (K8).
    ADDRESS_QUERY_STRICT: HiddenBalanceMode = Variable::new(Policy, &ADDRESS_QUERY_KIND).default("strict");
    /// Replaces the roots, the bloom and the gas totals of blocks with zeros (K9).
    HIDE_BLOCK_ROOTS: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Keeps transactions with two hidden sides for organization administrators (K10). For the explorer, which is not
    /// part of this version.
    ORG_ADMIN_VIEW_USER_TXS: bool = Variable::new(Policy, &kind::BOOL).default("false").rule("`true` is recorded in the audit log at each start");
    /// The `admin` claim gives access to all contracts of its organization (K11).
    ADMIN_CLAIM_SEES_ALL: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Display of a transaction with both sides hidden but a visible token transfer (K12). For the explorer, which is
    /// not part of this version.
    PRIVACY_ANCHOR: HiddenTransferMode = Variable::new(Policy, &ANCHOR_KIND).default("none");
    /// Hides the base fee. Gas price and base fee are shown as the node's price rounded up to a power of two, the tip
    /// as one gwei, and the price paid by a typed transaction as its limit or zero. Simulations carry no price, and a
    /// simulation whose code could read the base fee is rejected.
    HIDE_BASE_FEE: bool = Variable::new(Policy, &kind::BOOL).default("false");
    /// Traces `eth_call` and checks every frame. An administrator can switch it for at most a day. Sends are always
    /// traced.
    RUNTIME_TRACING_ETH_CALL_ENABLED: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Requires a grant in every frame, also for contracts of the caller's own organization. An administrator can
    /// switch it for at most a day.
    RUNTIME_TRACING_INTRA_ORG_GRANTS_ENABLED: bool = Variable::new(Policy, &kind::BOOL).default("false");

    /// Address of the policy store.
    DATABASE_URL: Secret = Variable::new(Store, &kind::DATABASE).secret().derived("SQLite, `<DATA_DIR>/gateway.db`")
        .required().rule("in production PostgreSQL with a password");
    /// Most open connections to the store.
    DB_MAX_OPEN_CONNS: u32 = Variable::new(Store, kind!(u32, "a whole number from 1 to 10000", |t| number(t, 1, 10_000))).default("50");
    /// Longest lifetime of a connection to the store.
    DB_CONN_MAX_LIFETIME: Duration = Variable::new(Store, kind!(Duration, "a span from 10s to 24h", |t| span(t, 10, DAY))).default("5m");
    /// Applies migrations at start (`auto`), or only checks that the schema is current (`off`).
    MIGRATE: Migrate = Variable::new(Store, &MIGRATE_KIND).default("auto");
    /// Redis or Valkey server that instances share for pending logins, challenges and limits. Required with several
    /// instances.
    REDIS_URL: Secret = Variable::new(Store, &kind::CACHE).secret().derived("none: kept in the process, for a single instance only")
        .rule("in production with a password");

    /// Address of the audit store.
    AUDIT_DATABASE_URL: Secret = Variable::new(Audit, &kind::DATABASE).secret()
        .derived("SQLite, `<DATA_DIR>/audit.db`; with DATABASE_URL, its database name with `_audit` appended").rule("in production another database than DATABASE_URL");
    /// Address of the audit store with a role that may delete. Only this role prunes entries and erases personal
    /// values. Without it, nothing is pruned if the role of AUDIT_DATABASE_URL may not delete.
    AUDIT_ADMIN_DATABASE_URL: Secret = Variable::new(Audit, &kind::DATABASE).secret()
        .rule("names the database of AUDIT_DATABASE_URL; in production with a password");
    /// Directory of the journal.
    AUDIT_BUFFER_DIR: PathBuf = Variable::new(Audit, &kind::PATH).derived("`<DATA_DIR>/audit`").required().rule("in production no tmpfs or overlay");
    /// Most unsealed bytes in the journal while the audit store is unavailable.
    AUDIT_BUFFER_MAX_BYTES: u64 = Variable::new(Audit, kind!(u64, "a size from 64MiB such as `8GiB`", |t| size(t, 64 << 20))).default("8GiB");
    /// Behaviour when the journal is full: every request is rejected (`closed`), or plain reads continue
    /// (`open_reads`).
    AUDIT_FULL_POLICY: FullPolicy = Variable::new(Audit, &FULL_POLICY_KIND).default("closed");
    /// Responses that wait until their record is on disk: those of sends and administration (`process`), or all
    /// (`power`).
    AUDIT_DURABILITY: Durability = Variable::new(Audit, &DURABILITY_KIND).default("process");
    /// Signs the checkpoints of the audit log.
    AUDIT_CHECKPOINT_KEY: Secret = Variable::new(Audit, &kind::SIGNING_KEY).secret().derived("generated and kept in DATA_DIR").required().rule(STRONG);
    /// Public halves of older checkpoint keys.
    AUDIT_CHECKPOINT_PUBLIC_KEYS_PREVIOUS: Vec<[u8; 32]> = Variable::new(Audit, &kind::PUBLIC_KEYS);
    /// Time between checkpoints.
    AUDIT_CHECKPOINT_INTERVAL: Duration = Variable::new(Audit, kind!(Duration, "a span from 1s to 24h", |t| span(t, 1, DAY))).default("1m");
    /// Address of a witness: each signed checkpoint and each signed list of chains is posted there as text.
    AUDIT_WITNESS_URL: Url = Variable::new(Audit, &kind::UPSTREAM).shown_as_origin().rule("https in production");
    /// Time between the service's own verifications of the audit log; 0 switches them off.
    AUDIT_INTEGRITY_VERIFY_INTERVAL: Duration = Variable::new(Audit, kind!(Duration, "a span up to 24h; `0` switches it off", |t| span(t, 0, DAY))).default("15m");
    /// Address that each finding of a verification is posted to, as JSON.
    AUDIT_TAMPER_WEBHOOK_URL: Url = Variable::new(Audit, &kind::UPSTREAM).shown_as_origin().rule("https in production");
    /// Records the (shortened) parameters of requests.
    AUDIT_LOG_PARAMS: bool = Variable::new(Audit, &kind::BOOL).default("false");
    /// How long calls and retrievals are kept.
    RETENTION_ACCESS_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("2160h");
    /// How long compliance decisions are kept.
    RETENTION_COMPLIANCE_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// How long changes by administrators are kept.
    RETENTION_RBAC_AUDIT_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("8760h");
    /// How long disclosure reads and state transitions are kept.
    RETENTION_DISCLOSURE_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// How long security events (logins, bans, links, findings) are kept.
    RETENTION_SECURITY_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("8760h");
    /// How long travel-rule records are kept. This version has no such records.
    RETENTION_TRAVEL_RECORDS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// Time between two sweeps that delete entries older than their retention.
    RETENTION_CLEANUP_INTERVAL: Duration = Variable::new(Audit, kind!(Duration, "a span from 1m to 24h", |t| span(t, 60, DAY))).default("1h");
    /// Most calls and retrievals that are kept, newest first; `0` means no limit. Entries younger than 24 hours are
    /// always kept.
    MAX_ACCESS_LOG_ROWS: u64 = Variable::new(Audit, kind!(u64, "a whole number", |t| number(t, 0, u64::MAX))).default("0");

    /// Least severe level that is logged.
    LOG_LEVEL: LogLevel = Variable::new(Operation, &LOG_LEVEL_KIND).default("info");
    /// Format of log lines.
    LOG_FORMAT: LogFormat = Variable::new(Operation, &LOG_FORMAT_KIND).default_by_environment("json", "text");
    /// Time between reporting "not ready" and closing the listener.
    SHUTDOWN_DELAY: Duration = Variable::new(Operation, kind!(Duration, "a span from 0s to 5m", |t| span(t, 0, 300))).default_by_environment("5s", "0s");
    /// Time that running requests have to end after SHUTDOWN_DELAY.
    SHUTDOWN_TIMEOUT: Duration = Variable::new(Operation, kind!(Duration, "a span from 1s to 10m", |t| span(t, 1, 600))).default("30s");
}

words_of!(KycGate, KYC_GATE_KIND, "`writes` or `all`" { Writes = "writes", All = "all" });
words_of!(RawSenderPolicy, RAW_SENDER_KIND, "`unclaimed`, `owner` or `any`" {
    Unclaimed = "unclaimed", Owner = "owner", Any = "any"
});
words_of!(Deployments, DEPLOYMENTS_KIND, "`any` or `approved`" { Any = "any", Approved = "approved" });
words_of!(MinedTrace, MINED_TRACE_KIND, "`quarantine`, `alert` or `off`" {
    Quarantine = "quarantine", Alert = "alert", Off = "off"
});
words_of!(PartialRowMode, ONE_SIDED_KIND, "`mask` or `drop`" { Mask = "mask", Drop = "drop" });
words_of!(TransactionLogs, LOGS_KIND, "`all` or `granted`" { All = "all", Granted = "granted" });
words_of!(MissingAbiMode, NO_ABI_KIND, "`pass` or `drop`" { Pass = "pass", Drop = "drop" });
words_of!(DynamicFields, DYNAMIC_FIELDS_KIND, "`pass`, `zero` or `drop`" { Pass = "pass", Zero = "zero", Drop = "drop" });
words_of!(AdminTx, ADMIN_TX_KIND, "`masked` or `full`" { Masked = "masked", Full = "full" });
words_of!(HiddenBalanceMode, ADDRESS_QUERY_KIND, "`strict`, `linked` or `off`" {
    Strict = "strict", Linked = "linked", Off = "off"
});
words_of!(HiddenTransferMode, ANCHOR_KIND, "`none` or `keep`" { None = "none", Keep = "keep" });

words! {
    /// Defaults of the privacy settings (spec/30 section 1).
    PrivacyProfile, PRIVACY_PROFILE_KIND, "`spec` or `strict`" {
        /// The defaults of the specification.
        Spec = "spec",
        /// Stricter defaults that show less.
        Strict = "strict",
    }
}
words! {
    /// When schema migrations are applied.
    Migrate, MIGRATE_KIND, "`auto` or `off`" {
        /// By the service at start.
        Auto = "auto",
        /// By an operator before the start.
        Off = "off",
    }
}
words! {
    /// Behaviour when the journal is full (spec/70 rule 14).
    FullPolicy, FULL_POLICY_KIND, "`closed` or `open_reads`" {
        /// Every request is rejected.
        Closed = "closed",
        /// Plain reads continue.
        OpenReads = "open_reads",
    }
}
words! {
    /// Failures that audit records survive (decision 10).
    Durability, DURABILITY_KIND, "`process` or `power`" {
        /// Records of plain reads survive a crash of the process, all other records a power cut.
        Process = "process",
        /// Every record survives a power cut.
        Power = "power",
    }
}
words! {
    /// Least severe level that is logged.
    LogLevel, LOG_LEVEL_KIND, "`error`, `warn`, `info`, `debug` or `trace`" {
        /// Failures.
        Error = "error",
        /// Also problems that may become failures.
        Warn = "warn",
        /// Also one line per request.
        Info = "info",
        /// Also details of the processing.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}
words! {
    /// Format of log lines.
    LogFormat, LOG_FORMAT_KIND, "`json` or `text`" {
        /// One JSON object per line.
        Json = "json",
        /// Text for people.
        Text = "text",
    }
}
