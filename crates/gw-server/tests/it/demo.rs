//! The demo as somebody sees it who runs `make demo` (spec/85 section 10).

use crate::process::command;
use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

#[test]
fn demo_every_promise_is_kept() {
    let output = command(&["demo", "--ephemeral", "--exit-after-checks"], &[])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.matches("  ✓ ").count() >= 9 && !said.contains('✗'), "{said}");
}

/// Ctrl-C stops everything that was started and removes what it left; meanwhile `demo token` gives fresh tokens.
#[test]
fn demo_ctrl_c_leaves_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().join("demo").to_string_lossy().into_owned();
    let mut demo = command(&["demo", "--dir", &dir, "--port", "0", "--seed-only"], &[]);
    let mut demo = demo
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(demo.stdout.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok);
    let last = lines.find(|line| line.contains("Ctrl-C stops everything"));
    if last.is_none() {
        let mut said = String::new();
        demo.stderr
            .take()
            .expect("a pipe")
            .read_to_string(&mut said)
            .expect("text");
        panic!("the demo ended: {said}");
    }
    let token = command(&["demo", "token", "analyst", "--dir", &dir], &[])
        .output()
        .expect("the binary runs");
    let token = String::from_utf8_lossy(&token.stdout).trim().to_owned();
    assert_eq!(token.matches('.').count(), 2, "{token}");
    let children = children_of(demo.id());
    assert_eq!(children.len(), 2, "a node and a gateway");

    let told = Command::new("kill").args(["-INT", &demo.id().to_string()]).status();
    assert!(told.is_ok_and(|status| status.success()));
    assert!(demo.wait().expect("ended").success());
    for child in children {
        assert!(
            !std::path::Path::new(&format!("/proc/{child}")).exists(),
            "process {child} still runs"
        );
    }
    assert!(!std::path::Path::new(&dir).exists());
}

/// The processes a process started.
fn children_of(process: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    // A multi-threaded process starts children from any of its threads.
    let others = std::fs::read_dir(format!("/proc/{process}/task"))
        .expect("its threads")
        .flatten();
    let mut all: Vec<u32> = others
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .chain([text])
        .flat_map(|children| {
            children
                .split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}
