//! RL5: a damaged journal is neither opened nor deleted; it can be salvaged.

use crate::process::{self, Serving, stderr};
use gw_testkit::anvil::anvil;
use std::{
    fs::{self, OpenOptions},
    io::Read as _,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

fn settings<'a>(data: &'a str, journal: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![("DATA_DIR", data), ("AUDIT_BUFFER_DIR", journal)]
}

fn output_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output))
}

/// The first segment of the journal, which has the records.
fn segment(journal: &Path) -> PathBuf {
    let shard = fs::read_to_string(journal.join("shard")).expect("a shard");
    let files = fs::read_dir(journal.join(shard))
        .expect("files")
        .map(|entry| entry.expect("an entry").path());
    let mut segments: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "segment"))
        .collect();
    segments.sort();
    segments.swap_remove(0)
}

#[test]
fn rl5_a_damaged_journal_is_salvaged_and_nothing_is_deleted() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (data, journal) = (path("data"), path("journal"));
    let settings = settings(&data, &journal);
    let gateway = Serving::start(node.url(), &settings).ready();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
    for _ in 0..5 {
        assert_eq!(
            gateway
                .request("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    }
    // The directory is in use.
    let busy = process::gateway(&["audit", "salvage"], &settings);
    assert_eq!(busy.status.code(), Some(75), "{}", output_of(&busy));
    gateway.end();
    let clean = process::gateway(&["audit", "salvage", "--confirm"], &settings);
    assert!(
        clean.status.success() && output_of(&clean).contains("nothing to salvage"),
        "{}",
        output_of(&clean)
    );

    let damaged = segment(Path::new(&journal));
    OpenOptions::new()
        .write(true)
        .open(&damaged)
        .expect("open")
        .write_all_at(&[0xee; 9], 4200)
        .expect("written");
    let before = fs::read(&damaged).expect("read");
    let failed_start = Serving::spawn(node.url(), &settings).wait_for_failed_start();
    assert!(
        failed_start.contains("do not delete it; `ledger-gateway audit salvage`"),
        "{failed_start}"
    );

    let dry_run = process::gateway(&["audit", "salvage", "--dir", &journal], &settings);
    assert_eq!(dry_run.status.code(), Some(1), "{}", output_of(&dry_run));
    assert!(
        ["stream access", "these numbers are the least", "nothing was changed"]
            .iter()
            .all(|line| output_of(&dry_run).contains(line)),
        "{}",
        output_of(&dry_run)
    );
    assert_eq!(fs::read(&damaged).expect("read"), before);
    // The store has the damaged records, so nothing is lost.
    let salvage = process::gateway(&["audit", "salvage", "--confirm"], &settings);
    assert!(salvage.status.success(), "{}", output_of(&salvage));
    let moved_aside = fs::read_dir(&journal)
        .expect("entries")
        .map(|entry| entry.expect("an entry").path());
    let moved_aside = moved_aside
        .filter(|path| path.to_string_lossy().contains(".damaged-"))
        .collect::<Vec<_>>();
    assert_eq!(moved_aside.len(), 1);
    assert_eq!(
        fs::read(moved_aside[0].join(damaged.file_name().expect("a name"))).expect("read"),
        before
    );

    let gateway = Serving::start(node.url(), &settings).ready();
    gateway.end();
    assert!(moved_aside[0].is_dir());
    let verified = process::gateway(&["audit", "verify"], &settings);
    assert!(verified.status.success(), "{}", output_of(&verified));
}

/// RL5: the waiting records of a damaged journal are sealed in a new shard. Neither verification nor the new shard
/// reports them as lost.
#[test]
fn rl5_records_that_a_salvage_saved_are_not_reported_as_lost() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (data, journal) = (path("data"), path("journal"));
    let settings = [&settings(&data, &journal)[..], &[("AUDIT_CHECKPOINT_INTERVAL", "1s")]].concat();
    let call = |gateway: &Serving| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        assert_eq!(
            gateway
                .request("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    };
    let count = |query: &str| {
        let script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])";
        let salvage = Command::new("python3")
            .args(["-c", script, &path("data/audit.db"), query])
            .output()
            .expect("python3");
        String::from_utf8_lossy(&salvage.stdout)
            .trim()
            .parse::<u64>()
            .unwrap_or(0)
    };
    let sealed = || count("SELECT count(*) FROM entries WHERE kind = 'access'");
    let signed =
        || count("SELECT max(n.size) FROM checkpoints n JOIN chains c ON n.chain_id = c.id WHERE c.stream = 'access'");
    let mut gateway = Serving::start(node.url(), &settings).ready();
    (0..5).for_each(|_| call(&gateway));
    gateway.wait("signed the calls", |_| sealed() == 5 && signed() == 6);
    // Another process locks the audit database during further calls.
    let hold = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=30); db.execute('BEGIN IMMEDIATE'); \
                print('held', flush=True); sys.stdin.read()";
    let mut holder = Command::new("python3")
        .args(["-c", hold, &path("data/audit.db")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut held = [0; 4];
    holder
        .stdout
        .as_mut()
        .expect("piped")
        .read_exact(&mut held)
        .expect("held");
    (0..7).for_each(|_| call(&gateway));
    // The gateway records the numbers outside the journal every second.
    std::thread::sleep(Duration::from_secs(2));
    drop(gateway);
    holder.kill().and_then(|()| holder.wait()).expect("ended");

    let damaged = segment(Path::new(&journal));
    OpenOptions::new()
        .write(true)
        .open(&damaged)
        .expect("open")
        .write_all_at(&[0xee; 9], 4200)
        .expect("written");
    let salvage = process::gateway(&["audit", "salvage", "--confirm"], &settings);
    assert!(salvage.status.success(), "{}", output_of(&salvage));
    let mut gateway = Serving::start(node.url(), &settings).ready();
    gateway.wait("sealed the saved records", |_| sealed() == 12);
    gateway.wait("signed a checkpoint", |gateway| {
        gateway.output().contains("a checkpoint was signed")
    });
    assert!(
        gateway.get("/ready").body.contains(r#""audit_chain":"ok""#),
        "{}",
        gateway.output()
    );
    let (_, log) = gateway.end();
    assert!(!log.contains("ERROR"), "{log}");
    let verified = process::gateway(&["audit", "verify"], &settings);
    assert!(verified.status.success(), "{}", output_of(&verified));
}

/// RL2, rule 18: the store has entries of a damaged journal that are not signed yet. Their removal after the salvage is
/// detected.
#[test]
fn rl2_removal_of_sealed_entries_of_a_salvaged_journal_is_detected() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (data, journal) = (path("data"), path("journal"));
    let settings = |interval| {
        [
            &settings(&data, &journal)[..],
            &[("AUDIT_CHECKPOINT_INTERVAL", interval)],
        ]
        .concat()
    };
    let call = |gateway: &Serving| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        assert_eq!(
            gateway
                .request("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    };
    let sql = |script: &str| {
        let python = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=30); \
                   rows = [row for part in sys.argv[2].split(';') for row in db.execute(part).fetchall()]; \
                   db.commit(); print(rows[-1][0] if rows else '')";
        let salvage = Command::new("python3")
            .args(["-c", python, &path("data/audit.db"), script])
            .output()
            .expect("python3");
        assert!(salvage.status.success(), "{}", output_of(&salvage));
        String::from_utf8_lossy(&salvage.stdout)
            .trim()
            .parse::<u64>()
            .unwrap_or(0)
    };
    let sealed = || sql("SELECT count(*) FROM entries WHERE kind = 'access'");
    let signed =
        || sql("SELECT max(n.size) FROM checkpoints n JOIN chains c ON n.chain_id = c.id WHERE c.stream = 'access'");
    let mut gateway = Serving::start(node.url(), &settings("1s")).ready();
    (0..5).for_each(|_| call(&gateway));
    gateway.wait("signed the calls", |_| sealed() == 5 && signed() == 6);
    gateway.end();
    let mut gateway = Serving::start(node.url(), &settings("1h")).ready();
    (0..7).for_each(|_| call(&gateway));
    gateway.wait("sealed the calls", |_| sealed() == 12);
    // The journal marks the records as sealed shortly after the store has them.
    std::thread::sleep(Duration::from_secs(1));
    drop(gateway);
    assert_eq!(signed(), 6);

    let segment = segment(Path::new(&journal));
    fs::remove_file(segment.with_file_name("base")).expect("removed");
    let salvage = process::gateway(&["audit", "salvage", "--confirm"], &settings("1h"));
    assert!(salvage.status.success(), "{}", output_of(&salvage));
    sql("DELETE FROM entries WHERE kind = 'access' AND seq >= 6; \
         UPDATE chains SET size = 6, issued = 5, \
         head_hash = (SELECT hash FROM entries WHERE kind = 'access' AND seq = 5), \
         head_time = (SELECT created_at FROM entries WHERE kind = 'access' AND seq = 5) WHERE stream = 'access'");
    let verified = process::gateway(&["audit", "verify"], &settings("1h"));
    assert_eq!(verified.status.code(), Some(1), "{}", output_of(&verified));
    assert!(
        output_of(&verified).contains("chain_truncated"),
        "{}",
        output_of(&verified)
    );
    let failed_start = Serving::spawn(node.url(), &settings("1h")).wait_for_failed_start();
    assert!(failed_start.contains("entries are missing"), "{failed_start}");
}
