//! `migrate status`, `migrate apply`.

use super::{EXIT_FINDING, say};
use crate::{
    config::{Config, registry::Migrate},
    serve::{
        ServeError,
        stores::{NoStoreYet, Platform, migrate_audit, open_policy},
    },
};
use clap::Subcommand;
use gw_store::{OutboxGuard, Store, StoreError, audit::AuditStore};
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Command {
    /// Report whether the schemas of both stores match this version; exit code 1 if not. May run while the service
    /// runs.
    Status,
    /// Update the schemas of both stores.
    Apply,
}

pub(super) async fn run(command: Command, config: Config) -> Result<ExitCode, ServeError> {
    match command {
        Command::Status => status(&config).await,
        Command::Apply => {
            // A held directory is a temporary condition, not a wrong configuration.
            let platform = Platform::hold(&config).map_err(ServeError::into_busy)?;
            let mut config = config;
            config.store.migrate = Migrate::Auto;
            open_policy(&platform, &config, OutboxGuard::default()).await?;
            migrate_audit(&platform, &config).await?;
            say("the schemas are up to date\n");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads only and takes no lock, so it may run while the service runs.
async fn status(config: &Config) -> Result<ExitCode, ServeError> {
    let platform = Platform::read_only(config);
    let policy = async {
        Store::open(platform.policy_store(config)?)
            .await?
            .check_schema()
            .await
            .map_err(Into::into)
    };
    let audit = async {
        AuditStore::open(platform.audit_store(config)?)
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

/// The deviation of a schema from this version; `None` if there is none.
///
/// # Errors
/// If the check failed for another reason than the schema or a missing database file.
pub(super) fn schema_state(checked: anyhow::Result<()>) -> Result<Option<String>, ServeError> {
    let Err(error) = checked else { return Ok(None) };
    if let Some(StoreError::Schema(state)) = error.downcast_ref() {
        return Ok(Some((*state).to_owned()));
    }
    match error.downcast_ref::<NoStoreYet>() {
        Some(no_store) => Ok(Some(format!("missing: {no_store}"))),
        None => Err(ServeError::Unreadable(error)),
    }
}
