//! Everything CI runs, cheapest first. `make test` and `.ci/run` are this and nothing else.
//!
//! The run stops at the first step that fails; its last line is always `N passed, N failed`, where a step that is no
//! test run counts only when it fails.

use crate::{layers, release, say};
use anyhow::{Context as _, bail};
use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

/// One step.
pub(crate) struct Step {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it makes sure of.
    pub(crate) what: &'static str,
    run: fn(&Path) -> anyhow::Result<Tally>,
}

/// The steps in their order.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted",
        run: fmt,
    },
    Step {
        name: "layers",
        what: "nobody depends on what is beside or below",
        run: layering,
    },
    Step {
        name: "clippy",
        what: "no lint fires, with and without the mock login",
        run: clippy,
    },
    Step {
        name: "rustdoc",
        what: "the documentation builds without warnings",
        run: rustdoc,
    },
    Step {
        name: "generated",
        what: "generated files are what their sources make",
        run: generated,
    },
    Step {
        name: "release",
        what: "the plain binary of a whole-workspace build holds no mock code (HD19)",
        run: release,
    },
    Step {
        name: "tests",
        what: "unit, integration and doc tests on SQLite and PostgreSQL",
        run: tests,
    },
    Step {
        name: "end-to-end",
        what: "the dev build: the demo, real clients, everything over HTTP",
        run: end_to_end,
    },
    Step {
        name: "deny",
        what: "licences, sources and duplicates of dependencies",
        run: deny,
    },
];

/// What tests said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// What one line of output adds: the test runner's result.
    fn of_line(line: &str) -> Self {
        let counted = |text: &str, word: &str| {
            text.trim()
                .strip_suffix(word)
                .and_then(|number| number.trim().parse().ok())
        };
        let result = line
            .strip_prefix("test result: ")
            .and_then(|result| result.split_once(". "));
        let numbers = result.and_then(|(_, counts)| {
            let mut counts = counts.split(';');
            Some(Self {
                passed: counted(counts.next()?, "passed")?,
                failed: counted(counts.next()?, "failed")?,
            })
        });
        numbers.unwrap_or_default()
    }
}

/// Runs all steps, or the one named.
pub(crate) fn run(root: &Path, only: Option<&str>) -> anyhow::Result<ExitCode> {
    if let Some(name) = only
        && !STEPS.iter().any(|step| step.name == name)
    {
        bail!("there is no step `{name}`; see `cargo xtask steps`");
    }
    let mut total = Tally::default();
    let mut code = ExitCode::SUCCESS;
    for step in STEPS.iter().filter(|step| only.is_none_or(|name| name == step.name)) {
        say::line(format_args!("==> {}: {}", step.name, step.what));
        let start = Instant::now();
        let said = (step.run)(root);
        let seconds = start.elapsed().as_secs();
        let (tally, fault) = match said {
            Ok(tally) if tally.failed == 0 => (tally, None),
            Ok(tally) => (tally, Some(format!("{} tests failed", tally.failed))),
            Err(error) => (
                Tally {
                    failed: 1,
                    ..Tally::default()
                },
                Some(format!("{error:#}")),
            ),
        };
        total.add(tally);
        if let Some(fault) = fault {
            say::line(format_args!("==> {} failed after {seconds} s: {fault}", step.name));
            code = ExitCode::FAILURE;
            break;
        }
        say::line(format_args!("==> {} done in {seconds} s", step.name));
    }
    say::line(format_args!("{} passed, {} failed", total.passed, total.failed));
    Ok(code)
}

/// `cargo` in the workspace, with the lock file as it is.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .current_dir(root)
        .env("INSTA_UPDATE", "no")
        .env("CI", "true");
    command
}

/// Runs a command that must succeed.
pub(crate) fn succeed(mut command: Command) -> anyhow::Result<Tally> {
    let status = command
        .status()
        .with_context(|| format!("{} did not start", name(&command)))?;
    if !status.success() {
        bail!("`{}` failed", name(&command));
    }
    Ok(Tally::default())
}

