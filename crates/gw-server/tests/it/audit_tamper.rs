//! RL2 from outside: what somebody with the audit database does, and what the binary says.

use crate::process::{self, Serving, stderr};
use gw_testkit::anvil::anvil;
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::{Command, Output},
    sync::{Arc, Mutex},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("text").to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let (data, journal) = (self.path("data"), self.path("journal"));
        process::gateway(arguments, &[("DATA_DIR", &data), ("AUDIT_BUFFER_DIR", &journal)])
    }

    fn start(&self, node: &str) -> Serving {
        self.start_with(node, &[])
    }

    fn start_with(&self, node: &str, more: &[(&str, &str)]) -> Serving {
        let (data, journal) = (self.path("data"), self.path("journal"));
        let own = [
            ("DATA_DIR", &*data),
            ("AUDIT_BUFFER_DIR", &journal),
            ("LOG_FORMAT", "json"),
        ];
        Serving::start(node, &[&own[..], more].concat()).ready()
    }

    fn refused(&self, node: &str) -> String {
        let (data, journal) = (self.path("data"), self.path("journal"));
        Serving::spawn(node, &[("DATA_DIR", &data), ("AUDIT_BUFFER_DIR", &journal)]).refused()
    }

    fn sql(&self, statements: &str) {
        let script =
            "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.commit()";
        let done = Command::new("python3")
            .args(["-c", script, &self.path("data/audit.db"), statements])
            .status();
        assert!(done.is_ok_and(|status| status.success()));
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output))
}

fn call(gateway: &Serving, times: usize) {
    for _ in 0..times {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        assert_eq!(
            gateway
                .ask("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    }
}

/// RL2, AU-20, AU-22: the tail of a chain, cut with its notes. A start refuses it, `audit verify` finds it here and on another
/// machine with notes from the log, re-anchoring goes on from it and stays listed.
#[test]
fn rl2_au22_a_cut_chain_is_refused_found_and_re_anchored() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = place.start(node.url());
    call(&gateway, 6);
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    assert!(said(&place.run(&["audit", "verify"])).contains("OK access/"));
    // What the log has of it, kept on another machine.
    let notes = place.path("notes.jsonl");
    fs::write(&notes, &log).expect("written");
    assert!(log.contains("the list of chains was signed"), "{log}");

    place.sql(
        "DELETE FROM entries WHERE kind = 'access' AND seq > 2; \
         DELETE FROM checkpoints WHERE chain_id = (SELECT id FROM chains WHERE stream = 'access'); \
         UPDATE chains SET issued = -1, size = 3, head_hash = (SELECT hash FROM entries WHERE kind = 'access' AND seq = 2) \
         WHERE stream = 'access'",
    );
    let found = place.run(&["audit", "verify", "--format", "json", "--chain", "access"]);
    assert_eq!(found.status.code(), Some(1), "{}", said(&found));
    assert!(said(&found).contains("chain_truncated"), "{}", said(&found));

    // Without what is in the journal nothing brings the entries back.
    let heads = Path::new(&place.path("journal")).join("trusted-heads");
    let kept = fs::read(&heads).expect("there");
    fs::remove_dir_all(place.path("journal")).expect("removed");
    let elsewhere = place.run(&["audit", "verify", "--checkpoint", &notes]);
    assert_eq!(elsewhere.status.code(), Some(1), "{}", said(&elsewhere));
    assert!(said(&elsewhere).contains("chain_truncated"), "{}", said(&elsewhere));
    fs::create_dir(place.path("journal")).expect("made");
    fs::write(&heads, &kept).expect("put back");
    let refused = place.refused(node.url());
    assert!(
        refused.contains("entries are missing") && refused.contains("audit re-anchor"),
        "{refused}"
    );

    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("json");
    let chain = line
        .get("chain")
        .and_then(serde_json::Value::as_str)
        .expect("a name")
        .to_owned();
    assert_eq!(
        place.run(&["audit", "re-anchor", "--chain", &chain]).status.code(),
        Some(2),
        "actor and reason"
    );
    let decide = ["audit", "re-anchor", "--chain", &chain, "--actor", "jane", "--reason"];
    let unnamed = place.run(&[&decide[..], &[" "]].concat());
    assert_eq!(unnamed.status.code(), Some(2), "{}", said(&unnamed));
    let shown = place.run(&[&decide[..], &["restored"]].concat());
    assert!(said(&shown).contains("nothing was changed"), "{}", said(&shown));
    assert!(
        place.refused(node.url()).contains("entries are missing"),
        "a dry run changes nothing"
    );
    let done = place.run(&[&decide[..], &["restored", "--confirm"]].concat());
    assert!(done.status.success(), "{}", said(&done));

    let gateway = place.start(node.url());
    call(&gateway, 2);
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    let verified = place.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    assert!(
        said(&verified).contains("authorized: re-anchored") && said(&verified).contains("by jane"),
        "{}",
        said(&verified)
    );
}

/// What was posted to an address of this machine; every post is taken.
fn receiver() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/here", listener.local_addr().expect("bound"));
    let all = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&all);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), kept) = (stream, Arc::clone(&kept)) else {
                return;
            };
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    let text = String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()).into_owned();
                    let ends = text.contains("\r\n\r\n");
                    kept.lock().expect("held").push_str(&text);
                    // Head and body come together or one after the other; an early answer does no harm here.
                    if ends
                        && stream
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                            .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    (url, all)
}

