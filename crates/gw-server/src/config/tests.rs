//! spec/85 section 11, rows 1 and 2.

use super::*;
use std::fmt::Write as _;

/// A valid production configuration.
const PRODUCTION: &[(&str, &str)] = &[
    ("ENVIRONMENT", "production"),
    ("BASE_URL", "https://gateway.example"),
    ("VERIFIER_ID", "did:test:verifier"),
    ("ADMIN_API_TOKEN", "0123456789abcdef0123456789abcdef"),
    ("JWT_SECRET", "access-0123456789abcdef0123456789"),
    ("JWT_REFRESH_SECRET", "refresh-0123456789abcdef012345678"),
    ("NODE_URL", "http://node:8545"),
    ("DATABASE_URL", "postgres://gateway:secret@db/gateway"),
    ("AUDIT_BUFFER_DIR", "/var/lib/gateway/audit"),
    (
        "AUDIT_CHECKPOINT_KEY",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    ),
    (
        "RPC_API_KEY_ENCRYPTION_KEY",
        "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
    ),
];

/// A weak secret: long enough, but with only three distinct bytes.
const WEAK: &str = "abababababababababababababababababababab-";
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The problems of a base environment with changes; an empty value removes a variable.
fn problems(base: &[(&str, &str)], changes: &[(&str, &str)]) -> Vec<String> {
    problems_of(base, changes, Build::Release)
}

fn problems_of(base: &[(&str, &str)], changes: &[(&str, &str)], build: Build) -> Vec<String> {
    let env = ProcessEnv::from_pairs(base.iter().chain(changes).copied());
    let messages: Vec<String> = settings(&env, build)
        .1
        .problems()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(messages.is_empty(), Config::load(&env, build).is_ok(), "{messages:?}");
    messages
}

