//! Commands that read: beside the running service, with exit codes that tell what they found (RTO7).

use crate::process::{self, Serving, free_port, stderr};
use gw_testkit::anvil::anvil;

fn run(arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = process::gateway(arguments, settings);
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output),
    )
}

/// RTO7: no reading command takes the lock of the running service, and each looks at both stores.
#[test]
fn rto7_reading_commands_run_beside_the_service() {
    let node = anvil();
    let gateway = Serving::start(node.url(), &[]).ready();
    let data = gateway.data_dir();
    let settings = [("DATA_DIR", data.as_str()), ("NODE_URL", node.url())];
    let (code, said) = run(&["migrate", "status"], &settings);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said,
        "policy store: the schema is up to date\naudit store: the schema is up to date\n"
    );
    let (code, said) = run(&["audit", "verify"], &settings);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["doctor"], &settings);
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "✓ policy store: reachable",
        "✓ audit store: reachable",
        "✓ journal directory",
        "✓ node: chain",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // What writes is refused while the service runs: busy, not misconfigured.
    let (code, said) = run(&["migrate", "apply"], &settings);
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("is held by process"), "{said}");
    assert_eq!(gateway.get("/ready").status, 200, "the service did not notice");
}

/// RTO7, RTO12: before the first start nothing is created, and what is missing is called missing.
#[test]
fn rto7_reading_commands_create_nothing() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let data = dir.path().join("data");
    let path = data.to_str().expect("text");
    let settings = [("DATA_DIR", path), ("NODE_URL", node.url())];
    let (code, said) = run(&["migrate", "status"], &settings);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("policy store: the schema is missing") && !said.contains("older"),
        "{said}"
    );
    let (code, said) = run(&["doctor"], &settings);
    assert_eq!(code, Some(0), "a first start needs nothing else: {said}");
    assert!(!data.exists(), "{said}");
    // An empty database is no old one.
    std::fs::create_dir(&data).expect("made");
    for file in ["gateway.db", "audit.db"] {
        std::fs::write(data.join(file), "").expect("made");
    }
    let (code, said) = run(&["migrate", "status"], &settings);
    assert_eq!(
        (code, said.contains("missing") && !said.contains("older")),
        (Some(1), true),
        "{said}"
    );
}

/// RTO7: doctor looks at the audit store as `serve` does.
#[test]
fn rto7_doctor_finds_a_broken_audit_store() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let data = dir.path().join("data");
    let settings = [("DATA_DIR", data.to_str().expect("text")), ("NODE_URL", node.url())];
    let (status, said) = Serving::start(node.url(), &settings).ready().end();
    assert!(status.success(), "{said}");
    for left in ["audit.db-wal", "audit.db-shm"] {
        let _ = std::fs::remove_file(data.join(left));
    }
    std::fs::write(data.join("audit.db"), "no database").expect("written");
    let (code, said) = run(&["doctor"], &settings);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("✗ audit store"), "{said}");
    assert!(said.contains("✓ policy store"), "{said}");
}

/// RTO7: configuration, finding, unreadable and busy have codes of their own.
#[test]
fn rto7_exit_codes_tell_causes_apart() {
    let nowhere = format!("postgres://nobody@127.0.0.1:{}/none", free_port());
    let (code, said) = run(&["doctor"], &[("DATABASE_URL", "no address")]);
    assert_eq!(code, Some(78), "{said}");
    let databases = [
        ("DATABASE_URL", nowhere.as_str()),
        ("AUDIT_DATABASE_URL", nowhere.as_str()),
    ];
    let (code, said) = run(&["audit", "verify"], &databases);
    assert_eq!(code, Some(74), "{said}");
    let (code, said) = run(&["migrate", "status"], &databases);
    assert_eq!(code, Some(74), "{said}");
}

/// RTO13: who migrates in production owns the tables, and so may rewrite what is sealed: no reason to fail. Only the released
/// program runs there.
#[cfg(not(feature = "mock-login"))]
#[test]
fn rto13_the_owner_of_the_audit_log_migrates_in_production() {
    let database = || {
        let url = gw_testkit::postgres::database()
            .expect("PostgreSQL")
            .expect("not to be left out here")
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
    let (code, said) = run(&["migrate", "apply"], &settings);
    assert_eq!((code, said.as_str()), (Some(0), "the schemas are up to date\n"));
    let (code, said) = run(&["migrate", "status"], &settings);
    assert_eq!(code, Some(0), "{said}");
    // The service seals: it must not.
    let (code, said) = run(&["doctor"], &settings);
    assert_eq!(
        (code, said.contains("its role may change or delete sealed entries")),
        (Some(1), true),
        "{said}"
    );
}

/// RTO12: the program says its own name.
#[test]
fn rto12_the_version_names_the_program() {
    let (code, said) = run(&["--version"], &[]);
    let name = if cfg!(feature = "mock-login") {
        "ledger-gateway-dev"
    } else {
        "ledger-gateway"
    };
    assert_eq!(
        (code, said),
        (Some(0), format!("{name} {}\n", env!("CARGO_PKG_VERSION")))
    );
}

/// RTO8: each retry of a database that is away says why.
#[test]
fn rto8_a_database_that_is_away_is_named_with_its_cause() {
    let node = anvil();
    let nowhere = format!("postgres://nobody@127.0.0.1:{}/none", free_port());
    let mut child = process::command(&["serve"], &[("DATABASE_URL", &nowhere), ("NODE_URL", node.url())])
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
