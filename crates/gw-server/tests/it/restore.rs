//! RL3, RL5 and RL6 with the real binary: databases that are restored from older backups, and a lost journal.

use crate::{
    deployment::{Deployment, Store, call, on_both_engines},
    process::Serving,
};
use gw_testkit::anvil::anvil;
use serde_json::{Value, json};
use std::path::Path;

const TOKEN: &str = "restore-test-token";

on_both_engines! {
    rl6_an_older_audit_database_is_completed_at_the_next_start,
    rl3_an_older_policy_database_is_reported_and_its_new_entries_are_sealed,
    rl5_a_lost_journal_directory_does_not_hide_a_truncated_administrative_chain,
    rl6_a_deleted_audit_database_is_restored,
    rl5_an_older_audit_database_with_its_journal_is_a_finding_until_re_anchored,
    hd24_an_older_journal_directory_is_a_finding_and_seals_nothing_twice,
    hd24_a_copied_backlog_is_sealed_once,
}

const SETTINGS: [(&str, &str); 2] = [("ADMIN_API_TOKEN", TOKEN), ("AUDIT_CHECKPOINT_INTERVAL", "1s")];

fn start(deployment: &Deployment, node: &str) -> Serving {
    deployment.start(node, &SETTINGS)
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
fn rl6_an_older_audit_database_is_completed_at_the_next_start(deployment: &Deployment) {
    let node = anvil();
    let gateway = start(deployment, node.url());
    create(&gateway, "one");
    settle(gateway, 1);
    deployment.back_up(Store::Audit);
    let gateway = start(deployment, node.url());
    create(&gateway, "two");
    create(&gateway, "three");
    let before = settle(gateway, 3);
    assert_eq!(deployment.verify().0, Some(0), "{}", deployment.verify().1);
    deployment.restore(Store::Audit);
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(1), "an older database is reported: {output}");
    let gateway = start(deployment, node.url());
    create(&gateway, "four");
    let after = settle(gateway, 4);
    assert_eq!(after.get(..3), Some(before.as_slice()));
    assert_eq!(after.len(), 4);
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
}

/// RL3: a policy database that was restored from an older backup is reported, and entries of new mutations are sealed.
fn rl3_an_older_policy_database_is_reported_and_its_new_entries_are_sealed(deployment: &Deployment) {
    let node = anvil();
    let gateway = start(deployment, node.url());
    create(&gateway, "one");
    settle(gateway, 1);
    deployment.back_up(Store::Policy);
    let gateway = start(deployment, node.url());
    create(&gateway, "two");
    create(&gateway, "three");
    settle(gateway, 3);
    deployment.restore(Store::Policy);
    let (code, output) = deployment.verify();
    assert!(
        code == Some(1) && output.contains("outbox_fault"),
        "before a start, too: {output}"
    );
    let gateway = start(deployment, node.url());
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
    for _ in 0..2 {
        let mut gateway = start(deployment, node.url());
        gateway.wait("shows the finding at /ready", |gateway| {
            gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
        });
        drop(gateway.end());
        let (code, output) = deployment.verify();
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("outbox_fault"), "{output}");
    }
    deployment.re_anchor_first_failed("security", "restored from the backup");
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
}

/// RL5: without the journal's directory, a truncated chain is still detected, and sealing continues in a new shard.
fn rl5_a_lost_journal_directory_does_not_hide_a_truncated_administrative_chain(deployment: &Deployment) {
    let node = anvil();
    let gateway = start(deployment, node.url());
    create(&gateway, "one");
    create(&gateway, "two");
    settle(gateway, 2);
    std::fs::remove_dir_all(deployment.path("journal")).expect("removed");
    let gateway = start(deployment, node.url());
    create(&gateway, "three");
    let names: Vec<_> = settle(gateway, 3).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(deployment.verify().0, Some(0), "{}", deployment.verify().1);

    // Truncate the chain and delete all signatures: the policy store still has the rows.
    let admin = "(SELECT id FROM chains WHERE stream = 'admin')";
    deployment.sql(
        Store::Audit,
        &format!("DELETE FROM entries WHERE chain_id = {admin} AND seq >= 2"),
    );
    deployment.sql(Store::Audit, "DELETE FROM checkpoints");
    deployment.sql(
        Store::Audit,
        &format!(
            "UPDATE chains SET size = 2, head_hash = (SELECT hash FROM entries WHERE chain_id = {admin} AND seq = 1), \
         head_time = (SELECT created_at FROM entries WHERE chain_id = {admin} AND seq = 1) WHERE stream = 'admin'"
        ),
    );
    std::fs::remove_dir_all(deployment.path("journal")).expect("removed");
    let gateway = start(deployment, node.url());
    let names: Vec<_> = settle(gateway, 3).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three"]);

    // Also delete the rows: the policy store still has the signed head.
    deployment.sql(
        Store::Audit,
        &format!("DELETE FROM entries WHERE chain_id = {admin} AND seq >= 2"),
    );
    deployment.sql(Store::Audit, "DELETE FROM checkpoints");
    deployment.sql(
        Store::Audit,
        &format!(
            "UPDATE chains SET size = 2, head_hash = (SELECT hash FROM entries WHERE chain_id = {admin} AND seq = 1) \
         WHERE stream = 'admin'"
        ),
    );
    deployment.sql(Store::Policy, "DELETE FROM audit_outbox");
    std::fs::remove_dir_all(deployment.path("journal")).expect("removed");
    let output = deployment.failed_start(node.url(), &SETTINGS);
    assert!(
        output.contains("entries are missing") && output.contains("audit re-anchor"),
        "{output}"
    );
}

