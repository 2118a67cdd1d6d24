//! The `config` commands.

use crate::process::{gateway, stderr};

#[test]
fn the_reference_is_up_to_date() {
    let written = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md"));
    assert_eq!(
        written.expect("docs/configuration.md exists"),
        gw_server::config::reference(),
        "run `cargo run -p gw-server -- config doc > docs/configuration.md`"
    );
}

/// spec/85 sections 1 and 3: every problem, one line each, code 78.
#[test]
fn all_problems_are_reported_together() {
    let output = gateway(
        &["config", "check"],
        &[("PORT", "http"), ("KYC_GATE", "never"), ("ENVIRONMENT", "prod")],
    );
    assert_eq!(output.status.code(), Some(78));
    let lines: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "ENVIRONMENT: must be `development`, `test` or `production`, found `prod`",
            "PORT: must be a port from 1 to 65535, found `http`",
            "KYC_GATE: must be `writes` or `all`, found `never`",
        ]
    );
}

#[test]
fn a_good_configuration_passes() {
    let output = gateway(&["config", "check"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// spec/70 rule 31: no output contains a secret, valid or malformed, or a key in the path of an upstream address.
#[test]
fn no_secret_is_ever_printed() {
    let env = [
        ("JWT_SECRET", " canary-one"),
        ("JWT_REFRESH_SECRET", "canary-two"),
        ("ADMIN_API_TOKEN", "canary-three"),
        ("DATABASE_URL", "mysql://u:canary-four@h/db"),
        ("AUDIT_DATABASE_URL", "postgres://u:canary-five@h/db"),
        (
            "NODE_URL",
            "https://node.example/v3/canary-six,https://spare.example/canary-eight",
        ),
        ("RPC_API_KEY_ENCRYPTION_KEY", "canary-seven"),
    ];
    let output = gateway(&["config", "print"], &env);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert_eq!(output.status.code(), Some(78));
    assert!(!text.contains("canary"), "{text}");
    assert!(text.contains("JWT_REFRESH_SECRET") && text.contains("https://node.example,https://spare.example "));
}
