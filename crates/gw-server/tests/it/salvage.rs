//! RL5: a damaged journal is neither opened nor deleted, but salvaged.

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

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output))
}

/// The segment that holds records.
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
                .ask("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    }
    // The directory is in use.
    let busy = process::gateway(&["audit", "salvage"], &settings);
    assert_eq!(busy.status.code(), Some(75), "{}", text(&busy));
    gateway.end();
    let clean = process::gateway(&["audit", "salvage", "--confirm"], &settings);
    assert!(
        clean.status.success() && text(&clean).contains("nothing to salvage"),
        "{}",
        text(&clean)
    );

    let damaged = segment(Path::new(&journal));
    OpenOptions::new()
        .write(true)
        .open(&damaged)
        .expect("open")
        .write_all_at(&[0xee; 9], 4200)
        .expect("written");
    let before = fs::read(&damaged).expect("read");
    let refused = Serving::spawn(node.url(), &settings).refused();
    assert!(
        refused.contains("do not delete it; `ledger-gateway audit salvage`"),
        "{refused}"
    );

    let dry = process::gateway(&["audit", "salvage", "--dir", &journal], &settings);
    assert_eq!(dry.status.code(), Some(1), "{}", text(&dry));
    assert!(
        text(&dry).contains("stream access") && text(&dry).contains("nothing was changed"),
        "{}",
        text(&dry)
    );
    assert_eq!(fs::read(&damaged).expect("read"), before);
    // What was damaged is in the store, so nothing is lost.
    let done = process::gateway(&["audit", "salvage", "--confirm"], &settings);
    assert!(done.status.success(), "{}", text(&done));
    let aside = fs::read_dir(&journal)
        .expect("entries")
        .map(|entry| entry.expect("an entry").path());
    let aside = aside
        .filter(|path| path.to_string_lossy().contains(".damaged-"))
        .collect::<Vec<_>>();
    assert_eq!(aside.len(), 1);
    assert_eq!(
        fs::read(aside[0].join(damaged.file_name().expect("a name"))).expect("read"),
        before
    );

    let gateway = Serving::start(node.url(), &settings).ready();
    gateway.end();
    assert!(aside[0].is_dir());
    let verified = process::gateway(&["audit", "verify"], &settings);
    assert!(verified.status.success(), "{}", text(&verified));
}

/// RL5: what waits in a damaged journal goes on in a new shard, and is not told as lost: not by verification, and not by an alarm
/// of the new shard about itself.
#[test]
fn rl5_records_that_a_salvage_saved_are_not_told_as_lost() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (data, journal) = (path("data"), path("journal"));
    let settings = [&settings(&data, &journal)[..], &[("AUDIT_CHECKPOINT_INTERVAL", "1s")]].concat();
    let call = |gateway: &Serving| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        assert_eq!(
            gateway
                .ask("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    };
    let count = |query: &str| {
        let script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])";
        let done = Command::new("python3")
            .args(["-c", script, &path("data/audit.db"), query])
            .output()
            .expect("python3");
        String::from_utf8_lossy(&done.stdout).trim().parse::<u64>().unwrap_or(0)
    };
    let sealed = || count("SELECT count(*) FROM entries WHERE kind = 'access'");
    let signed =
        || count("SELECT max(n.size) FROM checkpoints n JOIN chains c ON n.chain_id = c.id WHERE c.stream = 'access'");
    let mut gateway = Serving::start(node.url(), &settings).ready();
    (0..5).for_each(|_| call(&gateway));
    gateway.wait("signed the calls", |_| sealed() == 5 && signed() == 6);
    // The audit database is held by somebody else while more is called.
    let hold = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], timeout=30); db.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()";
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
    // The numbers are noted outside the journal each second.
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
    let done = process::gateway(&["audit", "salvage", "--confirm"], &settings);
    assert!(done.status.success(), "{}", text(&done));
    let mut gateway = Serving::start(node.url(), &settings).ready();
    gateway.wait("sealed what was saved", |_| sealed() == 12);
    gateway.wait("looked at the chains", |gateway| {
        gateway.said().contains("a checkpoint was signed")
    });
    assert!(
        gateway.get("/ready").body.contains(r#""audit_chain":"ok""#),
        "{}",
        gateway.said()
    );
    let (_, log) = gateway.end();
    assert!(!log.contains("ERROR"), "{log}");
    let verified = process::gateway(&["audit", "verify"], &settings);
    assert!(verified.status.success(), "{}", text(&verified));
}
