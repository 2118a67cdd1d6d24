//! `ledger-gateway-dev demo`: sets up two banks and a regulator on a real node through the public interfaces, checks
//! each promise live and prints commands to try (spec/85 section 10).
//!
//! The demo uses only HTTP with the tokens that a user would have; it does not access the gateway's internals.

mod account;
mod cast;
mod checks;
mod client;
mod disclosure;
mod explorer;
mod parts;
mod seed;
mod state;
mod tour;

use anyhow::Context as _;
use cast::{Names, Persona};
use clap::{Args, Subcommand};
use client::Client;
use gw_types::ExternalId;
use parts::Parts;
use state::State;
use std::{path::PathBuf, process::ExitCode};

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Directory of the demo's stores and logs; emptied at start and removed at the end.
    #[arg(long, global = true, default_value = "data/demo")]
    dir: PathBuf,
    /// Port of the gateway; if it is taken, another free port.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Use free ports and a new directory, so that several demos can run at once.
    #[arg(long)]
    ephemeral: bool,
    /// Your own DID for a persona: log in as this persona at /login with your wallet, without the mock login. The
    /// demo's gateway takes VERIFIER_ID, BASE_URL, `IDP_*` and `ALTNET_*` from the environment.
    #[arg(long = "did", value_name = "PERSONA=DID", value_parser = cast::parse_name)]
    names: Vec<(Persona, ExternalId)>,
    /// Set everything up but run no checks.
    #[arg(long)]
    seed_only: bool,
    /// Exit after the checks; the exit code is 0 if all of them passed.
    #[arg(long)]
    exit_after_checks: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a fresh access token of a persona of the running demo.
    Token {
        /// The persona that the token is for.
        persona: Persona,
    },
}

/// Runs one of the demo's commands, or the demo itself until it is interrupted.
///
/// # Errors
/// If a part of the demo does not start, or a request of its set-up fails.
pub async fn run(options: Options) -> anyhow::Result<ExitCode> {
    match options.command {
        Some(Command::Token { persona }) => token(&options.dir, persona).await,
        None => demo(options).await,
    }
}

async fn token(dir: &std::path::Path, persona: Persona) -> anyhow::Result<ExitCode> {
    let state = State::read(dir).context("no demo is running; start one with `make demo`")?;
    let client = Client::new(&state.gateway);
    let token = client
        .log_in(state.names.did(persona))
        .await
        .context("the running demo issued no token")?;
    crate::terminal::say(format_args!("{token}\n"));
    Ok(ExitCode::SUCCESS)
}

async fn demo(options: Options) -> anyhow::Result<ExitCode> {
    // In every case, the processes are stopped and the directory is removed at the end.
    let mut interrupt = crate::signal::Interrupt::listen().context("cannot listen for signals")?;
    let mut parts = Parts::default();
    let result = tokio::select! {
        result = set_up_and_check(&options, &mut parts) => result,
        () = interrupt.heard() => {
            tour::say("\nStopping.\n");
            Ok(ExitCode::SUCCESS)
        }
    };
    parts.stop().await;
    result
}

async fn set_up_and_check(options: &Options, parts: &mut Parts) -> anyhow::Result<ExitCode> {
    tour::say("Starting a node and a gateway …\n");
    parts
        .start(
            &options.dir,
            options.port,
            options.ephemeral,
            Names::new(&options.names),
        )
        .await?;
    let running = parts.running().context("the node and the gateway are not running")?;
    let scene = seed::seed(running).await.context("the demo could not be set up")?;
    let (gateway, node, names) = (running.gateway.clone(), running.node.clone(), running.names.clone());
    State {
        gateway,
        node,
        names,
        token: scene.token,
    }
    .write(parts.dir()?)?;
    if options.seed_only {
        tour::print(running, &scene).await?;
    } else {
        let failed = checks::run(running, &scene).await?;
        if options.exit_after_checks || failed > 0 {
            return Ok(if failed == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        tour::print(running, &scene).await?;
    }
    parts.wait_for_exit().await?;
    Ok(ExitCode::FAILURE)
}
