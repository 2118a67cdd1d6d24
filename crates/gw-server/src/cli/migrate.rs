//! `migrate status`, `migrate apply`.

use super::say;
use crate::{
    config::{Config, registry::Migrate},
    serve::{
        Fault,
        stores::{Ground, open_audit, open_policy},
    },
};
use clap::Subcommand;
use gw_store::{Store, StoreError};
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Command {
    /// Say whether the schema is this version's; code 1 if not.
    Status,
    /// Bring the schemas of both stores up to date.
    Apply,
}

pub(super) async fn run(command: Command, config: Config) -> Result<ExitCode, Fault> {
    let ground = Ground::hold(&config)?;
    match command {
        Command::Status => {
            let store = Store::open(ground.policy_store(&config)?).await.map_err(anyhow::Error::from)?;
            match store.check_schema().await {
                Ok(()) => {
                    say("the schema is up to date\n");
                    Ok(ExitCode::SUCCESS)
                }
                Err(StoreError::Schema(state)) => {
                    say(format_args!("the schema is {state}\n"));
                    Ok(ExitCode::FAILURE)
                }
                Err(error) => Err(Fault::Other(error.into())),
            }
        }
        Command::Apply => {
            let mut config = config;
            config.store.migrate = Migrate::Auto;
            open_policy(&ground, &config).await?;
            open_audit(&ground, &config).await?;
            say("the schemas are up to date\n");
            Ok(ExitCode::SUCCESS)
        }
    }
}
