//! Tests of the plain binary: what only a build without the mock login does. All other tests run in the dev build.
#![cfg(not(feature = "mock-login"))]
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use gw_testkit::anvil::anvil;
use std::process::{Command, Stdio};

/// Runs a command of the plain binary with only the given environment. Returns its exit code and its output.
fn run(arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ledger-gateway"))
        .args(arguments)
        .env_clear()
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), text.concat())
}

/// RTO12: `--version` prints the name of the binary.
#[test]
fn rto12_the_version_names_the_plain_program() {
    let version = format!("ledger-gateway {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"], &[]), (Some(0), version));
}

/// HD19, MK-2: the plain binary has no mock login, no verification key of its own operator, and no demo.
#[test]
fn hd19_the_plain_binary_refuses_mock_settings() {
    let node = anvil();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_str().expect("text");
    for (name, value) in [("ALLOW_MOCK_LOGIN", "true"), ("IDP_VERIFICATION_KEYS_DIR", path)] {
        let settings = [("DATA_DIR", path), ("NODE_URL", node.url()), (name, value)];
        let (code, output) = run(&["serve"], &settings);
        assert_eq!(code, Some(78), "{output}");
        assert!(
            output.contains(name) && output.contains("needs `ledger-gateway-dev`"),
            "{output}"
        );
    }
    let (code, output) = run(&["demo"], &[]);
    assert_eq!(code, Some(2), "the plain binary has no such command: {output}");
}

/// E3: a privacy build has no direct mode.
#[cfg(not(feature = "explorer-direct"))]
#[test]
fn e3_the_plain_binary_has_no_direct_mode() {
    let (code, output) = run(&["explorer"], &[("INDEXER_URL", "http://127.0.0.1:9")]);
    assert_eq!(code, Some(78), "{output}");
    let refusal = "INDEXER_URL: must not be set: this is a privacy build";
    assert!(output.contains(refusal), "{output}");
    let (code, output) = run(&["explorer"], &[]);
    assert_eq!(code, Some(78), "{output}");
    assert!(output.contains("PRIVACY_PROXY_URL: is required"), "{output}");
}

/// RTO13: in production, the role that migrates owns the tables and could change sealed entries. The migration accepts
/// that.
#[test]
fn rto13_the_owner_of_the_audit_log_migrates_in_production() {
    let database = || {
        let url = gw_testkit::postgres::database()
            .expect("PostgreSQL")
            .expect("this test needs PostgreSQL")
            .url;
        url.replace("gateway@", "gateway:password@")
    };
    let (dir, node) = (tempfile::tempdir().expect("a directory"), anvil());
    let journal = dir.path().join("journal");
    let (policy, audit) = (database(), database());
    let secret = |first: u8| {
        (first..first + 32)
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let (access, refresh, admin, key, checkpoint) = (secret(0), secret(32), secret(64), secret(96), secret(128));
    let settings = [
        ("ENVIRONMENT", "production"),
        ("BASE_URL", "https://gateway.example"),
        ("VERIFIER_ID", "did:test:verifier"),
        ("NODE_URL", node.url()),
        ("DATABASE_URL", policy.as_str()),
        ("AUDIT_DATABASE_URL", audit.as_str()),
        ("AUDIT_BUFFER_DIR", journal.to_str().expect("text")),
        ("JWT_SECRET", access.as_str()),
        ("JWT_REFRESH_SECRET", refresh.as_str()),
        ("ADMIN_API_TOKEN", admin.as_str()),
        ("RPC_API_KEY_ENCRYPTION_KEY", key.as_str()),
        ("AUDIT_CHECKPOINT_KEY", checkpoint.as_str()),
    ];
    let (code, output) = run(&["migrate", "apply"], &settings);
    assert_eq!((code, output.as_str()), (Some(0), "the schemas are up to date\n"));
    let (code, output) = run(&["migrate", "status"], &settings);
    assert_eq!(code, Some(0), "{output}");
    // The role of the service must not be able to change sealed entries.
    let (code, output) = run(&["doctor"], &settings);
    assert_eq!(
        (code, output.contains("its role may change or delete sealed entries")),
        (Some(1), true),
        "{output}"
    );
}
