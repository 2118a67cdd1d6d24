//! Read-only commands: they run while the service runs, and their exit codes distinguish the outcomes (RTO7).

use crate::process::{self, Serving, stderr};
use gw_testkit::{anvil::anvil, port};

fn run(arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = process::gateway(arguments, settings);
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output),
    )
}

/// RTO7: read-only commands do not take the lock of the running service, and each checks both stores.
#[test]
fn rto7_reading_commands_run_beside_the_service() {
    let node = anvil();
    let gateway = Serving::start(node.url(), &[]).ready();
    let data = gateway.data_dir();
    let settings = [("DATA_DIR", data.as_str()), ("NODE_URL", node.url())];
    let (code, output) = run(&["migrate", "status"], &settings);
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(
        output,
        "policy store: the schema is up to date\naudit store: the schema is up to date\n"
    );
    let (code, output) = run(&["audit", "verify"], &settings);
    assert_eq!(code, Some(0), "{output}");
    let (code, output) = run(&["doctor"], &settings);
    assert_eq!(code, Some(0), "{output}");
    for line in [
        "✓ policy store: reachable",
        "✓ audit store: reachable",
        "✓ journal directory",
        "✓ node: chain",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    // A writing command is refused while the service runs, with the exit code for "busy", not for "misconfigured".
    let (code, output) = run(&["migrate", "apply"], &settings);
    assert_eq!(code, Some(75), "{output}");
    assert!(output.contains("is held by process"), "{output}");
    assert_eq!(gateway.get("/ready").status, 200, "the service is not affected");
}

/// RTO7, RTO12: before the first start, read-only commands create nothing and report a missing schema as missing.
#[test]
fn rto7_reading_commands_create_nothing() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let data = dir.path().join("data");
    let path = data.to_str().expect("text");
    let settings = [("DATA_DIR", path), ("NODE_URL", node.url())];
    let (code, output) = run(&["migrate", "status"], &settings);
    assert_eq!(code, Some(1), "{output}");
    assert!(
        output.contains("policy store: the schema is missing") && !output.contains("older"),
        "{output}"
    );
    let (code, output) = run(&["doctor"], &settings);
    assert_eq!(code, Some(0), "a first start needs nothing else: {output}");
    assert!(!data.exists(), "{output}");
    // An empty database has a missing schema, not an older one.
    std::fs::create_dir(&data).expect("made");
    for file in ["gateway.db", "audit.db"] {
        std::fs::write(data.join(file), "").expect("made");
    }
    let (code, output) = run(&["migrate", "status"], &settings);
    assert_eq!(
        (code, output.contains("missing") && !output.contains("older")),
        (Some(1), true),
        "{output}"
    );
}

/// RTO7: `doctor` checks the audit store in the same way as `serve`.
#[test]
fn rto7_doctor_finds_a_broken_audit_store() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let data = dir.path().join("data");
    let settings = [("DATA_DIR", data.to_str().expect("text")), ("NODE_URL", node.url())];
    let (status, output) = Serving::start(node.url(), &settings).ready().end();
    assert!(status.success(), "{output}");
    for file in ["audit.db-wal", "audit.db-shm"] {
        let _ = std::fs::remove_file(data.join(file));
    }
    std::fs::write(data.join("audit.db"), "no database").expect("written");
    let (code, output) = run(&["doctor"], &settings);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("✗ audit store"), "{output}");
    assert!(output.contains("✓ policy store"), "{output}");
}

/// RTO7: a wrong configuration, a finding, an unreadable store and a busy store have different exit codes.
#[test]
fn rto7_exit_codes_tell_causes_apart() {
    let unreachable = format!("postgres://nobody@127.0.0.1:{}/none", port::reserve());
    let (code, output) = run(&["doctor"], &[("DATABASE_URL", "no address")]);
    assert_eq!(code, Some(78), "{output}");
    let databases = [
        ("DATABASE_URL", unreachable.as_str()),
        ("AUDIT_DATABASE_URL", unreachable.as_str()),
    ];
    let (code, output) = run(&["audit", "verify"], &databases);
    assert_eq!(code, Some(74), "{output}");
    let (code, output) = run(&["migrate", "status"], &databases);
    assert_eq!(code, Some(74), "{output}");
}

/// RTO12: `--version` prints the name of the binary.
#[test]
fn rto12_the_version_names_the_program() {
    let (code, output) = run(&["--version"], &[]);
    let name = if cfg!(feature = "mock-login") {
        "ledger-gateway-dev"
    } else {
        "ledger-gateway"
    };
    assert_eq!(
        (code, output),
        (Some(0), format!("{name} {}\n", env!("CARGO_PKG_VERSION")))
    );
}

/// RTO8: each retry of an unreachable database logs the cause.
#[test]
fn rto8_a_database_that_is_away_is_named_with_its_cause() {
    let node = anvil();
    let unreachable = format!("postgres://nobody@127.0.0.1:{}/none", port::reserve());
    let mut child = process::command(&["serve"], &[("DATABASE_URL", &unreachable), ("NODE_URL", node.url())])
        .env("DATA_DIR", tempfile::tempdir().expect("a directory").path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("piped")));
    let line = lines
        .find_map(|line| line.ok().filter(|line| line.contains("cannot be reached yet")))
        .expect("a line");
    let _ = child.kill();
    let _ = child.wait();
    assert!(
        line.contains("error") && line.to_lowercase().contains("refused"),
        "{line}"
    );
}