/// For every variable: texts of the wrong form, and texts of the right form that are out of range.
const BROKEN: &[(&str, &[&str])] = &[
    ("ENVIRONMENT", &["prod", "Production"]),
    ("DATA_DIR", &["a\0b"]),
    ("PORT", &["http", "0", "65536", "-1", "+80", "8080 "]),
    ("BIND_ADDRESS", &["localhost", "1.2.3.4:80"]),
    ("INTERNAL_BIND_ADDR", &["127.0.0.1", "9090", "127.0.0.1:8080"]),
    (
        "BASE_URL",
        &[
            "gateway.example",
            "ftp://gateway.example",
            "https://u:p@gateway.example",
        ],
    ),
    ("FRONTEND_URL", &["app.example", "javascript:alert(1)"]),
    (
        "CORS_ALLOWED_ORIGINS",
        &["app.example", "https://app.example/path", "https://app.example,,"],
    ),
    (
        "INTERNAL_HOSTS",
        &["http://gateway", "gateway:9090", "gateway,,metrics", "*.internal", "."],
    ),
    ("TRUSTED_PROXIES", &["10.0.0.0/33", "proxy"]),
    ("TRUSTED_INTERNAL_CIDRS", &["10.0.0.0/-1", "all"]),
    ("MAX_CONCURRENT_REQUESTS", &["many", "0", "100001"]),
    ("MAX_CONCURRENT_ANONYMOUS_REQUESTS", &["many", "0"]),
    ("RATE_LIMIT_AUTH", &["10", "0/min", "10/h"]),
    ("RATE_LIMIT_RPC", &["on", "0/s"]),
    ("RATE_LIMIT_ANON", &["none", "-1/min"]),
    ("RPC_BATCH_MAX", &["all", "201"]),
    ("VERIFIER_ID", &["verifier", "directory:abc"]),
    ("JWT_SECRET", &[" padded"]),
    ("JWT_SECRET_PREVIOUS", &["a,,b"]),
    ("JWT_REFRESH_SECRET", &["padded "]),
    ("JWT_REFRESH_SECRET_PREVIOUS", &[","]),
    ("ACCESS_TOKEN_ALGORITHM", &["none", "ES256", "eddsa"]),
    ("ACCESS_TOKEN_TTL", &["soon", "59s", "25h"]),
    ("REFRESH_TOKEN_TTL", &["never", "4m", "91d"]),
    ("AUTO_KYC_IDP", &["yes"]),
    ("PERSONAL_RPC_URLS", &["yes"]),
    ("AUTO_KYC_DIRECTORY_USER", &["yes"]),
    ("AUTO_KYC_DIRECTORY_SERVICE_PRINCIPAL", &["yes"]),
    ("DIRECTORY_CLIENT_ID", &["a b", "a,b", "ключ"]),
    ("DIRECTORY_CLIENT_SECRET", &[" padded"]),
    ("DIRECTORY_TENANT_ID", &["consumers", "a/b", ".x"]),
    (
        "DIRECTORY_AUTHORITY_HOST",
        &["login.example", "https://u:p@login.example", "https://login.example/?x"],
    ),
    ("DIRECTORY_SP_AUDIENCE", &["a b"]),
    ("DIRECTORY_SP_CLIENTS", &["a,,b"]),
    ("DIRECTORY_SP_ROLE", &["a b"]),
    ("IDP_STATE_CONTRACT", &["0x3C9acB22", "state"]),
    ("IDP_RPC_URL", &["node.example", "ws://node", "https://u:p@node"]),
    ("IDP_RPC_FALLBACK_URL", &["node.example", "ftp://node"]),
    ("ALTNET_STATE_CONTRACT", &["0x3C9acB22", "state"]),
    ("ALTNET_RPC_URL", &["node.example", "https://u:p@node"]),
    ("ALTNET_RPC_FALLBACK_URL", &["node.example", "https://node.example"]),
    (
        "IDP_EXTRA_RESOLVERS",
        &["polygon:amoy", "polygon:amoy=0x1@https://node", "a=b@c"],
    ),
    ("IDP_VERIFICATION_KEYS_DIR", &["a\0b"]),
    (
        "IDP_AUTH_CIRCUITS",
        &["authV1", "credentialAtomicQueryV3", "authV2;authV3"],
    ),
    ("IDP_NULLIFIER_SESSION", &["0", "-1", "1e3", "0x1"]),
    ("INTROSPECT_REQUIRE_CLIENT", &["yes"]),
    ("ENS_RESOLVER_URL", &["ens", "https://user:pass@node.example"]),
    ("HUMANITY_VERIFY_URL", &["verify.example", "javascript:alert(1)"]),
    ("REQUIRE_PROOF_OF_HUMANITY", &["yes"]),
    ("ALTNET_ISSUER_DID", &["issuer", "did:x,,"]),
    (
        "ALTNET_CREDENTIAL_SCHEMA_URL",
        &["schema.json", "http://schema.example/x"],
    ),
    ("ALTNET_CREDENTIAL_SCHEMA_FILE", &["a\0b"]),
    (
        "ALTNET_CREDENTIAL_SCHEMA_SHA256",
        &["07", "zz07070707070707070707070707070707070707070707070707070707070707"],
    ),
    ("ALTNET_CREDENTIAL_TYPE", &["a b"]),
    ("ALTNET_CREDENTIAL_QUERY_FILE", &["a\0b"]),
    ("IDP_CIRCUIT_ID", &["a b"]),
    ("IDP_SPLIT_PREDICATES", &["yes"]),
    ("IPFS_GATEWAY", &["gateway.example", "ipfs://gateway"]),
    ("ALLOW_MOCK_LOGIN", &["yes", "1", "TRUE"]),
    (
        "OAUTH_FIRST_PARTY_CLIENTS",
        &["explorer", "explorer:plain", "explorer:$2b$09$", " padded"],
    ),
    ("OAUTH_REDIRECT_URIS", &["explorer", "nobody=https://app.example/cb"]),
    ("OAUTH_REQUIRE_PKCE", &["yes"]),
    ("ADMIN_API_TOKEN", &["padded "]),
    ("ADMIN_API_TOKEN_PREVIOUS", &["padded "]),
    ("OPERATOR_API_TOKEN", &[" padded", "\u{fffd}"]),
    ("ADMIN_REQUIRE_ORG_ADMIN_GROUP", &["1"]),
    ("ADMIN_CLAIM_DELEGATION", &["0"]),
    ("ADMIN_CONFIRM_DELETES", &["on"]),
    (
        "NODE_URL",
        &[
            "localhost:8545",
            "ws://node",
            "http://u:p@node",
            "http://node,",
            "http://node,localhost:8545",
        ],
    ),
    ("EXPECTED_CHAIN_ID", &["mainnet", "0", "0x1"]),
    ("NODE_HTTP_MAX_IDLE_CONNS", &["-1", "65536"]),
    ("NODE_HTTP_MAX_IDLE_CONNS_PER_HOST", &["x", "65536"]),
    ("NODE_HTTP_MAX_CONNS_PER_HOST", &["x", "65536"]),
    ("NODE_HTTP_IDLE_CONN_TIMEOUT", &["x", "0s", "2h"]),
    ("RPC_API_KEY", &[" x"]),
    ("RPC_API_KEY_HEADER", &["X Key", "X_Key", "ключ"]),
    (
        "RPC_API_KEY_ENCRYPTION_KEY",
        &["07", "zz07070707070707070707070707070707070707070707070707070707070707"],
    ),
    (
        "RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS",
        &["07", "zz07070707070707070707070707070707070707070707070707070707070707"],
    ),
    ("TRACE_TIMEOUT", &["x", "0s", "60s", "11m"]),
    ("ETH_CALL_TRACE_TIMEOUT", &["x", "10ms", "31s"]),
    ("KYC_GATE", &["none"]),
    ("RAW_SENDER_POLICY", &["none"]),
    ("DEPLOYMENTS", &["none"]),
    ("MINED_TRACE", &["on"]),
    ("RAW_NONCE_GAP_MAX", &["-1", "1000001"]),
    ("EXTRA_RPC_NAMESPACES_FILE", &["a\0b"]),
    ("ALLOW_UNFILTERED_WILDCARDS", &["yes"]),
    ("RPC_DENY_HTTP_STATUS", &["403", "300"]),
    ("PRIVACY_PROFILE", &["lax"]),
    ("PRIVACY_ONE_SIDED", &["show"]),
    ("PRIVACY_PARTICIPANT_LOGS", &["none"]),
    ("PRIVACY_NO_ABI", &["zero"]),
    ("PRIVACY_SHARED_LOGS", &["none"]),
    ("PRIVACY_DYNAMIC_FIELDS", &["mask"]),
    ("PRIVACY_ALIAS_STRIP", &["maybe"]),
    ("PRIVACY_ADMIN_TX", &["none"]),
    ("ADDRESS_QUERY_STRICT", &["true"]),
    ("HIDE_BLOCK_ROOTS", &["no"]),
    ("ORG_ADMIN_VIEW_USER_TXS", &["no"]),
    ("ADMIN_CLAIM_SEES_ALL", &["no"]),
    ("PRIVACY_ANCHOR", &["drop"]),
    ("HIDE_BASE_FEE", &["no"]),
    ("RUNTIME_TRACING_ETH_CALL_ENABLED", &["no"]),
    ("RUNTIME_TRACING_INTRA_ORG_GRANTS_ENABLED", &["no"]),
    (
        "DATABASE_URL",
        &[
            "mysql://u:p@h/db",
            "postgres://u:p@h",
            "sqlite://gateway.db",
            "gateway.db",
        ],
    ),
    ("DB_MAX_OPEN_CONNS", &["x", "0", "10001"]),
    ("DB_CONN_MAX_LIFETIME", &["x", "1s", "25h"]),
    ("MIGRATE", &["on", "true"]),
    (
        "EXPLORER_DATABASE_URL",
        &[
            "postgres://db",
            "mysql://db/x",
            "explorer.db",
            "sqlite:",
            "sqlite://",
            "sqlite::memory:",
            "sqlite:///var/lib/x.db?mode=rwc",
        ],
    ),
    ("EXPLORER_BACKEND_KEY", &[" padded"]),
    ("FORCE_REINDEX", &["yes"]),
    ("ENABLE_TRACING", &["on"]),
    ("EXPLORER_CONFIRMATIONS", &["-1", "10001"]),
    ("EXPLORER_CONCURRENT_READS", &["0", "65"]),
    (
        "REDIS_URL",
        &[
            "localhost:6379",
            "http://cache",
            "redis:///0",
            "redis+unix:///run/redis.sock",
            "redis-sharded://h",
        ],
    ),
    ("AUDIT_DATABASE_URL", &["redis://h"]),
    ("AUDIT_ADMIN_DATABASE_URL", &["redis://h"]),
    ("AUDIT_BUFFER_DIR", &["a\0b"]),
    ("AUDIT_BUFFER_MAX_BYTES", &["8GB", "1MiB"]),
    ("AUDIT_FULL_POLICY", &["open"]),
    ("AUDIT_DURABILITY", &["none"]),
    ("AUDIT_CHECKPOINT_KEY", &["07", "-----BEGIN PRIVATE KEY-----"]),
    ("AUDIT_CHECKPOINT_PUBLIC_KEYS_PREVIOUS", &["07", "x"]),
    ("AUDIT_CHECKPOINT_INTERVAL", &["x", "0s", "2d"]),
    ("AUDIT_INTEGRITY_VERIFY_INTERVAL", &["x", "2d"]),
    ("AUDIT_TAMPER_WEBHOOK_URL", &["nowhere", "ftp://witness.example"]),
    ("AUDIT_WITNESS_URL", &["nowhere", "ftp://witness.example"]),
    ("MAX_CONNECTIONS", &["15", "many"]),
    ("MAX_CONNECTIONS_PER_ADDRESS", &["0", "many"]),
    ("MAX_INTERNAL_CONNECTIONS", &["3", "many"]),
    ("ANSWER_BYTES_MAX", &["512", "much"]),
    ("ANSWER_BYTES_PER_CALLER", &["512", "much"]),
    ("AUDIT_LOG_PARAMS", &["some"]),
    ("RETENTION_ACCESS_LOGS", &["forever", "23h"]),
    ("RETENTION_COMPLIANCE_LOGS", &["7y", "1m"]),
    ("RETENTION_RBAC_AUDIT_LOGS", &["-1", "876001h"]),
    ("RETENTION_DISCLOSURE_LOGS", &["x", "0s"]),
    ("DISCLOSURE_MAX_GRANT_HOURS", &["0", "-1", "876001"]),
    ("DISCLOSURE_REQUIRE_LEGAL_BASIS_FULL", &["yes"]),
    ("DISCLOSURE_STRICT_SCOPE", &["off"]),
    ("DISCLOSURE_TIME_BUCKET_SECONDS", &["-1", "1h"]),
    ("DISCLOSURE_SECRET_RETENTION", &["x", "0", "59m", "8761h"]),
    ("WEBHOOK_ALLOWED_NETWORKS", &["bank.example", "10.0.0.0/33"]),
    ("RETENTION_SECURITY_LOGS", &["x", "23h"]),
    ("RETENTION_TRAVEL_RECORDS", &["x", "23h"]),
    ("RETENTION_CLEANUP_INTERVAL", &["x", "59s", "25h"]),
    ("MAX_ACCESS_LOG_ROWS", &["-1", "many"]),
    ("LOG_LEVEL", &["verbose", "INFO"]),
    ("LOG_FORMAT", &["xml"]),
    ("SHUTDOWN_DELAY", &["x", "6m"]),
    ("SHUTDOWN_TIMEOUT", &["x", "0s", "11m"]),
];

