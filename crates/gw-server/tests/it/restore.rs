//! RL3, RL5 and RL6 with the program as it is delivered: databases that went back in time, a journal that is gone.

use crate::process::{self, Serving};
use gw_testkit::anvil::anvil;
use serde_json::{Value, json};
use std::path::Path;

const TOKEN: &str = "restore-test-token";

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
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

    /// Keeps a database as it is now; the service is stopped.
    fn back_up(&self, name: &str) {
        let to = self.path("backup");
        std::fs::create_dir_all(&to).expect("made");
        for file in [name.to_owned(), format!("{name}-wal")] {
            let from = Path::new(&self.path("data")).join(&file);
            if from.exists() {
                std::fs::copy(from, Path::new(&to).join(file)).expect("copied");
            }
        }
    }

    fn restore(&self, name: &str) {
        for file in [name.to_owned(), format!("{name}-wal"), format!("{name}-shm")] {
            let (from, to) = (
                Path::new(&self.path("backup")).join(&file),
                Path::new(&self.path("data")).join(&file),
            );
            let _ = std::fs::remove_file(&to);
            if from.exists() {
                std::fs::copy(from, to).expect("copied");
            }
        }
    }

    /// What somebody with the audit database's credential would do.
    fn change(&self, sql: &str) {
        self.change_in("audit.db", sql);
    }

    fn change_in(&self, database: &str, sql: &str) {
        process::change_database(&format!("{}/{database}", self.path("data")), sql);
    }

    /// What a start says that ends by itself.
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
        .refused()
    }

    /// The verdict of `audit verify`, and what it printed.
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

/// Waits until so many entries are sealed, then ends the service.
fn settle(mut gateway: Serving, count: usize) -> Vec<(String, Value)> {
    gateway.wait("has sealed all entries", |gateway| {
        let entries = created(gateway);
        entries.len() == count && entries.iter().all(|(_, hash)| hash.is_string())
    });
    let entries = created(&gateway);
    let (status, said) = gateway.end();
    assert!(status.success(), "{said}");
    entries
}

/// RL6: an audit database that was restored from an older backup gets every entry again, with the same hashes.
#[test]
fn rl6_an_older_audit_database_is_made_whole_at_the_next_start() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = place.start(node.url());
    create(&gateway, "one");
    settle(gateway, 1);
    place.back_up("audit.db");
    let gateway = place.start(node.url());
    create(&gateway, "two");
    create(&gateway, "three");
    let before = settle(gateway, 3);
    assert_eq!(place.verify().0, Some(0), "{}", place.verify().1);
    place.restore("audit.db");
    let (code, found) = place.verify();
    assert_eq!(code, Some(1), "an older database is told: {found}");
    let gateway = place.start(node.url());
    create(&gateway, "four");
    let after = settle(gateway, 4);
    assert_eq!(after[..3], before[..]);
    assert_eq!(after.len(), 4);
    let (code, found) = place.verify();
    assert_eq!(code, Some(0), "{found}");
}

/// RL3: a policy database that was restored from an older backup is told, and what is changed from then on is sealed.
#[test]
fn rl3_an_older_policy_database_is_told_and_its_new_entries_are_sealed() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = place.start(node.url());
    create(&gateway, "one");
    settle(gateway, 1);
    place.back_up("gateway.db");
    let gateway = place.start(node.url());
    create(&gateway, "two");
    create(&gateway, "three");
    settle(gateway, 3);
    place.restore("gateway.db");
    let gateway = place.start(node.url());
    assert!(
        gateway
            .said()
            .contains("the policy store is older than what was sealed of it"),
        "{}",
        gateway.said()
    );
    create(&gateway, "four");
    let names: Vec<_> = settle(gateway, 4).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three", "four"]);
    let (code, found) = place.verify();
    assert_eq!(code, Some(0), "what was lost is no change of the audit log: {found}");
}

