//! The policy store of an entry's outbox row; ids of different stores, or of one restored to an earlier state, may be
//! equal.

use super::{execute_all, id};
use sea_orm_migration::{
    async_trait,
    sea_orm::DbErr,
    sea_query::Table,
    {MigrationName, MigrationTrait, SchemaManager},
};

#[derive(Debug)]
pub(super) struct OutboxOrigin;

impl MigrationName for OutboxOrigin {
    fn name(&self) -> &str {
        "m0002_outbox_origin"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for OutboxOrigin {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut store = id("store_id").null().to_owned();
        manager
            .alter_table(Table::alter().table("entries").add_column(&mut store).to_owned())
            .await?;
        let indices = [
            "DROP INDEX entries_outbox_id_key",
            "CREATE INDEX entries_outbox_id_idx ON entries (outbox_id) WHERE outbox_id IS NOT NULL",
        ];
        execute_all(manager, indices.map(str::to_owned).into()).await
    }
}