#[test]
fn spec85_2_a_directory_needs_all_required_variables_or_none() {
    let parts = [
        ("DIRECTORY_CLIENT_ID", "c"),
        ("DIRECTORY_CLIENT_SECRET", "s"),
        ("DIRECTORY_TENANT_ID", "common"),
    ];
    assert_eq!(problems(&[], &parts), Vec::<String>::new());
    for missing in parts {
        let rest: Vec<_> = parts.into_iter().filter(|part| *part != missing).collect();
        let messages = problems(&[], &rest);
        assert!(
            messages.len() == 1 && messages[0].starts_with(missing.0),
            "{messages:?}"
        );
    }
    for optional in ["DIRECTORY_SP_AUDIENCE", "DIRECTORY_SP_CLIENTS", "DIRECTORY_SP_ROLE"] {
        let messages = problems(&[], &[(optional, "x")]);
        assert!(messages.len() == 1 && messages[0].starts_with(optional), "{messages:?}");
    }
    let plain = [
        parts.as_slice(),
        &[("DIRECTORY_AUTHORITY_HOST", "http://directory.example/")],
    ]
    .concat();
    assert_eq!(problems(&[], &plain), Vec::<String>::new());
    assert_eq!(problems(PRODUCTION, &plain).len(), 1, "https in production");
    let env = ProcessEnv::from_pairs(plain.iter().copied());
    let directory = Config::load(&env, Build::Release).unwrap().identity.directory.unwrap();
    assert_eq!(
        (directory.authority.as_str(), directory.sp_audience.as_str()),
        ("http://directory.example", "c")
    );
}

