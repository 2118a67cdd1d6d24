//! Test programs: what `cargo test` would run one after the other, run side by side.
//!
//! The slowest tests of a program run alone at its end, and tests with processes and databases wait more than they
//! compute. A second program uses that time.

use crate::{
    command::{cargo, name},
    say,
};
use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::{
    collections::VecDeque,
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    time::Instant,
};

/// The programs that take longest, slowest first; they start first. The order changes only the duration of the run.
const SLOWEST: &[&str] = &[
    "gw-server/it",
    "gw-server/e2e",
    "gw-explorer/it",
    "gw-identity/it",
    "gw-rpc/it",
    "gw-store/it",
    "gw-policy/gw_policy",
    "gw-journal/gw_journal",
    "gw-server/gw_server",
];
/// The number of programs that run at the same time. Each runs as many tests at a time as there are cores.
const SIDE_BY_SIDE: usize = 2;

/// A compiled test program.
#[derive(Debug)]
struct TestProgram {
    /// Its crate and target, such as `gw-store/it`.
    name: String,
    path: PathBuf,
    /// The directory of its crate, in which it runs.
    directory: PathBuf,
}

/// A program that ended.
pub(crate) struct Run {
    /// Its crate and target.
    pub(crate) name: String,
    /// Everything that it printed.
    pub(crate) output: String,
    /// Whether it ended with success.
    pub(crate) success: bool,
    /// Its duration.
    pub(crate) seconds: u64,
}

/// One line of `cargo build --message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds the test programs of a test command without `--no-run`, runs all of them, and hands over each run when it
/// ends.
///
/// # Errors
/// The build fails, or a program does not start.
pub(crate) fn run(root: &Path, arguments: &[&str], mut ended: impl FnMut(Run)) -> anyhow::Result<()> {
    let mut programs = build(root, arguments)?;
    programs.sort_by_key(|program| order(&program.name));
    let queue = Mutex::new(VecDeque::from(programs));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(program) = next else {
                        return;
                    };
                    say::line(format_args!("     Running {}", program.name));
                    if sender.send(execute(&program)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for result in receiver {
            ended(result?);
        }
        Ok(())
    })
}

/// The position of a program among the slowest.
fn order(program: &str) -> usize {
    let position = SLOWEST.iter().position(|slow| *slow == program);
    position.unwrap_or(SLOWEST.len())
}

fn build(root: &Path, arguments: &[&str]) -> anyhow::Result<Vec<TestProgram>> {
    let mut command = cargo(root, &["test", "--no-run", "--message-format=json-render-diagnostics"]);
    command.args(arguments);
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .with_context(|| format!("{} did not start", name(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed", name(&command));
    }
    let programs: Vec<TestProgram> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(test_program)
        .collect();
    if programs.is_empty() {
        bail!("`{}` built no test", name(&command));
    }
    Ok(programs)
}

/// The program that a line of the build names, if it is one of tests.
fn test_program(line: &str) -> Option<TestProgram> {
    let message: Message = serde_json::from_str(line).ok()?;
    let is_test = message.reason == "compiler-artifact" && message.profile?.test;
    let directory = message.manifest_path?.parent()?.to_owned();
    let crate_name = directory.file_name()?.to_string_lossy().into_owned();
    is_test.then_some(TestProgram {
        name: format!("{crate_name}/{}", message.target?.name),
        path: message.executable?,
        directory,
    })
}

/// Runs a program as cargo would. Its output goes to a file, which can be read while it runs: a process that outlives
/// its test cannot hold up the run, as it could with a pipe.
fn execute(program: &TestProgram) -> anyhow::Result<Run> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let path = program.path.with_extension("output");
    let file = File::create(&path).with_context(|| format!("{} cannot be created", path.display()))?;
    let start = Instant::now();
    let status = Command::new(&program.path)
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("INSTA_UPDATE", "no")
        .env("CI", "true")
        .env("RUST_TEST_THREADS", cores.to_string())
        .stdout(file.try_clone().context("the output cannot be shared")?)
        .stderr(file)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("{} did not start", program.path.display()))?;
    let output = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Run {
        name: program.name.clone(),
        output: String::from_utf8_lossy(&output).into_owned(),
        success: status.success(),
        seconds: start.elapsed().as_secs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_of_the_build_are_run() {
        let artifact = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/gw-store/Cargo.toml",
                "target":{{"name":"it","kind":["test"]}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let program = test_program(&artifact(true, r#""/w/target/debug/deps/it-1""#)).expect("a program");
        assert_eq!(program.name, "gw-store/it");
        assert_eq!(program.directory, Path::new("/w/crates/gw-store"));
        assert!(
            test_program(&artifact(false, r#""/w/target/debug/x""#)).is_none(),
            "a binary"
        );
        assert!(test_program(&artifact(true, "null")).is_none(), "a library");
        assert!(test_program(r#"{"reason":"build-finished","success":true}"#).is_none());
        assert!(test_program("not a message").is_none());
    }

    #[test]
    fn a_program_that_fails_is_told_from_one_that_succeeds() {
        let directory = std::env::temp_dir().join(format!("xtask-programs-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let run = |name: &str, script: &str| {
            let path = directory.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).expect("executable");
            let program = TestProgram {
                name: name.to_owned(),
                path,
                directory: directory.clone(),
            };
            execute(&program).expect("it runs")
        };
        let good = run("good", "echo out; echo error >&2; pwd");
        assert!(good.success);
        assert_eq!(good.output, format!("out\nerror\n{}\n", directory.display()));
        assert!(!run("bad", "exit 3").success);
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
