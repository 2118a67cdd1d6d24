//! Logins, tokens, the directory, the humanity credential and OAuth.

use super::{DAY, STRONG_EACH};
use crate::config::{
    kind::{self, span, words},
    variable::{Kind, Section::Identity, Variable},
};
use gw_identity::ResolverConfig;
use gw_types::{Address, ExternalId, Secret};
use gw_zk::circuit::Circuit;
use std::{path::PathBuf, time::Duration};
use url::Url;

registry! {
    /// DID of this service as the verifier of login proofs.
    VERIFIER_ID: ExternalId = Variable::new(Identity, &kind::DID).required();
    /// State contract of `idp:main`.
    IDP_STATE_CONTRACT: Address = Variable::new(Identity, &kind::CONTRACT)
        .default("0x3C9acB2205Aa72A05F6D77d708b5Cf85FCa3a896");
    /// Node that serves the state of `idp:main`.
    IDP_RPC_URL: Url = Variable::new(Identity, &kind::UPSTREAM)
        .shown_as_origin()
        .default("https://rpc-mainnet.privado.id");
    /// Node to query when IDP_RPC_URL does not respond.
    IDP_RPC_FALLBACK_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// State contract of `altnet:main`.
    ALTNET_STATE_CONTRACT: Address = Variable::new(Identity, &kind::CONTRACT)
        .default("0x3C9acB2205Aa72A05F6D77d708b5Cf85FCa3a896");
    /// Node that serves the state of `altnet:main`; without it, identities of that network cannot log in.
    ALTNET_RPC_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// Node to query when ALTNET_RPC_URL does not respond.
    ALTNET_RPC_FALLBACK_URL: Url = Variable::new(Identity, &kind::UPSTREAM)
        .shown_as_origin()
        .rule("with ALTNET_RPC_URL only");
    /// Additional identity networks.
    IDP_EXTRA_RESOLVERS: Vec<ResolverConfig> = Variable::new(Identity, &kind::RESOLVERS)
        .secret()
        .rule("each network once, and no network that has its own variables");
    /// Directory with an `authV2.json` verification key that replaces the official one for login proofs; supported by
    /// `ledger-gateway-dev` only.
    IDP_VERIFICATION_KEYS_DIR: PathBuf = Variable::new(Identity, &kind::PATH).rule("development only");
    /// Circuits that a login proof may use. The login fails in a wallet that does not support one of them.
    IDP_AUTH_CIRCUITS: Vec<Circuit> = Variable::new(Identity, &kind::AUTH_CIRCUITS).default("authV2");
    /// Nullifier session that limits each person to one account: the credential of REQUIRE_PROOF_OF_HUMANITY is
    /// presented under this number. After a change, people who already have an account can create another one.
    IDP_NULLIFIER_SESSION: String =
        Variable::new(Identity, kind!(String, "a positive number of at most 76 digits", kind::digits))
            .rule("with REQUIRE_PROOF_OF_HUMANITY and a V3 circuit in IDP_CIRCUIT_ID");
    /// Only first-party applications that authenticate with their secret may introspect tokens.
    INTROSPECT_REQUIRE_CLIENT: bool = Variable::new(Identity, &kind::BOOL)
        .default("false")
        .rule("`true` needs OAUTH_FIRST_PARTY_CLIENTS");
    /// Node of the chain with the ENS contracts, used to show the names of linked addresses. The node learns these
    /// addresses, so there is no default.
    ENS_RESOLVER_URL: Url = Variable::new(Identity, &kind::UPSTREAM).shown_as_origin();
    /// Page where users obtain the humanity credential that a login may require.
    HUMANITY_VERIFY_URL: Url = Variable::new(Identity, &kind::WEB).rule("https in production");
    /// Signs access tokens.
    JWT_SECRET: Secret = Variable::new(Identity, &kind::SECRET)
        .secret()
        .derived("generated and kept in DATA_DIR")
        .required()
        .rule(
            "differs from JWT_REFRESH_SECRET, older ones included; in production at least 32 bytes, 8 of them \
             distinct, and different from every other secret, older ones included",
        );
    /// Older access-token secrets, accepted for validation only.
    JWT_SECRET_PREVIOUS: Vec<Secret> = Variable::new(Identity, &kind::SECRETS).secret().rule(STRONG_EACH);
    /// Signs refresh tokens.
    JWT_REFRESH_SECRET: Secret = Variable::new(Identity, &kind::SECRET)
        .secret()
        .derived("generated and kept in DATA_DIR")
        .required()
        .rule(
            "differs from JWT_SECRET, older ones included; in production at least 32 bytes, 8 of them distinct, and \
             different from every other secret, older ones included",
        );
    /// Older refresh-token secrets, accepted for validation only.
    JWT_REFRESH_SECRET_PREVIOUS: Vec<Secret> = Variable::new(Identity, &kind::SECRETS).secret().rule(STRONG_EACH);
    /// How access tokens are signed. With `EdDSA` other services verify them by `/.well-known/jwks.json`, which the
    /// explorer's backend needs for view-as. The keys are derived from JWT_SECRET. Tokens of both kinds are accepted.
    ACCESS_TOKEN_ALGORITHM: TokenAlgorithm = Variable::new(Identity, &TOKEN_ALGORITHM_KIND).default("HS256");
    /// Lifetime of an access token.
    ACCESS_TOKEN_TTL: Duration =
        Variable::new(Identity, kind!(Duration, "a span from 60s to 24h", |t| span(t, 60, DAY)))
            .default("300");
    /// Lifetime of a refresh token.
    REFRESH_TOKEN_TTL: Duration =
        Variable::new(Identity, kind!(Duration, "a span from 5m to 90d", |t| span(t, 300, 90 * DAY)))
            .default("7d")
            .rule("longer than ACCESS_TOKEN_TTL");
    /// Users who log in with a proof have KYC from their first login on.
    AUTO_KYC_IDP: bool = Variable::new(Identity, &kind::BOOL).default("false").rule("`true` warns at each start");
    /// Users who log in through the directory have KYC from their first login on.
    AUTO_KYC_DIRECTORY_USER: bool = Variable::new(Identity, &kind::BOOL)
        .default("false")
        .rule("`true` warns at each start");
    /// Service principals that log in through the directory have KYC from their first login on.
    AUTO_KYC_DIRECTORY_SERVICE_PRINCIPAL: bool = Variable::new(Identity, &kind::BOOL)
        .default("false")
        .rule("`true` warns at each start");
    /// Client id of this service in the enterprise directory; if set, users can log in through the directory.
    DIRECTORY_CLIENT_ID: String = Variable::new(Identity, &kind::TOKEN_WORD)
        .rule("together with DIRECTORY_CLIENT_SECRET and DIRECTORY_TENANT_ID");
    /// Client secret of this service in the enterprise directory.
    DIRECTORY_CLIENT_SECRET: Secret = Variable::new(Identity, &kind::SECRET)
        .secret()
        .rule("together with DIRECTORY_CLIENT_ID and DIRECTORY_TENANT_ID");
    /// Tenant that users log in to: its id or domain, `organizations` or `common`. The tenant list of the admin API
    /// decides which tenants are accepted.
    DIRECTORY_TENANT_ID: String =
        Variable::new(Identity, kind!(String, "a tenant's id or domain, `organizations` or `common`", kind::tenant))
            .rule("together with DIRECTORY_CLIENT_ID and DIRECTORY_CLIENT_SECRET");
    /// Address of the enterprise directory.
    DIRECTORY_AUTHORITY_HOST: Url = Variable::new(Identity, &kind::WEB)
        .default("https://login.microsoftonline.com")
        .rule("https in production");
    /// Required audience of the tokens of service principals.
    DIRECTORY_SP_AUDIENCE: String = Variable::new(Identity, &kind::TOKEN_WORD)
        .derived("DIRECTORY_CLIENT_ID")
        .rule("needs DIRECTORY_CLIENT_ID");
    /// Applications that may log in as service principals; all of an allowed tenant if unset.
    DIRECTORY_SP_CLIENTS: Vec<String> = Variable::new(Identity, &kind::TOKEN_WORDS).rule("needs DIRECTORY_CLIENT_ID");
    /// Application role that service principals must hold.
    DIRECTORY_SP_ROLE: String = Variable::new(Identity, &kind::TOKEN_WORD).rule("needs DIRECTORY_CLIENT_ID");
    /// A login must present a humanity credential (Path B), not only an identity (Path A).
    REQUIRE_PROOF_OF_HUMANITY: bool = Variable::new(Identity, &kind::BOOL)
        .default("false")
        .rule(
            "with `true`, ALTNET_ISSUER_DID, ALTNET_CREDENTIAL_SCHEMA_URL, ALTNET_CREDENTIAL_QUERY_FILE and an \
             identity DID in VERIFIER_ID are needed",
        );
    /// Issuers whose credentials are accepted, separated by commas.
    ALTNET_ISSUER_DID: Vec<ExternalId> = Variable::new(Identity, &kind::DIDS);
    /// Address of the credential's JSON-LD schema.
    ALTNET_CREDENTIAL_SCHEMA_URL: String =
        Variable::new(Identity, kind!(String, "an `https://` or `ipfs://` address", kind::document));
    /// File with the schema, read instead of fetching ALTNET_CREDENTIAL_SCHEMA_URL.
    ALTNET_CREDENTIAL_SCHEMA_FILE: PathBuf = Variable::new(Identity, &kind::PATH);
    /// Expected SHA-256 of the schema, in hexadecimal digits.
    ALTNET_CREDENTIAL_SCHEMA_SHA256: [u8; 32] =
        Variable::new(Identity, kind!([u8; 32], "64 hexadecimal digits (32 bytes)", kind::bytes_32));
    /// Name of the credential type.
    ALTNET_CREDENTIAL_TYPE: String = Variable::new(Identity, &kind::NAME).default("ProofOfHumanity");
    /// JSON file with the `credentialSubject` predicate that every credential must satisfy.
    ALTNET_CREDENTIAL_QUERY_FILE: PathBuf = Variable::new(Identity, &kind::PATH);
    /// Circuit of the credential proof; it must match the proof type of the issuer's credentials.
    IDP_CIRCUIT_ID: String = Variable::new(Identity, &kind::NAME).default("credentialAtomicQueryMTPV2");
    /// Requests a separate proof for each predicate of the query file, because a circuit proves only one.
    IDP_SPLIT_PREDICATES: bool = Variable::new(Identity, &kind::BOOL).default("false");
    /// Gateway that serves `ipfs://` documents.
    IPFS_GATEWAY: Url = Variable::new(Identity, &kind::WEB)
        .default("https://ipfs-proxy-cache.privado.id")
        .rule("https in production");
    /// Accepts login tokens of the form `mock.<did>`; supported by `ledger-gateway-dev` only.
    ALLOW_MOCK_LOGIN: bool = Variable::new(Identity, &kind::BOOL)
        .default("false")
        .rule("false in production and with REQUIRE_PROOF_OF_HUMANITY");
    /// Applications that may obtain tokens by OAuth: `<client_id>:<bcrypt_hash>`, separated by commas. During the
    /// rotation of a secret, a second hash follows after `|`. If unset, OAuth is off.
    OAUTH_FIRST_PARTY_CLIENTS: Secret = Variable::new(Identity, &kind::SECRET)
        .secret()
        .rule("bcrypt hashes of cost 10 to 16; 12 is recommended");
    /// Redirect addresses per application: `<client_id>=<uri>|<uri>`, separated by commas, matched exactly.
    /// Applications without an entry may use the origins of BASE_URL and CORS_ALLOWED_ORIGINS.
    OAUTH_REDIRECT_URIS: String =
        Variable::new(
            Identity,
            kind!(String, "a list such as `explorer=https://explorer.example/callback`", |t| Some(t.to_owned())),
        )
            .rule(
                "clients of OAUTH_FIRST_PARTY_CLIENTS; https in production; no fragment, user information or \
                 backslash",
            );
    /// Whether every application must use a proof key (PKCE, S256).
    OAUTH_REQUIRE_PKCE: bool = Variable::new(Identity, &kind::BOOL).default("false");
    /// Lets users create personal RPC URLs, for wallets without token support. A client that knows such a URL calls
    /// with its owner's rights, within the URL's scope; so does every web page that the wallet is connected to.
    PERSONAL_RPC_URLS: bool = Variable::new(Identity, &kind::BOOL).default("false");
}

words! {
    /// How access tokens are signed.
    TokenAlgorithm, TOKEN_ALGORITHM_KIND, "`HS256` or `EdDSA`" {
        /// By a secret: only this service can verify tokens.
        Hs256 = "HS256",
        /// By a private key: other services can verify tokens.
        EdDsa = "EdDSA",
    }
}