#[test]
fn row_1_every_variable_refuses_bad_texts_in_development_and_production() {
    for entry in registry::all() {
        let texts = BROKEN
            .iter()
            .find(|(name, _)| *name == entry.name())
            .map(|(_, texts)| *texts);
        for text in texts.unwrap_or_else(|| panic!("{} has no bad text in this table", entry.name())) {
            for base in [&[], PRODUCTION] {
                let messages = problems(base, &[(entry.name(), text)]);
                assert!(
                    !messages.is_empty()
                        && messages
                            .iter()
                            .all(|line| line.starts_with(&format!("{}: ", entry.name()))),
                    "{}={text}: {messages:?}",
                    entry.name()
                );
            }
        }
    }
    assert_eq!(BROKEN.len(), registry::all().count(), "a row names no variable");
}

#[test]
fn row_1_only_required_variables_must_be_set_in_production() {
    assert_eq!(problems(&[], &[]), Vec::<String>::new());
    assert_eq!(problems(PRODUCTION, &[]), Vec::<String>::new());
    for entry in registry::all() {
        let problems = problems(PRODUCTION, &[(entry.name(), "")]);
        let expected: Vec<String> = match entry.name() {
            // Without ENVIRONMENT the configuration is a valid development configuration.
            "ENVIRONMENT" => Vec::new(),
            name if entry.is_required() => vec![format!("{name}: is required in production")],
            _ => Vec::new(),
        };
        assert_eq!(problems, expected, "{}", entry.name());
    }
    let required: Vec<&str> = registry::all()
        .filter(|entry| entry.is_required())
        .map(|entry| entry.name())
        .collect();
    assert_eq!(
        required,
        PRODUCTION
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| *name != "ENVIRONMENT")
            .fold(Vec::new(), |mut names, name| {
                names.push(name);
                names.sort_by_key(|name| registry::all().position(|entry| entry.name() == *name));
                names
            })
    );
}

