//! RL3, RL5 and RL6 with the real binary: databases that are restored from older backups, and a lost journal.

use crate::process::{self, Serving};
use gw_testkit::anvil::anvil;
use serde_json::{Value, json};
use std::path::Path;

const TOKEN: &str = "restore-test-token";

/// The directories of a deployment.
struct Deployment {
    dir: tempfile::TempDir,
}

impl Deployment {
    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("text").to_owned()
    }

    fn start(&self, node: &str) -> Serving {
        let (data, journal) = (self.path("data"), self.path("journal"));
        let settings = [
            ("DATA_DIR", data.as_str()),
            ("AUDIT_BUFFER_DIR", journal.as_str()),
            ("ADMIN_API_TOKEN", TOKEN),
            ("AUDIT_CHECKPOINT_INTERVAL", "1s"),
        ];
        Serving::start(node, &settings).ready()
    }

    /// Backs up a database; the service must be stopped.
    fn back_up(&self, name: &str) {
        let backup = self.path("backup");
        std::fs::create_dir_all(&backup).expect("made");
        for file in [name.to_owned(), format!("{name}-wal")] {
            let source = Path::new(&self.path("data")).join(&file);
            if source.exists() {
                std::fs::copy(source, Path::new(&backup).join(file)).expect("copied");
            }
        }
    }

    fn restore(&self, name: &str) {
        for file in [name.to_owned(), format!("{name}-wal"), format!("{name}-shm")] {
            let (backup, target) = (
                Path::new(&self.path("backup")).join(&file),
                Path::new(&self.path("data")).join(&file),
            );
            let _ = std::fs::remove_file(&target);
            if backup.exists() {
                std::fs::copy(backup, target).expect("copied");
            }
        }
    }

    /// Changes the audit database, like an attacker with its credentials.
    fn change(&self, sql: &str) {
        self.change_in("audit.db", sql);
    }

    fn change_in(&self, database: &str, sql: &str) {
        process::change_database(&format!("{}/{database}", self.path("data")), sql);
    }

    /// The output of a start that fails.
    fn refuses_to_start(&self, node: &str) -> String {
        let (data, journal) = (self.path("data"), self.path("journal"));
        Serving::spawn(
            node,
            &[
                ("DATA_DIR", &data),
                ("AUDIT_BUFFER_DIR", &journal),
                ("ADMIN_API_TOKEN", TOKEN),
            ],
        )
        .wait_for_failed_start()
    }

    /// The exit code and output of `audit verify`.
    fn verify(&self) -> (Option<i32>, String) {
        let (data, journal) = (self.path("data"), self.path("journal"));
        let env = [("DATA_DIR", data.as_str()), ("AUDIT_BUFFER_DIR", journal.as_str())];
        let output = process::gateway(&["audit", "verify"], &env);
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    }
}

fn admin(gateway: &Serving, method: &str, path: &str, body: &Value) -> Value {
    gateway.admin(TOKEN, method, path, body)
}

fn create(gateway: &Serving, slug: &str) {
    admin(gateway, "POST", "/orgs", &json!({"name": slug, "slug": slug}));
}

/// The names of created organizations in the audit log, oldest first, and the hashes of their entries.
fn created(gateway: &Serving) -> Vec<(String, Value)> {
    let page = admin(
        gateway,
        "GET",
        "/audit-logs?resource_type=organization&action=create&limit=1000",
        &Value::Null,
    );
    let rows = page.as_array().expect("rows").iter().rev();
    rows.map(|row| {
        (
            row["resource_name"].as_str().unwrap_or_default().to_owned(),
            row["entry_hash"].clone(),
        )
    })
    .collect()
}

/// Waits until `count` entries are sealed, then stops the service. Returns the created organizations.
fn settle(mut gateway: Serving, count: usize) -> Vec<(String, Value)> {
    gateway.wait("has sealed all entries", |gateway| {
        let entries = created(gateway);
        entries.len() == count && entries.iter().all(|(_, hash)| hash.is_string())
    });
    let entries = created(&gateway);
    let (status, output) = gateway.end();
    assert!(status.success(), "{output}");
    entries
}

