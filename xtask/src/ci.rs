//! The steps of CI, cheapest first. `make test` and `.ci/run` run only this.
//!
//! The run stops at the first step that fails. Its last line is always `N passed, N failed`; a step that does not run
//! tests counts only if it fails.

use crate::{
    command::{DEV_FEATURES, cargo, name, succeed},
    dependencies, glossary, layers, programs, release, rules, say, width,
};
use anyhow::{Context as _, bail};
use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

/// A step of CI.
pub(crate) struct Step {
    /// The name of the step on the command line.
    pub(crate) name: &'static str,
    /// The property that the step checks.
    pub(crate) purpose: &'static str,
    run: fn(&Path) -> anyhow::Result<Tally>,
}

/// All steps in the order they run.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        purpose: "the code is formatted, and no line is wider than rustfmt.toml allows",
        run: fmt,
    },
    Step {
        name: "layers",
        purpose: "crates depend only on crates of the layers above them, and no modules form a new circle",
        run: layering,
    },
    Step {
        name: "dependencies",
        purpose: "licences, sources and versions of dependencies are allowed; each is used, and not only by tests",
        run: dependencies,
    },
    Step {
        name: "rules",
        purpose: "docs/rules-index.md has a row for every mentioned rule id",
        run: rule_ids,
    },
    Step {
        name: "glossary",
        purpose: "retired names occur no more often than xtask/glossary.toml allows",
        run: retired_names,
    },
    Step {
        name: "clippy",
        purpose: "no lint fires, with and without the mock login",
        run: clippy,
    },
    Step {
        name: "rustdoc",
        purpose: "the documentation builds without warnings",
        run: rustdoc,
    },
    Step {
        name: "generated",
        purpose: "generated files match their sources",
        run: generated,
    },
    Step {
        name: "tests",
        purpose: "all tests of the dev build, on SQLite and PostgreSQL, with real clients and a real browser",
        run: tests,
    },
    Step {
        name: "release",
        purpose: "the plain build: its own tests, and no mock code in the binary (HD19)",
        run: release,
    },
];

/// The number of passed and failed tests.
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

    /// The numbers in the output of a test program.
    fn of_program(output: &str, success: bool) -> Self {
        let mut tally = Self::default();
        output.lines().for_each(|line| tally.add(Self::from_line(line)));
        tally.with_exit(success)
    }

    /// With the exit of the program: one that died prints no result line.
    fn with_exit(mut self, success: bool) -> Self {
        if !success && self.failed == 0 {
            self.failed = 1;
        }
        self
    }

    /// The numbers in a result line of the test runner; zero for any other line.
    fn from_line(line: &str) -> Self {
        let parse_count = |text: &str, word: &str| {
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
                passed: parse_count(counts.next()?, "passed")?,
                failed: parse_count(counts.next()?, "failed")?,
            })
        });
        numbers.unwrap_or_default()
    }
}