/// RL2, AU-19: the running service finds a cut chain by itself and tells everybody who asked for it; it stays ready.
#[test]
fn rl2_au19_the_running_service_finds_a_cut_chain_by_itself() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let ((witness, notes), (webhook, findings)) = (receiver(), receiver());
    let settings = [
        ("AUDIT_CHECKPOINT_INTERVAL", "1s"),
        ("AUDIT_INTEGRITY_VERIFY_INTERVAL", "1s"),
        ("AUDIT_WITNESS_URL", &witness),
        ("AUDIT_TAMPER_WEBHOOK_URL", &webhook),
    ];
    let mut gateway = place.start_with(node.url(), &settings);
    call(&gateway, 4);
    let has = |all: &Arc<Mutex<String>>, text: &str| all.lock().expect("held").contains(text);
    gateway.wait("signed the calls", |_| {
        has(&notes, "ledger-gateway/access/") && has(&notes, "ledger-gateway/chains")
    });
    // Into the trusted heads it came before the witness was told; what is cut is more than any unsigned rest.
    assert!(!has(&findings, "tamper_detected"), "nobody touched it");
    place.sql(
        "PRAGMA busy_timeout = 10000; DELETE FROM entries WHERE kind = 'access' AND seq > 0; DELETE FROM checkpoints; \
         UPDATE chains SET size = 1, head_hash = (SELECT hash FROM entries e WHERE e.chain_id = chains.id AND e.seq = 0) \
         WHERE stream = 'access'",
    );
    gateway.wait("found it", |_| has(&findings, "chain_truncated"));
    for member in [
        "type",
        "chain",
        "reason",
        "row_id",
        "row_time",
        "stored_hash",
        "expected_hash",
        "scanned_rows",
        "null_hash_rows",
        "detected_at",
    ] {
        assert!(has(&findings, &format!("\"{member}\"")), "{member}");
    }
    assert!(has(&findings, "audit.chain.tamper_detected"));
    let ready = gateway.get("/ready");
    assert_eq!(ready.status, 200, "{}", ready.body);
    assert!(ready.body.contains(r#""audit_chain":"down""#), "{}", ready.body);
    let metrics = gateway.get("/metrics").body;
    assert!(
        metrics.contains("ledger_gateway_audit_chain_integrity_violations_total{"),
        "{metrics}"
    );
    let log = gateway.said();
    assert!(log.contains("the audit log was tampered with"), "{log}");
}

/// Rewrites or appends the last entry of the access chain as somebody with the audit database would: with the hash that the
/// changed bytes have. The service is stopped.
const FORGE: &str = r#"
import hashlib, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
chain, size = db.execute("SELECT id, size FROM chains WHERE stream = 'access'").fetchone()
row, data, openings = db.execute("SELECT id, bytes, openings FROM entries WHERE chain_id = ? AND seq = ?", (chain, size - 1)).fetchone()
assert data.count(b"eth_chainId") == 1
if sys.argv[2] == "rewrite":
    data = data.replace(b"eth_chainId", b"eth_chainXX")
    digest = hashlib.sha256(b"\0" + data).digest()
    db.execute("UPDATE entries SET bytes = ?, hash = ?, method = 'eth_chainXX' WHERE id = ?", (data, digest, row))
else:
    digest = hashlib.sha256(b"\0" + data).digest()
    db.execute("INSERT INTO entries (chain_id, seq, hash, bytes, openings, kind, created_at) "
               "SELECT chain_id, seq + 1, ?, bytes, openings, kind, created_at FROM entries WHERE id = ?", (digest, row))
    db.execute("UPDATE chains SET size = size + 1 WHERE id = ?", (chain,))
db.execute("UPDATE chains SET head_hash = ? WHERE id = ?", (digest, chain))
db.commit()
"#;

/// Makes a chain of one entry in a shard of its own, dated a year ahead: the entry that begins another chain of the stream.
const INVENT: &str = r#"
import hashlib, sqlite3, sys, uuid
db = sqlite3.connect(sys.argv[1], timeout=20)
of = db.execute("SELECT id, shard FROM chains WHERE stream = ? ORDER BY id", (sys.argv[2],)).fetchone()
shard = uuid.UUID("11111111-1111-4111-8111-111111111111").bytes
db.execute("INSERT INTO chains (stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) "
           "SELECT stream, ?, fence, holder, leased_until + 31536000000000, size, size, head_hash, head_time + 31536000000000 "
           "FROM chains WHERE id = ?", (shard, of[0]))
made = db.execute("SELECT max(id) FROM chains").fetchone()[0]
prev = bytes(32)
for seq in (0, 1):
    found = db.execute("SELECT id, bytes, created_at FROM entries WHERE chain_id = ? AND seq = ?", (of[0], seq)).fetchone()
    if found is None:
        break
    row, data, time = found
    assert data.count(of[1]) >= 1
    data = data.replace(of[1], shard)
    if seq == 1:
        first = db.execute("SELECT hash FROM entries WHERE chain_id = ? AND seq = 0", (of[0],)).fetchone()[0]
        assert data.count(first) == 1
        data = data.replace(first, prev)
        data = data.replace((time).to_bytes(8, "big"), (time + 31536000000000).to_bytes(8, "big"))
        time += 31536000000000
    prev = hashlib.sha256(b"\0" + data).digest()
    db.execute("INSERT INTO entries (chain_id, seq, hash, bytes, openings, kind, created_at, method, outbox_id, store_id) "
               "SELECT ?, seq, ?, ?, openings, kind, ?, method, outbox_id, store_id FROM entries WHERE id = ?",
               (made, prev, data, time, row))
db.execute("UPDATE chains SET head_hash = ?, size = (SELECT count(*) FROM entries WHERE chain_id = chains.id) WHERE id = ?", (prev, made))
db.commit()
"#;

/// How many entries the first access chain has, and how many of them are signed.
const SIZES: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
chain, size = db.execute("SELECT id, size FROM chains WHERE stream = 'access' ORDER BY id").fetchone() or (0, 0)
print(size, (db.execute("SELECT max(size) FROM checkpoints WHERE chain_id = ?", (chain,)).fetchone() or [0])[0] or 0)
"#;

impl Place {
    fn python(&self, script: &str, arguments: &[&str]) -> String {
        let done = Command::new("python3")
            .args(["-c", script, &self.path("data/audit.db")])
            .args(arguments)
            .output();
        let done = done.expect("python3");
        assert!(done.status.success(), "{}", stderr(&done));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Calls and a kill, before anything of the calls is signed.
    fn killed_with_unsigned_calls(&self, node: &str) {
        let mut gateway = self.start_with(node, &[("AUDIT_CHECKPOINT_INTERVAL", "1h")]);
        call(&gateway, 4);
        // The genesis and four calls.
        gateway.wait("sealed the calls", |_| self.python(SIZES, &[]) == "5 0");
        drop(gateway);
    }
}

/// RL2, RL10, AU-18: entries that were sealed and not signed yet when the process was killed. The journal knows what they were:
/// a shard is left with its edge in the trusted heads, so that a rewritten one refuses to start and is found.
#[test]
fn rl2_au18_an_unsigned_entry_rewritten_after_a_kill_is_found() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    place.killed_with_unsigned_calls(node.url());
    place.python(FORGE, &["rewrite"]);
    for again in [false, true] {
        let refused = place.refused(node.url());
        assert!(
            refused.contains("is not as it was signed") && refused.contains("audit re-anchor"),
            "{again}: {refused}"
        );
    }
    let found = place.run(&["audit", "verify"]);
    assert_eq!(found.status.code(), Some(1), "{}", said(&found));
    assert!(said(&found).contains("anchor_mismatch"), "{}", said(&found));
    let name = said(&found)
        .split_whitespace()
        .find(|word| word.starts_with("access/"))
        .map(str::to_owned);
    let chain = name.expect("a chain");
    let done = place.run(&[
        "audit",
        "re-anchor",
        "--chain",
        &chain,
        "--actor",
        "jane",
        "--reason",
        "changed by an intruder",
        "--confirm",
    ]);
    assert!(done.status.success(), "{}", said(&done));
    let gateway = place.start(node.url());
    call(&gateway, 1);
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    let verified = place.run(&["audit", "verify"]);
    assert!(
        verified.status.success() && said(&verified).contains("by jane"),
        "{}",
        said(&verified)
    );
}

/// RL2, HD24: an entry that somebody appended fences the shard. What was sealed of it is signed, what was appended never is.
#[test]
fn rl2_hd24_an_appended_entry_fences_the_shard_whose_own_entries_are_signed() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    place.killed_with_unsigned_calls(node.url());
    place.python(FORGE, &["append"]);
    let gateway = place.start(node.url());
    assert_eq!(place.python(SIZES, &[]), "6 5");
    let log = gateway.said();
    assert!(log.contains("records go on in a new shard"), "{log}");
    assert!(gateway.get("/ready").body.contains(r#""audit_chain":"down""#), "{log}");
    // Entries of an administrative chain that cannot be, and of a shard dated ahead: no key is needed for either.
    place.python(INVENT, &["admin"]);
    place.python(INVENT, &["access"]);
    let found = place.run(&["audit", "verify", "--format", "json"]);
    assert_eq!(found.status.code(), Some(1), "{}", said(&found));
    let text = said(&found);
    let has = |chain: &str, kind: &str| text.lines().any(|line| line.contains(chain) && line.contains(kind));
    assert!(
        has("admin/11111111", "\"fork\"") && has("access/11111111", "\"checkpoint_missing\""),
        "{text}"
    );
    drop(gateway);
}

/// RL9: a mutation's row that is gone is told after a restart, too, until somebody accepts it; the chain itself is as signed.
#[test]
fn rl9_a_lost_outbox_row_stays_told_until_it_is_accepted() {
    let (node, place) = (
        anvil(),
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        },
    );
    let gateway = place.start(node.url());
    let (status, log) = gateway.end();
    assert!(status.success(), "{log}");
    assert!(place.run(&["audit", "verify"]).status.success(), "nobody touched it");

    // As it is left by whoever deletes the last row before it is sealed.
    let policy = place.path("data/gateway.db");
    process::change_database(&policy, "UPDATE policy_store SET last_outbox_id = last_outbox_id + 1");
    let mut gateway = place.start(node.url());
    gateway.wait("told it", |gateway| {
        gateway.said().contains("audit outbox rows were deleted")
    });
    let (_, log) = gateway.end();
    process::change_database(&policy, "UPDATE policy_store SET last_outbox_id = 0");
    let mut gateway = place.start_with(node.url(), &[("ADMIN_API_TOKEN", TOKEN)]);
    let listed = gateway
        .admin(TOKEN, "GET", "/audit-logs", &serde_json::Value::Null)
        .to_string();
    assert!(
        listed.contains(r#""outbox_fault":"missing""#) && listed.contains(r#""tampered":true"#),
        "{listed}"
    );
    gateway.wait("shows it", |gateway| {
        gateway.get("/ready").body.contains(r#""audit_chain":"down""#)
    });
    drop(gateway.end());
    let found = place.run(&["audit", "verify"]);
    assert_eq!(found.status.code(), Some(1), "{} {log}", said(&found));
    assert!(said(&found).contains("outbox_gap"), "{}", said(&found));

    let chain = "admin/00000000-0000-0000-0000-000000000000";
    let decide = [
        "audit",
        "re-anchor",
        "--chain",
        chain,
        "--actor",
        "jane",
        "--reason",
        "looked into",
        "--confirm",
    ];
    let done = place.run(&decide);
    assert!(done.status.success(), "{}", said(&done));
    let verified = place.run(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    assert!(
        said(&verified).contains("by jane because: looked into; 1 findings in it"),
        "{}",
        said(&verified)
    );
    let again = place.run(&decide);
    assert!(
        !again.status.success() && said(&again).contains("nothing to re-anchor"),
        "{}",
        said(&again)
    );
}