#[test]
fn row_2_production_refuses_weak_and_unsafe_values() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("JWT_REFRESH_SECRET", "access-0123456789abcdef0123456789")],
            "JWT_REFRESH_SECRET: must differ",
        ),
        (
            &[("JWT_REFRESH_SECRET_PREVIOUS", "access-0123456789abcdef0123456789")],
            "JWT_REFRESH_SECRET: must differ",
        ),
        (&[("JWT_SECRET", "short")], "JWT_SECRET: must have at least 32 bytes"),
        // RTS7: an older secret is still accepted, and every secret has one purpose.
        (
            &[("JWT_SECRET_PREVIOUS", "short")],
            "JWT_SECRET_PREVIOUS: each must have at least 32 bytes",
        ),
        (
            &[("JWT_REFRESH_SECRET_PREVIOUS", WEAK)],
            "JWT_REFRESH_SECRET_PREVIOUS: each must have at least 32 bytes",
        ),
        (
            &[("AUDIT_CHECKPOINT_KEY", ZEROS)],
            "AUDIT_CHECKPOINT_KEY: must have at least 32 bytes",
        ),
        (
            &[("RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS", ZEROS)],
            "RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS: must have at least",
        ),
        (
            &[("ADMIN_API_TOKEN", "access-0123456789abcdef0123456789")],
            "ADMIN_API_TOKEN: must differ from JWT_SECRET",
        ),
        (
            &[("JWT_SECRET_PREVIOUS", "0123456789abcdef0123456789abcdef")],
            "ADMIN_API_TOKEN: must differ from JWT_SECRET",
        ),
        (
            &[("OPERATOR_API_TOKEN", "refresh-0123456789abcdef012345678")],
            "OPERATOR_API_TOKEN: must differ from JWT_REFRESH_SECRET",
        ),
        (
            &[(
                "AUDIT_CHECKPOINT_KEY",
                "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
            )],
            "AUDIT_CHECKPOINT_KEY: must differ from RPC_API_KEY_ENCRYPTION_KEY",
        ),
        (
            &[("TRUSTED_PROXIES", "0.0.0.0/0")],
            "TRUSTED_PROXIES: must not hold `0.0.0.0/0`",
        ),
        (
            &[("TRUSTED_PROXIES", "10.0.0.0/8,::/0")],
            "TRUSTED_PROXIES: must not hold `::/0`",
        ),
        (
            &[("TRUSTED_PROXIES", "0.0.0.0/1,128.0.0.0/1")],
            "TRUSTED_PROXIES: must not hold `0.0.0.0/1`",
        ),
        (
            &[("TRUSTED_INTERNAL_CIDRS", "0.0.0.0/0")],
            "TRUSTED_INTERNAL_CIDRS: must not hold `0.0.0.0/0`",
        ),
        (
            &[("ADMIN_API_TOKEN", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")],
            "ADMIN_API_TOKEN: must have at least 32 bytes",
        ),
        (&[("BASE_URL", "http://gateway.example")], "BASE_URL: must be https"),
        (&[("FRONTEND_URL", "http://app.example")], "FRONTEND_URL: must be https"),
        (
            &[("CORS_ALLOWED_ORIGINS", "https://app.example,*")],
            "CORS_ALLOWED_ORIGINS: must not be `*`",
        ),
        (
            &[("ALLOW_MOCK_LOGIN", "true")],
            "ALLOW_MOCK_LOGIN: must be false in production",
        ),
        (
            &[("DATABASE_URL", "postgres://gateway@db/gateway")],
            "DATABASE_URL: must have a password",
        ),
        (
            &[("OPERATOR_API_TOKEN", "0123456789abcdef0123456789abcdef")],
            "OPERATOR_API_TOKEN: must differ",
        ),
        (
            &[("ADMIN_API_TOKEN_PREVIOUS", "admin")],
            "ADMIN_API_TOKEN_PREVIOUS: must have at least 32 bytes",
        ),
        (
            &[("AUDIT_DATABASE_URL", "postgres://audit:pw@DB:5432/gateway?x=1")],
            "AUDIT_DATABASE_URL: must be another database",
        ),
        (
            &[("REDIS_URL", "rediss://cache:6379")],
            "REDIS_URL: must have a password",
        ),
        (
            &[("REDIS_URL", "redis://gateway:@cache:6379")],
            "REDIS_URL: must have a password",
        ),
        (
            &[("AUDIT_DATABASE_URL", "postgres://audit:@db/audit")],
            "AUDIT_DATABASE_URL: must have a password",
        ),
        (
            &[("AUDIT_ADMIN_DATABASE_URL", "postgres://owner:@db/gateway_audit")],
            "AUDIT_ADMIN_DATABASE_URL: must have a password",
        ),
        (
            &[("EXPLORER_DATABASE_URL", "sqlite:///srv/explorer.db")],
            "EXPLORER_BACKEND_KEY: is required in production with EXPLORER_DATABASE_URL",
        ),
        (
            &[
                ("EXPLORER_DATABASE_URL", "postgres://explorer@db/explorer"),
                ("EXPLORER_BACKEND_KEY", "explorer-0123456789abcdef01234567"),
            ],
            "EXPLORER_DATABASE_URL: must have a password",
        ),
        (
            &[("EXPLORER_BACKEND_KEY", "refresh-0123456789abcdef012345678")],
            "EXPLORER_BACKEND_KEY: must differ from JWT_REFRESH_SECRET",
        ),
    ];
    for (changes, expected) in cases {
        let messages = problems(PRODUCTION, changes);
        assert!(
            messages.len() == 1 && messages.iter().all(|line| line.starts_with(expected)),
            "{changes:?}: {messages:?}"
        );
        // RTO13: the reference lists each rule of production in the variable's row.
        let name = format!("| `{}` |", expected.split(':').next().unwrap_or_default());
        let row = reference()
            .lines()
            .find(|line| line.starts_with(&name))
            .map(str::to_owned)
            .unwrap_or_default();
        assert!(
            row.split_once("*Rules:")
                .is_some_and(|(_, rules)| rules.contains("production")),
            "{expected}: {row}"
        );
    }
}

