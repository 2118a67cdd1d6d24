//! Journal and audit store at start: they agree, or are reconciled without losing or inventing entries.

use crate::process::{self, Serving, stderr};
use gw_testkit::{anvil::anvil, port};
use std::{fs, path::Path, process::Command};

/// Starts a gateway on directories of the test, so that it can be restarted on them.
fn start(node: &str, data: &str, journal: &str) -> Serving {
    Serving::start(node, &settings(data, journal)).ready()
}

fn settings<'a>(data: &'a str, journal: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![("DATA_DIR", data), ("AUDIT_BUFFER_DIR", journal)]
}

/// Sends calls that are recorded.
fn call(gateway: &Serving, times: usize) {
    for _ in 0..times {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        assert_eq!(
            gateway
                .request("POST", "/rpc", &[("Content-Type", "application/json")], body)
                .status,
            200
        );
    }
}

fn end(gateway: Serving) -> String {
    let (status, output) = gateway.end();
    assert!(status.success(), "{output}");
    output
}

/// Verifies the access chains. Returns the number of entries of each, in ascending order.
fn verified(data: &str, journal: &str) -> Vec<u64> {
    let output = process::gateway(
        &["audit", "verify", "--chain", "access", "--format", "json"],
        &settings(data, journal),
    );
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(output.status.success(), "{text}{}", stderr(&output));
    let chains = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("json"));
    let mut sizes: Vec<_> = chains.filter_map(|chain| chain.get("scanned")?.as_u64()).collect();
    sizes.sort_unstable();
    sizes
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a directory");
    for entry in fs::read_dir(from)
        .expect("readable")
        .map(|entry| entry.expect("an entry"))
    {
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a kind").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// HD25: an audit store that lost its entries gets them again from the kept segments of the journal.
#[test]
fn hd25_a_store_that_fell_behind_is_sealed_again() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let (data, journal) = (dir.path().join("data"), dir.path().join("journal"));
    let (data, journal) = (data.to_str().expect("text"), journal.to_str().expect("text"));
    let gateway = start(node.url(), data, journal);
    call(&gateway, 5);
    end(gateway);
    assert_eq!(verified(data, journal), [6], "a genesis and five calls");
    for file in ["audit.db", "audit.db-wal", "audit.db-shm"] {
        let _ = fs::remove_file(Path::new(data).join(file));
    }
    let gateway = start(node.url(), data, journal);
    call(&gateway, 2);
    let output = end(gateway);
    assert!(output.contains("sealing continues at the end of the store"), "{output}");
    assert_eq!(verified(data, journal), [8]);
}

/// HD24: a copy of the journal does not continue the shard of the original; it opens a new shard.
#[test]
fn hd24_a_cloned_journal_goes_on_in_a_new_shard() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (data, journal, clone) = (path("data"), path("journal"), path("clone"));
    let gateway = start(node.url(), &data, &journal);
    call(&gateway, 3);
    end(gateway);
    copy(Path::new(&journal), Path::new(&clone));
    let gateway = start(node.url(), &data, &journal);
    call(&gateway, 3);
    end(gateway);
    let gateway = start(node.url(), &data, &clone);
    call(&gateway, 2);
    let output = end(gateway);
    assert!(output.contains("records go on in a new shard"), "{output}");
    assert_eq!(verified(&data, &clone), [3, 7]);
    // The original continues its own shard.
    let gateway = start(node.url(), &data, &journal);
    call(&gateway, 1);
    end(gateway);
    assert_eq!(verified(&data, &journal), [3, 8]);
}

/// Spec/85 section 3, step 4: a chain that is shorter than its last checkpoint has lost entries, so the start is
/// refused.
#[test]
fn a_chain_shorter_than_its_last_checkpoint_aborts() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let (data, journal) = (dir.path().join("data"), dir.path().join("journal"));
    let (data, journal) = (data.to_str().expect("text"), journal.to_str().expect("text"));
    let gateway = start(node.url(), data, journal);
    call(&gateway, 5);
    end(gateway);
    // An attacker with the database's credentials shortens the chain.
    let shorten = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \
                   db.execute(\"update chains set size = 3 where stream = 'access'\"); db.commit()";
    let status = Command::new("python3")
        .args(["-c", shorten, &format!("{data}/audit.db")])
        .status();
    assert!(status.is_ok_and(|exit| exit.success()));
    let port = port::reserve().to_string();
    let mut settings = settings(data, journal);
    settings.extend([("NODE_URL", node.url()), ("PORT", &port)]);
    let output = process::gateway(&["serve"], &settings);
    assert!(!output.status.success());
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert!(text.contains("entries are missing"), "{text}");
}