/// Runs a command whose output counts tests, showing that output.
fn count(command: Command) -> anyhow::Result<Tally> {
    count_to(command, |line| say::line(line))
}

fn count_to(mut command: Command, show: impl Fn(&str)) -> anyhow::Result<Tally> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} did not start", name(&command)))?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("the output cannot be read")?;
            let line = String::from_utf8_lossy(&line);
            show(&line);
            tally.add(Tally::of_line(&line));
        }
    }
    let status = child
        .wait()
        .with_context(|| format!("{} cannot be waited for", name(&command)))?;
    if !status.success() && tally.failed == 0 {
        // A test binary that died says no result line.
        tally.failed = 1;
    }
    if status.success() && tally.passed == 0 {
        bail!("`{}` ran no test", name(&command));
    }
    Ok(tally)
}

/// A command as one would type it.
fn name(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}

fn fmt(root: &Path) -> anyhow::Result<Tally> {
    succeed(cargo(root, &["fmt", "--all", "--check"]))
}

fn layering(root: &Path) -> anyhow::Result<Tally> {
    let faults = layers::check(root)?;
    if faults.is_empty() {
        return Ok(Tally::default());
    }
    bail!("\n{}", faults.join("\n"))
}

fn clippy(root: &Path) -> anyhow::Result<Tally> {
    succeed(cargo(
        root,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    ))?;
    let mock = [
        "clippy",
        "-p",
        "gw-server",
        "-p",
        "gw-identity",
        "--features",
        MOCK,
        "--all-targets",
        "--locked",
    ];
    let mut command = cargo(root, &mock);
    command.args(["--", "-D", "warnings"]);
    succeed(command)
}

fn rustdoc(root: &Path) -> anyhow::Result<Tally> {
    let mut command = cargo(root, &["doc", "--workspace", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    succeed(command)
}

/// Contracts here; the configuration reference and the API document are compared by tests of `gw-server`.
fn generated(root: &Path) -> anyhow::Result<Tally> {
    let mut command = Command::new("node");
    command.args(["contracts/build.mjs", "--check"]).current_dir(root);
    succeed(command)
}

fn release(root: &Path) -> anyhow::Result<Tally> {
    release::check(root).map(|()| Tally::default())
}

fn tests(root: &Path) -> anyhow::Result<Tally> {
    count(cargo(root, &["test", "--workspace", "--locked", "--no-fail-fast"]))
}

fn end_to_end(root: &Path) -> anyhow::Result<Tally> {
    let arguments = [
        "test",
        "-p",
        "gw-server",
        "-p",
        "gw-identity",
        "--features",
        MOCK,
        "--locked",
        "--no-fail-fast",
    ];
    count(cargo(root, &arguments))
}

fn deny(root: &Path) -> anyhow::Result<Tally> {
    let installed = Command::new("cargo-deny")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        say::line("cargo-deny is not installed: skipped");
        return Ok(Tally::default());
    }
    succeed(cargo(
        root,
        &["deny", "--offline", "check", "bans", "licenses", "sources"],
    ))
}

/// The feature of the build with mock login.
pub(crate) const MOCK: &str = "gw-server/mock-login";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_and_nothing_else() {
        let cases = [
            (
                "test result: ok. 19 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.03s",
                (19, 0),
            ),
            (
                "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.03s",
                (3, 2),
            ),
            ("12 passed, 1 failed", (0, 0)),
            ("test a::b ... ok", (0, 0)),
            ("", (0, 0)),
        ];
        for (line, (passed, failed)) in cases {
            assert_eq!(Tally::of_line(line), Tally { passed, failed }, "{line}");
        }
    }

    #[test]
    fn a_run_that_dies_counts_as_a_failure() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            // Not shown: the run this test belongs to counts lines, too.
            count_to(command, |_| ())
        };
        let result = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
        assert_eq!(
            shell(&format!("{result}; exit 1")).ok(),
            Some(Tally { passed: 2, failed: 1 })
        );
        assert_eq!(shell(result).ok(), Some(Tally { passed: 2, failed: 0 }));
        assert!(shell("true").is_err(), "a run without any test proves nothing");
    }
}
