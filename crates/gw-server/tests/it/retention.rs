//! RL10 and RL13 with the real binary.

use crate::process::{self, Serving, stderr};
use gw_testkit::anvil::anvil;
use serde_json::{Value, json};
use std::path::Path;

const TOKEN: &str = "retention-test-token";

fn settings<'a>(data: &'a str, journal: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("DATA_DIR", data),
        ("AUDIT_BUFFER_DIR", journal),
        ("ADMIN_API_TOKEN", TOKEN),
    ]
}

fn admin(gateway: &Serving, method: &str, path: &str, body: &Value) -> Value {
    gateway.admin(TOKEN, method, path, body)
}

fn tamper(data: &str, sql: &str) {
    process::change_database(&format!("{data}/audit.db"), sql);
}

fn end(gateway: Serving) {
    let (status, output) = gateway.end();
    assert!(status.success(), "{output}");
}

/// RL10, AU-7: a page with a changed row is still served, and the changed row shows only that it was tampered with.
#[test]
fn rl10_logs_show_a_changed_row_as_tampered() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (data, journal) = (path("data"), path("journal"));
    let gateway = Serving::start(node.url(), &settings(&data, &journal)).ready();
    for _ in 0..3 {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        assert_eq!(
            gateway
                .request("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    }
    let org = admin(&gateway, "POST", "/orgs", &json!({"name": "Bank", "slug": "bank"}));
    assert!(org["id"].is_string());
    let mut gateway = gateway;
    gateway.wait("has sealed the entry", |gateway| {
        admin(gateway, "GET", "/audit-logs", &Value::Null)[0]["entry_hash"].is_string()
    });
    end(gateway);

    tamper(
        &data,
        "UPDATE entries SET method = 'eth_sendRawTransaction', status_code = 500 WHERE seq = 2 AND kind = 'access'",
    );
    tamper(
        &data,
        "UPDATE entries SET bytes = 'not bytes at all', created_at = 'never' WHERE seq = 3 AND kind = 'access'",
    );
    tamper(&data, "UPDATE entries SET resource_id = 'x' WHERE kind = 'admin'");
    let gateway = Serving::start(node.url(), &settings(&data, &journal)).ready();
    let page = admin(&gateway, "GET", "/logs", &Value::Null);
    let rows = page["data"].as_array().expect("rows");
    let tampered: Vec<_> = rows.iter().filter(|row| row["tampered"] == true).collect();
    assert_eq!(tampered.len(), 2, "{page}");
    for row in &tampered {
        assert!(row["id"].is_i64(), "{row}");
        let only_proved_fields = row
            .as_object()
            .expect("a row")
            .keys()
            .all(|name| ["id", "tampered", "created_at"].contains(&name.as_str()));
        assert!(only_proved_fields, "only proved fields are shown: {row}");
    }
    assert!(
        rows.iter()
            .any(|row| row["method"] == "eth_chainId" && row["tampered"].is_null()),
        "{page}"
    );
    assert!(!page.to_string().contains("eth_sendRawTransaction"), "{page}");
    let entries = admin(&gateway, "GET", "/audit-logs", &Value::Null);
    assert!(
        entries
            .as_array()
            .expect("rows")
            .iter()
            .any(|row| row["tampered"] == true),
        "{entries}"
    );
    end(gateway);
}

/// RL10, AU-5: an erasure leaves a record. It has two steps; the first one changes nothing.
#[test]
fn rl10_audit_erase_removes_a_person_from_the_log() {
    const DID: &str = "did:test:leaves";
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (data, journal) = (path("data"), path("journal"));
    let settings = settings(&data, &journal);
    let gateway = Serving::start(node.url(), &settings).ready();
    let org = admin(&gateway, "POST", "/orgs", &json!({"name": "Bank", "slug": "bank"}));
    let org = org["id"].as_str().expect("an id").to_owned();
    let group = json!({"name": "staff", "slug": "staff"});
    let group = admin(&gateway, "POST", &format!("/orgs/{org}/groups"), &group);
    let member = json!({"did": DID, "group_id": group["id"]});
    admin(&gateway, "POST", &format!("/orgs/{org}/memberships/by-did"), &member);
    let mut gateway = gateway;
    gateway.wait("has sealed the entries", |gateway| {
        let entries = admin(gateway, "GET", "/audit-logs", &Value::Null);
        entries
            .as_array()
            .is_some_and(|rows| rows.iter().all(|row| row["entry_hash"].is_string()))
    });
    end(gateway);

    let erase = |options: &[&str]| {
        let arguments = [
            "audit",
            "erase",
            "--external-id",
            DID,
            "--actor",
            "officer",
            "--reason",
            "request 12",
        ];
        let output = process::gateway(&[&arguments[..], options].concat(), &settings);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    for dry_run in [&[][..], &["--dry-run"]] {
        let text = erase(dry_run);
        assert!(
            text.contains("hold personal values") && text.contains("nothing was changed"),
            "{text}"
        );
    }
    let file = |name: &str| std::fs::read(Path::new(&data).join(name)).unwrap_or_default();
    let contains_did = || {
        [file("audit.db"), file("audit.db-wal")]
            .concat()
            .windows(DID.len())
            .any(|part| part == DID.as_bytes())
    };
    assert!(contains_did(), "the database contains the DID before the erasure");
    // RL2: an object that no migration made can hide a legal hold, so nothing is erased.
    for (name, table) in [("audit.db", "entries"), ("gateway.db", "legal_holds")] {
        let database = path(&format!("data/{name}"));
        let trigger = format!("CREATE TRIGGER lie AFTER UPDATE ON {table} BEGIN SELECT 1; END");
        process::change_database(&database, &trigger);
        let arguments = [
            "--external-id",
            DID,
            "--actor",
            "officer",
            "--reason",
            "request 12",
            "--confirm",
        ];
        let output = process::gateway(&[&["audit", "erase"], &arguments[..]].concat(), &settings);
        let text = stderr(&output);
        assert!(
            !output.status.success() && text.contains(&format!("trigger lie on {table}")),
            "{name}: {text}"
        );
        assert!(contains_did(), "{name}: nothing is erased");
        process::change_database(&database, "DROP TRIGGER lie");
    }
    let text = erase(&["--confirm"]);
    assert!(text.contains("entries erased"), "{text}");
    assert!(erase(&[]).contains("nothing to erase"));
    // The record of the erasure waits in the outbox until the next start seals it.
    let waiting = process::gateway(&["audit", "verify"], &settings);
    assert!(waiting.status.success(), "{}", String::from_utf8_lossy(&waiting.stdout));

    let gateway = Serving::start(node.url(), &settings).ready();
    let entries = admin(&gateway, "GET", "/audit-logs", &Value::Null);
    let rows = entries.as_array().expect("rows");
    assert!(rows.iter().all(|row| row["tampered"].is_null()), "{entries}");
    assert!(rows.iter().all(|row| !row.to_string().contains(DID)), "{entries}");
    let record = rows
        .iter()
        .find(|row| row["resource_type"] == "audit")
        .expect("a record of the erasure");
    assert_eq!(
        (&record["action"], &record["new_value"]["reason"]),
        (&json!("delete"), &json!("request 12"))
    );
    end(gateway);
    let verified = process::gateway(&["audit", "verify"], &settings);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
}
