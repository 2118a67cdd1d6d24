//! `config check`, `config print`, `config doc`.

use super::{eprint_line, say};
use crate::config::{self, Build, EXIT_CONFIG, ProcessEnv, Report};
use clap::Subcommand;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Command {
    /// Report all errors of the configuration, without starting the service.
    Check,
    /// Show every variable, its value (secrets: set or unset) and its origin.
    Print,
    /// Print the reference of all variables in Markdown.
    Doc,
}

pub(super) fn run(command: Command, build: Build) -> ExitCode {
    match command {
        Command::Check => {
            let (_, report) = config::settings(&ProcessEnv::read(), build);
            if report.is_empty() {
                say("configuration is valid\n");
            }
            verdict(&report)
        }
        Command::Print => {
            let (settings, report) = config::settings(&ProcessEnv::read(), build);
            say(config::print(&settings));
            verdict(&report)
        }
        Command::Doc => {
            say(config::reference());
            ExitCode::SUCCESS
        }
    }
}

fn verdict(report: &Report) -> ExitCode {
    if report.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprint_line(report);
    ExitCode::from(EXIT_CONFIG)
}