/// RL6: a deleted audit database is created and filled again, because the journal and the policy store keep sealed
/// entries for a day.
fn rl6_a_deleted_audit_database_is_restored(deployment: &Deployment) {
    let node = anvil();
    let gateway = start(deployment, node.url());
    create(&gateway, "one");
    let before = settle(gateway, 1);
    deployment.delete(Store::Audit);
    let gateway = start(deployment, node.url());
    create(&gateway, "two");
    assert_eq!(settle(gateway, 2).get(..1), Some(before.as_slice()));
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
}

/// The number of sealed calls, and the number of different ones among them.
fn sealed_calls(deployment: &Deployment) -> (i64, i64) {
    let count = |what: &str| {
        let sql = format!("SELECT count({what}) FROM entries WHERE kind = 'access'");
        deployment.count(Store::Audit, &sql)
    };
    (count("*"), count("DISTINCT created_at"))
}

fn ended(gateway: Serving) -> String {
    let (status, output) = gateway.end();
    assert!(status.success(), "{output}");
    output
}

/// Starts the gateway twice. Both times `/ready` and `audit verify` show a finding of this kind. Then an administrator
/// accepts it. Returns the output of the first start.
fn is_reported_until_accepted(deployment: &Deployment, node: &str, kind: &str) -> String {
    let mut first_output = None;
    for _ in 0..2 {
        let mut gateway = start(deployment, node);
        gateway.wait("shows the finding at /ready", |gateway| {
            gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
        });
        let output = ended(gateway);
        first_output.get_or_insert(output);
        let (code, output) = deployment.verify();
        assert!(code == Some(1) && output.contains(kind), "{output}");
    }
    deployment.re_anchor_first_failed("security", "looked into");
    let (code, output) = deployment.verify();
    assert_eq!(code, Some(0), "{output}");
    let mut gateway = start(deployment, node);
    call(&gateway, 1);
    gateway.wait("verified the accepted log", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"ok""#)
    });
    ended(gateway);
    first_output.expect("a start")
}

/// RL5, HD25: the audit database and the journal directory are both put back to an older state. Only the policy
/// database knows that numbers are missing.
fn rl5_an_older_audit_database_with_its_journal_is_a_finding_until_re_anchored(deployment: &Deployment) {
    let node = anvil();
    let gateway = start(deployment, node.url());
    call(&gateway, 2);
    ended(gateway);
    deployment.back_up(Store::Audit);
    deployment.copy_journal("journal", "journal-backup");
    let gateway = start(deployment, node.url());
    call(&gateway, 3);
    ended(gateway);
    deployment.restore(Store::Audit);
    deployment.copy_journal("journal-backup", "journal");
    let output = is_reported_until_accepted(deployment, node.url(), "journal_lost");
    assert!(
        output.contains("journal_lost") && output.contains("records go on in a new shard"),
        "no number is issued twice: {output}"
    );
    assert_eq!(sealed_calls(deployment).0, 3);
}

/// HD24: the journal directory alone is put back. Its records are in the audit database already, and its numbers were
/// issued to other records.
fn hd24_an_older_journal_directory_is_a_finding_and_seals_nothing_twice(deployment: &Deployment) {
    let node = anvil();
    let gateway = start(deployment, node.url());
    call(&gateway, 2);
    ended(gateway);
    deployment.copy_journal("journal", "journal-backup");
    // Nothing is recorded: only the start distinguishes the directories.
    ended(start(deployment, node.url()));
    deployment.copy_journal("journal-backup", "journal");
    let output = is_reported_until_accepted(deployment, node.url(), "fork");
    assert!(output.contains("records go on in a new shard"), "{output}");
    assert_eq!(sealed_calls(deployment), (3, 3));
}

/// HD24: a directory is copied while its records wait, and both directories are used one after the other.
fn hd24_a_copied_backlog_is_sealed_once(deployment: &Deployment) {
    let node = anvil();
    let mut gateway = start(deployment, node.url());
    call(&gateway, 2);
    gateway.wait("sealed the calls", |_| sealed_calls(deployment).0 == 2);
    deployment.while_locked(|| {
        call(&gateway, 3);
        // The records are on disk as soon as the calls are answered.
        drop(gateway);
    });
    deployment.copy_journal("journal", "journal-backup");
    let mut gateway = start(deployment, node.url());
    call(&gateway, 1);
    gateway.wait("sealed the waiting calls", |_| sealed_calls(deployment).0 == 6);
    ended(gateway);
    deployment.copy_journal("journal-backup", "journal");
    is_reported_until_accepted(deployment, node.url(), "fork");
    assert_eq!(sealed_calls(deployment), (7, 7));
}

/// RL12: no change to a file that was removed or replaced while in use is acknowledged. The gateway logs the cause, and
/// accepts changes again when the file is put back.
#[test]
fn rl12_a_database_file_removed_while_in_use_takes_no_changes() {
    let (node, deployment) = (anvil(), Deployment::sqlite());
    let mut gateway = start(&deployment, node.url());
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
    let gateway = start(&deployment, node.url());
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
    let (node, deployment) = (anvil(), Deployment::sqlite());
    let gateway = start(&deployment, node.url());
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
    let gateway = start(&deployment, node.url());
    for n in 0..20 {
        assert_eq!(make(&gateway, &format!("before-{n}")), 409, "acknowledged and lost");
    }
    assert_eq!(make(&gateway, "after"), 201);
}
