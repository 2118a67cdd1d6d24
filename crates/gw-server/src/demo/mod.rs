//! `ledger-gateway-dev demo`: two banks and a regulator on a real node, set up the way an administrator would do it,
//! each promise checked live, and ready lines to try it oneself (spec/85 section 10).
//!
//! Everything goes over HTTP with the tokens a user would have; nothing here reaches into the gateway.

mod account;
mod cast;
mod checks;
mod client;
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
    /// Directory of the demo's stores and logs; emptied at start, removed at the end.
    #[arg(long, global = true, default_value = "data/demo")]
    dir: PathBuf,
    /// Port of the gateway; another free one if it is taken.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Free ports and a directory of its own: several demos side by side.
    #[arg(long)]
    ephemeral: bool,
    /// A DID of your own for a persona: log in as it at /login with your wallet, no mock in between. VERIFIER_ID,
    /// BASE_URL, `IDP_*` and `ALTNET_*` of the environment hold for the demo's gateway.
    #[arg(long = "did", value_name = "PERSONA=DID", value_parser = cast::parse_name)]
    names: Vec<(Persona, ExternalId)>,
    /// Set everything up, check nothing.
    #[arg(long)]
    seed_only: bool,
    /// End after the checks; the exit code says whether all of them passed.
    #[arg(long)]
    exit_after_checks: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a fresh access token of a persona of the running demo.
    Token {
        /// Whose.
        persona: Persona,
    },
}

/// Runs the demo until it is told to end, or one of its commands.
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
        .context("the running demo gave no token")?;
    crate::cli::say(format_args!("{token}\n"));
    Ok(ExitCode::SUCCESS)
}

async fn demo(options: Options) -> anyhow::Result<ExitCode> {
    // Whatever happens in between, the parts are stopped and the directory is removed.
    let mut interrupted = crate::signal::Interrupt::listen().context("signals cannot be heard")?;
    let mut parts = Parts::default();
    let said = tokio::select! {
        said = act(&options, &mut parts) => said,
        () = interrupted.heard() => {
            tour::say("\nStopping.\n");
            Ok(ExitCode::SUCCESS)
        }
    };
    parts.stop().await;
    said
}

async fn act(options: &Options, parts: &mut Parts) -> anyhow::Result<ExitCode> {
    tour::say("Starting a node and a gateway …\n");
    parts
        .start(&options.dir, options.port, options.ephemeral, Names::of(&options.names))
        .await?;
    let running = parts.running().context("the parts are not running")?;
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
    parts.until_one_ends().await?;
    Ok(ExitCode::FAILURE)
}