/// RL5: a journal's directory that is gone does not open the way to a shorter history, and sealing goes on in a new shard.
#[test]
fn rl5_a_lost_journal_directory_hides_no_cut_of_the_administrative_chain() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = place.start(node.url());
    create(&gateway, "one");
    create(&gateway, "two");
    settle(gateway, 2);
    std::fs::remove_dir_all(place.path("journal")).expect("removed");
    let gateway = place.start(node.url());
    create(&gateway, "three");
    let names: Vec<_> = settle(gateway, 3).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(place.verify().0, Some(0), "{}", place.verify().1);

    // Cut off, all signatures with it: the policy store still has the rows.
    let admin = "(SELECT id FROM chains WHERE stream = 'admin')";
    place.change(&format!("DELETE FROM entries WHERE chain_id = {admin} AND seq >= 2"));
    place.change("DELETE FROM checkpoints");
    place.change(&format!(
        "UPDATE chains SET size = 2, head_hash = (SELECT hash FROM entries WHERE chain_id = {admin} AND seq = 1), \
         head_time = (SELECT created_at FROM entries WHERE chain_id = {admin} AND seq = 1) WHERE stream = 'admin'"
    ));
    std::fs::remove_dir_all(place.path("journal")).expect("removed");
    let gateway = place.start(node.url());
    let names: Vec<_> = settle(gateway, 3).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["one", "two", "three"]);

    // Without the rows, too, the signed head in the policy store is left.
    place.change(&format!("DELETE FROM entries WHERE chain_id = {admin} AND seq >= 2"));
    place.change("DELETE FROM checkpoints");
    place.change(&format!(
        "UPDATE chains SET size = 2, head_hash = (SELECT hash FROM entries WHERE chain_id = {admin} AND seq = 1) \
         WHERE stream = 'admin'"
    ));
    place.change_in("gateway.db", "DELETE FROM audit_outbox");
    std::fs::remove_dir_all(place.path("journal")).expect("removed");
    let said = place.refuses_to_start(node.url());
    assert!(
        said.contains("entries are missing") && said.contains("audit re-anchor"),
        "{said}"
    );
}

/// RL6: an audit database that is gone is made anew, and whole: the journal and the policy store keep what was sealed for a day.
#[test]
fn rl6_an_audit_database_made_anew_is_made_whole() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = place.start(node.url());
    create(&gateway, "one");
    let before = settle(gateway, 1);
    for file in ["audit.db", "audit.db-wal", "audit.db-shm"] {
        let _ = std::fs::remove_file(Path::new(&place.path("data")).join(file));
    }
    let gateway = place.start(node.url());
    create(&gateway, "two");
    assert_eq!(settle(gateway, 2)[..1], before[..]);
    let (code, found) = place.verify();
    assert_eq!(code, Some(0), "{found}");
}

/// Nothing is answered with 2xx that goes into a file nobody will find: a database that is removed or replaced while it is in
/// use takes no changes, says so, and takes them again when it is put back.
#[test]
fn rl12_a_database_file_removed_while_in_use_takes_no_changes() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let mut gateway = place.start(node.url());
    create(&gateway, "one");
    let (file, away) = (place.path("data/gateway.db"), place.path("away.db"));
    std::fs::rename(&file, &away).expect("moved");
    let make = |gateway: &Serving, slug: &str| {
        let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
        gateway
            .ask(
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
        gateway.said().contains("the database file was removed or replaced"),
        "{}",
        gateway.said()
    );
    std::fs::write(&file, b"").expect("another one");
    assert_eq!(make(&gateway, "three"), 503);
    std::fs::rename(&away, &file).expect("put back");
    gateway.wait("takes changes again", |gateway| make(gateway, "four") == 201);
    drop(gateway);
    let gateway = place.start(node.url());
    assert_eq!(
        [make(&gateway, "one"), make(&gateway, "two"), make(&gateway, "four")],
        [409, 201, 409]
    );
}

/// RL12: the write-ahead log is part of the database: without it what was acknowledged since the last checkpoint is gone with the
/// process. So nothing more is taken, and what is in it comes into the database while the process still has it.
#[test]
fn rl12_a_write_ahead_log_removed_while_in_use_takes_nothing_with_it() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = place.start(node.url());
    (0..20).for_each(|n| create(&gateway, &format!("before-{n}")));
    for file in ["gateway.db-wal", "gateway.db-shm"] {
        std::fs::remove_file(Path::new(&place.path("data")).join(file)).expect("removed");
    }
    let make = |gateway: &Serving, slug: &str| {
        let headers = [("X-Admin-Token", TOKEN), ("Content-Type", "application/json")];
        gateway
            .ask(
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
    let gateway = place.start(node.url());
    for n in 0..20 {
        assert_eq!(make(&gateway, &format!("before-{n}")), 409, "acknowledged and gone");
    }
    assert_eq!(make(&gateway, "after"), 201);
}