#[test]
fn equal_token_secrets_are_refused_everywhere() {
    let problems = problems(&[], &[("JWT_SECRET", "same"), ("JWT_REFRESH_SECRET", "same")]);
    assert_eq!(
        problems,
        ["JWT_REFRESH_SECRET: must differ from JWT_SECRET, older secrets included"]
    );
}

#[test]
fn hd19_mock_code_runs_in_development_only() {
    assert!(problems_of(&[], &[("ALLOW_MOCK_LOGIN", "true")], Build::Mock).is_empty());
    assert_eq!(problems(&[], &[("ALLOW_MOCK_LOGIN", "true")]).len(), 1);
    for environment in ["test", "production"] {
        let problems = problems_of(PRODUCTION, &[("ENVIRONMENT", environment)], Build::Mock);
        assert_eq!(
            problems,
            ["ENVIRONMENT: must be `development`: `ledger-gateway-dev` runs nowhere else"]
        );
    }
}

/// Loads a configuration file with extra environment variables. Returns its directory, the problems and the result.
fn with_file(text: &str, env: &[(&str, &str)]) -> (tempfile::TempDir, Vec<String>, Result<Config, Report>) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("gateway.toml");
    std::fs::write(&path, text).expect("written");
    let path = path.to_string_lossy().into_owned();
    let env = ProcessEnv::from_pairs(env.iter().copied().chain([("CONFIG_FILE", path.as_str())]));
    let problems = settings(&env, Build::Release)
        .1
        .problems()
        .iter()
        .map(ToString::to_string)
        .collect();
    (dir, problems, Config::load(&env, Build::Release))
}

#[test]
fn environment_beats_file_beats_default() {
    let file = "version = 1\nPORT = 9000\nRPC_BATCH_MAX = 7\nHIDE_BASE_FEE = true\nACCESS_TOKEN_TTL = \"10m\"\n";
    let (_dir, messages, config) = with_file(file, &[("PORT", "9001")]);
    let config = config.unwrap_or_else(|_| panic!("{messages:?}"));
    assert_eq!(config.edge.listen.port(), 9001);
    assert_eq!(config.edge.base_url, "http://localhost:9001");
    assert_eq!(config.limits.batch, 7);
    assert!(config.policy_settings.hide_base_fee);
    assert_eq!(config.identity.access_ttl, Duration::from_secs(600));
    assert_eq!(config.policy_settings.raw_nonce_gap_max, 64);
}

#[test]
fn the_file_needs_a_version_and_flat_known_keys() {
    let cases = [
        ("PORT = 9000", "CONFIG_FILE: must contain `version = 1`"),
        (
            "version = 2",
            "CONFIG_FILE: must contain `version = 1`; this version is not supported",
        ),
        ("version = 1\nPROT = 1", "PROT: unknown in the configuration file"),
        ("version = 1\nport = 1", "port: unknown in the configuration file"),
        (
            "version = 1\n[PORT]\nx = 1",
            "PORT: must be a string, a whole number or a boolean in the configuration file",
        ),
        (
            "version = 1\nPORT = 1.5",
            "PORT: must be a string, a whole number or a boolean in the configuration file",
        ),
        (
            "version = 1\nPORT = 70000",
            "PORT: must be a port from 1 to 65535, found `70000`",
        ),
        (
            "version = 1\nCONFIG_FILE = \"x\"",
            "CONFIG_FILE: unknown in the configuration file",
        ),
    ];
    for (text, expected) in cases {
        let (_dir, problems, _) = with_file(text, &[]);
        assert_eq!(problems, [expected], "{text}");
    }
    assert_eq!(
        problems(&[], &[("CONFIG_FILE", "/nowhere/gateway.toml")]),
        ["CONFIG_FILE: cannot be read: entity not found"]
    );
}

