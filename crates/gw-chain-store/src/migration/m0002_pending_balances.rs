//! The token balances of an address that are to be read again.

use sea_orm_migration::{
    MigrationName, MigrationTrait, SchemaManager, async_trait,
    sea_orm::{ConnectionTrait, DbErr},
};

#[derive(Debug)]
pub(super) struct PendingBalances;

impl MigrationName for PendingBalances {
    fn name(&self) -> &str {
        "m0002_pending_balances"
    }
}

/// The key of a token balance is the token, then the holder.
const INDEX: &str = "CREATE INDEX tasks_holder_idx ON tasks (kind, substr(\"key\", 21, 20))";

#[async_trait::async_trait]
impl MigrationTrait for PendingBalances {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(INDEX).await?;
        Ok(())
    }
}
