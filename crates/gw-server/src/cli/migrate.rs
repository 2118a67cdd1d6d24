//! `migrate status`, `migrate apply`.

use super::{EXIT_FINDING, say};
use crate::{
    config::{Config, registry::Migrate},
    serve::{
        Fault,
        stores::{Ground, NoStoreYet, migrate_audit, open_policy},
    },
};
use clap::Subcommand;
use gw_store::{OutboxGuard, Store, StoreError, audit::AuditStore};
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Command {
    /// Say whether the schemas of both stores are this version's; code 1 if not. Runs beside the service.
    Status,
    /// Bring the schemas of both stores up to date.
    Apply,
}

pub(super) async fn run(command: Command, config: Config) -> Result<ExitCode, Fault> {
    match command {
        Command::Status => status(&config).await,
        Command::Apply => {
            // Another process that holds the directory is only in the way for the moment.
            let ground = Ground::hold(&config).map_err(Fault::into_busy)?;
            let mut config = config;
            config.store.migrate = Migrate::Auto;
            open_policy(&ground, &config, OutboxGuard::default()).await?;
            migrate_audit(&ground, &config).await?;
            say("the schemas are up to date\n");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads only and takes no lock, so it runs beside the service.
async fn status(config: &Config) -> Result<ExitCode, Fault> {
    let ground = Ground::read_only(config);
    let policy = async {
        Store::open(ground.policy_store(config)?)
            .await?
            .check_schema()
            .await
            .map_err(Into::into)
    };
    let audit = async {
        AuditStore::open(ground.audit_store(config)?)
            .await?
            .check_schema()
            .await
            .map_err(Into::into)
    };
    let mut code = ExitCode::SUCCESS;
    for (store, state) in [
        ("policy store", schema_state(policy.await)?),
        ("audit store", schema_state(audit.await)?),
    ] {
        match state {
            None => say(format_args!("{store}: the schema is up to date\n")),
            Some(state) => {
                say(format_args!("{store}: the schema is {state}\n"));
                code = ExitCode::from(EXIT_FINDING);
            }
        }
    }
    Ok(code)
}

/// What is to be said of a schema; `None` if it is this version's.
pub(super) fn schema_state(checked: anyhow::Result<()>) -> Result<Option<String>, Fault> {
    let Err(error) = checked else { return Ok(None) };
    if let Some(StoreError::Schema(state)) = error.downcast_ref() {
        return Ok(Some((*state).to_owned()));
    }
    match error.downcast_ref::<NoStoreYet>() {
        Some(none) => Ok(Some(format!("missing: {none}"))),
        None => Err(Fault::Unreadable(error)),
    }
}
