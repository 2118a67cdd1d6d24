//! Every variable the gateway reads, each declared once: name, type, default, where it is required, what it means.
//!
//! The reference `docs/configuration.md` is generated from this list; a variable that is not here does not exist.

use super::{
    Environment,
    kind::{self, Rate, number, size, span, words, words_of},
    variable::{Entry, Kind, Section::*, Variable},
};
use gw_identity::ResolverConfig;
use gw_policy::knobs::{
    AddressQuery, AdminTx, Anchor, Deployments, DynamicFields, KycGate, MinedTrace, NoAbi, OneSided, RawSenderPolicy,
    TransactionLogs,
};
use gw_types::{Address, ExternalId, Secret};
use gw_zk::circuit::Circuit;
use ipnet::IpNet;
use std::{net::IpAddr, net::SocketAddr, path::PathBuf, time::Duration};
use url::Url;

/// Declares the statics and the list of all of them, so that neither can miss an entry of the other.
macro_rules! registry {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $variable:expr;)*) => {
        $($(#[doc = $doc])* pub static $name: Variable<$type> = $variable.declared(stringify!($name), concat!($($doc),*));)*

        /// The registry, in the order of the reference.
        pub static ALL: &[&dyn Entry] = &[$(&$name),*];
    };
}

/// A kind that only one variable has, written where it is used.
macro_rules! kind {
    ($type:ty, $rule:literal, $parse:expr) => {{
        static KIND: Kind<$type> = Kind {
            rule: $rule,
            parse: $parse,
        };
        &KIND
    }};
}

/// The lifetime of an access token, in seconds (decision 35).
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// What production asks of every secret, older ones too (RTS7).
const STRONG: &str =
    "in production at least 32 bytes with 8 different ones, and no other secret's value, older ones included";
const STRONG_EACH: &str =
    "in production each at least 32 bytes with 8 different ones, and no other secret's value, older ones included";

/// Whoever is in these networks is believed (RTS7).
const NARROW: &str = "in production no network wider than /8, of IPv6 addresses than /7: list your own machines";

registry! {
    /// What kind of deployment this is. Production refuses weak and missing settings.
    ENVIRONMENT: Environment = Variable::new(Deployment, &super::ENVIRONMENT_KIND).default("development");
    /// Directory of the embedded stores, the journal and the development secrets.
    DATA_DIR: PathBuf = Variable::new(Deployment, &kind::PATH).default("./data");

    /// TCP port of the public listener.
    PORT: u16 = Variable::new(Edge, &kind::PORT).default("8080");
    /// Address of the public listener.
    BIND_ADDRESS: IpAddr = Variable::new(Edge, &kind::ADDRESS).default_by_environment("0.0.0.0", "127.0.0.1");
    /// Second listener for `/metrics`, readiness detail and the admin API; when set, these leave the public one.
    INTERNAL_BIND_ADDR: SocketAddr = Variable::new(Edge, &kind::SOCKET).rule("another port than PORT");
    /// Public address of this service; issuer of its tokens and base of callback addresses.
    BASE_URL: Url = Variable::new(Edge, &kind::WEB).derived("`http://localhost:<PORT>`").required().rule("https in production");
    /// Address of the web front end.
    FRONTEND_URL: Url = Variable::new(Edge, &kind::WEB).rule("https in production");
    /// Further browser origins that may call with credentials; the origin of BASE_URL always may.
    CORS_ALLOWED_ORIGINS: Vec<kind::ListedOrigin> = Variable::new(Edge, &kind::ORIGINS)
        .derived("none in production, `*` elsewhere").rule("`*` is every origin of this machine, and not for production");
    /// Proxies whose forwarding headers are believed.
    TRUSTED_PROXIES: Vec<IpNet> = Variable::new(Edge, &kind::NETWORKS).rule(NARROW);
    /// Networks beside the private ranges that count as internal.
    TRUSTED_INTERNAL_CIDRS: Vec<IpNet> = Variable::new(Edge, &kind::NETWORKS).rule(NARROW);

    /// Connections to the public listener. When all are taken, the longest idle one of the fullest network yields.
    MAX_CONNECTIONS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 16 to 1000000", |t| number(t, 16, 1_000_000))).default("16384")
        .rule("fewer where the limit of open files demands it, which warns at start");
    /// Connections of one IPv4 address or IPv6 /64; an IPv4 /24 may have ten times as many, an IPv6 /56 three and a /48 nine
    /// times. Does not bound TRUSTED_PROXIES.
    MAX_CONNECTIONS_PER_ADDRESS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 1 to 1000000", |t| number(t, 1, 1_000_000))).default("512");
    /// Connections to the internal listener, which the public one cannot take.
    MAX_INTERNAL_CONNECTIONS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 4 to 100000", |t| number(t, 4, 100_000))).default("256");
    /// Bytes of large answers (beyond 64 KiB) held at once, from the node's first byte to the client's last.
    ANSWER_BYTES_MAX: u64 = Variable::new(Limits, kind!(u64, "a size of at least 1MiB", |t| size(t, 1 << 20))).default("512MiB");
    /// Bytes of them that one caller's may take; one answer alone may be larger.
    ANSWER_BYTES_PER_CALLER: u64 = Variable::new(Limits, kind!(u64, "a size of at least 1MiB", |t| size(t, 1 << 20)))
        .derived("a quarter of ANSWER_BYTES_MAX");
    /// Requests one caller may have in flight.
    MAX_CONCURRENT_REQUESTS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 1 to 100000", |t| number(t, 1, 100_000))).default("50");
    /// Requests one anonymous address may have in flight.
    MAX_CONCURRENT_ANONYMOUS_REQUESTS: u32 = Variable::new(Limits, kind!(u32, "a whole number from 1 to 100000", |t| number(t, 1, 100_000)))
        .derived("MAX_CONCURRENT_REQUESTS");
    /// Login attempts of one address.
    RATE_LIMIT_AUTH: Rate = Variable::new(Limits, &kind::RATE).default_by_environment("10/min", "1000/min");
    /// JSON-RPC requests of one caller.
    RATE_LIMIT_RPC: Rate = Variable::new(Limits, &kind::RATE).default("off");
    /// JSON-RPC requests of one anonymous address.
    RATE_LIMIT_ANON: Rate = Variable::new(Limits, &kind::RATE).default("60/min");
    /// Elements of a JSON-RPC batch; 0 switches batches off.
    RPC_BATCH_MAX: u16 = Variable::new(Limits, kind!(u16, "a whole number from 0 to 200", |t| number(t, 0, 200))).default("100");

    /// DID of this service as verifier of login proofs.
    VERIFIER_ID: ExternalId = Variable::new(Identity, &kind::DID).required();
    /// State contract of `idp:main`.
    IDP_STATE_CONTRACT: Address = Variable::new(Identity, &kind::CONTRACT).default("0x3C9acB2205Aa72A05F6D77d708b5Cf85FCa3a896");
    /// Node that is asked for the state of `idp:main`.
    IDP_RPC_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin().default("https://rpc-mainnet.privado.id");
    /// Node that is asked when the one of IDP_RPC_URL gives no answer.
    IDP_RPC_FALLBACK_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// State contract of `altnet:main`.
    ALTNET_STATE_CONTRACT: Address = Variable::new(Identity, &kind::CONTRACT).default("0x3C9acB2205Aa72A05F6D77d708b5Cf85FCa3a896");
    /// Node that is asked for the state of `altnet:main`; without it identities of that network cannot log in.
    ALTNET_RPC_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// Node that is asked when the one of ALTNET_RPC_URL gives no answer.
    ALTNET_RPC_FALLBACK_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin().rule("with ALTNET_RPC_URL only");
    /// Further identity networks.
    IDP_EXTRA_RESOLVERS: Vec<ResolverConfig> = Variable::new(Identity, &kind::RESOLVERS).secret()
        .rule("each network once, and none that has variables of its own");
    /// Directory with an `authV2.json` that login proofs are checked under in the place of the official key; only
    /// `ledger-gateway-dev` knows how.
    IDP_VERIFICATION_KEYS_DIR: PathBuf = Variable::new(Identity, &kind::PATH).rule("development only");
    /// Circuits a login proof may be made with. Wallets that do not know one of them fail the login.
    IDP_AUTH_CIRCUITS: Vec<Circuit> = Variable::new(Identity, &kind::AUTH_CIRCUITS).default("authV2");
    /// One account per person: a number that the credential of REQUIRE_PROOF_OF_HUMANITY is shown under. Changing it
    /// forgets who has an account.
    IDP_NULLIFIER_SESSION: String = Variable::new(Identity, kind!(String, "a positive number of at most 76 digits", kind::digits))
        .rule("with REQUIRE_PROOF_OF_HUMANITY and a V3 circuit in IDP_CIRCUIT_ID");
    /// Only first-party applications that show their secret may ask about tokens.
    INTROSPECT_REQUIRE_CLIENT: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` needs OAUTH_FIRST_PARTY_CLIENTS");
    /// Node of the chain that ENS lives on, to show the names of linked addresses. It learns which addresses those are, so
    /// none is asked unless it is named here.
    ENS_RESOLVER_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// Where people get the humanity credential a login may ask for.
    HUMANITY_VERIFY_URL: Url = Variable::new(Identity, &kind::WEB).rule("https in production");
    /// Signs access tokens.
    JWT_SECRET: Secret = Variable::new(Identity, &kind::SECRET).secret().derived("generated and kept in DATA_DIR")
        .required().rule("differs from JWT_REFRESH_SECRET, older ones included; in production at least 32 bytes with 8 different ones, and no other secret's value, older ones included");
    /// Older access-token secrets, accepted for validation only.
    JWT_SECRET_PREVIOUS: Vec<Secret> = Variable::new(Identity, &kind::SECRETS).secret().rule(STRONG_EACH);
    /// Signs refresh tokens.
    JWT_REFRESH_SECRET: Secret = Variable::new(Identity, &kind::SECRET).secret().derived("generated and kept in DATA_DIR")
        .required().rule("differs from JWT_SECRET, older ones included; in production at least 32 bytes with 8 different ones, and no other secret's value, older ones included");
    /// Older refresh-token secrets, accepted for validation only.
    JWT_REFRESH_SECRET_PREVIOUS: Vec<Secret> = Variable::new(Identity, &kind::SECRETS).secret().rule(STRONG_EACH);
    /// Life of an access token.
    ACCESS_TOKEN_TTL: Duration = Variable::new(Identity, kind!(Duration, "a span from 60s to 24h", |t| span(t, 60, DAY))).default("300");
    /// Life of a refresh token.
    REFRESH_TOKEN_TTL: Duration = Variable::new(Identity, kind!(Duration, "a span from 5m to 90d", |t| span(t, 300, 90 * DAY)))
        .default("7d").rule("longer than ACCESS_TOKEN_TTL");
    /// Users who come by a proof have KYC from their first login on.
    AUTO_KYC_IDP: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` warns at each start");
    /// People who come by the directory have KYC from their first login on.
    AUTO_KYC_DIRECTORY_USER: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` warns at each start");
    /// Machines that come by the directory have KYC from their first login on.
    AUTO_KYC_DIRECTORY_SERVICE_PRINCIPAL: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` warns at each start");
    /// This service as registered with the enterprise directory; people may log in there then.
    DIRECTORY_CLIENT_ID: String = Variable::new(Identity, &kind::TOKEN_WORD).rule("together with DIRECTORY_CLIENT_SECRET and DIRECTORY_TENANT_ID");
    /// The registration's secret.
    DIRECTORY_CLIENT_SECRET: Secret = Variable::new(Identity, &kind::SECRET).secret().rule("together with DIRECTORY_CLIENT_ID and DIRECTORY_TENANT_ID");
    /// Where people log in: a tenant's id or domain, `organizations` or `common`. Who is let in says the tenant list of the admin API.
    DIRECTORY_TENANT_ID: String = Variable::new(Identity, kind!(String, "a tenant's id or domain, `organizations` or `common`", kind::tenant))
        .rule("together with DIRECTORY_CLIENT_ID and DIRECTORY_CLIENT_SECRET");
    /// Address of the enterprise directory.
    DIRECTORY_AUTHORITY_HOST: Url = Variable::new(Identity, &kind::WEB).default("https://login.microsoftonline.com").rule("https in production");
    /// For whom the tokens of service principals are.
    DIRECTORY_SP_AUDIENCE: String = Variable::new(Identity, &kind::TOKEN_WORD).derived("DIRECTORY_CLIENT_ID").rule("needs DIRECTORY_CLIENT_ID");
    /// Applications that may log in as service principals; all of an allowed tenant if unset.
    DIRECTORY_SP_CLIENTS: Vec<String> = Variable::new(Identity, &kind::TOKEN_WORDS).rule("needs DIRECTORY_CLIENT_ID");
    /// Application role that service principals must hold.
    DIRECTORY_SP_ROLE: String = Variable::new(Identity, &kind::TOKEN_WORD).rule("needs DIRECTORY_CLIENT_ID");
    /// A login must show a humanity credential (Path B), not only hold an identity (Path A).
    REQUIRE_PROOF_OF_HUMANITY: bool = Variable::new(Identity, &kind::BOOL).default("false")
        .rule("with `true`, ALTNET_ISSUER_DID, ALTNET_CREDENTIAL_SCHEMA_URL, ALTNET_CREDENTIAL_QUERY_FILE and an identity DID in VERIFIER_ID are needed");
    /// Issuers whose credentials are accepted, separated by commas.
    ALTNET_ISSUER_DID: Vec<ExternalId> = Variable::new(Identity, &kind::DIDS);
    /// Address of the credential's JSON-LD schema.
    ALTNET_CREDENTIAL_SCHEMA_URL: String = Variable::new(Identity, kind!(String, "an `https://` or `ipfs://` address", kind::document));
    /// File that stands for the document at ALTNET_CREDENTIAL_SCHEMA_URL, which is then not fetched.
    ALTNET_CREDENTIAL_SCHEMA_FILE: PathBuf = Variable::new(Identity, &kind::PATH);
    /// SHA-256 the schema must have, in hexadecimal digits.
    ALTNET_CREDENTIAL_SCHEMA_SHA256: [u8; 32] = Variable::new(Identity, kind!([u8; 32], "64 hexadecimal digits (32 bytes)", kind::bytes_32));
    /// Name of the credential type.
    ALTNET_CREDENTIAL_TYPE: String = Variable::new(Identity, kind!(String, "a name", |t| (!t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic())).then(|| t.to_owned()))).default("ProofOfHumanity");
    /// JSON file with the `credentialSubject` predicate every credential must meet.
    ALTNET_CREDENTIAL_QUERY_FILE: PathBuf = Variable::new(Identity, &kind::PATH);
    /// Circuit of the credential proof; it must fit how the issuer vouches for its credentials.
    IDP_CIRCUIT_ID: String = Variable::new(Identity, kind!(String, "a name", |t| (!t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic())).then(|| t.to_owned()))).default("credentialAtomicQueryMTPV2");
    /// Asks for one proof per predicate of the query file: no circuit holds two.
    IDP_SPLIT_PREDICATES: bool = Variable::new(Identity, &kind::BOOL).default("false");
    /// Where `ipfs://` documents are fetched.
    IPFS_GATEWAY: Url = Variable::new(Identity, &kind::WEB).default("https://ipfs-proxy-cache.privado.id").rule("https in production");
    /// Accepts login tokens of the form `mock.<did>`; only `ledger-gateway-dev` knows how.
    ALLOW_MOCK_LOGIN: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("false in production and with REQUIRE_PROOF_OF_HUMANITY");

    /// Applications that may obtain tokens by OAuth: `<client_id>:<bcrypt_hash>`, separated by commas; a second hash
    /// after `|` while a secret is exchanged. Empty switches OAuth off.
    OAUTH_FIRST_PARTY_CLIENTS: Secret = Variable::new(Identity, &kind::SECRET).secret()
        .rule("bcrypt hashes of cost 10 to 16; 12 is recommended");
    /// Addresses a code may be sent to, per application: `<client_id>=<uri>|<uri>`, separated by commas, matched
    /// exactly. Applications not named here may use the origins of BASE_URL and CORS_ALLOWED_ORIGINS.
    OAUTH_REDIRECT_URIS: String = Variable::new(Identity, kind!(String, "a list such as `explorer=https://explorer.example/callback`", |t| Some(t.to_owned())))
        .rule("clients of OAUTH_FIRST_PARTY_CLIENTS; https in production; no fragment, user information or backslash");
    /// Whether every application must use a proof key (PKCE, S256).
    OAUTH_REQUIRE_PKCE: bool = Variable::new(Identity, &kind::BOOL).default("false");
    /// Lets users make personal RPC URLs, for wallets that know nothing of tokens: whoever has one calls with its owner's
    /// rights, within its scope, and so does every web page the wallet is connected to.
    PERSONAL_RPC_URLS: bool = Variable::new(Identity, &kind::BOOL).default("false");

    /// Super-administrator's token (`X-Admin-Token`).
    ADMIN_API_TOKEN: Secret = Variable::new(Admin, &kind::SECRET).secret().derived("made at each start and printed once")
        .required().rule(STRONG);
    /// Older super-administrator's token, accepted while tokens are exchanged.
    ADMIN_API_TOKEN_PREVIOUS: Secret = Variable::new(Admin, &kind::SECRET).secret().rule(STRONG);
    /// Token that may create organizations and name their administrators, and read no data.
    OPERATOR_API_TOKEN: Secret = Variable::new(Admin, &kind::SECRET).secret()
        .rule("differs from ADMIN_API_TOKEN, the older one included; in production at least 32 bytes with 8 different ones, and no other secret's value, older ones included");
    /// Only membership in an organization-admin group makes an administrator, not the `admin` claim.
    ADMIN_REQUIRE_ORG_ADMIN_GROUP: bool = Variable::new(Admin, &kind::BOOL).default("false");
    /// Organization administrators may hand out the `admin` claim.
    ADMIN_CLAIM_DELEGATION: bool = Variable::new(Admin, &kind::BOOL).default("false");
    /// Deleting an organization that holds contracts or members needs `confirm=<slug>`.
    ADMIN_CONFIRM_DELETES: bool = Variable::new(Admin, &kind::BOOL).default("false");

    /// JSON-RPC address of the node, or of several nodes of one chain: the first is preferred, the others stand by.
    NODE_URL: Vec<Url> = Variable::new(Node, &kind::UPSTREAMS).shown_as_origin().default("http://localhost:8545").required();
    /// Chain the node must be on; a mismatch aborts.
    EXPECTED_CHAIN_ID: u64 = Variable::new(Node, kind!(u64, "a whole number from 1", |t| number(t, 1, u64::MAX)));
    /// Idle connections kept to the node.
    NODE_HTTP_MAX_IDLE_CONNS: u32 = Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535))).default("512");
    /// Idle connections kept to one address of the node.
    NODE_HTTP_MAX_IDLE_CONNS_PER_HOST: u32 = Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535))).default("256");
    /// Connections to one address of the node; 0 is no limit.
    NODE_HTTP_MAX_CONNS_PER_HOST: u32 = Variable::new(Node, kind!(u32, "a whole number from 0 to 65535", |t| number(t, 0, 65535))).default("0");
    /// How long an idle connection to the node is kept.
    NODE_HTTP_IDLE_CONN_TIMEOUT: Duration = Variable::new(Node, kind!(Duration, "a span from 1s to 1h", |t| span(t, 1, HOUR))).default("90s");
    /// Key sent to the node where a group has none of its own; all nodes of a list are sent the same.
    RPC_API_KEY: Secret = Variable::new(Node, &kind::SECRET).secret();
    /// Header that carries the key.
    RPC_API_KEY_HEADER: http::HeaderName = Variable::new(Node, &kind::HEADER).default("Authorization");
    /// Encrypts the groups' node keys at rest.
    RPC_API_KEY_ENCRYPTION_KEY: Secret = Variable::new(Node, &kind::KEY_256).secret().derived("generated and kept in DATA_DIR").required().rule(STRONG);
    /// Older key of RPC_API_KEY_ENCRYPTION_KEY: reads what rests under it until that is stored anew.
    RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS: Secret = Variable::new(Node, &kind::KEY_256).secret().rule(STRONG);
    /// Longest trace of a send, a gas estimate or a client's own trace.
    TRACE_TIMEOUT: Duration = Variable::new(Node, kind!(Duration, "a span from 1s to 10m", |t| span(t, 1, 600))).default("30s")
        .rule("shorter than the 60s an answer may take");
    /// Longest trace of a call.
    ETH_CALL_TRACE_TIMEOUT: Duration = Variable::new(Node, kind!(Duration, "a span from 100ms to 10m", |t| span(t, 0, 600).filter(|d| d.as_millis() >= 100)))
        .default("5s").rule("not longer than TRACE_TIMEOUT");

    /// What needs a verified (KYC) user: sends and deployments, or everything but the six metadata methods.
    KYC_GATE: KycGate = Variable::new(Policy, &KYC_GATE_KIND).default("writes");
    /// Whose signed transactions a caller may send: of a linked or unlinked sender, of the own only, of anybody.
    RAW_SENDER_POLICY: RawSenderPolicy = Variable::new(Policy, &RAW_SENDER_KIND).default("unclaimed");
    /// How far above the pending nonce a sent transaction may be.
    RAW_NONCE_GAP_MAX: u64 = Variable::new(Policy, kind!(u64, "a whole number from 0 to 1000000", |t| number(t, 0, 1_000_000))).default("64");
    /// Which contracts a send may create: any, with the claim; or those of creation code that a super admin approved, so that
    /// no hostile code comes onto the chain (docs/production.md).
    DEPLOYMENTS: Deployments = Variable::new(Policy, &DEPLOYMENTS_KIND).default("any");
    /// A send that does, once mined, what its trace had not shown: its sender sends no more and everybody is shown the
    /// state without it until cleared; or only an event says so; or nobody looks.
    MINED_TRACE: MinedTrace = Variable::new(Policy, &MINED_TRACE_KIND).default("quarantine");
    /// JSON file with methods beside the registry: names that stand for one of its methods, and prefixes that pass through
    /// unexamined (docs/rpc.md).
    EXTRA_RPC_NAMESPACES_FILE: PathBuf = Variable::new(Policy, &kind::PATH)
        .rule("`version` 1 or 2; no name that is blocked, of the registry or there twice; read at start only");
    /// Prefixes of EXTRA_RPC_NAMESPACES_FILE are accepted: neither parameters nor answers of their methods are examined.
    ALLOW_UNFILTERED_WILDCARDS: bool = Variable::new(Policy, &kind::BOOL).default("false");
    /// HTTP status of a denial on `/rpc`; the body is the same.
    RPC_DENY_HTTP_STATUS: u16 = Variable::new(Policy, kind!(u16, "`404` or `200`", |t| number(t, 200, 404).filter(|n| *n == 404 || *n == 200))).default("404");
    /// Start value of the PRIVACY_* switches that are not set themselves.
    PRIVACY_PROFILE: PrivacyProfile = Variable::new(Policy, &PRIVACY_PROFILE_KIND).default("spec");
    /// A transaction with one hidden side and a viewer who takes no part (K1). For the explorer, which is not part of this version.
    PRIVACY_ONE_SIDED: OneSided = Variable::new(Policy, &ONE_SIDED_KIND).derived("by PRIVACY_PROFILE: spec `mask`, strict `drop`");
    /// Which logs of a transaction its participants see (K2).
    PRIVACY_PARTICIPANT_LOGS: TransactionLogs = Variable::new(Policy, &LOGS_KIND).derived("by PRIVACY_PROFILE: spec `all`, strict `granted`");
    /// Logs of a contract without ABI (K3).
    PRIVACY_NO_ABI: NoAbi = Variable::new(Policy, &NO_ABI_KIND).derived("by PRIVACY_PROFILE: spec `pass`, strict `drop`");
    /// Which logs of a transaction shared by `visibleTo` are seen (K4).
    PRIVACY_SHARED_LOGS: TransactionLogs = Variable::new(Policy, &LOGS_KIND).derived("by PRIVACY_PROFILE: spec `all`, strict `granted`");
    /// Opaque fields (`bytes`, `string`) of an event that can be decoded (K5).
    PRIVACY_DYNAMIC_FIELDS: DynamicFields = Variable::new(Policy, &DYNAMIC_FIELDS_KIND).derived("by PRIVACY_PROFILE: spec `pass`, strict `drop`");
    /// Strips value, input, errors and nonce beside an alias (K6). For the explorer, which is not part of this version.
    PRIVACY_ALIAS_STRIP: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Transactions on `/rpc` for an organization's administrator who takes no part (K7).
    PRIVACY_ADMIN_TX: AdminTx = Variable::new(Policy, &ADMIN_TX_KIND).default("masked");
    /// Balance and nonce of addresses that are not the caller's (K8).
    ADDRESS_QUERY_STRICT: AddressQuery = Variable::new(Policy, &ADDRESS_QUERY_KIND).default("strict");
    /// Zeroes the roots, the bloom and the gas totals of blocks (K9).
    HIDE_BLOCK_ROOTS: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Keeps transactions with two hidden sides for organization administrators (K10). For the explorer, which is not part of this version.
    ORG_ADMIN_VIEW_USER_TXS: bool = Variable::new(Policy, &kind::BOOL).default("false").rule("`true` is noted in the audit log at each start");
    /// The `admin` claim opens all contracts of its organization (K11).
    ADMIN_CLAIM_SEES_ALL: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// A transaction with both sides hidden but a visible token transfer (K12). For the explorer, which is not part of this version.
    PRIVACY_ANCHOR: Anchor = Variable::new(Policy, &ANCHOR_KIND).default("none");
    /// Hides the base fee: gas price and base fee read as the node's price rounded up to a power of two, the tip as one gwei, prices paid by typed transactions as their limit or zero; simulations name no price, and one whose code could read the base fee is refused.
    HIDE_BASE_FEE: bool = Variable::new(Policy, &kind::BOOL).default("false");
    /// Traces `eth_call` and judges every frame; an administrator may switch it for a day at most. Sends are always traced.
    RUNTIME_TRACING_ETH_CALL_ENABLED: bool = Variable::new(Policy, &kind::BOOL).default("true");
    /// Asks for a grant in every frame, also into contracts of the caller's own organization; an administrator may switch it for a day at most.
    RUNTIME_TRACING_INTRA_ORG_GRANTS_ENABLED: bool = Variable::new(Policy, &kind::BOOL).default("false");

    /// Policy store.
    DATABASE_URL: Secret = Variable::new(Store, &kind::DATABASE).secret().derived("SQLite, `<DATA_DIR>/gateway.db`")
        .required().rule("in production PostgreSQL with a password");
    /// Open connections to the store.
    DB_MAX_OPEN_CONNS: u32 = Variable::new(Store, kind!(u32, "a whole number from 1 to 10000", |t| number(t, 1, 10_000))).default("50");
    /// How long a connection to the store is used.
    DB_CONN_MAX_LIFETIME: Duration = Variable::new(Store, kind!(Duration, "a span from 10s to 24h", |t| span(t, 10, DAY))).default("5m");
    /// Brings the schema up to date at start (`auto`), or only compares it (`off`).
    MIGRATE: Migrate = Variable::new(Store, &MIGRATE_KIND).default("auto");
    /// Redis or Valkey that instances share: logins on their way, challenges, limits. Several instances need it.
    REDIS_URL: Secret = Variable::new(Store, &kind::CACHE).secret().derived("none: kept in the process, for one instance alone")
        .rule("in production with a password");

    /// Audit store.
    AUDIT_DATABASE_URL: Secret = Variable::new(Audit, &kind::DATABASE).secret()
        .derived("SQLite, `<DATA_DIR>/audit.db`; beside PostgreSQL the database name with `_audit`").rule("in production another database than DATABASE_URL");
    /// The same database under a role that may delete: entries are pruned and personal values erased by it, and by nothing else.
    /// Without it nothing is pruned from a database whose other role may not.
    AUDIT_ADMIN_DATABASE_URL: Secret = Variable::new(Audit, &kind::DATABASE).secret()
        .rule("names the database of AUDIT_DATABASE_URL; in production with a password");
    /// Directory of the journal.
    AUDIT_BUFFER_DIR: PathBuf = Variable::new(Audit, &kind::PATH).derived("`<DATA_DIR>/audit`").required().rule("in production no tmpfs or overlay");
    /// Unsealed bytes the journal may hold while the audit store is away.
    AUDIT_BUFFER_MAX_BYTES: u64 = Variable::new(Audit, kind!(u64, "a size from 64MiB such as `8GiB`", |t| size(t, 64 << 20))).default("8GiB");
    /// What is done when the journal is full: nothing is answered, or reads go on.
    AUDIT_FULL_POLICY: FullPolicy = Variable::new(Audit, &FULL_POLICY_KIND).default("closed");
    /// Which answers wait for the disk: those of sends and administration, or all.
    AUDIT_DURABILITY: Durability = Variable::new(Audit, &DURABILITY_KIND).default("process");
    /// Signs the checkpoints of the audit log.
    AUDIT_CHECKPOINT_KEY: Secret = Variable::new(Audit, &kind::SIGNING_KEY).secret().derived("generated and kept in DATA_DIR").required().rule(STRONG);
    /// Public halves of the keys that signed checkpoints before.
    AUDIT_CHECKPOINT_PUBLIC_KEYS_PREVIOUS: Vec<[u8; 32]> = Variable::new(Audit, &kind::PUBLIC_KEYS);
    /// Time between checkpoints.
    AUDIT_CHECKPOINT_INTERVAL: Duration = Variable::new(Audit, kind!(Duration, "a span from 1s to 24h", |t| span(t, 1, DAY))).default("1m");
    /// Where each signed checkpoint and list of chains is posted as text, to be kept by somebody else.
    AUDIT_WITNESS_URL: Url = Variable::new(Audit, &kind::UPSTREAM).shown_as_origin().rule("https in production");
    /// Time between verifications of the audit log by the service itself; 0 switches them off.
    AUDIT_INTEGRITY_VERIFY_INTERVAL: Duration = Variable::new(Audit, kind!(Duration, "a span up to 24h; `0` switches it off", |t| span(t, 0, DAY))).default("15m");
    /// Where each finding of a verification is posted as JSON.
    AUDIT_TAMPER_WEBHOOK_URL: Url = Variable::new(Audit, &kind::UPSTREAM).shown_as_origin().rule("https in production");
    /// Records the (shortened) parameters of requests.
    AUDIT_LOG_PARAMS: bool = Variable::new(Audit, &kind::BOOL).default("false");
    /// How long calls and retrievals are kept.
    RETENTION_ACCESS_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("2160h");
    /// How long decisions of compliance are kept.
    RETENTION_COMPLIANCE_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// How long mutations by administrators are kept.
    RETENTION_RBAC_AUDIT_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("8760h");
    /// How long reads and transitions of disclosure are kept.
    RETENTION_DISCLOSURE_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// How long logins, bans, links and findings are kept.
    RETENTION_SECURITY_LOGS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("8760h");
    /// How long travel-rule records are kept. There are none in this version, so there is nothing to prune yet.
    RETENTION_TRAVEL_RECORDS: Option<Duration> = Variable::new(Audit, &kind::RETENTION).default("61320h");
    /// Time between two sweeps of what is older than its retention.
    RETENTION_CLEANUP_INTERVAL: Duration = Variable::new(Audit, kind!(Duration, "a span from 1m to 24h", |t| span(t, 60, DAY))).default("1h");
    /// Calls and retrievals that are kept at most, the newest ones; `0` is no limit. What is younger than 24 hours stays anyway.
    MAX_ACCESS_LOG_ROWS: u64 = Variable::new(Audit, kind!(u64, "a whole number", |t| number(t, 0, u64::MAX))).default("0");

    /// Least severe log line that is written.
    LOG_LEVEL: LogLevel = Variable::new(Operation, &LOG_LEVEL_KIND).default("info");
    /// Form of log lines.
    LOG_FORMAT: LogFormat = Variable::new(Operation, &LOG_FORMAT_KIND).default_by_environment("json", "text");
    /// Time between reporting not ready and closing the listener.
    SHUTDOWN_DELAY: Duration = Variable::new(Operation, kind!(Duration, "a span from 0s to 5m", |t| span(t, 0, 300))).default_by_environment("5s", "0s");
    /// Time requests have to end after that.
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
words_of!(OneSided, ONE_SIDED_KIND, "`mask` or `drop`" { Mask = "mask", Drop = "drop" });
words_of!(TransactionLogs, LOGS_KIND, "`all` or `granted`" { All = "all", Granted = "granted" });
words_of!(NoAbi, NO_ABI_KIND, "`pass` or `drop`" { Pass = "pass", Drop = "drop" });
words_of!(DynamicFields, DYNAMIC_FIELDS_KIND, "`pass`, `zero` or `drop`" { Pass = "pass", Zero = "zero", Drop = "drop" });
words_of!(AdminTx, ADMIN_TX_KIND, "`masked` or `full`" { Masked = "masked", Full = "full" });
words_of!(AddressQuery, ADDRESS_QUERY_KIND, "`strict`, `linked` or `off`" {
    Strict = "strict", Linked = "linked", Off = "off"
});
words_of!(Anchor, ANCHOR_KIND, "`none` or `keep`" { None = "none", Keep = "keep" });

