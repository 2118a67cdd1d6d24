//! The command line.
//!
//! Exit codes:
//! - 0: success, no finding
//! - 1: a finding (`doctor`, `audit verify`, `audit salvage`, `migrate status`, `explorer status`), or the service
//!   ended with an error
//! - 2: wrong usage
//! - 3: not finished in time, or interrupted (`explorer reindex`)
//! - 74: an input cannot be read
//! - 75: another process holds the directory, or writes to the explorer's database; try again
//! - 78: invalid configuration, or (`serve`) another process holds the directory (HD24)

pub(crate) mod audit;
mod config;
mod doctor;
mod erase;
mod explorer;
mod hash_client_secret;
mod migrate;
mod salvage;

use crate::{
    config::{Build, Config, EXIT_CONFIG, ExplorerBackendConfig, IndexerConfig, ProcessEnv},
    indexer,
    serve::{self, ServeError},
    terminal::{eprint_line, say},
};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::process::ExitCode;

/// Exit code of a read-only command that found a problem.
const EXIT_FINDING: u8 = 1;
/// Exit code for wrong usage; the argument parser uses the same.
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
    /// Serve until SIGTERM or Ctrl-C.
    Serve,
    /// Serve the explorer's backend until SIGTERM or Ctrl-C: sessions of browsers, and requests forwarded to a gateway.
    /// With a subcommand: maintain the explorer's index.
    Explorer {
        #[command(subcommand)]
        command: Option<explorer::Command>,
    },
    /// Index the chain for the explorer until SIGTERM or Ctrl-C, without a gateway, and serve what is indexed,
    /// unfiltered, on an internal address.
    Indexer,
    /// Update the schemas of both stores, or report their state.
    Migrate {
        #[command(subcommand)]
        command: migrate::Command,
    },
    /// Check, show or document the configuration.
    Config {
        #[command(subcommand)]
        command: config::Command,
    },
    /// Check or repair the audit log, or erase the personal values of a user.
    Audit {
        #[command(subcommand)]
        command: audit::Command,
    },
    /// Print the API document.
    Openapi,
    /// Create an entry for OAUTH_FIRST_PARTY_CLIENTS. The secret is read from standard input; at a terminal a new one
    /// is generated and shown once.
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
    // With feature `mock-login`, Cargo compiles the mock code into this binary, too. Such a build must not be released.
    if build == Build::Release && cfg!(feature = "mock-login") {
        eprint_line(
            "this build contains mock code: run `ledger-gateway-dev`, or build without the feature `mock-login`",
        );
        return ExitCode::from(EXIT_CONFIG);
    }
    let name = match build {
        Build::Release => "ledger-gateway",
        Build::Mock => "ledger-gateway-dev",
    };
    let result = match arguments(name).command {
        Command::Serve => {
            load_config(build).and_then(|config| run(async { serve::run(config).await.map(|()| ExitCode::SUCCESS) }))
        }
        Command::Explorer { command: None } => explorer_backend(),
        Command::Explorer { command: Some(command) } => run(explorer::run(command)),
        Command::Indexer => indexer(),
        Command::Audit { command } => load_config(build).and_then(|config| run(audit::run(command, config))),
        Command::Openapi => openapi(),
        Command::HashClientSecret { client_id } => hash_client_secret::run(&client_id),
        Command::Migrate { command } => load_config(build).and_then(|config| run(migrate::run(command, config))),
        Command::Config { command } => Ok(config::run(command, build)),
        Command::Doctor => load_config(build).and_then(|config| run(doctor::run(config))),
        #[cfg(feature = "mock-login")]
        Command::Demo(options) => run(async { Ok(crate::demo::run(options).await?) }),
    };
    result.unwrap_or_else(|error| {
        eprint_line(&error);
        ExitCode::from(error.exit_code())
    })
}

/// The parsed command line of the binary called `name`; ends the process on `--help`, `--version` and wrong usage.
fn arguments(name: &'static str) -> Arguments {
    let matches = Arguments::command().name(name).bin_name(name).get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn load_config(build: Build) -> Result<Config, ServeError> {
    Ok(Config::load(&ProcessEnv::read(), build)?)
}

/// Bytes of address space for the stack of each worker thread. Only pages that are used take memory. Unoptimized builds
/// use several times as much of it as optimized ones.
const THREAD_STACK: usize = 8 << 20;

/// Runs a command to completion on a new runtime.
fn run(command: impl Future<Output = Result<ExitCode, ServeError>>) -> Result<ExitCode, ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(THREAD_STACK)
        .enable_all()
        .build();
    runtime
        .map_err(|error| ServeError::Other(error.into()))?
        .block_on(command)
}

/// Indexes the chain without a gateway.
fn indexer() -> Result<ExitCode, ServeError> {
    let config = IndexerConfig::load(&ProcessEnv::read())?;
    run(async {
        indexer::run(config).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Serves the explorer's backend, which has a configuration of its own.
fn explorer_backend() -> Result<ExitCode, ServeError> {
    let config = ExplorerBackendConfig::load(&ProcessEnv::read())?;
    run(async {
        crate::explorer_backend::run(config).await?;
        Ok(ExitCode::SUCCESS)
    })
}

fn openapi() -> Result<ExitCode, ServeError> {
    say(serve::api_document()?);
    Ok(ExitCode::SUCCESS)
}
