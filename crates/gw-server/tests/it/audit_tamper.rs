//! RL2 from outside: what somebody with the audit database does, and what the binary says.

use crate::process::{self, Serving, free_port, stderr};
use gw_testkit::anvil::anvil;
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

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
        let (data, journal) = (self.path("data"), self.path("journal"));
        Serving::start(node, &[("DATA_DIR", &data), ("AUDIT_BUFFER_DIR", &journal), ("LOG_FORMAT", "json")]).ready()
    }

    fn refused(&self, node: &str) -> String {
        let (data, journal, port) = (self.path("data"), self.path("journal"), free_port().to_string());
        let env = [("DATA_DIR", &*data), ("AUDIT_BUFFER_DIR", &journal), ("NODE_URL", node), ("PORT", &port)];
        let output = process::gateway(&["serve"], &env);
        assert!(!output.status.success(), "it started");
        said(&output)
    }

    fn sql(&self, statements: &str) {
        let script =
            "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.commit()";
        let done = Command::new("python3").args(["-c", script, &self.path("data/audit.db"), statements]).status();
        assert!(done.is_ok_and(|status| status.success()));
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output))
}

fn call(gateway: &Serving, times: usize) {
    for _ in 0..times {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        assert_eq!(gateway.ask("POST", "/rpc", &[("Content-Type", "application/json")], body).status, 200);
    }
}

/// RL2, AU-20, AU-22: the tail of a chain, cut with its notes. A start refuses it, `audit verify` finds it here and on another
/// machine with notes from the log, re-anchoring goes on from it and stays listed.
#[test]
fn rl2_au22_a_cut_chain_is_refused_found_and_re_anchored() {
    let (node, place) = (anvil(), Place { dir: tempfile::tempdir().expect("a directory") });
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
        "DELETE FROM entries WHERE kind = 'access' AND seq > 2; DELETE FROM checkpoints; \
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
    assert!(refused.contains("entries are missing") && refused.contains("audit re-anchor"), "{refused}");

    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("json");
    let chain = line.get("chain").and_then(serde_json::Value::as_str).expect("a name").to_owned();
    assert_eq!(place.run(&["audit", "re-anchor", "--chain", &chain]).status.code(), Some(2), "actor and reason");
    let decide = ["audit", "re-anchor", "--chain", &chain, "--actor", "jane", "--reason"];
    let unnamed = place.run(&[&decide[..], &[" "]].concat());
    assert_eq!(unnamed.status.code(), Some(2), "{}", said(&unnamed));
    let shown = place.run(&[&decide[..], &["restored"]].concat());
    assert!(said(&shown).contains("nothing was changed"), "{}", said(&shown));
    assert!(place.refused(node.url()).contains("entries are missing"), "a dry run changes nothing");
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
