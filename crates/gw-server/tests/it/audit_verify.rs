//! AU-20: `audit verify` on another machine. The auditor has the database, a public key and notes that were kept
//! elsewhere, and nothing of the instance: no data directory, no journal, no secret.

use crate::process::{self, Serving, stderr};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use gw_audit::CheckpointKey;
use gw_testkit::{anvil::anvil, postgres};
use sea_orm::{ConnectionTrait as _, Database};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

/// The seed of the instance's checkpoint key.
const SEED: [u8; 32] = [7; 32];
/// The start of an Ed25519 public key in DER (RFC 8410).
const DER_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

#[derive(Clone, Debug)]
enum AuditDatabase {
    /// A server, given to the command by `--database-url`.
    Postgres(String),
    /// A copy of the file in an otherwise empty data directory.
    Sqlite,
}

/// An audit store that an instance has written, and the files of the auditor.
struct Auditor {
    dir: tempfile::TempDir,
    database: AuditDatabase,
}

impl Auditor {
    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("text").to_owned()
    }

    /// Writes the public key of this seed as PEM and returns the file.
    fn public_key(&self, seed: [u8; 32]) -> String {
        let public = CheckpointKey::from_seed(&seed).public().to_bytes();
        let der = [&DER_PREFIX[..], &public].concat();
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            BASE64_STANDARD.encode(der)
        );
        let file = self.path(&format!("checkpoint-{}.pub", seed.first().expect("a byte")));
        fs::write(&file, pem).expect("written");
        file
    }

    /// Runs `audit verify` with the database and without the instance's directories.
    fn verify(&self, arguments: &[&str]) -> Output {
        let (data, journal) = (self.path("auditor"), self.path("auditor/journal"));
        let directories = [("DATA_DIR", data.as_str()), ("AUDIT_BUFFER_DIR", &journal)];
        let url: &[&str] = match &self.database {
            AuditDatabase::Postgres(url) => &["--database-url", url],
            AuditDatabase::Sqlite => &[],
        };
        process::gateway(&[&["audit", "verify"], url, arguments].concat(), &directories)
    }

    /// Changes the database past the service.
    fn change(&self, statements: &str) {
        let url = match &self.database {
            AuditDatabase::Postgres(url) => url.clone(),
            AuditDatabase::Sqlite => format!("sqlite://{}", self.path("auditor/audit.db")),
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let database = Database::connect(url).await.expect("connected");
            database.execute_unprepared(statements).await.expect("changed");
            database.close().await.expect("closed");
        });
    }
}

fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output))
}

/// Runs an instance that records and signs some calls, and keeps the notes of its log.
fn audited(database: AuditDatabase) -> Auditor {
    let auditor = Auditor {
        dir: tempfile::tempdir().expect("a directory"),
        database,
    };
    let (data, journal) = (auditor.path("data"), auditor.path("journal"));
    let key = SEED.map(|byte| format!("{byte:02x}")).concat();
    let mut settings = vec![
        ("DATA_DIR", data.as_str()),
        ("AUDIT_BUFFER_DIR", &journal),
        ("LOG_FORMAT", "json"),
        ("AUDIT_CHECKPOINT_KEY", &key),
    ];
    if let AuditDatabase::Postgres(url) = &auditor.database {
        settings.push(("AUDIT_DATABASE_URL", url));
    }
    let node = anvil();
    let gateway = Serving::start(node.url(), &settings).ready();
    for _ in 0..6 {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        let response = gateway.request("POST", "/rpc", &[("Content-Type", "application/json")], body);
        assert_eq!(response.status, 200);
    }
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    fs::write(auditor.path("notes.jsonl"), &log).expect("written");
    let own = PathBuf::from(auditor.path("auditor"));
    fs::create_dir(&own).expect("made");
    if let AuditDatabase::Sqlite = auditor.database {
        for file in ["audit.db", "audit.db-wal"] {
            let file = Path::new(&data).join(file);
            if file.exists() {
                fs::copy(&file, own.join(file.file_name().expect("a name"))).expect("copied");
            }
        }
    }
    // Nothing of the instance is left.
    fs::remove_dir_all(&data).expect("removed");
    fs::remove_dir_all(&journal).expect("removed");
    auditor
}

fn check(database: AuditDatabase) {
    let auditor = audited(database);
    let (right, wrong) = (auditor.public_key(SEED), auditor.public_key([9; 32]));
    let notes = auditor.path("notes.jsonl");

    let output = auditor.verify(&["--public-key", &right, "--checkpoint", &notes]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("OK access/") && text.contains("OK admin/") && !text.contains("FAIL"),
        "{text}"
    );

    let output = auditor.verify(&["--public-key", &wrong]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("checkpoint_signature_invalid") && !text.contains("OK access/"),
        "{text}"
    );
    // Notes that the key did not sign are no evidence, so nothing is verified.
    let output = auditor.verify(&["--public-key", &wrong, "--checkpoint", &notes]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(74), "{text}");
    assert!(
        text.contains("none of the known keys signed") && !text.contains("OK "),
        "{text}"
    );
    // After a rotation, both keys are given.
    let both = ["--public-key", &wrong, "--public-key", &right, "--checkpoint", &notes];
    let output = auditor.verify(&both);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));

    let output = auditor.verify(&[]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(74), "{text}");
    assert!(text.contains("--public-key") && !text.contains("OK "), "{text}");

    // Damaged heads of this machine are not ignored: they may be the only evidence of removed entries.
    let journal = PathBuf::from(auditor.path("auditor/journal"));
    fs::create_dir_all(&journal).expect("made");
    fs::write(journal.join("trusted-heads"), "damaged").expect("written");
    let output = auditor.verify(&["--public-key", &right, "--checkpoint", &notes]);
    assert_eq!(output.status.code(), Some(74), "{}", text_of(&output));
    fs::remove_dir_all(&journal).expect("removed");

    // The last entries are removed together with their notes: only the notes of the auditor show it.
    auditor.change(
        "DELETE FROM entries WHERE kind = 'access' AND seq > 2; DELETE FROM checkpoints WHERE chain_id = (SELECT id \
         FROM chains WHERE stream = 'access'); UPDATE chains SET issued = -1, size = 3, head_hash = (SELECT hash FROM \
         entries WHERE kind = 'access' AND seq = 2) WHERE stream = 'access'",
    );
    let output = auditor.verify(&["--public-key", &right, "--checkpoint", &notes]);
    let text = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("FAIL access/") && text.contains("chain_truncated") && text.contains("OK admin/"),
        "{text}"
    );
}

#[test]
fn au20_a_copy_of_the_file_is_verified_on_another_machine() {
    check(AuditDatabase::Sqlite);
}

#[test]
fn au20_a_server_is_verified_from_another_machine() {
    let database = postgres::database().unwrap_or_else(|cause| panic!("{cause}"));
    if let Some(database) = database {
        check(AuditDatabase::Postgres(database.url));
    }
}