/// Runs all steps, or only the named one.
pub(crate) fn run(root: &Path, only: Option<&str>) -> anyhow::Result<ExitCode> {
    if let Some(name) = only
        && !STEPS.iter().any(|step| step.name == name)
    {
        bail!("there is no step `{name}`; see `cargo xtask steps`");
    }
    let mut total = Tally::default();
    let mut code = ExitCode::SUCCESS;
    for step in STEPS.iter().filter(|step| only.is_none_or(|name| name == step.name)) {
        say::line(format_args!("==> {}: {}", step.name, step.purpose));
        let start = Instant::now();
        let result = (step.run)(root);
        let seconds = start.elapsed().as_secs();
        let (tally, fault) = match result {
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

/// Runs the quick checks of a change: formatting, layers, and lints and unit tests of the crates that differ from
/// `HEAD`. Lints and tests use the same features as `cargo clippy -p`, so that a warm run builds only the changed
/// crates.
pub(crate) fn check(root: &Path) -> anyhow::Result<ExitCode> {
    let output = Command::new("git")
        .args(["status", "--porcelain", "--", "crates", "xtask"])
        .current_dir(root)
        .output();
    let output = output.context("git did not start")?;
    let paths = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = paths.lines().filter_map(|line| {
        let path = line.get(3..)?;
        let path = path.rsplit(" -> ").next()?;
        path.strip_prefix("crates/")
            .map_or(path.starts_with("xtask/").then_some("xtask"), |path| {
                path.split('/').next()
            })
    });
    let changed: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    fmt(root)?;
    layering(root)?;
    if changed.is_empty() {
        say::line("formatting and layers are fine; no crate differs from HEAD");
        return Ok(ExitCode::SUCCESS);
    }
    let packages: Vec<&str> = changed.iter().flat_map(|name| ["-p", *name]).collect();
    let cargo_packages = |first: &[&'static str], last: &[&'static str]| {
        let arguments: Vec<&str> = first.iter().chain(&packages).chain(last).copied().collect();
        cargo(root, &arguments)
    };
    succeed(cargo_packages(
        &["clippy", "--locked"],
        &["--all-targets", "--", "-D", "warnings"],
    ))?;
    let tally = count(cargo_packages(&["test", "--locked"], &["--lib", "--bins"]))?;
    say::line(format_args!("{} passed, {} failed", tally.passed, tally.failed));
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs a test command, prints its output and counts the tests in it.
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
            tally.add(Tally::from_line(&line));
        }
    }
    let status = child
        .wait()
        .with_context(|| format!("{} cannot be waited for", name(&command)))?;
    let tally = tally.with_exit(status.success());
    if status.success() && tally.passed == 0 {
        bail!("`{}` ran no test", name(&command));
    }
    Ok(tally)
}

fn fmt(root: &Path) -> anyhow::Result<Tally> {
    succeed(cargo(root, &["fmt", "--all", "--check"]))?;
    let wide = width::check(root)?;
    if wide.is_empty() {
        return Ok(Tally::default());
    }
    bail!("\n{}", wide.join("\n"))
}

fn layering(root: &Path) -> anyhow::Result<Tally> {
    let faults = layers::check(root)?;
    if faults.is_empty() {
        return Ok(Tally::default());
    }
    bail!("\n{}", faults.join("\n"))
}

/// Both runs name the whole workspace, because cargo would compile most dependencies again, with fewer features, for a
/// selection of its crates.
fn clippy(root: &Path) -> anyhow::Result<Tally> {
    let lint = |features: &[&'static str]| {
        let mut command = cargo(root, &["clippy", "--workspace", "--all-targets", "--locked"]);
        command.args(features).args(["--", "-D", "warnings"]);
        succeed(command)
    };
    lint(&[])?;
    lint(&["--features", DEV_FEATURES])?;
    Ok(Tally::default())
}

/// `--examples` selects nothing, but lets cargo enable the features of dev-dependencies: the dependencies that clippy
/// compiled can be used again.
fn rustdoc(root: &Path) -> anyhow::Result<Tally> {
    let mut command = cargo(root, &["doc", "--workspace", "--no-deps", "--locked"]);
    command
        .args(["--lib", "--bins", "--examples"])
        .env("RUSTDOCFLAGS", "-D warnings");
    succeed(command)?;
    Ok(Tally::default())
}

fn rule_ids(root: &Path) -> anyhow::Result<Tally> {
    let missing = rules::missing(root)?;
    missing.iter().for_each(say::line);
    if missing.is_empty() {
        Ok(Tally::default())
    } else {
        bail!("{} rule ids have no row in docs/rules-index.md", missing.len())
    }
}

fn retired_names(root: &Path) -> anyhow::Result<Tally> {
    let faults = glossary::check(root)?;
    if faults.is_empty() {
        Ok(Tally::default())
    } else {
        bail!("\n{}", faults.join("\n"))
    }
}

/// Checks the generated contracts. Tests of `gw-server` check the configuration reference and the API document.
fn generated(root: &Path) -> anyhow::Result<Tally> {
    let mut command = Command::new("node");
    command.args(["contracts/build.mjs", "--check"]).current_dir(root);
    succeed(command)?;
    Ok(Tally::default())
}

/// Tests the plain build. Of its tests it runs only those that the dev build does not contain.
fn release(root: &Path) -> anyhow::Result<Tally> {
    let tally = count(test(root, &["--test", "plain"]))?;
    release::check(root)?;
    Ok(tally)
}

/// A test command that goes on after a failure. It names the whole workspace, as in [`clippy`].
fn test(root: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo(root, &["test", "--workspace", "--locked", "--no-fail-fast"]);
    command.args(arguments);
    command
}

/// Tests of the dev build. All of them share one build, and it contains the code of the plain build.
fn tests(root: &Path) -> anyhow::Result<Tally> {
    let targets = ["--lib", "--bins", "--test", "it", "--test", "kill", "--test", "e2e"];
    let workspace = ["--workspace", "--locked", "--features", DEV_FEATURES];
    let mut tally = Tally::default();
    programs::run(root, &[&workspace[..], &targets].concat(), |run| {
        say::line(format_args!("     Output of {}, {} s:", run.name, run.seconds));
        say::line(&run.output);
        tally.add(Tally::of_program(&run.output, run.success));
    })?;
    let mut doc = test(root, &["--doc"]);
    doc.args(["--features", DEV_FEATURES]);
    tally.add(count(doc)?);
    Ok(tally)
}

fn dependencies(root: &Path) -> anyhow::Result<Tally> {
    let faults = dependencies::check(root)?;
    if faults.is_empty() {
        Ok(Tally::default())
    } else {
        bail!("\n{}", faults.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_result_lines_are_counted() {
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
            assert_eq!(Tally::from_line(line), Tally { passed, failed }, "{line}");
        }
    }

    #[test]
    fn a_program_that_dies_counts_as_a_failure() {
        let output = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored";
        let tally = |passed, failed| Tally { passed, failed };
        assert_eq!(Tally::of_program(output, true), tally(2, 0));
        assert_eq!(Tally::of_program(output, false), tally(2, 1));
        assert_eq!(Tally::of_program("running 2 tests", false), tally(0, 1));
    }

    #[test]
    fn contributing_lists_the_steps_in_order() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory");
        let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
        let (_, section) = text.split_once("## What CI does").expect("the section");
        let rows = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let steps = STEPS.iter().map(|step| step.name);
        assert_eq!(rows.collect::<Vec<_>>(), steps.collect::<Vec<_>>());
    }

    #[test]
    fn a_run_that_dies_counts_as_a_failure() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            // The output is not printed, because the CI run of this test would count its lines.
            count_to(command, |_| ())
        };
        let result = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
        assert_eq!(
            shell(&format!("{result}; exit 1")).ok(),
            Some(Tally { passed: 2, failed: 1 })
        );
        assert_eq!(shell(result).ok(), Some(Tally { passed: 2, failed: 0 }));
        assert!(shell("true").is_err(), "a run without tests is an error");
    }
}