words! {
    /// spec/30 section 1.
    PrivacyProfile, PRIVACY_PROFILE_KIND, "`spec` or `strict`" {
        /// The service specification.
        Spec = "spec",
        /// Less is shown.
        Strict = "strict",
    }
}
words! {
    /// Who brings the schema up to date.
    Migrate, MIGRATE_KIND, "`auto` or `off`" {
        /// The service at start.
        Auto = "auto",
        /// An operator beforehand.
        Off = "off",
    }
}
words! {
    /// spec/70 rule 14.
    FullPolicy, FULL_POLICY_KIND, "`closed` or `open_reads`" {
        /// Nothing is answered.
        Closed = "closed",
        /// Plain reads go on.
        OpenReads = "open_reads",
    }
}
words! {
    /// Decision 10.
    Durability, DURABILITY_KIND, "`process` or `power`" {
        /// Plain reads survive the death of the process, the rest a power cut.
        Process = "process",
        /// Every record survives a power cut.
        Power = "power",
    }
}
words! {
    /// Least severe line.
    LogLevel, LOG_LEVEL_KIND, "`error`, `warn`, `info`, `debug` or `trace`" {
        /// Failures.
        Error = "error",
        /// And what may become one.
        Warn = "warn",
        /// And one line per request.
        Info = "info",
        /// And how it came about.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}
words! {
    /// Form of log lines.
    LogFormat, LOG_FORMAT_KIND, "`json` or `text`" {
        /// One JSON object a line.
        Json = "json",
        /// For people.
        Text = "text",
    }
}
