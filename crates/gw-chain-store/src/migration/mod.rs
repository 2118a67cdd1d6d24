//! The schema, forward only: released steps are never edited, a change is a new step.

mod m0001_chain;
mod m0002_pending_balances;

use crate::{ChainStoreError, dialect::Pools};
use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

/// The tables with rows of the chain: a wipe empties them.
pub(crate) const CHAIN_TABLES: [&str; 12] = [
    "balances",
    "blocks",
    "changed_blocks",
    "contracts",
    "frames",
    "logs",
    "proxy_changes",
    "tasks",
    "token_balances",
    "token_transfers",
    "tokens",
    "transactions",
];

/// The migration steps.
#[derive(Debug)]
struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_chain::ChainTables),
            Box::new(m0002_pending_balances::PendingBalances),
        ]
    }
}

/// Migrates the schema to the version of this build. Takes no lock if nothing is to be done.
///
/// # Errors
/// [`ChainStoreError::Schema`] if the schema is newer than this build; any database error.
pub(crate) async fn run(pools: &Pools) -> Result<(), ChainStoreError> {
    let tx = pools.begin_read().await?;
    let is_current = state(&tx).await? == SchemaState::Current;
    drop(tx);
    if is_current {
        return Ok(());
    }
    let tx = pools.begin_migration().await?;
    tx.with_raw(async |raw| Migrator::up(raw, None).await).await?;
    Ok(tx.commit().await?)
}

/// How the schema of a database relates to that of this build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaState {
    /// There are no tables.
    Missing,
    /// Steps of this build are missing.
    Older,
    /// It is the same.
    Current,
}

/// Compares the schema with that of this build.
///
/// # Errors
/// [`ChainStoreError::Schema`] if the schema is newer than this build; any database error.
pub(crate) async fn state(conn: &impl ConnectionTrait) -> Result<SchemaState, ChainStoreError> {
    match Migrator::get_pending_migrations_read_only(conn).await {
        Ok(pending) if pending.is_empty() => Ok(SchemaState::Current),
        Ok(pending) if pending.len() == Migrator::migrations().len() => Ok(SchemaState::Missing),
        Ok(_) => Ok(SchemaState::Older),
        // The database contains a step that this build does not know.
        Err(DbErr::Custom(_)) => Err(ChainStoreError::Schema("newer than this build")),
        Err(cause) => Err(cause.into()),
    }
}
