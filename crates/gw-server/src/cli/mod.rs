//! The command line.
//!
//! Exit codes: 0 done and nothing found; 1 a finding (`doctor`, `audit verify`, `audit salvage`, `migrate status`), or the service ended on
//! an error; 2 wrong usage; 3 not finished in time; 74 what was to be read cannot be read; 75 another process holds it, try
//! again; 78 wrong configuration, or (`serve`) the place is held by another process (HD24).

pub(crate) mod audit;
mod config;
mod doctor;
mod erase;
mod hash_client_secret;
mod migrate;
mod salvage;

use crate::{
    config::{Build, Config, EXIT_CONFIG, ProcessEnv},
    serve::{self, Fault},
};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::{io::Write as _, process::ExitCode};

/// A reading command found something that is not as it must be.
const EXIT_FINDING: u8 = 1;
/// Wrong usage, as the parser of the command line has it.
const EXIT_USAGE: u8 = 2;

/// Privacy-governed gateway in front of an EVM node.
#[derive(Debug, Parser)]
#[command(version, about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve until told to end (SIGTERM, Ctrl-C).
    Serve,
    /// Bring the policy store's schema up to date, or say where it stands.
    Migrate {
        #[command(subcommand)]
        command: migrate::Command,
    },
    /// Check, show or document the configuration.
    Config {
        #[command(subcommand)]
        command: config::Command,
    },
    /// Check the audit log, or erase what it holds of a person.
    Audit {
        #[command(subcommand)]
        command: audit::Command,
    },
    /// Print the API document.
    Openapi,
    /// Make an entry of OAUTH_FIRST_PARTY_CLIENTS. The secret is read from standard input; at a terminal a fresh one is
    /// made and shown once.
    HashClientSecret {
        /// The application's client id.
        client_id: String,
    },
    /// Check the configuration and everything the gateway depends on, without starting it.
    Doctor,
    /// Show everything with two banks, a regulator and a real node.
    #[cfg(feature = "mock-login")]
    Demo(crate::demo::Options),
}

/// Runs the command line of one of the two binaries.
pub fn main(build: Build) -> ExitCode {
    // A plain binary compiled together with mock code is not the one that may be released.
    if build == Build::Release && cfg!(feature = "mock-login") {
        complain("this build holds mock code: run `ledger-gateway-dev`, or build without feature `mock-login`");
        return ExitCode::from(EXIT_CONFIG);
    }
    let name = match build {
        Build::Release => "ledger-gateway",
        Build::Mock => "ledger-gateway-dev",
    };
    let said = match arguments(name).command {
        Command::Serve => {
            configured(build).and_then(|config| run(async { serve::run(config).await.map(|()| ExitCode::SUCCESS) }))
        }
        Command::Audit { command } => configured(build).and_then(|config| run(audit::run(command, config))),
        Command::Openapi => openapi(),
        Command::HashClientSecret { client_id } => hash_client_secret::run(&client_id),
        Command::Migrate { command } => configured(build).and_then(|config| run(migrate::run(command, config))),
        Command::Config { command } => Ok(config::run(command, build)),
        Command::Doctor => configured(build).and_then(|config| run(doctor::run(config))),
        #[cfg(feature = "mock-login")]
        Command::Demo(options) => run(async { Ok(crate::demo::run(options).await?) }),
    };
    said.unwrap_or_else(|fault| {
        complain(&fault);
        ExitCode::from(fault.exit_code())
    })
}

/// The parsed command line of the binary called `name`; ends the process on `--help`, `--version` and wrong usage.
fn arguments(name: &'static str) -> Arguments {
    let matches = Arguments::command().name(name).bin_name(name).get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn configured(build: Build) -> Result<Config, Fault> {
    Ok(Config::load(&ProcessEnv::read(), build)?)
}

/// Runs a command to its end on a runtime of its own.
fn run(command: impl Future<Output = Result<ExitCode, Fault>>) -> Result<ExitCode, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Fault::Other(error.into()))?.block_on(command)
}

fn openapi() -> Result<ExitCode, Fault> {
    say(serve::api_document()?);
    Ok(ExitCode::SUCCESS)
}

/// A line to standard error; a closed pipe is nobody's failure.
pub(crate) fn complain(line: impl core::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A text to standard output.
pub(crate) fn say(text: impl core::fmt::Display) {
    let mut out = std::io::stdout();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}