/// spec/85 rule 1.2: the problem names the key but never the value.
#[test]
fn secrets_are_rejected_in_the_configuration_file() {
    let mut text = String::from("version = 1\n");
    let secrets: Vec<&str> = registry::all()
        .filter(|entry| entry.shown() == Redaction::Secret)
        .map(|entry| entry.name())
        .collect();
    for name in &secrets {
        let _ = writeln!(text, "{name} = \"canary\"");
    }
    let (_dir, messages, _) = with_file(&text, &[]);
    let expected: Vec<String> = secrets
        .iter()
        .map(|name| format!("{name}: a secret must not be in the configuration file"))
        .collect();
    assert_eq!(messages, expected);
    let (_dir, messages, _) = with_file("version = 1\nJWT_SECRET = canary", &[]);
    assert!(
        messages.len() == 1 && messages.iter().all(|line| !line.contains("canary")),
        "{messages:?}"
    );
}

#[test]
fn secrets_come_from_mounted_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let (good, empty) = (path("good", "from-the-file\n"), path("empty", "\n"));
    let config = Config::load(
        &ProcessEnv::from_pairs([("JWT_SECRET_FILE", good.as_str())]),
        Build::Release,
    );
    let secret = config.ok().and_then(|config| config.identity.access_secret);
    assert!(secret.is_some_and(|secret| secret.matches("from-the-file")));
    let (_dir, messages, config) = with_file(&format!("version = 1\nJWT_SECRET_FILE = \"{good}\""), &[]);
    assert!(
        config.is_ok_and(|config| config.identity.access_secret.is_some()),
        "{messages:?}"
    );

    let both = problems(&[], &[("JWT_SECRET", "x"), ("JWT_SECRET_FILE", &good)]);
    assert_eq!(both, ["JWT_SECRET: set together with JWT_SECRET_FILE"]);
    assert_eq!(
        problems(&[], &[("JWT_SECRET_FILE", &empty)]),
        ["JWT_SECRET_FILE: names an empty file"]
    );
    let missing = problems(&[], &[("JWT_SECRET_FILE", "/nowhere/secret")]);
    assert_eq!(missing, ["JWT_SECRET_FILE: cannot be read: entity not found"]);
}

/// Decision 12; spec/70 rule 25.
#[test]
fn stores_default_to_files_and_the_audit_store_to_a_second_database() {
    let config = |env: &[(&str, &str)]| {
        Config::load(&ProcessEnv::from_pairs(env.iter().copied()), Build::Release).expect("valid")
    };
    let embedded = config(&[("DATA_DIR", "/srv/gateway")]);
    assert_eq!((embedded.store.url, embedded.audit.url), (None, None));
    assert_eq!(embedded.audit.journal_dir, PathBuf::from("/srv/gateway/audit"));
    let server = config(&[("DATABASE_URL", "postgres://u:p@db/gateway?sslmode=require")]);
    let audit = server.audit.url.expect("derived");
    assert_eq!(audit.expose(), "postgres://u:p@db/gateway_audit?sslmode=require");
}

/// E1, spec/40 section 6: the explorer is off unless it has a database of its own.
#[test]
fn e1_the_explorer_has_a_database_of_its_own() {
    let explorer = |env: &[(&str, &str)]| {
        Config::load(&ProcessEnv::from_pairs(env.iter().copied()), Build::Release)
            .expect("valid")
            .explorer
    };
    let off = explorer(&[("DATABASE_URL", "postgres://u:p@db/gateway")]);
    assert!(off.database.is_none() && off.backend_key.is_none() && off.traces && !off.force_reindex);
    assert_eq!((off.confirmations, off.concurrent_reads.get()), (0, 8));
    for (url, expected) in [
        ("sqlite:///srv/explorer.db", "/srv/explorer.db"),
        ("sqlite:explorer.db", "explorer.db"),
        ("sqlite://explorer.db", "explorer.db"),
    ] {
        let database = explorer(&[("EXPLORER_DATABASE_URL", url)]).database;
        let Some(gw_chain_store::Location::Sqlite { file }) = database else {
            panic!("{url}: {database:?}");
        };
        assert_eq!(file, PathBuf::from(expected));
    }
    let server = explorer(&[("EXPLORER_DATABASE_URL", "postgres://u:explorer-pw@db/explorer")]);
    assert!(!format!("{server:?}").contains("explorer-pw"));
    for other in ["gateway", "gateway_audit"] {
        let url = format!("postgres://explorer:pw@DB:5432/{other}");
        let messages = problems(
            &[("DATABASE_URL", "postgres://u:p@db/gateway")],
            &[("EXPLORER_DATABASE_URL", &url)],
        );
        assert_eq!(
            messages,
            ["EXPLORER_DATABASE_URL: must be another database than DATABASE_URL and AUDIT_DATABASE_URL"]
        );
    }
}

