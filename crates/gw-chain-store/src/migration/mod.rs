//! The schema, forward only: released steps are never edited, a change is a new step.

mod m0001_chain;

use crate::{ChainStoreError, dialect::Pools};
use sea_orm::{ConnectionTrait, DbErr};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

/// The tables with rows of the chain: a wipe empties them.
pub(crate) const CHAIN_TABLES: [&str; 12] = [
    "balances",
    "blocks",
    "contracts",
    "frames",
    "logs",
    "proxy_changes",
    "tasks",
    "token_balances",
    "token_transfers",
    "tokens",
    "transaction_parties",
    "transactions",
];

/// The migration steps.
#[derive(Debug)]
struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m0001_chain::ChainTables)]
    }
}

/// Migrates the schema to the version of this build. Takes no lock if nothing is to be done.
///
/// # Errors
/// [`ChainStoreError::Schema`] if the schema is newer than this build; any database error.
pub(crate) async fn run(pools: &Pools) -> Result<(), ChainStoreError> {
    let tx = pools.begin_read().await?;
    let is_current = is_current(&tx).await?;
    drop(tx);
    if is_current {
        return Ok(());
    }
    let tx = pools.begin_migration().await?;
    tx.with_raw(async |raw| Migrator::up(raw, None).await).await?;
    Ok(tx.commit().await?)
}

async fn is_current(conn: &impl ConnectionTrait) -> Result<bool, ChainStoreError> {
    match Migrator::get_pending_migrations_read_only(conn).await {
        Ok(pending) => Ok(pending.is_empty()),
        // The database contains a step that this build does not know.
        Err(DbErr::Custom(_)) => Err(ChainStoreError::Schema("newer than this build")),
        Err(cause) => Err(cause.into()),
    }
}
