//! Development tasks, such as `cargo xtask ci`.
//!
//! This crate uses no other crate of the workspace, so that the checks also run if a crate does not build.

mod ci;
mod command;
mod dependencies;
mod glossary;
mod layers;
mod modules;
mod programs;
mod release;
mod rules;
mod say;
mod source;
mod width;

use anyhow::Context as _;
use std::{path::PathBuf, process::ExitCode};

const USAGE: &str = "\
usage: cargo xtask layers    check which crates depend on which (ARCHITECTURE.md), and that modules form no circle
       cargo xtask circles CRATE
                             list the modules of a crate that use each other
       cargo xtask ci [STEP] run all steps of CI, cheapest first, or only one
       cargo xtask steps     list the steps of CI
       cargo xtask check     run the quick checks of the crates that differ from HEAD
       cargo xtask rules     list the rule ids without a row in docs/rules-index.md
       cargo xtask glossary  count the retired names that are still in the code
       cargo xtask glossary lower
                             lower the allowed counts to those of the code
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            say::error_line(format_args!("xtask: {error:#}"));
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
                say::error_line(fault);
            }
            Ok(if faults.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        (Some("circles"), Some(package)) => {
            modules::describe(&root, &package)?.iter().for_each(say::line);
            Ok(ExitCode::SUCCESS)
        }
        (Some("rules"), None) => {
            let missing = rules::missing(&root)?;
            missing.iter().for_each(say::error_line);
            Ok(if missing.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        (Some("check"), None) => ci::check(&root),
        (Some("ci"), step) => ci::run(&root, step.as_deref()),
        (Some("glossary"), Some(lower)) if lower == "lower" => {
            glossary::lower(&root)?;
            Ok(ExitCode::SUCCESS)
        }
        (Some("glossary"), None) => {
            let counts = glossary::count(&root)?;
            let names = counts
                .iter()
                .flat_map(|(package, names)| names.iter().map(move |(name, count)| (package, name, count)));
            let mut total = 0;
            for (package, name, count) in names {
                total += count;
                say::line(format_args!("{count:5} {package} {name}"));
            }
            say::line(format_args!("{total:5} in total"));
            Ok(ExitCode::SUCCESS)
        }
        (Some("steps"), None) => {
            for step in ci::STEPS {
                say::line(format_args!("{:12} {}", step.name, step.purpose));
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            say::error_line(USAGE);
            Ok(ExitCode::from(2))
        }
    }
}

/// The directory of the workspace, which is the parent of this crate's directory.
fn root() -> anyhow::Result<PathBuf> {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(PathBuf::from)
        .context("the directory of xtask has no parent")
}