/// spec/30 section 1: the profile sets K1-K6 together, and each setting can override it.
#[test]
fn the_profile_applies_to_settings_that_are_not_set() {
    let policy = |env: &[(&str, &str)]| {
        Config::load(&ProcessEnv::from_pairs(env.iter().copied()), Build::Release)
            .expect("valid")
            .policy_settings
    };
    assert_eq!(policy(&[]), PolicySettings::SPEC);
    assert_eq!(policy(&[("PRIVACY_PROFILE", "strict")]), PolicySettings::STRICT);
    let strict = policy(&[("PRIVACY_PROFILE", "strict"), ("PRIVACY_NO_ABI", "pass")]);
    assert_eq!(
        strict,
        PolicySettings {
            no_abi: gw_policy::settings::MissingAbiMode::Pass,
            ..PolicySettings::STRICT
        }
    );
}

/// OA-3, OA-8: the report names every wrong entry of both lists and repeats no hash.
#[test]
fn oa8_wrong_oauth_clients_are_all_named() {
    const HASH: &str = "$2b$12$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyz01232";
    assert_eq!(
        problems(
            &[],
            &[(
                "OAUTH_FIRST_PARTY_CLIENTS",
                &format!("explorer:{HASH}|{HASH}, reports:{HASH}")
            )]
        ),
        [""; 0]
    );
    let cheap = HASH.replace("$12$", "$09$");
    let clients = format!("explorer, reports:plain, audit:{cheap}");
    let messages = problems(
        &[],
        &[
            ("OAUTH_FIRST_PARTY_CLIENTS", &clients),
            ("OAUTH_REDIRECT_URIS", "explorer"),
        ],
    );
    assert_eq!(
        messages,
        [
            "OAUTH_FIRST_PARTY_CLIENTS: entry 1 is a bare client id: write `<client_id>:<bcrypt_hash>`",
            "OAUTH_FIRST_PARTY_CLIENTS: client `reports` has a secret that is no bcrypt hash",
            "OAUTH_FIRST_PARTY_CLIENTS: client `audit` has a hash of cost 9: from 10 to 16 is needed, 12 is \
             recommended",
            "OAUTH_REDIRECT_URIS: entry 1 is not `<client_id>=<uri>|<uri>`",
        ]
    );
    let clients = format!("explorer:{HASH}");
    let uris = "explorer=http://app.example/cb|https://app.example/#x";
    let changes = [
        ("OAUTH_FIRST_PARTY_CLIENTS", clients.as_str()),
        ("OAUTH_REDIRECT_URIS", uris),
    ];
    assert_eq!(
        problems(PRODUCTION, &changes),
        [
            "OAUTH_REDIRECT_URIS: an address of client `explorer` must be https in production",
            "OAUTH_REDIRECT_URIS: an address of client `explorer` holds a fragment",
        ]
    );
}

/// N1: one report lists every problem of the method file, by namespace and method.
#[test]
fn n1_a_method_file_with_any_problem_is_rejected_as_a_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("methods.json");
    let name = path.to_string_lossy().into_owned();
    let file = |text: &str, more: &[(&str, &str)]| {
        std::fs::write(&path, text).expect("written");
        let set = [("EXTRA_RPC_NAMESPACES_FILE", name.as_str())];
        let env: Vec<_> = set.iter().chain(more).copied().collect();
        (
            problems(&[], &env),
            Config::load(&ProcessEnv::from_pairs(env), Build::Release),
        )
    };
    let good = r#"{"version":1,"namespaces":{"linea":[{"method":"linea_estimateGas","alias":"eth_estimateGas"}]}}"#;
    let (messages, config) = file(good, &[]);
    let config = config.unwrap_or_else(|_| panic!("{messages:?}"));
    let row = config.custom_methods.lookup("linea_estimateGas").method();
    assert_eq!(row, Some(gw_evm::Method::EstimateGas));
    let bad = r#"{"version":2,"namespaces":{"x":{"explicit":[{"method":"eth_sign","alias":"eth_call"},{"method":"x_a"}],
        "wildcard":{"prefix":"debug_"}}}}"#;
    let (messages, _) = file(bad, &[("ALLOW_UNFILTERED_WILDCARDS", "true")]);
    assert_eq!(
        messages,
        [
            "EXTRA_RPC_NAMESPACES_FILE: namespace `x`, method `eth_sign`: blocked methods are never served",
            "EXTRA_RPC_NAMESPACES_FILE: namespace `x`, method `x_a`: `alias` is missing",
            "EXTRA_RPC_NAMESPACES_FILE: namespace `x`, wildcard `debug_`: methods of this namespace are the registry's",
        ]
    );
    let wild = r#"{"version":2,"namespaces":{"x":{"wildcard":{"prefix":"x_"}}}}"#;
    assert_eq!(file(wild, &[]).0.len(), 1);
    assert!(file(wild, &[("ALLOW_UNFILTERED_WILDCARDS", "true")]).1.is_ok());
    let missing = problems(&[], &[("EXTRA_RPC_NAMESPACES_FILE", "/nowhere/methods.json")]);
    assert_eq!(missing, ["EXTRA_RPC_NAMESPACES_FILE: cannot be read: entity not found"]);
}
