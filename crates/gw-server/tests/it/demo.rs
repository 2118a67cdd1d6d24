//! The demo as a user of `make demo` sees it (spec/85 section 10).

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
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.matches("  ✓ ").count() >= 10 && !text.contains('✗'), "{text}");
}

/// Ctrl-C stops all processes and removes their files. While the demo runs, `demo token` prints fresh tokens.
#[test]
fn demo_ctrl_c_leaves_nothing() {
    let temp_dir = tempfile::tempdir().expect("a directory");
    let dir = temp_dir.path().join("demo").to_string_lossy().into_owned();
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
        let mut text = String::new();
        demo.stderr
            .take()
            .expect("a pipe")
            .read_to_string(&mut text)
            .expect("text");
        panic!("the demo ended: {text}");
    }
    let token = command(&["demo", "token", "analyst", "--dir", &dir], &[])
        .output()
        .expect("the binary runs");
    let token = String::from_utf8_lossy(&token.stdout).trim().to_owned();
    assert_eq!(token.matches('.').count(), 2, "{token}");
    let children = children_of(demo.id());
    assert_eq!(children.len(), 2, "a node and a gateway");

    let signalled = Command::new("kill").args(["-INT", &demo.id().to_string()]).status();
    assert!(signalled.is_ok_and(|status| status.success()));
    assert!(demo.wait().expect("ended").success());
    for child in children {
        assert!(
            !std::path::Path::new(&format!("/proc/{child}")).exists(),
            "process {child} still runs"
        );
    }
    assert!(!std::path::Path::new(&dir).exists());
}

/// The child processes of a process.
fn children_of(process: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    // A multi-threaded process starts children from any of its threads.
    let threads = std::fs::read_dir(format!("/proc/{process}/task"))
        .expect("its threads")
        .flatten();
    let mut ids: Vec<u32> = threads
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .chain([text])
        .flat_map(|children| {
            children
                .split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
