//! Chores: `cargo xtask layers` and `cargo xtask ci`.
//!
//! Kept free of the workspace's own crates, so that a broken crate cannot keep its own check from running.

mod ci;
mod layers;
mod release;
mod say;

use anyhow::Context as _;
use std::{path::PathBuf, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask layers    who may depend on whom (ARCHITECTURE.md)
       cargo xtask ci [STEP] everything CI runs, cheapest first; or one step of it
       cargo xtask steps     the names of those steps
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            say::complain(format_args!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let root = root()?;
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("layers"), None) => {
            let faults = layers::check(&root)?;
            for fault in &faults {
                say::complain(fault);
            }
            Ok(if faults.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        (Some("ci"), step) => ci::run(&root, step.as_deref()),
        (Some("steps"), None) => {
            for step in ci::STEPS {
                say::line(format_args!("{:12} {}", step.name, step.what));
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            say::complain(USAGE);
            Ok(ExitCode::from(2))
        }
    }
}

/// The workspace: the directory above this crate's own.
fn root() -> anyhow::Result<PathBuf> {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(PathBuf::from)
        .context("xtask has no directory above it")
}