/// RL6: after a restore from an older backup, the audit database gets every entry again, with identical hashes.
#[test]
fn rl6_an_older_audit_database_is_completed_at_the_next_start() {
    let (node, deployment) = (
        anvil(),
        Deployment {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = deployment.start(node.url());
    create(&gateway, "one");
    settle(gateway, 1);
    deployment.back_up("audit.db");
    let gateway = deployment.start(node.url());
    create(&gateway, "two");
    create(&gateway, "three");
    let before = settle(gateway, 3);
    assert_eq!(deployment.verify().0, Some(0), "{}", deployment.verify().1);
    deployment.restore("audit.db");
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(1), "an older database is reported: {output}");
    let gateway = deployment.start(node.url());
    create(&gateway, "four");
    let after = settle(gateway, 4);
    assert_eq!(after[..3], before[..]);
    assert_eq!(after.len(), 4);
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
}

/// RL3: a policy database that was restored from an older backup is reported, and entries of new mutations are sealed.
#[test]
fn rl3_an_older_policy_database_is_reported_and_its_new_entries_are_sealed() {
    let (node, deployment) = (
        anvil(),
        Deployment {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = deployment.start(node.url());
    create(&gateway, "one");
    settle(gateway, 1);
    deployment.back_up("gateway.db");
    let gateway = deployment.start(node.url());
    create(&gateway, "two");
    create(&gateway, "three");
    settle(gateway, 3);
    deployment.restore("gateway.db");
    let (code, output) = deployment.verify();
    assert!(
        code == Some(1) && output.contains("outbox_fault"),
        "before a start, too: {output}"
    );
    let gateway = deployment.start(node.url());
    assert!(
        gateway
            .output()
            .contains("the policy store is older than its sealed entries"),
        "{}",
        gateway.output()
    );
    create(&gateway, "four");
    let names: Vec<_> = settle(gateway, 4).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three", "four"]);
    // The report stays a finding, also after a restart, until an administrator accepts it.
    let chain = |output: &str| {
        let failed = output.lines().find_map(|line| line.strip_prefix("FAIL "));
        failed
            .and_then(|line| line.split_whitespace().next())
            .map(str::to_owned)
    };
    for _ in 0..2 {
        let mut gateway = deployment.start(node.url());
        gateway.wait("shows the finding at /ready", |gateway| {
            gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
        });
        drop(gateway.end());
        let (code, output) = deployment.verify();
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("outbox_fault"), "{output}");
    }
    let chain = chain(&deployment.verify().1).expect("a chain with a finding");
    assert!(chain.starts_with("security/"), "{chain}");
    let decide = ["audit", "re-anchor", "--chain", &chain, "--actor", "jane"];
    let decide = [&decide[..], &["--reason", "restored from the backup", "--confirm"]].concat();
    let (data, journal) = (deployment.path("data"), deployment.path("journal"));
    let accepted = process::gateway(&decide, &[("DATA_DIR", &data), ("AUDIT_BUFFER_DIR", &journal)]);
    assert!(accepted.status.success(), "{}", process::stderr(&accepted));
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
}

/// RL5: without the journal's directory, a truncated chain is still detected, and sealing continues in a new shard.
#[test]
fn rl5_a_lost_journal_directory_does_not_hide_a_truncated_administrative_chain() {
    let (node, deployment) = (
        anvil(),
        Deployment {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = deployment.start(node.url());
    create(&gateway, "one");
    create(&gateway, "two");
    settle(gateway, 2);
    std::fs::remove_dir_all(deployment.path("journal")).expect("removed");
    let gateway = deployment.start(node.url());
    create(&gateway, "three");
    let names: Vec<_> = settle(gateway, 3).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(deployment.verify().0, Some(0), "{}", deployment.verify().1);

    // Truncate the chain and delete all signatures: the policy store still has the rows.
    let admin = "(SELECT id FROM chains WHERE stream = 'admin')";
    deployment.change(&format!("DELETE FROM entries WHERE chain_id = {admin} AND seq >= 2"));
    deployment.change("DELETE FROM checkpoints");
    deployment.change(&format!(
        "UPDATE chains SET size = 2, head_hash = (SELECT hash FROM entries WHERE chain_id = {admin} AND seq = 1), \
         head_time = (SELECT created_at FROM entries WHERE chain_id = {admin} AND seq = 1) WHERE stream = 'admin'"
    ));
    std::fs::remove_dir_all(deployment.path("journal")).expect("removed");
    let gateway = deployment.start(node.url());
    let names: Vec<_> = settle(gateway, 3).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three"]);

    // Also delete the rows: the policy store still has the signed head.
    deployment.change(&format!("DELETE FROM entries WHERE chain_id = {admin} AND seq >= 2"));
    deployment.change("DELETE FROM checkpoints");
    deployment.change(&format!(
        "UPDATE chains SET size = 2, head_hash = (SELECT hash FROM entries WHERE chain_id = {admin} AND seq = 1) \
         WHERE stream = 'admin'"
    ));
    deployment.change_in("gateway.db", "DELETE FROM audit_outbox");
    std::fs::remove_dir_all(deployment.path("journal")).expect("removed");
    let output = deployment.refuses_to_start(node.url());
    assert!(
        output.contains("entries are missing") && output.contains("audit re-anchor"),
        "{output}"
    );
}

/// RL6: a deleted audit database is created and filled again, because the journal and the policy store keep sealed
/// entries for a day.
#[test]
fn rl6_a_deleted_audit_database_is_restored() {
    let (node, deployment) = (
        anvil(),
        Deployment {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = deployment.start(node.url());
    create(&gateway, "one");
    let before = settle(gateway, 1);
    for file in ["audit.db", "audit.db-wal", "audit.db-shm"] {
        let _ = std::fs::remove_file(Path::new(&deployment.path("data")).join(file));
    }
    let gateway = deployment.start(node.url());
    create(&gateway, "two");
    assert_eq!(settle(gateway, 2)[..1], before[..]);
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
}

/// RL12: no change to a file that was removed or replaced while in use is acknowledged. The gateway logs the cause, and
/// accepts changes again when the file is put back.
#[test]
fn rl12_a_database_file_removed_while_in_use_takes_no_changes() {
    let (node, deployment) = (
        anvil(),
        Deployment {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let mut gateway = deployment.start(node.url());
    create(&gateway, "one");
    let (file, moved) = (deployment.path("data/gateway.db"), deployment.path("away.db"));
    std::fs::rename(&file, &moved).expect("moved");
    let make = |gateway: &Serving, slug: &str| {
        let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
        gateway
            .request(
                "POST",
                "/api/v1/admin/orgs",
                &headers,
                &json!({"name": slug, "slug": slug}).to_string(),
            )
            .status
    };
    assert_eq!(make(&gateway, "two"), 503);
    assert!(gateway.get("/ready").body.contains(r#""writes":"down""#));
    assert!(
        gateway.output().contains("the database file was removed or replaced"),
        "{}",
        gateway.output()
    );
    std::fs::write(&file, b"").expect("another one");
    assert_eq!(make(&gateway, "three"), 503);
    std::fs::rename(&moved, &file).expect("put back");
    gateway.wait("accepts changes again", |gateway| make(gateway, "four") == 201);
    drop(gateway);
    let gateway = deployment.start(node.url());
    assert_eq!(
        [make(&gateway, "one"), make(&gateway, "two"), make(&gateway, "four")],
        [409, 201, 409]
    );
}

/// RL12: the write-ahead log is part of the database. If it is removed, changes since the last checkpoint would be lost
/// with the process. So the gateway accepts no more changes, and writes the content of the log to the database while
/// the process still has it open.
#[test]
fn rl12_a_write_ahead_log_removed_while_in_use_loses_no_changes() {
    let (node, deployment) = (
        anvil(),
        Deployment {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = deployment.start(node.url());
    (0..20).for_each(|n| create(&gateway, &format!("before-{n}")));
    for file in ["gateway.db-wal", "gateway.db-shm"] {
        std::fs::remove_file(Path::new(&deployment.path("data")).join(file)).expect("removed");
    }
    let make = |gateway: &Serving, slug: &str| {
        let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
        gateway
            .request(
                "POST",
                "/api/v1/admin/orgs",
                &headers,
                &json!({"name": slug, "slug": slug}).to_string(),
            )
            .status
    };
    assert_eq!(make(&gateway, "after"), 503);
    assert!(gateway.get("/ready").body.contains(r#""writes":"down""#));
    drop(gateway);
    let gateway = deployment.start(node.url());
    for n in 0..20 {
        assert_eq!(make(&gateway, &format!("before-{n}")), 409, "acknowledged and lost");
    }
    assert_eq!(make(&gateway, "after"), 201);
}
